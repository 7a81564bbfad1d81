//! Users of MQTT: what a run counts is what the broker counts.

use serde_json::{Value, json};

use crate::run::{Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::{Node, Target};

/// Runs the steps of one session; `before` and `load` stand beside it.
fn users(target: &Target, load: &str, steps: &str) -> Run {
    running(&one_session(&target.url("mqtt", ""), load, steps)).run()
}

/// A figure of the broker's books.
fn book(target: &Target, name: &str) -> u64 {
    target.counts(&format!("/mqtt/{name}"))
}

/// No packet was wrong, on either side.
#[track_caller]
fn assert_clean(target: &Target, run: &Run) {
    for name in ["broken", "misnumbered", "left_out", "keep_alive"] {
        assert_eq!(book(target, name), 0, "{name}: {}\n{run}", target.stats());
    }
}

/// How many attempts failed with this cause.
fn failed(run: &Run, cause: &str) -> u64 {
    let errors = run.json()["errors"].as_array().cloned().unwrap_or_default();
    let found = errors.iter().filter(|error| error["cause"] == cause);
    found.filter_map(|error| error["count"].as_u64()).sum()
}

#[test]
fn published_messages_are_those_that_the_broker_has() {
    for version in ["5", "3.1.1"] {
        let target = Target::start("mqtt --workers 2");
        let steps = format!(
            "- {{connect: , mqtt: {{version: {version}, client_id: \"d-${{user.id}}-${{iteration}}\", \
             inflight_max: 3}}}}\n\
             - repeat: 10\n  steps:\n    - {{publish: \"rooms/${{user.id}}\", text: a, name: zero}}\n\
             \x20   - {{publish: rooms, json: {{n: \"${{user.id}}\"}}, qos: 1, name: one}}\n\
             \x20   - {{publish: rooms, hex: 00ff, qos: 2, name: two}}\n\
             - disconnect"
        );
        let run = users(&target, &times(20, 5), &steps).exits(0);
        for name in ["zero", "one", "two"] {
            run.check(run.row("steps", name)["ok"] == 200, name);
            run.check(run.row("steps", name)["kind"] == "publish", "the kind of the row");
        }
        target.comes_to("/mqtt/disconnects", 20);
        assert_eq!(target.stats()["mqtt"]["published"], json!([200, 200, 200]), "{run}");
        assert_eq!(book(&target, "connects"), 20);
        assert_eq!(book(&target, "connects_v5"), if version == "5" { 20 } else { 0 });
        assert_clean(&target, &run);
    }
}

/// Members of rooms talk to each other.
const ROOMS: &str = r#"name: rooms
target: TARGET
sessions:
  member:
    before:
      - set: {room: "${user.id % 4}"}
      - {connect: , mqtt: {topic_aliases: 4}}
      - {subscribe: "rooms/${saved.room}/+", name: subscribe, qos: QOS}
      - {rendezvous: all are there, users: 40}
    steps:
      - repeat: 5
        steps:
          - publish: "rooms/${saved.room}/${user.id}"
            name: talk
            json: {id: "${random.uuid()}"}
            qos: QOS
          - think: 20ms
      - {rendezvous: all is said, users: 40}
      - stay: 4s
        on: [{message: {topic: "rooms/${saved.room}/+"}, name: heard, check: {header: {qos: QOS}}}]
deliveries:
  talk:
    sent: talk
    received: {topic: rooms/+/+}
    match: json.id
    audience: {same: "${saved.room}"}
    lost_after: 3s
load: [{iterations: 40, users: 40}]
"#;

fn rooms(target: &Target, qos: &str) -> Run {
    let text = ROOMS.replace("TARGET", &target.url("mqtt", "")).replace("QOS", qos);
    throng("run rooms.yaml --json --shards 2 --out record").file("rooms.yaml", text).run()
}

#[test]
fn every_message_reaches_every_subscriber_once() {
    for qos in ["0", "1", "2"] {
        let target = Target::start("mqtt --workers 2");
        let run = rooms(&target, qos).exits(0);
        let row = run.row("deliveries", "talk");
        for (figure, wanted) in
            [("sent", 200), ("expected", 2000), ("delivered", 2000), ("lost", 0)]
        {
            run.check(row[figure] == wanted, figure);
        }
        for none in ["twice", "out_of_order", "after_lost", "stray", "foreign", "unwatched"] {
            run.check(row[none] == 0, none);
        }
        assert_eq!(target.counts("/deliveries/written"), 2000, "{run}");
        assert_eq!(target.counts("/deliveries/owed"), 2000, "{run}");
        let acknowledged = if qos == "0" { 0 } else { 2000 };
        assert_eq!(book(&target, "acknowledged"), acknowledged, "{run}");
        run.has("/total/failed", 0);
        assert_clean(&target, &run);
    }
}

#[test]
fn a_user_that_only_publishes_is_in_no_audience() {
    let target = Target::start("mqtt --workers 2");
    let text = format!(
        r#"name: plant
target: {}
sessions:
  screen:
    users: 4
    before: [connect, {{subscribe: plant/+, qos: 1}}, {{rendezvous: all are there, users: 10}}]
    steps: [{{stay: 3s, on: [{{message: any, name: heard}}]}}]
  device:
    users: 6
    before: [connect, {{rendezvous: all are there, users: 10}}]
    steps:
      - {{publish: "plant/${{user.id}}", name: reading, json: {{id: "${{random.uuid()}}"}}, qos: 1}}
      - stay: 3s
deliveries:
  readings: {{sent: reading, received: {{topic: plant/+}}, match: json.id, lost_after: 2s}}
load: [{{iterations: 10, users: 10}}]
"#,
        target.url("mqtt", "")
    );
    let run = running(&text).run().exits(0);
    let row = run.row("deliveries", "readings");
    for (figure, wanted) in [("sent", 6), ("expected", 24), ("delivered", 24), ("lost", 0)] {
        run.check(row[figure] == wanted, figure);
    }
    assert_eq!(target.counts("/deliveries/written"), 24, "{run}");
}

#[test]
fn every_message_that_the_broker_loses_is_named() {
    let target = Target::start("mqtt --workers 2 --lose-every 20");
    let run = rooms(&target, "1");
    let lost = target.counts("/deliveries/lost");
    let row = run.row("deliveries", "talk");
    run.check(lost == 100, "the broker loses each twentieth");
    run.check(row["expected"] == 2000 && row["lost"] == lost, "as many as the broker says");
    let target = Target::start("mqtt --workers 2 --twice-every 20");
    let run = rooms(&target, "0");
    let row = run.row("deliveries", "talk");
    let twice = target.counts("/deliveries/twice");
    run.check(twice > 0 && row["twice"] == twice, "as many come twice as the broker says");
}

#[test]
fn wills_and_retained_messages_are_delivered() {
    let target = Target::start("mqtt --workers 2");
    let text = format!(
        r#"name: wills
target: {}
sessions:
  watcher:
    users: 5
    steps:
      - connect
      - {{rendezvous: all is kept, users: 10}}
      - {{subscribe: [lost/+, {{topic: state/#, qos: 2}}], qos: 1}}
      - expect: {{topic: state/kept}}
        check: {{text: here, header: {{retain: true}}}}
      - {{rendezvous: all listen, users: 10}}
      - repeat: 5
        steps:
          - expect: {{topic: lost/+, json: {{left: 1}}}}
            name: lost
            check: {{topic: {{matches: "^lost/"}}, header: {{qos: 1, retain: false}}}}
      - disconnect
  lost:
    users: 5
    steps:
      - connect:
        mqtt: {{will: {{topic: "lost/${{user.id}}", json: {{left: 1}}, qos: 1}}}}
      - {{publish: state/kept, text: here, qos: 2, retain: true}}
      - {{rendezvous: all is kept, users: 10}}
      - {{rendezvous: all listen, users: 10}}
      - disconnect: reset
load: [{{iterations: 10, users: 10}}]
"#,
        target.url("mqtt", "")
    );
    let run = running(&text).run().exits(0);
    run.check(run.row("steps", "lost")["ok"] == 25, "each will comes to each watcher");
    run.has("/total/failed", 0);
    assert_eq!((book(&target, "wills"), book(&target, "retained")), (5, 1), "{run}");
    assert_clean(&target, &run);
}

#[test]
fn workers_of_a_shared_subscription_take_turns() {
    // One thread of the broker: what is over comes behind the jobs.
    let target = Target::start("mqtt --workers 1");
    let text = format!(
        r#"name: jobs
target: {}
sessions:
  worker:
    users: 4
    steps:
      - {{connect: , on: [{{message: {{topic: jobs/+}}, name: job}}]}}
      - {{subscribe: [$share/workers/jobs/#, over], qos: 1}}
      - {{rendezvous: all listen, users: 5}}
      - expect: {{topic: over}}
      - {{unsubscribe: $share/workers/jobs/#}}
      - disconnect
  boss:
    users: 1
    steps:
      - connect
      - {{rendezvous: all listen, users: 5}}
      - repeat: 100
        steps: [{{publish: jobs/7, text: "${{random.int(1, 9)}}", qos: 1, name: give}}]
      - {{publish: over, qos: 1}}
      - disconnect
load: [{{iterations: 5, users: 5}}]
"#,
        target.url("mqtt", "")
    );
    let run = running(&text).run().exits(0);
    run.check(run.row("pushed", "job")["count"] == 100, "each job comes to one worker");
    run.has("/total/failed", 0);
    assert_eq!((book(&target, "acknowledged"), book(&target, "unsubscribes")), (104, 4), "{run}");
    assert_clean(&target, &run);
}

#[test]
fn a_resumed_session_gets_missed_messages() {
    for version in ["{version: 3.1.1, ", "{session_expiry: 1h, "] {
        let target = Target::start("mqtt --workers 2");
        let mqtt = format!("mqtt: {version}clean_start: false, client_id: \"d-${{user.id}}\"}}");
        let steps = format!(
            "- {{connect: , as: main, {mqtt}}}\n\
             - {{subscribe: \"to/${{user.id}}\", qos: 2, on: main}}\n\
             - {{disconnect: reset, on: main}}\n\
             - {{connect: , as: other}}\n\
             - {{publish: \"to/${{user.id}}\", text: first, qos: 1, on: other}}\n\
             - {{publish: \"to/${{user.id}}\", text: second, qos: 2, on: other}}\n\
             - {{connect: , as: main, name: again, {mqtt}}}\n\
             - {{expect: {{text: first}}, on: main, check: {{header: {{qos: 1}}}}}}\n\
             - {{expect: {{text: second}}, on: main, check: {{header: {{qos: 2}}}}}}\n\
             - {{disconnect: , on: main}}\n- {{disconnect: , on: other}}"
        );
        let run = users(&target, &times(10, 10), &steps).exits(0);
        run.check(run.row("steps", "again")["ok"] == 10, "they come back");
        run.has("/total/failed", 0);
        assert_eq!(book(&target, "resumed"), 10, "{run}");
        assert_clean(&target, &run);
    }
}

#[test]
fn refusals_are_counted_by_their_reasons() {
    let target = Target::start("mqtt --workers 2 --errors 20%");
    let steps = "- {connect: , mqtt: {client_id: \"d-${user.id}-${iteration}\"}}\n\
                 - {subscribe: rooms/1, qos: 1}\n\
                 - {publish: rooms/2, text: a, qos: 1}\n\
                 - {publish: rooms/2, text: a, qos: 2}\n\
                 - disconnect";
    let run = users(&target, &times(500, 20), steps);
    let (refused, errors) = (book(&target, "refused"), target.counts("/errors_sent"));
    run.check(refused > 50 && errors > refused, "all kinds of refusals came");
    let row = run.row("steps", "connect");
    run.check(row["failed"] == refused, "as many connections are refused as the broker says");
    run.check(failed(&run, "mqtt-reason") == errors, "as many errors as the broker says");
    run.has("/total/failed", errors);
    assert_clean(&target, &run);
}

#[test]
fn connections_closed_by_the_broker_are_counted_and_the_rest_arrives() {
    let target = Target::start("mqtt --workers 2 --resets 5% --latency 1ms");
    let steps = "- {connect: , mqtt: {client_id: \"d-${user.id}-${iteration}\"}}\n\
                 - repeat: 5\n  steps: [{publish: rooms/2, text: a, qos: 1, name: publish}]\n\
                 - disconnect";
    let run = users(&target, &times(300, 10), steps);
    let resets = target.counts("/resets_sent");
    run.check(resets > 10, "some connections are reset");
    run.has("/total/failed", resets);
    assert_clean(&target, &run);
}

/// Clients that are the same for the broker: it lets only the last one stay.
#[test]
fn a_session_that_is_taken_over_says_why() {
    let target = Target::start("mqtt");
    let steps = "- {connect: , as: one, mqtt: {client_id: same}}\n\
                 - {connect: , as: two, mqtt: {client_id: same}}\n\
                 - {expect: {topic: never}, on: one, timeout: 20s}";
    let run = users(&target, &times(1, 1), steps);
    assert_eq!(book(&target, "taken_over"), 1, "{run}");
    run.check(run.to_string().contains("taken over"), "the reason is told");
}

/// MQTT in messages of a WebSocket, cut and joined anywhere, to a broker that has none.
const BRIDGE: &str = r#"
const { WebSocketServer } = require('ws');
const net = require('net');
const [host, port] = process.argv[2].split(':');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, backlog: 1024,
  handleProtocols: (offered) => offered.has('mqtt') ? 'mqtt' : false });
server.on('listening', () => console.log('listening ' + server.address().port));
server.on('connection', (socket, request) => {
  console.log('opened ' + request.url + ' ' + socket.protocol);
  const broker = net.connect(Number(port), host);
  socket.on('message', (data) => broker.write(data));
  broker.on('data', (data) => {
    for (let at = 0; at < data.length; at += 7) socket.send(data.subarray(at, at + 7));
  });
  socket.on('close', () => broker.end());
  broker.on('close', () => socket.close());
  broker.on('error', () => socket.close());
  socket.on('error', () => broker.end());
});
"#;

#[test]
fn mqtt_works_over_websocket() {
    let target = Target::start("mqtt");
    let address = target.address.to_string();
    let bridge = Node::start(BRIDGE, &[address.as_ref()]);
    let head = format!("protocol: mqtt\n{}", times(10, 5));
    let steps = "- {connect: , mqtt: {client_id: \"d-${user.id}-${iteration}\", keep_alive: 10s}}\n\
                 - {subscribe: \"rooms/${user.id}\", qos: 2}\n\
                 - repeat: 3\n  steps:\n  - {publish: \"rooms/${user.id}\", text: hello, qos: 2}\n\
                 \x20 - {expect: {topic: \"rooms/${user.id}\"}, check: {text: hello}}\n\
                 - disconnect";
    let url = format!("ws://127.0.0.1:{}", bridge.port);
    let run = running(&one_session(&url, &head, steps)).run().exits(0);
    run.has("/total/failed", 0);
    bridge.tells("opened /mqtt mqtt", 10);
    assert_eq!(target.stats()["mqtt"]["published"], json!([0, 0, 30]), "{run}");
    target.comes_to("/mqtt/disconnects", 10);
    assert_clean(&target, &run);
}

#[test]
fn a_command_line_publishes_or_subscribes() {
    let target = Target::start("mqtt");
    let url = target.url("mqtt", "/rooms/1");
    let line = format!("bench {url} -c 10 -n 500 --qos 1 --client-id dev --retain --json");
    let run = throng(&line).arg("--body").arg("hello").run().exits(0);
    // Some may have published all before the last have connected.
    run.has("/total/ok", 500 + run.figure("/connections/opened") as u64);
    let books: Value = target.stats()["mqtt"].clone();
    assert_eq!(
        (&books["published"], &books["retained"]),
        (&json!([0, 500, 0]), &json!(1)),
        "{run}"
    );
    // The retained message comes to each of those who listen.
    let url = target.url("mqtt", "/rooms/#");
    let run = throng(&format!("bench {url} -c 10 -d 1s --mqtt-3 --json")).run().exits(0);
    assert_eq!(run.row("pushed", "messages")["count"], 10, "{run}");
    run.has("/total/failed", 0);
}

#[test]
fn a_meaningless_command_line_is_refused() {
    for (line, said) in [
        ("bench mqtt://127.0.0.1:1 --body a", "the URL does not name a topic"),
        ("bench http://127.0.0.1:1 --qos 1", "--qos does not apply to http://"),
        ("bench mqtt://127.0.0.1:1/a --expect-text a", "--expect-text does not apply to mqtt://"),
        ("bench mqtt://127.0.0.1:1/a/# --body a", "a message cannot be published to a topic"),
    ] {
        throng(line).run().exits(2).says(&[said]);
    }
}

#[test]
fn one_user_shows_what_it_says_and_hears() {
    let target = Target::start("mqtt");
    let steps = "- {connect: , mqtt: {client_id: \"d-${user.id}-${iteration}\"}}\n\
                 - {subscribe: rooms/+, qos: 1}\n\
                 - {publish: rooms/1, text: hello, qos: 1}\n\
                 - {expect: {topic: rooms/1}}\n- disconnect";
    let text = one_session(&target.url("mqtt", ""), &times(1, 1), steps);
    let run = throng("try scenario.yaml").file("scenario.yaml", text).run().exits(0);
    run.says(&["rooms/1", "hello", "all ok"]);
}
