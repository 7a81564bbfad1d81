//! Damaged files: no panic, no endless work, and a scenario that compiles or an error message.

use throng_fuzz::mutations;

use crate::tests::told;
use crate::{Format, Options, import};

/// Any file results in a scenario, or in a message with a fix.
fn survives(format: Format, corpus: &[&[u8]]) {
    mutations(corpus, |input, _| {
        let options = Options { stem: "fuzz".into(), assets: true, ..Options::default() };
        match import(format, input, "fuzz", &options) {
            Ok(imported) => {
                assert_eq!(told(&imported, false), "", "{}", imported.scenario);
            }
            Err(mistakes) => {
                assert!(mistakes.iter().all(|one| one.help.is_some()), "{mistakes:?}");
            }
        }
    });
}

/// The inputs of a Markdown test.
fn inputs(page: &'static str, kind: &str) -> Vec<&'static [u8]> {
    let blocks = page.split("```").skip(1).step_by(2);
    let inputs = blocks.filter_map(|block| {
        let (info, text) = block.split_once('\n')?;
        (info.split(' ').next() == Some(kind)).then_some(text.as_bytes())
    });
    inputs.collect()
}

macro_rules! fuzz {
    ($name:ident, $format:expr, $page:literal) => {
        #[test]
        fn $name() {
            let page = include_str!(concat!("../tests-md/", $page));
            survives($format, &inputs(page, $format.word()));
        }
    };
}

fuzz!(damaged_har_files_do_no_harm, Format::Har, "har.md");
fuzz!(damaged_descriptions_do_no_harm, Format::OpenApi, "openapi.md");
fuzz!(damaged_collections_do_no_harm, Format::Postman, "postman.md");
fuzz!(damaged_test_plans_do_no_harm, Format::Jmx, "jmx.md");
fuzz!(damaged_k6_scripts_do_no_harm, Format::K6, "k6.md");
fuzz!(damaged_locustfiles_do_no_harm, Format::Locust, "locust.md");
fuzz!(damaged_commands_do_no_harm, Format::Curl, "curl.md");
