//! Rooms that users move between, on servers that join records in one message: the ledger knows
//! what the server has sent, to the message.

use crate::run::{Run, throng};
use crate::servers::Node;

/// A hub as the common Go example writes it: what waits for a user goes out as one message, a
/// record a line, and the acknowledgement behind what it has caused. It prints what it sends.
const HUB: &str = r#"
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, backlog: 1024 });
server.on('listening', () => console.log('listening ' + server.address().port));
const rooms = new Map();
server.on('connection', (socket) => {
  const waiting = [];
  socket.push = (record) => {
    if (!waiting.length) setTimeout(() => socket.send(waiting.splice(0).join('\n')), 20);
    waiting.push(JSON.stringify(record));
  };
  const leave = () => rooms.get(socket.room)?.delete(socket);
  socket.on('close', leave);
  socket.on('message', (data) => {
    const { cmd, id, room } = JSON.parse(data);
    if (cmd === 'join') {
      leave();
      if (!rooms.has(room)) rooms.set(room, new Set());
      rooms.get(room).add(socket);
      socket.room = room;
    } else {
      for (const member of rooms.get(socket.room)) {
        member.push({ cmd: 'said', id });
        console.log('delivered');
      }
    }
    socket.push({ cmd: 'ok', id, room });
  });
});
"#;

/// Eight users in two rooms talk, move to the other rooms, and talk again.
const MOVING: &str = r#"name: rooms
target: TARGET
PROTOCOL
sessions:
  member:
    before: [{connect: /}]
    steps:
      - request: {json: {cmd: join, id: "${random.uuid()}", room: "${int(user.id) % 2}"}}
        match: {json: {cmd: ok}}
        save: {room: json.room}
      - {rendezvous: all are there, users: 8}
      - request: {json: {cmd: say, id: "${random.uuid()}"}}
        name: say
        match: {json: {cmd: ok}}
      - expect: {json: {cmd: said}}
      - {rendezvous: all is said, users: 8}
      - think: 300ms
      - request: {json: {cmd: join, id: "${random.uuid()}", room: "${2 + int(user.id) % 4}"}}
        match: {json: {cmd: ok}}
        save: {room: json.room}
      - {rendezvous: all have moved, users: 8}
      - request: {json: {cmd: say, id: "${random.uuid()}"}}
        name: say
        match: {json: {cmd: ok}}
      - {rendezvous: all is said again, users: 8}
      - stay: 1500ms
deliveries:
  talk:
    sent: say
    received: {json: {cmd: said}}
    match: json.id
    audience: {same: "${saved.room}"}
    lost_after: 1s
load: [{iterations: 8, users: 8}]
thresholds: [talk lost = 0]
"#;

fn moving(text: &str) -> Run {
    throng("run rooms.yaml --json --shards 2 --out record").file("rooms.yaml", text).run()
}

#[test]
fn users_are_owed_the_messages_of_their_room() {
    let node = Node::start(HUB, &[]);
    let text = MOVING.replace("TARGET", &node.url("ws"));
    let run = moving(&text.replace("PROTOCOL", r#"protocol: {delimiter: "\n"}"#)).exits(0);
    // Two rooms of four, then four rooms of two.
    let expected = 8 * 4 + 8 * 2;
    let row = run.row("deliveries", "talk");
    run.check(row["sent"] == 16 && row["expected"] == expected, "each room has its members");
    run.check(row["delivered"] == expected && row["lost"] == 0, "all has come");
    run.check(row["stray"] == 0 && row["foreign"] == 0, "nothing else has");
    run.has("/total/failed", 0);
    node.tells("delivered", expected as usize);
}

/// Without the delimiter a message of several records is not JSON.
#[test]
fn unreadable_joined_records_are_not_losses_of_the_target() {
    let node = Node::start(HUB, &[]);
    let text = MOVING.replace("TARGET", &node.url("ws")).replace("PROTOCOL", "");
    let text = text.replace("{json: {cmd: ok}}", "{text: ok}");
    let text = text.replace("received: {json: {cmd: said}}", "received: {text: said}");
    let run = moving(&text.replace("      - expect: {json: {cmd: said}}\n", "")).exits(5);
    let json = run.json();
    let reasons = json["outcome"]["invalid_reasons"].as_array().expect("reasons");
    let is_blind = |reason: &serde_json::Value| reason["reason"] == "deliveries-blind";
    run.check(reasons.iter().any(is_blind), "the reason");
    let row = run.row("deliveries", "talk");
    run.check(row["lost"].as_u64() > Some(0), "nothing that can be read has come");
    run.check(row["received_without_id"].as_u64() > Some(0), "it is told");
}
