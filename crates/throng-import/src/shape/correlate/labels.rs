//! Names of saved values. Until all uses are known, each value has a number, `saved.#7`; then
//! values with disjoint lifetimes share a name, like a token that is saved again.

use std::collections::HashMap;

use crate::text::Text;

/// A value with the steps that save it and use it last.
pub(super) struct Used {
    pub(super) number: usize,
    pub(super) base: String,
    pub(super) saved_at: usize,
    pub(super) last_use: usize,
}

pub(super) fn placeholder(number: usize) -> String {
    format!("saved.#{number}")
}

/// The name of each value by its number; the values are in the order of the steps that save them.
pub(super) fn names(used: &[Used]) -> HashMap<usize, String> {
    let mut free_from: HashMap<String, usize> = HashMap::new();
    let mut out = HashMap::new();
    for value in used {
        let candidates = (1..).map(|more| match more {
            1 => value.base.clone(),
            more => format!("{}_{more}", value.base),
        });
        let is_free =
            |name: &String| free_from.get(name).is_none_or(|from| *from <= value.saved_at);
        let Some(name) = candidates.into_iter().find(is_free) else { continue };
        // Two values of one response never share a name.
        free_from.insert(name.clone(), value.last_use.max(value.saved_at + 1));
        out.insert(value.number, name);
    }
    out
}

/// The text with names instead of numbers.
pub(super) fn rename(text: &mut Text, names: &HashMap<usize, String>) {
    text.change_values(|value| renamed(value, names));
}

fn renamed(value: &str, names: &HashMap<usize, String>) -> String {
    let Some((before, behind)) = value.split_once("saved.#") else { return value.to_string() };
    let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    let name = behind[..end].parse().ok().and_then(|number: usize| names.get(&number));
    format!("{before}saved.{}{}", name.map_or("value", String::as_str), &behind[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_reused_after_the_last_use_of_its_value() {
        let used = |number, base: &str, saved_at, last_use| Used {
            number,
            base: base.into(),
            saved_at,
            last_use,
        };
        let names = names(&[
            used(0, "token", 0, 2),
            used(1, "token", 0, 1),
            used(2, "token", 1, 4),
            used(3, "token", 2, 3),
            used(4, "id", 2, 3),
        ]);
        let names: Vec<&str> = (0..5).map(|number| names[&number].as_str()).collect();
        assert_eq!(names, ["token", "token_2", "token_2", "token", "id"]);
    }
}
