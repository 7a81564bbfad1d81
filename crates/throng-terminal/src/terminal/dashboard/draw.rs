//! The layout of the full screen: charts above, tables below, as far as there is space.

mod population;

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Ink};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Cell, Chart, Clear, Dataset, GraphType, LegendPosition, Paragraph, Row, Table,
};
use throng_base::Said;
use throng_base::columns::{cut, cut_middle};
use throng_base::units::{format_count, format_duration};
use throng_metrics::{Stage, Unit};
use throng_results::terminal::{Progress, Style, figure_text, progress_line};

use super::figures::{Figures, Funnel, Second};

/// A smaller screen shows only the first lines.
const LINES_MIN: u16 = 12;
const COLUMNS_MIN: u16 = 50;
/// Delays (p99) and host load from these values on are highlighted.
const LATE_NS_TOLD: u64 = 10_000_000;
const BUSY_TOLD: f64 = 0.9;
const NOTHING: &str = "–";

/// The input for drawing.
pub(super) struct View<'a> {
    pub(super) figures: &'a Figures,
    pub(super) progress: Option<&'a Progress>,
    pub(super) style: Style,
    pub(super) helps: bool,
}

impl View<'_> {
    #[allow(clippy::needless_pass_by_value)] // Most are made where they are told.
    fn say(&self, said: Said) -> String {
        said.render(self.style.language)
    }

    fn ink(&self, colour: Color) -> Ink {
        if self.style.colour { Ink::new().fg(colour) } else { Ink::new() }
    }

    fn bad(&self) -> Ink {
        self.ink(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn dim_ink(&self) -> Ink {
        Ink::new().add_modifier(Modifier::DIM)
    }

    fn block(&self, title: &str) -> Block<'static> {
        let title = Span::styled(format!(" {title} "), Ink::new().add_modifier(Modifier::BOLD));
        Block::bordered().border_style(self.dim_ink()).title(title)
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let area = frame.area();
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)])
            .areas(area);
    draw_head(frame, head, view);
    let keys =
        view.say(say!("+ more  - less  p pause  g go on  n next phase  m mark  q stop  ? help"));
    frame.render_widget(Paragraph::new(keys).style(view.dim_ink()), foot);
    if area.height < LINES_MIN || area.width < COLUMNS_MIN {
        let text = view.say(say!("this terminal is too small for charts"));
        return frame.render_widget(Paragraph::new(text), body);
    }
    let [curves, tables, events] = Layout::vertical([
        Constraint::Percentage(40),
        Constraint::Percentage(35),
        Constraint::Percentage(25),
    ])
    .areas(body);
    draw_curves(frame, curves, view);
    let [steps, funnel] =
        Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]).areas(tables);
    draw_steps(frame, steps, view);
    draw_funnel(frame, funnel, view);
    let [cells, errors, told] = Layout::horizontal(match view.figures.census.cells() {
        0 => [0, 55, 45].map(Constraint::Percentage),
        _ => [34, 33, 33].map(Constraint::Percentage),
    })
    .areas(events);
    population::draw(frame, cells, view);
    draw_errors(frame, errors, view);
    draw_events(frame, told, view);
    if view.helps {
        draw_help(frame, area, view);
    }
}

/// The run, its progress, and the figures of the last complete second.
fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let figures = view.figures;
    let target = figures.targets.first().map(String::as_str).unwrap_or_default();
    let name = cut_middle(&figures.name, usize::from(area.width) / 2);
    let bold = Ink::new().add_modifier(Modifier::BOLD);
    // The default name of a `bench` run is its target.
    let is_named = target.is_empty() || figures.name.contains(target);
    let target = if is_named { String::new() } else { format!(" · {target}") };
    let title = Line::from(vec![Span::styled(name, bold), Span::raw(target)]);
    let now = last_whole(figures);
    let mut items = vec![
        Span::raw(view.say(say!("{} users", format_count(now.users)))),
        Span::raw(view.say(say!("{} ok/s", format_count(now.ok)))),
        Span::raw(view.say(say!("{} ok", format_count(figures.ok)))),
    ];
    let failed = view.say(say!("{} failed", format_count(figures.failed)));
    let ink = if figures.failed > 0 { view.bad() } else { Ink::new() };
    items.push(Span::styled(failed, ink));
    if now.present > now.users {
        let offline = format_count(now.present - now.users);
        items.push(Span::raw(view.say(say!("{} offline", offline))));
    }
    let cpu = figure_text(Unit::Share, now.host_cpu);
    let ink = if now.host_cpu >= BUSY_TOLD { view.bad() } else { Ink::new() };
    items.push(Span::styled(view.say(say!("host {} busy", cpu)), ink));
    if now.late_ns >= LATE_NS_TOLD {
        let late = nanos(now.late_ns);
        items.push(Span::styled(view.say(say!("throng is {} behind schedule", late)), view.bad()));
    }
    let mut line = Vec::new();
    for item in items {
        if !line.is_empty() {
            line.push(Span::styled(" · ", view.dim_ink()));
        }
        line.push(item);
    }
    let plain = Style { colour: false, width: area.width.into(), ..view.style };
    let progress = view.progress.map(|it| Line::from(progress_line(it, &plain)));
    let progress = progress.unwrap_or_default();
    frame.render_widget(Paragraph::new(vec![title, progress, Line::from(line)]), area);
}

/// The last complete second, if there is one.
fn last_whole(figures: &Figures) -> Second {
    let seconds = &figures.seconds;
    let place = seconds.len().saturating_sub(2);
    seconds.get(place).cloned().unwrap_or_default()
}

/// A curve of a chart: its name, color and points.
struct Curve {
    name: String,
    ink: Ink,
    points: Vec<(f64, f64)>,
}

/// Rate, response times and users over the last minutes.
fn draw_curves(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let figures = view.figures;
    // The current second would look like a drop.
    let whole = figures.seconds.len().saturating_sub(1);
    let seconds: Vec<&Second> = figures.seconds.iter().take(whole).collect();
    let of = |value: &dyn Fn(&Second) -> Option<f64>| -> Vec<(f64, f64)> {
        let point = |second: &&Second| Some((second.second as f64, value(second)?));
        seconds.iter().filter_map(point).collect()
    };
    let curve = |name: Said, colour: Color, value: &dyn Fn(&Second) -> Option<f64>| Curve {
        name: view.say(name),
        ink: view.ink(colour),
        points: of(value),
    };
    let at = |share: f64, least: u64| {
        move |it: &Second| (it.latency.count() >= least).then(|| it.latency.value_at(share) as f64)
    };
    let mut rates = Vec::new();
    if seconds.iter().any(|second| second.wanted > 0) {
        rates.push(curve(say!("scheduled"), Color::DarkGray, &|it| Some(it.wanted as f64)));
        rates.push(curve(say!("started"), Color::Cyan, &|it| Some(it.begun as f64)));
    }
    rates.push(curve(say!("ok"), Color::Green, &|it| Some(it.ok as f64)));
    if seconds.iter().any(|second| second.failed > 0) {
        rates.push(curve(say!("failed"), Color::Red, &|it| Some(it.failed as f64)));
    }
    let times = vec![
        curve(say!("p99"), Color::Yellow, &at(0.99, 100)),
        curve(say!("p50"), Color::Green, &at(0.5, 2)),
    ];
    let mut users = vec![curve(say!("online"), Color::Blue, &|it| Some(it.users as f64))];
    if seconds.iter().any(|second| second.present > second.users) {
        users.push(curve(say!("present"), Color::Magenta, &|it| Some(it.present as f64)));
    }
    let areas = Layout::horizontal([Constraint::Fill(1); 3]).areas::<3>(area);
    let charts = [
        (say!("per second"), Unit::Number, rates),
        (say!("response time"), Unit::Nanoseconds, times),
        (say!("users"), Unit::Number, users),
    ];
    for (area, (title, unit, curves)) in areas.into_iter().zip(charts) {
        draw_chart(frame, area, view, (view.say(title), unit, &curves));
    }
}

fn draw_chart(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View<'_>,
    (title, unit, curves): (String, Unit, &[Curve]),
) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|(_, y)| *y).fold(0.0, f64::max);
    let ends = points().map(|(x, _)| *x);
    let (first, last) = ends.fold((f64::MAX, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
    if points().next().is_none() {
        let text = view.say(say!("no data yet"));
        let block = view.block(&title);
        return frame.render_widget(Paragraph::new(text).style(view.dim_ink()).block(block), area);
    }
    // All labels have the same width at any time, so that the chart does not jump.
    let label = |value: f64| format!("{:>7}", figure_text(unit, value));
    let top = if most > 0.0 { most * 1.05 } else { 1.0 };
    let data = curves.iter().map(|curve| {
        Dataset::default()
            .name(curve.name.clone())
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(curve.ink)
            .data(&curve.points)
    });
    let seconds = |x: f64| format_duration(Duration::from_secs(x as u64));
    let x = Axis::default()
        .bounds([first, last.max(first + 1.0)])
        .style(view.dim_ink())
        .labels([seconds(first), seconds(last)]);
    let y =
        Axis::default().bounds([0.0, top]).style(view.dim_ink()).labels([label(0.0), label(most)]);
    let is_wide = area.width >= 40 && area.height >= 8 && curves.len() > 1;
    // Without space for a legend, the title contains the names.
    let title = match is_wide || curves.len() < 2 {
        true => title,
        false => {
            let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
            cut(
                &format!("{title}: {}", names.join(", ")),
                usize::from(area.width).saturating_sub(4),
            )
        }
    };
    let chart = Chart::new(data.collect())
        .block(view.block(&title))
        .x_axis(x)
        .y_axis(y)
        .legend_position(is_wide.then_some(LegendPosition::TopLeft))
        .hidden_legend_constraints((Constraint::Ratio(1, 2), Constraint::Ratio(1, 2)));
    frame.render_widget(chart, area);
}

fn nanos(ns: u64) -> String {
    figure_text(Unit::Nanoseconds, ns as f64)
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).alignment(Alignment::Right))
}

fn head_of(view: &View<'_>, heads: Vec<Said>) -> Row<'static> {
    let cells = heads.into_iter().enumerate().map(|(at, head)| match at {
        0 => Cell::from(view.say(head)),
        _ => right(view.say(head)),
    });
    Row::new(cells.collect::<Vec<_>>()).style(view.dim_ink())
}

/// A count in at most seven columns.
fn short(count: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let whole = format_count(count);
    if whole.len() <= 7 {
        return whole;
    }
    let unit = UNITS.into_iter().find(|(unit, _)| count as f64 >= *unit);
    unit.map_or(whole, |(unit, name)| format!("{:.1}{name}", count as f64 / unit))
}

/// The number of failures, highlighted unless zero.
fn failures(count: u64, view: &View<'_>) -> Cell<'static> {
    right(short(count)).style(if count > 0 { view.bad() } else { Ink::new() })
}

/// The steps, the worst first.
fn draw_steps(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    /// The widths of the columns.
    const FIGURES: [u16; 4] = [7, 6, 7, 7];
    let figures = view.figures;
    let room = usize::from(area.height.saturating_sub(3));
    let taken = FIGURES.iter().map(|columns| columns + 1).sum::<u16>() + 2;
    let name_columns = usize::from(area.width.saturating_sub(taken));
    let row = |place: &usize| {
        let step = figures.step(*place);
        let time = |ns: Option<u64>| ns.map_or_else(|| NOTHING.to_string(), nanos);
        Row::new([
            Cell::from(cut_middle(&step.name, name_columns)),
            right(short(step.per_s)),
            failures(step.failed, view),
            right(time(step.p50_ns)),
            right(time(step.p99_ns)),
        ])
    };
    let rows: Vec<Row<'_>> = figures.order.iter().take(room).map(row).collect();
    let hidden = figures.order.len().saturating_sub(room);
    let title = match hidden {
        0 => view.say(say!("steps")),
        hidden => view.say(say!("steps ({} with better results not shown)", hidden)),
    };
    let heads = vec![say!("step"), say!("/s"), say!("failed"), say!("p50"), say!("p99")];
    let [rate, failed, p50, p99] = FIGURES.map(Constraint::Length);
    let table = Table::new(rows, [Constraint::Fill(1), rate, failed, p50, p99]);
    let table = table.header(head_of(view, heads)).block(view.block(&title));
    frame.render_widget(table, area);
}

/// Connections by stage.
fn draw_funnel(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let stages = view.figures.funnel.iter().filter(|(_, it)| it.began + it.ok + it.failed > 0);
    let row = |(stage, it): (&Stage, &Funnel)| {
        Row::new([
            Cell::from(view.say(stage.text())),
            right(short(it.began.max(it.ok + it.failed))),
            right(short(it.ok)),
            failures(it.failed, view),
        ])
    };
    let rows: Vec<Row<'_>> = stages.map(row).collect();
    let [came, through, failed] = [7, 7, 6].map(Constraint::Length);
    let heads = vec![say!("stage"), say!("entered"), say!("passed"), say!("failed")];
    let open = last_whole(view.figures).open;
    let title = view.say(say!("connections: {} open", format_count(open)));
    let table = Table::new(rows, [Constraint::Fill(1), came, through, failed]);
    let table = table.header(head_of(view, heads)).block(view.block(&title));
    frame.render_widget(table, area);
}

/// The most frequent errors, with their blame.
fn draw_errors(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let room = usize::from(area.height.saturating_sub(2));
    let line = |(step, cause, count): &(String, throng_metrics::Cause, u64)| {
        let count = Span::styled(format_count(*count), view.bad());
        let blame = view.say(cause.blame().text());
        Line::from(vec![count, Span::raw(format!(" {} ({blame}) {step}", cause.word()))])
    };
    let causes = &view.figures.causes;
    let mut lines: Vec<Line<'_>> = causes.iter().take(room).map(line).collect();
    if lines.is_empty() {
        lines.push(Line::styled(view.say(say!("none")), view.dim_ink()));
    }
    let title = match causes.len().saturating_sub(room) {
        0 => view.say(say!("errors")),
        hidden => view.say(say!("errors ({} more kinds not shown)", hidden)),
    };
    frame.render_widget(Paragraph::new(lines).block(view.block(&title)), area);
}

/// The latest events, the newest at the bottom.
fn draw_events(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let room = usize::from(area.height.saturating_sub(2));
    let columns = usize::from(area.width.saturating_sub(2));
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (at, text) in view.figures.events.iter().rev() {
        let at = format_duration(Duration::from_secs(at.second()));
        let wrapped = throng_base::columns::wrap(&format!("{at} {text}"), columns);
        let new = wrapped.into_iter().rev().map(Line::from);
        lines.extend(new);
        if lines.len() >= room {
            break;
        }
    }
    lines.truncate(room);
    lines.reverse();
    let title = view.say(say!("events"));
    frame.render_widget(Paragraph::new(lines).block(view.block(&title)), area);
}

/// The keys and their meaning, on top of everything else.
fn draw_help(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let keys = [
        ("+", say!("raise the load of the current phase by 10 %")),
        ("-", say!("lower the load by the same amount")),
        ("p", say!("pause: stop adding users")),
        ("g", say!("go on: resume adding users")),
        ("n", say!("end this phase and start the next one")),
        ("m", say!("record a mark")),
        ("q", say!("stop: users finish their step and leave")),
        ("?", say!("show or hide this help")),
    ];
    let lines: Vec<Line<'_>> = keys
        .into_iter()
        .map(|(key, said)| Line::from(format!(" {key}  {}", view.say(said))))
        .collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 3;
    let height = lines.len() as u16 + 2;
    let inside = area.centered(
        Constraint::Length(width.min(area.width)),
        Constraint::Length(height.min(area.height)),
    );
    frame.render_widget(Clear, inside);
    let title = view.say(say!("keys"));
    frame.render_widget(Paragraph::new(lines).block(view.block(&title)), inside);
}

#[cfg(test)]
mod tests;
