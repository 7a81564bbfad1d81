//! `bench protocol`: what it costs that a protocol is declared. The same request and reply, once by
//! the declaration and once as bytes with a length written by hand, to `throng target chat`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::contest::{self, Entrant, Sample};
use super::report::{self, Gate};
use super::server::{self, Server};
use super::tool::{self, Places, Tool};
use super::{Folder, Options, TOOL_CORE, child, machine, throng};
use crate::workspace::Workspace;

const DECLARED: &str = "declared `ping`";
const BY_HAND: &str = "by hand";
const SAY: &str = "declared `say`, checked, with what it delivers";
/// Declared against by hand.
const RATIO_MAX: f64 = 1.15;
const USERS: [u32; 2] = [64, 1_000];
const PROTOCOL: &str = "examples/chat.protocol.yaml";
const GRACE: Duration = Duration::from_secs(60);

/// A user who asks for a `pong` again and again.
const PING: &str = "    before: [connect]
    steps:
      - request: ping
";

/// The same bytes: `magic`, no body, `kind` 9, a `seq`.
const PING_BY_HAND: &str = "    before: [connect]
    steps:
      - request: {hex: \"c4a7 00000000 09 00000001\"}
        expect: {length: 11}
";

/// Texts and a check: each talks to itself, and gets what it says delivered too.
const TALK: &str = "    before:
      - connect
      - request: {join: {room: \"${user.id}\", user: \"${user.id}\", token: \"t-${user.id}\"}}
        check: {code: 0}
    steps:
      - request:
          say: {id: \"${iteration}\", sent_ns: \"${now.ns()}\", text: \"hello from ${user.id}\"}
        check: {code: 0}
";

pub(super) fn run(
    options: &Options,
    places: &Places,
    workspace: &Workspace,
) -> Result<String, String> {
    let program = Tool::Throng.program(places)?;
    let folder = Folder::new(&places.folder, "protocol")?;
    let protocol = workspace.root.join(PROTOCOL);
    fs::copy(&protocol, folder.0.join("chat.protocol.yaml"))
        .map_err(|error| format!("{}: {error}", protocol.display()))?;
    let mut text = machine::facts(options, places, workspace);
    let mut gates = Vec::new();
    for users in USERS.into_iter().filter(|users| options.wants(&users.to_string())) {
        let (table, gate) = compare(options, &program, &folder.0, users)?;
        text.push_str(&table);
        gates.push(gate);
    }
    text.push_str(
        "All are in closed loop, without pauses. A `say` is a `done` and a delivery to its sender: \
         it stands here for information.\n\n",
    );
    text.push_str(&report::goals(&gates));
    Ok(text)
}

fn compare(
    options: &Options,
    program: &Path,
    folder: &Path,
    users: u32,
) -> Result<(String, Gate), String> {
    let room = (users * 2).to_string();
    let target = server::throng_target(program, folder, &["chat", "--connections", &room])?;
    let entrant = |name: &str, declared: bool, steps: &str| -> Result<Entrant<'_>, String> {
        let text = scenario(&target, declared, steps, users, options.seconds);
        let words = name.split(|c: char| !c.is_ascii_alphabetic()).collect::<String>();
        let file = tool::write(folder, &format!("{words}.yaml"), &text)?;
        let run = move |_| {
            let command = throng::run(program, &file);
            let running = child::start(command, TOOL_CORE, folder, "protocol")?;
            let ended = running.wait(Duration::from_secs(u64::from(options.seconds)) + GRACE)?;
            let (ok, failed) = throng::counts(&ended.output)
                .map_err(|trouble| format!("{trouble}; {}", ended.complaint()))?;
            Ok(Sample { ok, failed, cpu: ended.cpu, seconds: f64::from(options.seconds) })
        };
        Ok(Entrant { name: name.to_string(), run: Box::new(run) })
    };
    let entrants = [
        entrant(DECLARED, true, PING)?,
        entrant(BY_HAND, false, PING_BY_HAND)?,
        entrant(SAY, true, TALK)?,
    ];
    let title = format!("A declared request and its reply, {users} users");
    let rows = contest::hold(&title, options.rounds, &entrants);
    let gate = Gate {
        goal: format!("{title}: CPU at most {RATIO_MAX} x the same by hand"),
        measured: contest::ratio(&rows, DECLARED, BY_HAND).map(|ratio| ratio.median),
        max: RATIO_MAX,
        unit: "x",
    };
    Ok((report::table(&title, "request", &rows, BY_HAND), gate))
}

/// A scenario with these steps. What is by hand has no heartbeat, so the declared ones have none.
fn scenario(target: &Server, declared: bool, steps: &str, users: u32, seconds: u32) -> String {
    let (protocol, heartbeat) = match declared {
        true => ("protocol: chat.protocol.yaml\n", "    heartbeat: none\n"),
        false => ("", ""),
    };
    format!(
        "name: protocol\ntarget: {}\n{protocol}sessions:\n  user:\n{heartbeat}{steps}\
         load: [{{users: {users}, for: {seconds}s}}]\n",
        target.url("tcp", 1).trim_end_matches('/')
    )
}
