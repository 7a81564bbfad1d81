//! The load over time, drawn with characters.

use std::time::Duration;

use throng_base::clean;
use throng_base::units::{format_count, format_duration};
use throng_load::Planned;
use throng_program::Load;

use throng_base::columns::right;

const COLUMNS_MAX: usize = 60;
const COLUMNS_MIN: usize = 20;
/// The width to the left and right of a drawing.
const MARGIN: usize = 20;
const ROWS: usize = 4;
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Drawings for each load, one of users and one of arrivals and scheduled iterations, if there are
/// any, stacked on one time axis.
pub(super) fn drawing(loads: &[Load], planned: &[Planned], width: usize) -> Option<String> {
    let end = planned.iter().map(|one| one.begin + one.length.unwrap_or_default()).max()?;
    if end.is_zero() {
        return None;
    }
    let columns = width.saturating_sub(MARGIN).clamp(COLUMNS_MIN, COLUMNS_MAX);
    let mut out = String::new();
    for (number, load) in loads.iter().enumerate() {
        let own: Vec<&Planned> = planned.iter().filter(|one| one.load == number).collect();
        let drawn = draw_load(&own, &load.name, end, columns);
        if !out.is_empty() && !drawn.is_empty() {
            out.push('\n');
        }
        out.push_str(&drawn);
    }
    let end = format_duration(end);
    let gap = columns.saturating_sub(2 + end.chars().count());
    out.push_str(&format!("{:>12} 0s{}{end}\n", "", " ".repeat(gap)));
    Some(out)
}

fn draw_load(planned: &[&Planned], name: &str, end: Duration, columns: usize) -> String {
    let sampled = |of: &dyn Fn(&Planned, Duration) -> f64| -> Vec<f64> {
        (0..columns).map(|column| highest(planned, end, column, columns, of)).collect()
    };
    let users = sampled(&|one, time| one.users_at(time));
    let starts = sampled(&|one, time| one.starts_at(time));
    let mut out = String::new();
    let count = |most: f64| format_count(most.round() as u64);
    for (figures, what, label) in [
        (users, say!("users"), &count as &dyn Fn(f64) -> String),
        (starts, say!("starts/s"), &|most: f64| format!("{}/s", count(most))),
    ] {
        let most = figures.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            out.push_str(&draw(&figures, most, [&label(most), name, &what.spoken()]));
        }
    }
    out
}

/// The highest value within a column, at its ends and in its middle.
fn highest(
    planned: &[&Planned],
    end: Duration,
    column: usize,
    columns: usize,
    of: &dyn Fn(&Planned, Duration) -> f64,
) -> f64 {
    let at = |part: f64| end.mul_f64(((column as f64 + part) / columns as f64).min(1.0));
    let value = |time: Duration| {
        let running = planned
            .iter()
            .rev()
            .find(|one| one.begin <= time && one.length.is_none_or(|length| !length.is_zero()));
        // After its last phase, a load has no users.
        let goes_on = |one: &&&Planned| one.length.is_none_or(|length| time - one.begin <= length);
        running.filter(goes_on).map_or(0.0, |one| of(one, time - one.begin))
    };
    [0.02, 0.5, 0.98].into_iter().map(|part| value(at(part))).fold(0.0, f64::max)
}

/// The labels are beside the highest value, below it, and at the bottom.
fn draw(figures: &[f64], most: f64, [top, name, what]: [&str; 3]) -> String {
    let mut out = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            row if row == ROWS - 1 => top,
            row if row == ROWS - 2 => name,
            0 => what,
            _ => "",
        };
        out.push_str(&right(&clean(label), 12));
        out.push(' ');
        for figure in figures {
            let eighths = (figure / most * (ROWS * 8) as f64).round() as usize;
            // Any value above zero is visible.
            let eighths = if *figure > 0.0 { eighths.max(1) } else { 0 };
            out.push(LEVELS[eighths.saturating_sub(row * 8).min(8)]);
        }
        let kept = out.trim_end().len();
        out.truncate(kept.max(out.rfind('\n').map_or(0, |at| at + 1)));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(begin: u64, length: u64, users: (u64, u64)) -> Planned {
        Planned {
            phase: 0,
            load: 0,
            begin: Duration::from_secs(begin),
            begin_is_known: true,
            length: Some(Duration::from_secs(length)),
            users,
            ramp: Duration::from_secs(length),
            steps: None,
            arrivals: None,
            iterations: None,
        }
    }

    #[test]
    fn a_ramp_and_its_hold_are_seen() {
        let planned = [phase(0, 10, (0, 100)), phase(10, 10, (100, 100))];
        let drawing = drawing(&[Load::alone(Vec::new())], &planned, 40).unwrap();
        let lines: Vec<&str> = drawing.lines().collect();
        assert_eq!(lines.len(), 5, "{drawing}");
        assert!(lines[0].starts_with("         100 "), "{drawing}");
        assert!(lines[0].ends_with("██████████"), "{drawing}");
        assert!(lines[3].trim_start().starts_with("users"), "{drawing}");
        assert!(lines[4].ends_with("20.0s"), "{drawing}");
    }

    #[test]
    fn an_empty_load_is_not_drawn() {
        assert_eq!(drawing(&[], &[], 80), None);
        let loads = [Load::alone(Vec::new())];
        assert_eq!(drawing(&loads, &[phase(0, 0, (0, 0))], 80), None);
    }

    #[test]
    fn loads_are_stacked_on_one_axis() {
        let load = |name: &str| Load { name: name.into(), ..Load::alone(Vec::new()) };
        let mut planned = [phase(0, 10, (0, 100)), phase(10, 10, (7, 7))];
        planned[1].load = 1;
        let drawing = drawing(&[load("readers"), load("buyers")], &planned, 40).unwrap();
        let lines: Vec<&str> = drawing.lines().collect();
        assert_eq!(lines.len(), 10, "{drawing}");
        assert!(lines[1].trim_start().starts_with("readers"), "{drawing}");
        // The first is over when the second begins.
        assert!(lines[3].ends_with('█') && lines[3].chars().count() == 23, "{drawing}");
        assert!(lines[6].trim_start().starts_with("buyers"), "{drawing}");
        assert!(lines[8].contains("users           ███"), "{drawing}");
    }
}
