//! Deliveries that begin with a disconnect, against a server that keeps books of whom it owes word
//! of those who are gone.

use crate::run::Run;
use crate::scenarios::running;
use crate::servers::Node;

/// Rooms with watchers, who are told when somebody is gone. Every fifth word of it is forgotten. It
/// ends the connections of users whose number divides by three; the others leave by themselves.
const SERVER: &str = "
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('listening', () => console.log('listening ' + server.address().port));
const watchers = new Set();
const book = { gone: 0, owed: 0, told: 0, forgotten: 0 };
server.on('connection', (socket) => {
  socket.on('error', () => {});
  socket.on('message', (data) => {
    const said = JSON.parse(data);
    if (said.cmd !== 'join') return;
    socket.user = said.user, socket.room = said.room, socket.role = said.role;
    if (said.role !== 'guest') watchers.add(socket);
    if (said.role === 'guest' && said.user % 3 === 0) setTimeout(() => socket.terminate(), 400);
    socket.send(JSON.stringify({ cmd: 'joined' }));
  });
  socket.on('close', () => {
    watchers.delete(socket);
    if (socket.role !== 'guest') return;
    book.gone += 1;
    for (const watcher of watchers) {
      if (watcher.room !== socket.room) continue;
      book.owed += 1;
      if (book.owed % 5 === 0) { book.forgotten += 1; continue; }
      book.told += 1;
      watcher.send(JSON.stringify({ cmd: 'left', user: socket.user }));
    }
    console.log('book ' + JSON.stringify(book));
  });
});
";

/// Six watchers stay, two are away before the first guest is gone; twelve guests come and go.
fn rooms(node: &Node) -> String {
    let join = |role: &str| {
        format!(
            "- connect\n      - request: {{json: {{cmd: join, user: \"${{user.id}}\", \
             room: \"${{user.id % 2}}\", role: {role}}}}}\n        match: {{json: {{cmd: joined}}}}"
        )
    };
    format!(
        "name: presence
target: {}
sessions:
  watcher:
    users: 6
    before:
      {}
      - set: {{watches: \"${{user.id % 2}}\"}}
    steps: [{{stay: forever}}]
  truant:
    users: 2
    before:
      {}
      - set: {{watches: \"${{user.id % 2}}\"}}
    steps: [{{think: 300ms}}, disconnect, leave]
  guest:
    before:
      {}
    steps:
      - think: 600ms
      - disconnect: reset
      - leave
deliveries:
  gone:
    begins: disconnect
    session: guest
    id: \"${{user.id}}\"
    received: {{json: {{cmd: left}}}}
    match: json.user
    audience: {{to: \"${{user.id % 2}}\", is: \"${{saved.watches}}\"}}
    lost_after: 1s
loads:
  watching: {{sessions: [watcher, truant], phases: [{{users: 8, for: 7s}}]}}
  visiting: {{sessions: guest, at: 1500ms, phases: [{{arrivals: 5/s, for: 2400ms}}, {{for: 2s}}]}}
thresholds: [gone expected > 0]
",
        node.url("ws"),
        join("watcher"),
        join("truant"),
        join("guest").replace("- connect\n", "- {connect: /, reconnect: never}\n"),
    )
}

fn row(run: &Run, figure: &str) -> u64 {
    run.row("deliveries", "gone")[figure].as_u64().unwrap_or(u64::MAX)
}

#[test]
fn users_that_stay_are_owed_notice_of_users_that_left() {
    let node = Node::start(SERVER, &[]);
    let run = running(&rooms(&node)).run();
    // Six watchers in two rooms: three for each guest, however its connection ended.
    let (gone, owed) = (12, 36);
    node.tells(
        &format!(
            "book {{\"gone\":{gone},\"owed\":{owed},\"told\":{},\"forgotten\":{}}}",
            owed - owed / 5,
            owed / 5
        ),
        1,
    );
    for (figure, wanted) in [
        ("sent", gone),
        ("expected", owed),
        ("delivered", owed - owed / 5),
        ("lost", owed / 5),
        ("excused", 0),
        ("stray", 0),
        ("foreign", 0),
        ("twice", 0),
        ("unwatched", 0),
    ] {
        let got = row(&run, figure);
        run.check(got == wanted, &format!("{figure} is {got} instead of {wanted}"));
    }
}
