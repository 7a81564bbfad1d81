//! Tests of the scenario of users who are held.

use std::fs;

use super::*;

const TEXT: &str = "\
name: many
target: {addresses: [\"ws://127.0.0.1:8089\"]}   # one
session: {heartbeat: {every: 30s, lost_after: 10s}}
load:
  - {name: fill, users: {to: 1_000_000, rate: 20_000/s}}
  - {name: hold, for: 10m}
  - {name: drain, users: {to: 0, rate: 50_000/s}}
thresholds:
  - users.online >= 1_000_000 in hold
";

fn change(tls: bool, users: u64, pace: Pace) -> Change {
    let (hold, heartbeat) = (Duration::from_secs(90), Duration::from_secs(60));
    Change { tls, port: 7, users, pace, hold, heartbeat }
}

fn paced(cores: usize) -> Pace {
    Pace::Carried { cores, settle: Duration::from_secs(20) }
}

#[test]
fn the_example_is_changed() {
    let text = scenario_of(TEXT, &change(true, 50, Pace::Even(9))).unwrap();
    assert!(text.contains("addresses: [\"wss://127.0.0.1:7\"]}\ntls: {verify: false}\nsession"));
    assert!(text.contains("{to: 50, rate: 9/s}") && text.contains("for: 90s}"), "{text}");
    assert!(text.contains("users.online >= 50 in hold"));
    assert!(
        text.contains("every: 1m") && text.contains("{name: drain, users: {to: 0, rate: 12000/s}}")
    );
    assert!(text.contains("lost_after: 10s"));
    let often = Change { heartbeat: Duration::from_millis(1500), ..change(false, 50, paced(2)) };
    let text = scenario_of(TEXT, &often).unwrap();
    assert!(text.contains("{every: 1500ms, lost_after: 1500ms}"), "{text}");
    let error = scenario_of("target: x\n", &change(false, 50, Pace::Even(9))).unwrap_err();
    assert!(error.ends_with("has no `1_000_000`"), "{error}");
}

#[test]
fn the_example_of_the_project_has_what_is_changed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(EXAMPLE);
    let example = fs::read_to_string(file).unwrap();
    assert!(scenario_of(&example, &change(false, 50, Pace::Even(1))).is_ok());
    let often = Change { heartbeat: Duration::from_secs(1), ..change(false, 50, Pace::Even(1)) };
    assert!(scenario_of(&example, &often).is_ok());
}

#[test]
fn users_come_as_the_processors_carry_them() {
    let carried = |tls, users, cores| {
        let text = filling(&change(tls, users, paced(cores)));
        let rates = text.lines().filter_map(|line| line.split("rate: ").nth(1)?.split('/').next());
        rates.map(|rate| rate.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let slower = |rates: &[u64]| rates.len() == 4 && rates.is_sorted_by(|one, two| one >= two);
    let (million, tls) = (carried(false, 1_000_000, 2), carried(true, 1_000_000, 2));
    assert!(slower(&million) && slower(&tls) && tls[0] < million[0], "{million:?} {tls:?}");
    assert!(million[0] < PACE_MAX && million[3] > PACE_STEP, "{million:?}");
    assert_eq!(carried(false, 100_000_000, 2)[3], PACE_STEP, "never not at all");
    assert_eq!(carried(false, 1000, 64), [PACE_MAX; 4]);
    let text = filling(&change(false, 8, paced(2)));
    let ends = "name: settle, for: 20s}\n";
    assert!(text.contains("{name: fill 4, users: {to: 8,") && text.ends_with(ends), "{text}");
}
