//! The compliance suite of RFC 9535 (github.com/jsonpath-standard/jsonpath-compliance-test-suite),
//! from npm's package `jsonpath-rfc9535`.

use super::*;

/// Cases in which we deviate from the suite: exactly these, by name and reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("basic, no leading whitespace", "what begins with no `$` is names beside dots, as they are"),
    ("basic, name shorthand, symbol", "a name behind a dot may have marks: `$.user-id`"),
    ("basic, name shorthand, number", "a name behind a dot may begin with a digit: `$.404`"),
];

fn cases() -> Vec<Json> {
    let package = throng_fuzz::node_modules("jsonpath-rfc9535").join("jsonpath-rfc9535");
    let file = package.join("src/__tests__/jsonpath-compliance-test-suite/cts.json");
    let text = std::fs::read_to_string(file).expect("the suite");
    let mut suite: Json = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(suite["tests"].take()).expect("a list of cases")
}

/// Whether we comply with a case.
fn complies(case: &Json) -> bool {
    let path = JsonPath::parse(case["selector"].as_str().expect("a selector"));
    let Ok(path) = path else { return case["invalid_selector"] == true };
    if case["invalid_selector"] == true {
        return false;
    }
    let found = Json::from_iter(path.all(&case["document"]).into_iter().cloned());
    let any_of = case["results"].as_array().into_iter().flatten();
    case.get("result").into_iter().chain(any_of).any(|result| *result == found)
}

#[test]
fn queries_pass_the_rfc_9535_suite() {
    let cases = cases();
    assert!(cases.len() > 600, "{} cases", cases.len());
    let fail = cases.iter().filter(|case| !complies(case));
    let failed: Vec<&str> = fail.filter_map(|case| case["name"].as_str()).collect();
    let different: Vec<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    assert_eq!(failed, different);
}
