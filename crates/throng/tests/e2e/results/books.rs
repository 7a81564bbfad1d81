//! The books of a run against those of the server.

use crate::scenarios::{one_session, running, times};
use crate::scribe::{Scribe, answer, ok};

/// Every third request is one too many; what is tried again is no error, and what is given up is.
#[test]
fn a_server_sees_what_was_begun_and_what_was_tried_again() {
    let scribe = Scribe::answering(|asked, number| match asked.what.as_str() {
        "GET /never" => answer("503 Service Unavailable", "", "never"),
        _ if number % 3 == 0 => answer("429 Too Many Requests", "", "later"),
        _ => ok("here"),
    });
    let head = format!("{}\nthresholds: [errors < 40%, retries.retried > 0]", times(40, 4));
    let retry = "retry: {on: [429, 503], times: 2, wait: 1ms..2ms}";
    let steps = format!("- http: GET /now\n  {retry}\n- http: GET /never\n  {retry}");
    let run = running(&one_session(&scribe.target(), &head, &steps)).run().exits(1);
    let json = run.json();
    let number = |place: &str| json.pointer(place).and_then(|n| n.as_u64()).unwrap_or_default();
    let (begun, retried) = (number("/total/begun"), number("/retries/retried"));
    assert_eq!(begun + retried, scribe.asked().len() as u64, "{run}");
    let ended = ["/total/ok", "/total/failed", "/total/interrupted"].map(number);
    assert_eq!(begun, ended.iter().sum::<u64>(), "{run}");
    // All of the second step were given up, each after three tries.
    let never = ["failed", "given_up", "retried/status-unexpected", "codes/503"];
    let never = never.map(|field| number(&format!("/steps/1/{field}")));
    assert_eq!(never, [40, 40, 80, 120], "{run}");
    let shares = json["errors"].as_array().into_iter().flatten();
    let shares: f64 = shares.filter_map(|row| row["share"].as_f64()).sum();
    let threshold = json["thresholds"][0]["figure"].as_f64().unwrap_or_default();
    assert!((shares - threshold).abs() < 1e-9, "the threshold sees what the table shows: {run}");
}

/// A `set` that fails is a failure of its own, and not of the request beside it.
#[test]
fn an_expression_that_has_no_value_has_a_row_of_its_own() {
    let scribe = Scribe::answering(|_, _| ok("here"));
    let steps = "- http: GET /before\n- set: {number: '${1 / (iteration - iteration)}'}\n\
                 - http: GET /behind";
    let run = running(&one_session(&scribe.target(), &times(3, 1), steps)).run();
    let rows = run.json()["steps"].as_array().cloned().unwrap_or_default();
    let figures = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.map(|row| [&row["begun"], &row["ok"], &row["failed"]].map(|n| n.as_u64().unwrap_or(9)))
    };
    assert_eq!(figures("GET /before"), Some([3, 3, 0]), "{run}");
    assert_eq!(figures("expressions"), Some([3, 0, 3]), "{run}");
    assert_eq!(figures("GET /behind"), Some([0, 0, 0]), "{run}");
    assert_eq!(scribe.count("GET /behind"), 0);
}
