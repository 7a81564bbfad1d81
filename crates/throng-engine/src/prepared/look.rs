//! The prepared checks and saves of a step; [`crate::verify`] runs them.

use throng_extract::JsonPaths;
use throng_program::{Check, Pick, Save};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// All fields that are needed, read in one pass; `None` if the complete document is needed.
    pub(crate) paths: Option<JsonPaths>,
    /// By check, then by save: the index of its path.
    pub(crate) places: Box<[Option<u16>]>,
    /// An expression may use all headers.
    pub(crate) wants_map: bool,
    pub(crate) reads_cookies: bool,
}

impl Look {
    pub(crate) fn new(checks: &[Check], saves: &[Save]) -> Look {
        let checked = checks.iter().map(|check| &check.pick);
        let picks: Vec<&Pick> = checked.chain(saves.iter().map(|save| &save.pick)).collect();
        let sees_all =
            |pick: &&Pick| matches!(pick, Pick::Expression(expression) if expression.uses_answer());
        let wants_map = picks.iter().any(sees_all);
        let reads_cookies = picks.iter().any(|pick| matches!(pick, Pick::Cookie(_)));
        let mut count = 0;
        let places = picks.iter().map(|pick| {
            let place = matches!(pick, Pick::Json(_)).then_some(count);
            count += u16::from(place.is_some());
            place
        });
        let places = places.collect();
        let paths = picks.iter().filter_map(|pick| match pick {
            Pick::Json(path) => Some(path.clone()),
            _ => None,
        });
        let paths: Vec<_> = paths.collect();
        // Expressions read the complete JSON document, and nothing is to be read twice.
        let in_one_pass = !wants_map && !paths.is_empty();
        let paths = in_one_pass.then(|| JsonPaths::new(paths)).flatten();
        Look { paths, places, wants_map, reads_cookies }
    }
}
