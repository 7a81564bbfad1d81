//! The picture of the population: a storm over processes and shards is in it, its users are those
//! of the gauges, and the page shows it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::pages::page::drawn;
use crate::run::{Run, throng};
use crate::servers::Node;

/// Ends all connections a second after everybody is there, once.
const SERVER: &str = "
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('listening', () => console.log('listening ' + server.address().port));
let came = 0;
server.on('connection', (socket) => {
  socket.on('error', () => {});
  came += 1;
  if (came === 20) setTimeout(() => server.clients.forEach((one) => one.terminate()), 1000);
});
";
const STATES: usize = 6;
const AWAY: usize = 4;

/// By second with a line of each of so many processes: users in each state, and how many are
/// online by the gauges.
fn pictured(run: &Run, processes: usize) -> BTreeMap<u64, ([i64; STATES], i64)> {
    let path = run.folder().join("record/intervals.ndjson");
    let text = std::fs::read_to_string(path).expect("intervals");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line"));
    let mut by_second: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for line in lines {
        let line: Value = line;
        by_second.entry(line["second"].as_u64().expect("a second")).or_default().push(line);
    }
    let mut states = [0; STATES];
    let mut seconds = BTreeMap::new();
    for (second, lines) in by_second {
        for row in lines.iter().filter_map(|line| line["cells"]["rows"].as_array()).flatten() {
            let changes = row[1].as_array().expect("changes").iter().filter_map(Value::as_i64);
            states.iter_mut().zip(changes).for_each(|(state, change)| *state += change);
        }
        let online = lines.iter().filter_map(|line| line["gauges"]["users_online"].as_i64()).sum();
        if lines.len() == processes {
            seconds.insert(second, (states, online));
        }
    }
    assert_eq!(states, [0; STATES], "nobody is left");
    seconds
}

#[test]
fn a_storm_is_in_the_picture() {
    let node = Node::start(SERVER, &[]);
    let text = format!(
        "name: storm
target: {}
sessions:
  member:
    steps:
      - {{connect: /, reconnect: {{wait: 8s..9s}}}}
      - stay: forever
load: [{{users: 20, for: 12s}}]
",
        node.url("ws")
    );
    let line = "run s.yaml --json --out record --shards 2 --processes 2";
    let run = throng(line).file("s.yaml", text).run();
    let population = &run.json()["population"];
    assert_eq!((&population["users_per_cell"], &population["cells"]), (&1.into(), &20.into()));
    let states = population["states"].as_array().cloned().unwrap_or_default();
    let most = |name: &str| {
        let row = states.iter().find(|row| row["state"] == name);
        row.map_or(0, |row| row["users_max"].as_u64().unwrap_or_default())
    };
    assert_eq!((most("online"), most("away")), (20, 20), "{run}");
    assert_eq!(run.row("stages", "away")["began"], 20, "{run}");
    let seconds = pictured(&run, 2);
    for (second, (states, online)) in &seconds {
        assert_eq!(states[0], *online, "second {second}: {seconds:?}\n{run}");
    }
    assert!(seconds.values().any(|(states, _)| states[AWAY] == 20), "{seconds:?}\n{run}");

    let (record, page) = (run.folder().join("record"), run.folder().join("page.html"));
    throng("report").arg(&record).arg("--html").arg(&page).run();
    let page = drawn(&page);
    for part in
        ["Maximum number of users in each state over time", "away (connection lost)", ">20</td>"]
    {
        assert!(page.contains(part), "{part} is not on the page");
    }
}
