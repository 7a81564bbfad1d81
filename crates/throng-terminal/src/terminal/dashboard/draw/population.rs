//! The map of users: each character always represents the same users, in the color of their worst
//! state.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use throng_base::columns::{cut, width};
use throng_base::units::format_count;
use throng_metrics::{Shade, UserState};

use super::{View, short};

fn colour(state: UserState) -> Color {
    match state {
        UserState::Online => Color::Green,
        UserState::Disconnected => Color::DarkGray,
        UserState::Connecting => Color::Cyan,
        UserState::LoggingIn => Color::Blue,
        UserState::Away => Color::Red,
        UserState::Failed => Color::Magenta,
    }
}

/// A dense block means at least half of the users, a light one some of them. Without colors, it is
/// a letter.
fn symbol(shade: Shade, view: &View<'_>) -> Span<'static> {
    let Some(state) = shade.state() else { return Span::raw(" ") };
    let symbol = match (view.style.colour, shade.is_most()) {
        (true, true) => '█',
        (true, false) => '▒',
        (false, _) => shade.letter(),
    };
    Span::styled(symbol.to_string(), view.ink(colour(state)))
}

/// The cells, and below them the number of users in each state.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let census = &view.figures.census;
    let [columns, lines] = [area.width, area.height].map(|it| usize::from(it.saturating_sub(2)));
    if census.cells() == 0 || columns == 0 || lines == 0 {
        return;
    }
    let legend = legend(view, columns, lines.saturating_sub(1));
    let room = columns * lines.saturating_sub(legend.len());
    let each = census.cells().div_ceil(room.max(1));
    let firsts: Vec<usize> = (0..census.cells()).step_by(each).collect();
    let cell = |first: &usize| symbol(census.shade(*first..first + each), view);
    let rows = firsts.chunks(columns).map(|row| Line::from_iter(row.iter().map(cell)));
    let lines: Vec<Line<'_>> = rows.chain(legend).collect();
    let users = census.users_per_cell.saturating_mul(each as u64);
    let title = match users {
        1 => view.say(say!("population: 1 user per cell")),
        users => view.say(say!("population: {} users per cell", format_count(users))),
    };
    frame.render_widget(Paragraph::new(lines).block(view.block(&title)), area);
}

/// States with users, the worst first, on a limited number of lines.
fn legend(view: &View<'_>, columns: usize, lines: usize) -> Vec<Line<'static>> {
    let counts = view.figures.census.all();
    let mut legend: Vec<Line<'static>> = Vec::new();
    let mut room = 0;
    for (state, count) in UserState::ALL.into_iter().zip(counts).rev() {
        if count == 0 {
            continue;
        }
        let text = format!(" {} {}  ", short(count), view.say(state.text()));
        if room < width(&text) {
            if legend.len() == lines {
                break;
            }
            legend.push(Line::default());
            room = columns;
        }
        let text = cut(&text, room.saturating_sub(1));
        room = room.saturating_sub(1 + width(&text));
        if let Some(line) = legend.last_mut() {
            line.push_span(symbol(Shade::most(state), view));
            line.push_span(text);
        }
    }
    legend
}
