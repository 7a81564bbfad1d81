//! The prepared checks and saves of a step; [`crate::verify`] runs them.

use throng_extract::JsonPaths;
use throng_program::{Check, Extractor, Save};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CheckPlan {
    /// All fields that are needed, read in one pass; `None` if the complete document is needed.
    pub(crate) paths: Option<JsonPaths>,
    /// By check, then by save: the index of its path.
    pub(crate) places: Box<[Option<u16>]>,
    /// An expression may use all headers.
    pub(crate) wants_map: bool,
    pub(crate) reads_cookies: bool,
}

impl CheckPlan {
    pub(crate) fn new(checks: &[Check], saves: &[Save]) -> CheckPlan {
        let checked = checks.iter().map(|check| &check.extractor);
        let extractors: Vec<&Extractor> =
            checked.chain(saves.iter().map(|save| &save.extractor)).collect();
        let sees_all = |extractor: &&Extractor| match extractor {
            Extractor::Expression(expression) => expression.uses_answer(),
            _ => false,
        };
        let wants_map = extractors.iter().any(sees_all);
        let reads_cookies =
            extractors.iter().any(|extractor| matches!(extractor, Extractor::Cookie(_)));
        let mut count = 0;
        let places = extractors.iter().map(|extractor| {
            let place = matches!(extractor, Extractor::Json(_)).then_some(count);
            count += u16::from(place.is_some());
            place
        });
        let places = places.collect();
        let paths = extractors.iter().filter_map(|extractor| match extractor {
            Extractor::Json(path) => Some(path.clone()),
            _ => None,
        });
        let paths: Vec<_> = paths.collect();
        // Expressions read the complete JSON document, and nothing is to be read twice.
        let in_one_pass = !wants_map && !paths.is_empty();
        let paths = in_one_pass.then(|| JsonPaths::new(paths)).flatten();
        CheckPlan { paths, places, wants_map, reads_cookies }
    }
}
