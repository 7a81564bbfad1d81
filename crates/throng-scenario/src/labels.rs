//! Labels of a run, or of a step's row. They are the same for all users, so their number is bounded
//! by what the scenario declares.

use std::collections::BTreeMap;

use throng_base::units::UnitError;
use throng_base::{Said, say};

use crate::read::Context;
use crate::syntax::{Node, Place};
use crate::words::shorten;

/// By name.
pub(crate) type Labels = BTreeMap<String, String>;

/// Per run and per step.
const LABELS_MAX: usize = 32;
/// Maximum length of a name.
const NAME_CHARS_MAX: usize = 64;
/// Maximum length of a value.
const VALUE_CHARS_MAX: usize = 256;

const HELP: Said = say!("write `label: {{release: 1.4, region: east}}`");

/// Reads the value of `label`.
pub(crate) fn read_labels(cx: &mut Context<'_>, node: &Node) -> Labels {
    let mut labels = Labels::new();
    let entries = cx.entries(node, say!("a map of labels"), HELP).unwrap_or_default();
    if let Some((key, _)) = entries.get(LABELS_MAX) {
        too_many(cx, Some(key.place));
    }
    for (key, node) in entries.into_iter().take(LABELS_MAX) {
        if let Err(reason) = check_name(&key.text) {
            bad_label(cx, &key.text, "name", reason, Some(key.place));
            continue;
        }
        if let Some(value) = cx.text(node, say!("a label value")) {
            match check_value(&value) {
                Ok(()) => drop(labels.insert(key.text.clone(), value)),
                Err(reason) => bad_label(cx, &value, "value", reason, Some(node.place)),
            }
        }
    }
    labels
}

/// The labels of the run; those of the command line win.
pub(crate) fn read_run_labels(
    cx: &mut Context<'_>,
    node: Option<&Node>,
    given: &[(String, String)],
) -> Labels {
    let mut labels = node.map(|node| read_labels(cx, node)).unwrap_or_default();
    add_given(cx, &mut labels, given);
    labels
}

fn add_given(cx: &mut Context<'_>, labels: &mut Labels, given: &[(String, String)]) {
    for (name, value) in given {
        if cx.secrets.is_name(name) {
            cx.secrets.learn("", value);
        }
        if let Err(reason) = check_name(name) {
            bad_label(cx, name, "name", reason, None);
        } else if let Err(reason) = check_value(value) {
            bad_label(cx, value, "value", reason, None);
        } else if labels.len() >= LABELS_MAX && !labels.contains_key(name) {
            return too_many(cx, None);
        } else {
            labels.insert(name.clone(), value.clone());
        }
    }
}

/// A label as it is written: `region:east`.
pub(crate) fn written((name, value): (&String, &String)) -> String {
    format!("{name}:{value}")
}

/// Those of a row, as thresholds choose it by: `{region:east,tier:gold}`.
pub(crate) fn selector(labels: &Labels) -> String {
    let written: Vec<String> = labels.iter().map(written).collect();
    format!("{{{}}}", written.join(","))
}

fn check_name(name: &str) -> Result<(), UnitError> {
    let message = match name.chars().count() {
        0 => say!("the name is empty"),
        length if length > NAME_CHARS_MAX => say!("more than 64 characters"),
        _ if name.chars().all(|c| c.is_alphanumeric() || "_.-/".contains(c)) => return Ok(()),
        _ => say!("not a label name"),
    };
    let help = say!(
        "a name consists of at most 64 letters, digits, `_`, `-`, `.` and `/`: \
                     `region`"
    );
    Err(UnitError { message, help })
}

fn check_value(value: &str) -> Result<(), UnitError> {
    let is_break = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let (message, help) = if value.trim().is_empty() {
        (say!("the value is empty"), say!("give it a value, or remove it: `release: 1.4`"))
    } else if value.contains(is_break) {
        (
            say!("it contains a line break"),
            say!("a label value must be a single line: `release: 1.4`"),
        )
    } else if value.contains(char::is_control) {
        (say!("it contains a control character"), say!("remove tabs and other control characters"))
    } else if value.chars().count() > VALUE_CHARS_MAX {
        (
            say!("more than 256 characters"),
            say!("write at most 256 characters, such as an ID or a version"),
        )
    } else {
        return Ok(());
    };
    Err(UnitError { message, help })
}

fn bad_label(
    cx: &mut Context<'_>,
    text: &str,
    part: &str,
    reason: UnitError,
    place: Option<Place>,
) {
    let message = match part {
        "name" => say!("`{}` is not a valid label name", shorten(text)),
        _ => say!("`{}` is not a valid label value", shorten(text)),
    };
    let error = match place {
        Some(place) => cx.error("bad-label", message, place).label(reason.message),
        None => throng_base::Diagnostic::error("bad-label", message).note(reason.message),
    };
    cx.note(error.help(reason.help));
}

fn too_many(cx: &mut Context<'_>, place: Option<Place>) {
    let message = say!("more than 32 labels");
    let error = match place {
        Some(place) => cx.error("too-many", message, place).label(say!("this exceeds the limit")),
        None => throng_base::Diagnostic::error("too-many", message),
    };
    cx.note(error.help(say!("use labels to find reports, and store other data elsewhere")));
}
