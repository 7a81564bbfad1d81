//! `throng target mqtt` with clients that others have written: paho, by the Eclipse Foundation.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use throng_fuzz::python_packages;

use crate::run::Child;
use crate::servers::{Target, program};

/// How many messages of each QoS `mqtt_clients.py` publishes.
const EACH: u64 = 40;

#[test]
fn clients_of_others_hear_what_the_broker_counts() {
    let target = Target::start("mqtt --workers 2");
    let mut command = Command::new(program("python3", "python3"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/protocols/mqtt_clients.py"));
    command.arg(target.address.port().to_string());
    command.env("PYTHONPATH", python_packages("paho"));
    let run = Child::start(command).wait().exits(0);
    let lives: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lives.len(), 2);
    let texts = |qos: &[u64]| -> Vec<String> {
        let all = qos.iter().flat_map(|qos| (0..EACH).map(move |n| format!("{qos}-{n}")));
        all.collect()
    };
    let mut heard = texts(&[0, 1, 2]);
    heard.sort();
    for life in &lives {
        assert_eq!(life["heard"], json!(heard));
        assert_eq!((&life["shared"], &life["waited"]), (&json!(3 * EACH), &json!(texts(&[2]))));
        assert_eq!((&life["kept"], &life["will"]), (&json!(["last", true]), &json!("will/lost")));
    }
    // Both versions: each QoS once, QoS 2 once more while its subscriber is away, one retained.
    target.comes_to("/mqtt/sessions", 2);
    // QoS 1 and 2 to the subscriber and the group, 2 to both again, one retained, and the will.
    target.comes_to("/mqtt/acknowledged", 2 * (2 * 2 * EACH + 2 * EACH + 2));
    let counts = target.stats()["mqtt"].clone();
    assert_eq!(counts["published"], json!([2 * EACH, 2 * EACH + 2, 4 * EACH]));
    // What it sends before it notices that a subscriber has gone is sent again: that is chance.
    let broken = ["broken", "misnumbered", "left_out", "repeated", "keep_alive"];
    assert!(broken.iter().all(|name| counts[name] == 0), "{counts}");
    assert_eq!((&counts["connects"], &counts["connects_v5"]), (&json!(16), &json!(8)));
    assert_eq!((&counts["resumed"], &counts["wills"]), (&json!(2), &json!(2)));
    let deliveries = target.stats()["deliveries"].clone();
    // What meets a subscriber that has left, or its closed socket, is sent again to its session.
    let count = |name: &str| deliveries[name].as_u64().expect(name);
    let all = 2 * (2 * 3 * EACH + 2 * EACH + 2);
    assert_eq!(count("owed") + count("gone"), all, "{deliveries}");
    assert_eq!(count("written") + count("dropped"), count("owed"), "{deliveries}");
    let missed = count("dropped") + count("gone");
    assert!(missed <= counts["resent"].as_u64().expect("resent"), "{counts} {deliveries}");
}
