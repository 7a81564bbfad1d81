//! Tests that the text is valid XML and agrees with the exit code.

use expect_test::expect;
use roxmltree::{Document, Node};
use throng_base::{Random, Said};

use super::*;
use crate::directory::{RunInfo, TimeInfo};
use crate::event::Event;
use crate::tests::sample;
use crate::verdict::exit_code;

/// Checks what the schema allows and build servers read.
fn check_form(text: &str) -> usize {
    let document = Document::parse(text).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let suites: Vec<Node> = root.children().filter(Node::is_element).collect();
    assert_eq!(suites.len(), 1);
    let suite = suites[0];
    let cases: Vec<Node> = suite.children().filter(|node| node.has_tag_name("testcase")).collect();
    let with = |name: &str| {
        let has = |case: &&Node| case.children().any(|child| child.has_tag_name(name));
        cases.iter().filter(has).count().to_string()
    };
    for node in [root, suite] {
        assert_eq!(node.attribute("tests"), Some(cases.len().to_string().as_str()));
        assert_eq!(node.attribute("failures"), Some(with("failure").as_str()));
        assert_eq!(node.attribute("skipped"), Some(with("skipped").as_str()));
        assert_eq!(node.attribute("errors"), Some("0"));
    }
    let mut names: Vec<&str> = cases.iter().filter_map(|case| case.attribute("name")).collect();
    assert_eq!(names.len(), cases.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "GitLab reads the first of equal names only: {text}");
    for case in &cases {
        assert_eq!(case.attribute("classname"), suite.attribute("name"));
        assert!(case.attribute("time").unwrap().parse::<f64>().unwrap() >= 0.0);
        assert!(case.children().filter(Node::is_element).count() <= 1, "Jenkins reads one");
    }
    let time = suite.attribute("timestamp").unwrap();
    assert!(time.bytes().all(|byte| byte.is_ascii_digit() || b"-:T".contains(&byte)), "{time}");
    let passed = |case: &&Node| {
        case.children().all(|child| !child.is_element() || child.has_tag_name("system-out"))
    };
    cases.len() - cases.iter().filter(passed).count()
}

#[test]
fn a_run_is_a_junit_test_suite() {
    let text = junit(&sample::shop(true));
    check_form(&text);
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="throng" tests="8" failures="3" errors="0" skipped="1" time="12.003">
          <testsuite id="0" name="quick check" timestamp="2026-11-21T12:03:01" hostname="box-1" tests="8" failures="3" errors="0" skipped="1" time="12.003">
            <properties>
              <property name="id" value="20261121-120301-0000000001"/>
              <property name="throng_version" value="0.1.0 (10d8f4b21)"/>
              <property name="seed" value="42"/>
              <property name="targets" value="https://127.0.0.1:8443"/>
              <property name="exit_code" value="4"/>
              <property name="count" value="101000"/>
              <property name="failed" value="100"/>
              <property name="ok_per_s" value="10090"/>
              <property name="p50_ns" value="1036288"/>
              <property name="p90_ns" value="2473984"/>
              <property name="p95_ns" value="2703360"/>
              <property name="p99_ns" value="2899968"/>
              <property name="p99_9_ns" value="3883008"/>
              <property name="max_ns" value="3990000"/>
            </properties>
            <testcase name="http p99 &lt; 50ms" classname="quick check" time="12.003">
              <system-out>measured: 2.90ms</system-out>
            </testcase>
            <testcase name="errors &lt; 0.1%" classname="quick check" time="12.003">
              <system-out>measured: 0.099 %</system-out>
            </testcase>
            <testcase name="check out: basket, address and payment.with_pauses p95 &lt;= 1s in load" classname="quick check" time="12.003">
              <failure message="measured: 2.94s" type="threshold-not-met">check out: basket, address and payment.with_pauses p95 &lt;= 1s in load&#10;measured: 2.94s</failure>
            </testcase>
            <testcase name="connections.reset &lt;= 5" classname="quick check" time="12.003">
              <system-out>measured: 0</system-out>
            </testcase>
            <testcase name="bytes.in rate &lt;= 1 MB/s in load" classname="quick check" time="12.003">
              <failure message="measured: 8.23 MB/s" type="threshold-not-met">bytes.in rate &lt;= 1 MB/s in load&#10;measured: 8.23 MB/s</failure>
            </testcase>
            <testcase name="upgrade p95 &lt;= 1s" classname="quick check" time="12.003">
              <skipped message="nothing to measure"/>
            </testcase>
            <testcase name="the result is valid" classname="quick check" time="12.003"/>
            <testcase name="the run completed" classname="quick check" time="12.003">
              <failure message="a rule in the scenario stopped the run at 11.0s: half of the baskets are \u{1b}[31mempty" type="stopped-by-rule">a rule in the scenario stopped the run at 11.0s: half of the baskets are \u{1b}[31mempty</failure>
            </testcase>
          </testsuite>
        </testsuites>
    "#]].assert_eq(&text);
}

#[test]
fn a_case_fails_if_and_only_if_the_exit_code_is_not_0() {
    let good = sample::info();
    let intervals = sample::intervals();
    let summaries = [
        sample::summary(),
        sample::shop(false),
        sample::shop(true),
        sample::summary_of(good.clone(), &intervals, &sample::shop_events()),
        sample::summary_of(
            RunInfo { lines_lost: 2, ..good.clone() },
            &intervals,
            &sample::shop_events(),
        ),
        sample::summary_of(
            RunInfo { time: TimeInfo { ended: None, ..good.time.clone() }, ..good.clone() },
            &intervals,
            &[],
        ),
        sample::summary_of(good.clone(), &intervals, &[Event::TargetLost { at_ns: 5 }]),
        sample::summary_of(good.clone(), &intervals, &[Event::Interrupted { at_ns: 5 }]),
        sample::summary_of(good, &[], &sample::events()),
        sample::summary_of(
            RunInfo {
                time: TimeInfo { ended: Some(String::new()), ..TimeInfo::default() },
                ..RunInfo::default()
            },
            &[],
            &[],
        ),
    ];
    let mut codes = Vec::new();
    for summary in &summaries {
        let (code, text) = (exit_code(summary).code(), junit(summary));
        assert_eq!(check_form(&text) > 0, code != 0, "{code}: {text}");
        codes.push(code);
    }
    assert_eq!(codes, [0, 1, 4, 4, 5, 130, 4, 130, 1, 0]);
}

#[test]
fn equal_thresholds_have_different_names() {
    let mut summary = sample::shop(false);
    let threshold = summary.verdict.thresholds[0].clone();
    summary.verdict.thresholds = vec![threshold; 4];
    summary.verdict.thresholds[1].text = "http p99 < 50ms (3)".into();
    check_form(&junit(&summary));
}

#[test]
fn fuzz_any_text_survives_as_xml() {
    let mut random = Random::new(throng_fuzz::seed());
    for _ in 0..200 {
        let any = |random: &mut Random| {
            let c = match random.below(3) {
                0 => u32::from(b"<>&\"'\t\r\n ]]>"[random.below(12) as usize]),
                1 => random.below(0x100) as u32,
                _ => random.below(0x11_0000) as u32,
            };
            char::from_u32(c).unwrap_or('\u{fffe}')
        };
        let text: String = (0..random.below(60)).map(|_| any(&mut random)).collect();
        let mut summary = sample::shop(true);
        summary.verdict.thresholds[0].text = text.clone();
        summary.info.name = text.clone();
        summary.info.time.started = text.clone();
        summary.info.id = text.clone();
        summary.events.stopped.as_mut().unwrap().reason = Said::of_others(text.clone());
        let xml = junit(&summary);
        let document = Document::parse(&xml).unwrap();
        let case = document.descendants().find(|node| node.has_tag_name("testcase")).unwrap();
        let is_held = |c: char| {
            !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' |
            '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
        };
        if text.chars().all(is_held) {
            assert_eq!(case.attribute("classname"), Some(text.as_str()));
        }
    }
}

#[test]
fn a_required_capacity_is_a_test_case() {
    use crate::tests::sample::capacity::{capacity, searched};
    use throng_metrics::capacity::Capacity;
    let of = |at_least| junit(&searched(Capacity { at_least, ..capacity() }));
    let name = |load: &str| format!("<testcase name=\"carries at least {load}\"");
    let text = of(Some(800.0));
    assert!(text.contains(&name("800/s")) && text.contains("failures=\"0\""), "{text}");
    assert!(text.contains("<system-out>carries 860/s (95 %: 864 to 905)"), "{text}");
    for (load, kind) in [(880.0, "capacity-undecided"), (1_000.0, "capacity-too-low")] {
        let text = of(Some(load));
        assert!(text.contains(&format!("type=\"{kind}\"")), "{text}");
        assert!(text.contains("failures=\"1\""), "{text}");
    }
    assert!(of(None).contains("<testcase name=\"the search found the capacity\""));
}
