//! What a connected user costs throng and others: each puts the same number of them on a target
//! of its own, at the same pace, and holds them over a heartbeat.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bench::child::{self, Ended};
use crate::bench::look::{self, Look, Watcher};
use crate::bench::population::{Change, Pace, scenario_of};
use crate::bench::report::in_bytes;
use crate::bench::tool::{self, Places};
use crate::bench::{machine, server, throng};
use crate::packages;
use crate::workspace::Workspace;

/// Users a second.
const PACE: u64 = 1_000;
/// How long all are online: longer than the time between two heartbeats.
const HOLD: Duration = Duration::from_secs(40);
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long the one user stays whose memory is no user's.
const HOLD_ALONE: Duration = Duration::from_secs(8);
const TICK: Duration = Duration::from_millis(200);
/// What a tool may take to start, to fall behind the pace and to end.
const GRACE: Duration = Duration::from_secs(90);
const RATIO_MAX: f64 = 0.9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Throng,
    Tsung,
    K6,
    Locust,
    Artillery,
}

/// What a tool is told to do.
struct Load<'a> {
    port: u16,
    /// For the name server of Erlang.
    epmd_port: u16,
    users: u64,
    hold: Duration,
    folder: &'a Path,
}

/// What a tool with its users came to.
#[derive(Debug, PartialEq)]
struct Cost {
    /// From the first user to come until all are logged in.
    connecting: Duration,
    /// From the start of the program until all are logged in.
    starting: Duration,
    users: u64,
    bytes_per_user: f64,
    /// While all are online.
    cores_in_hold: f64,
    heartbeats: u64,
    seconds_to_connect: f64,
}

impl Peer {
    pub(super) const ALL: [Peer; 5] =
        [Peer::Throng, Peer::Tsung, Peer::K6, Peer::Locust, Peer::Artillery];

    pub(super) fn word(self) -> &'static str {
        match self {
            Peer::Throng => "throng",
            Peer::Tsung => "tsung",
            Peer::K6 => "k6",
            Peer::Locust => "locust",
            Peer::Artillery => "artillery",
        }
    }

    /// The program, or how to get it.
    fn program(self, places: &Places, target: &Path) -> Result<PathBuf, String> {
        let (own, install) = match self {
            Peer::Throng => (Some(places.throng.clone()), "cargo build --release -p throng"),
            Peer::Tsung => (None, "apt-get install tsung"),
            Peer::K6 => (None, "go install go.k6.io/k6@latest"),
            Peer::Locust => (
                Some(target.join("ci/python/bin/locust")),
                "python3 -m venv target/ci/python && \
                 target/ci/python/bin/pip install locust websocket-client",
            ),
            Peer::Artillery => (
                Some(target.join("ci/artillery/node_modules/.bin/artillery")),
                "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
                 npm install --prefix target/ci/artillery artillery",
            ),
        };
        own.filter(|path| path.is_file())
            .or_else(|| packages::program(self.word()).filter(|_| self != Peer::Throng))
            .ok_or_else(|| format!("missing; to get it: {install}"))
    }

    fn version(self, program: &Path, folder: &Path) -> Option<String> {
        let flag = if self == Peer::Tsung { "-v" } else { "--version" };
        if self == Peer::Artillery {
            // It prints a picture before its version.
            let package = program.parent()?.parent()?.join("artillery/package.json");
            let package: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(package).ok()?).ok()?;
            return Some(format!("artillery {}", package.get("version")?.as_str()?));
        }
        machine::version(self.word(), program, &[flag], folder)
    }

    fn command(self, program: &Path, load: &Load<'_>, example: &str) -> Result<Command, String> {
        let mut command = Command::new(program);
        match self {
            Peer::Throng => {
                let change = Change {
                    tls: false,
                    port: load.port,
                    users: load.users,
                    pace: Pace::Even(PACE),
                    hold: load.hold,
                    heartbeat: super::HEARTBEAT,
                };
                let text = scenario_of(example, &change)?;
                let file = tool::write(load.folder, "throng.yaml", &text)?;
                return Ok(throng::run(program, &file));
            }
            Peer::Tsung => {
                let file = tool::write(load.folder, "tsung.xml", &tsung_scenario(load))?;
                let logs = load.folder.join("tsung");
                command.arg("-n").arg("-f").arg(file).arg("-l").arg(logs).arg("start");
                // Its cookie is kept in its home. `epmd`, which it starts and leaves behind, is
                // ours alone by its port, so that it can be ended.
                command.env("HOME", load.folder).env("ERL_EPMD_PORT", load.epmd_port.to_string());
            }
            Peer::K6 => {
                let file = tool::write(load.folder, "k6.js", &k6_scenario(load))?;
                command.args(["run", "--quiet", "--no-usage-report"]).arg(file);
            }
            Peer::Locust => {
                let file = tool::write(load.folder, "locustfile.py", &locust_scenario(load))?;
                command.arg("-f").arg(file).args(["--headless", "--only-summary"]);
                command.args(["--loglevel", "ERROR", "--stop-timeout", "10"]);
                command.args(["-u", &load.users.to_string(), "-r", &PACE.to_string()]);
                // It counts from its start and needs longer than it was told.
                let run = load.coming() * 3 + load.hold;
                command.args(["-t", &format!("{}s", run.as_secs())]);
            }
            Peer::Artillery => {
                let file = tool::write(load.folder, "artillery.yaml", &artillery_scenario(load))?;
                command.args(["run", "--quiet"]).arg(file);
                command.env("ARTILLERY_DISABLE_TELEMETRY", "true").env("HOME", load.folder);
            }
        }
        Ok(command)
    }

    /// Ends what the tool has left behind.
    fn tidy(self, load: &Load<'_>) {
        if let (Peer::Tsung, Some(epmd)) = (self, packages::program("epmd")) {
            // Where it never started there is nothing to end.
            let _ =
                Command::new(epmd).args(["-port", &load.epmd_port.to_string(), "-kill"]).output();
        }
    }
}

impl Load<'_> {
    /// How long it takes until all have come.
    fn coming(&self) -> Duration {
        Duration::from_secs(self.users.div_ceil(PACE))
    }

    /// How long a user stays so that all are online for the time of the hold, also where a tool
    /// needs twice as long to bring them as it was told.
    fn stay(&self) -> Duration {
        self.coming() * 2 + self.hold
    }

    fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/acc", self.port)
    }
}

/// Measures all that are there and gives the text of the report.
pub(super) fn run(
    users: u64,
    wanted: &[String],
    places: &Places,
    workspace: &Workspace,
    example: &str,
    folder: &Path,
) -> String {
    let mut rows = Vec::new();
    let mut versions = Vec::new();
    for peer in Peer::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == peer.word()) {
            continue;
        }
        let cost = peer.program(places, &workspace.target).and_then(|program| {
            versions.extend(peer.version(&program, folder));
            measure(peer, &program, users, places, example, folder)
        });
        let said = match &cost {
            Ok(cost) => format!("{:.1} µs of CPU per connection", cost.connecting_us()),
            Err(trouble) => trouble.clone(),
        };
        crate::say(&format!("{users} users by {}: {said}", peer.word()));
        rows.push((peer, cost));
    }
    table(users, &rows, &versions)
}

fn measure(
    peer: Peer,
    program: &Path,
    users: u64,
    places: &Places,
    example: &str,
    folder: &Path,
) -> Result<Cost, String> {
    let alone = watch(peer, program, 1, HOLD_ALONE, places, example, folder)?;
    let looks = watch(peer, program, users, HOLD, places, example, folder)?;
    let resident = |looks: &[Look], users| {
        let online = looks.iter().rfind(|look| look.logged_in >= users);
        online.map(|look| look.tool.resident_bytes)
    };
    let (one, many) = resident(&alone, 1).zip(resident(&looks, users)).ok_or("not all came")?;
    cost(&looks, users, many.saturating_sub(one) as f64 / users.saturating_sub(1).max(1) as f64)
        .ok_or_else(|| "not all came".to_string())
}

/// Lets the tool run to its end and looks at it meanwhile.
fn watch(
    peer: Peer,
    program: &Path,
    users: u64,
    hold: Duration,
    places: &Places,
    example: &str,
    folder: &Path,
) -> Result<Vec<Look>, String> {
    let connections = (users * 2).to_string();
    let arguments = ["im", "--connections", &connections, "--workers", "2"];
    let (target, admin) = server::throng_target_everywhere(&places.throng, folder, &arguments)?;
    let epmd_port = server::free_port()?;
    let load = Load { port: target.port, epmd_port, users, hold, folder };
    let command = peer.command(program, &load, example)?;
    let mut watcher = Watcher::new(&target, admin, look::MESSENGER);
    let limit = load.coming() * 6 + hold * 2 + GRACE;
    let running = child::start(command, None, folder, peer.word())?;
    let ended = running.watch(TICK, limit, |id| {
        watcher.look(id);
    });
    peer.tidy(&load);
    let most = watcher.looks.iter().map(|look| look.logged_in).max().unwrap_or(0);
    let complaint = |ended: Result<Ended, String>| match ended {
        Ok(ended) => ended.complaint(),
        Err(trouble) => trouble,
    };
    if most < users {
        return Err(format!("only {most} of {users} logged in: {}", complaint(ended)));
    }
    Ok(watcher.looks)
}

/// What the looks say; none when not all users came.
fn cost(looks: &[Look], users: u64, bytes_per_user: f64) -> Option<Cost> {
    let full = looks.iter().position(|look| look.logged_in >= users)?;
    let before = looks[..full].iter().rfind(|look| look.logged_in == 0)?;
    let last = looks.iter().rfind(|look| look.logged_in >= users)?;
    let full = &looks[full];
    let held = (last.at - full.at).as_secs_f64();
    Some(Cost {
        connecting: full.tool.cpu.saturating_sub(before.tool.cpu),
        starting: full.tool.cpu,
        users,
        bytes_per_user,
        cores_in_hold: last.tool.cpu.saturating_sub(full.tool.cpu).as_secs_f64() / held.max(0.1),
        heartbeats: last.done,
        seconds_to_connect: (full.at - before.at).as_secs_f64(),
    })
}

impl Cost {
    fn connecting_us(&self) -> f64 {
        self.connecting.as_secs_f64() * 1e6 / self.users as f64
    }

    fn starting_us(&self) -> f64 {
        self.starting.as_secs_f64() * 1e6 / self.users as f64
    }
}

fn table(users: u64, rows: &[(Peer, Result<Cost, String>)], versions: &[String]) -> String {
    let throng = rows.iter().find(|(peer, _)| *peer == Peer::Throng);
    let throng = throng.and_then(|(_, cost)| cost.as_ref().ok());
    let mut text = format!(
        "### Beside others, {users} users each\n\nEach connects {users} WebSocket users to a \
         `throng target im` of its own, {PACE} a second, logs them in, holds them for {} s with a \
         heartbeat every {} s, and ends by itself. CPU is of the tool with its children: per \
         connection from the first login until all are logged in, and from the start of the \
         program until then. Memory is resident, of the tool with its children, at the end of \
         the hold, minus the same with 1 user, divided by the users.\n\n",
        HOLD.as_secs(),
        HEARTBEAT.as_secs()
    );
    let _ = writeln!(
        text,
        "| tool | CPU per connection | throng to it | with the start | until all were in | \
         memory per user | throng to it | CPU in hold | heartbeats |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for (peer, cost) in rows {
        let cost = match cost {
            Ok(cost) => cost,
            Err(trouble) => {
                let trouble = trouble.replace('|', "/");
                let _ = writeln!(text, "| {} | {} | | | | | | | |", peer.word(), trouble.trim());
                continue;
            }
        };
        let ratio = |of: fn(&Cost) -> f64| {
            throng.map_or_else(String::new, |throng| format!("{:.3}", of(throng) / of(cost)))
        };
        let _ = writeln!(
            text,
            "| {} | {:.1} µs | {} | {:.1} µs | {:.1} s | {} | {} | {:.3} cores | {} |",
            peer.word(),
            cost.connecting_us(),
            ratio(Cost::connecting_us),
            cost.starting_us(),
            cost.seconds_to_connect,
            in_bytes(cost.bytes_per_user),
            ratio(|cost| cost.bytes_per_user),
            cost.cores_in_hold,
            cost.heartbeats
        );
    }
    let _ = writeln!(text, "\n{}\n\nVersions: {}.", verdict(rows, throng), versions.join("; "));
    text
}

fn verdict(rows: &[(Peer, Result<Cost, String>)], throng: Option<&Cost>) -> String {
    let others = rows.iter().filter(|(peer, _)| *peer != Peer::Throng);
    let costs = others.filter_map(|(peer, cost)| Some((peer, cost.as_ref().ok()?)));
    let best = costs.min_by(|a, b| a.1.connecting.cmp(&b.1.connecting));
    let goal = format!("CPU per established connection at most {RATIO_MAX} x the best other");
    match (throng, best) {
        (Some(throng), Some((peer, best))) => {
            let ratio = throng.connecting_us() / best.connecting_us();
            let met = if ratio <= RATIO_MAX { "met" } else { "**not met**" };
            format!("{goal} — {met}: {ratio:.2} x {}", peer.word())
        }
        _ => format!("{goal} — not measured"),
    }
}

/// Its users come by chance, at the pace on average, until there are enough.
fn tsung_scenario(load: &Load<'_>) -> String {
    let (beat, stay) = (HEARTBEAT.as_secs(), load.stay().as_secs());
    let rest = match stay.checked_sub(beat) {
        Some(rest) => format!(
            "    <thinktime value=\"{beat}\"/>\n    <request subst=\"true\">\
             <websocket type=\"message\" frame=\"text\">\
             {{\"seq\":\"hb\",\"cmd\":\"heartbeat\",\"data\":{{}}}}</websocket></request>\n    \
             <thinktime value=\"{rest}\"/>\n"
        ),
        None => format!("    <thinktime value=\"{stay}\"/>\n"),
    };
    format!(
        "<?xml version=\"1.0\"?>\n\
         <!DOCTYPE tsung SYSTEM \"/usr/share/tsung/tsung-1.0.dtd\" []>\n\
         <tsung loglevel=\"warning\" version=\"1.0\">\n  \
         <clients><client host=\"localhost\" use_controller_vm=\"true\" maxusers=\"30000\"/>\
         </clients>\n  \
         <servers><server host=\"127.0.0.1\" port=\"{port}\" type=\"tcp\"/></servers>\n  \
         <load><arrivalphase phase=\"1\" duration=\"{coming}\" unit=\"second\">\
         <users maxnumber=\"{users}\" arrivalrate=\"{PACE}\" unit=\"second\"/>\
         </arrivalphase></load>\n  <sessions><session name=\"member\" probability=\"100\" \
         type=\"ts_websocket\">\n    \
         <request><websocket type=\"connect\" path=\"/acc\"></websocket></request>\n    \
         <request subst=\"true\"><websocket type=\"message\" frame=\"text\">\
         {{\"seq\":\"1\",\"cmd\":\"login\",\"data\":{{\"userId\":\
         \"u%%ts_user_server:get_unique_id%%\"}}}}</websocket></request>\n{rest}    \
         <request><websocket type=\"close\"></websocket></request>\n  \
         </session></sessions>\n</tsung>\n",
        port = load.port,
        users = load.users,
        // By chance it takes longer than the average, and longer still on a busy machine; who has
        // not come by the end of this would never come.
        coming = load.coming().as_secs() * 5 + 5,
    )
}

/// All its users are there at once, and wait for their turn.
fn k6_scenario(load: &Load<'_>) -> String {
    let seconds = load.stay().as_secs() + 2;
    format!(
        "import ws from 'k6/ws';\nimport {{ sleep }} from 'k6';\n\
         import exec from 'k6/execution';\n\
         export const options = {{ scenarios: {{ im: {{ executor: 'per-vu-iterations', \
         vus: {users}, iterations: 1, maxDuration: '{limit}s' }} }} }};\n\
         export default function () {{\n  const id = exec.vu.idInTest;\n  \
         sleep((id - 1) / {PACE});\n  ws.connect('{url}', {{}}, (socket) => {{\n    \
         const say = (seq, cmd, data) => socket.send(JSON.stringify(\
         {{ seq: `${{id}}-${{seq}}`, cmd, data }}));\n    \
         socket.on('open', () => say('1', 'login', {{ userId: `u${{id}}` }}));\n    \
         socket.on('message', (text) => {{\n      const heard = JSON.parse(text);\n      \
         if (heard.cmd !== 'login') return;\n      \
         if (heard.response.code !== 200) return socket.close();\n      \
         socket.setInterval(() => say('hb', 'heartbeat', {{}}), {beat});\n    }});\n    \
         socket.setTimeout(() => socket.close(), \
         Math.max(1, {seconds} * 1000 - exec.instance.currentTestRunDuration));\n  }});\n}}\n\
         export function handleSummary() {{ return {{}}; }}\n",
        users = load.users,
        url = load.url(),
        beat = HEARTBEAT.as_millis(),
        limit = seconds + 20,
    )
}

fn locust_scenario(load: &Load<'_>) -> String {
    format!(
        "import itertools\nimport json\n\nimport gevent\nimport websocket\n\
         from locust import User, task\n\nids = itertools.count(1)\n\n\n\
         class Member(User):\n    def ask(self, seq, cmd, data):\n        \
         self.socket.send(json.dumps(\
         {{\"seq\": f\"{{self.number}}-{{seq}}\", \"cmd\": cmd, \"data\": data}}))\n        \
         while True:\n            heard = json.loads(self.socket.recv())\n            \
         if heard[\"cmd\"] == cmd:\n                \
         assert heard[\"response\"][\"code\"] == 200\n                return\n\n    \
         def on_start(self):\n        self.number = next(ids)\n        \
         self.socket = websocket.create_connection(\"{url}\")\n        \
         self.ask(\"1\", \"login\", {{\"userId\": f\"u{{self.number}}\"}})\n\n    \
         @task\n    def stay(self):\n        gevent.sleep({beat})\n        \
         self.ask(\"hb\", \"heartbeat\", {{}})\n\n    \
         def on_stop(self):\n        self.socket.close()\n",
        url = load.url(),
        beat = HEARTBEAT.as_secs(),
    )
}

fn artillery_scenario(load: &Load<'_>) -> String {
    let (beat, stay) = (HEARTBEAT.as_secs(), load.stay().as_secs());
    let rest = match stay.checked_sub(beat) {
        Some(rest) => format!(
            "      - think: {beat}\n      \
             - send: '{{\"seq\":\"hb\",\"cmd\":\"heartbeat\",\"data\":{{}}}}'\n      \
             - think: {rest}\n"
        ),
        None => format!("      - think: {stay}\n"),
    };
    format!(
        "config:\n  target: \"{url}\"\n  phases:\n    \
         - {{duration: {coming}, arrivalCount: {users}}}\n\
         scenarios:\n  - engine: ws\n    flow:\n      \
         - send: '{{\"seq\":\"1\",\"cmd\":\"login\",\"data\":{{\"userId\":\"u{{{{ $uuid }}}}\"}}}}'\n\
         {rest}",
        url = load.url(),
        coming = load.coming().as_secs(),
        users = load.users,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::look::Usage;

    fn look(at: u64, cpu_ms: u64, logged_in: u64) -> Look {
        let tool = Usage { cpu: Duration::from_millis(cpu_ms), resident_bytes: 0 };
        Look { at: Duration::from_secs(at), tool, logged_in, done: at, ..Look::default() }
    }

    #[test]
    fn what_a_connection_costs_is_seen() {
        let looks = [
            look(0, 0, 0),
            look(1, 500, 0),
            look(2, 600, 40),
            look(3, 900, 100),
            look(13, 1900, 100),
            look(14, 2000, 3),
        ];
        let cost = cost(&looks, 100, 7.0).unwrap();
        assert_eq!((cost.connecting_us(), cost.starting_us()), (4000.0, 9000.0));
        assert_eq!((cost.cores_in_hold, cost.heartbeats), (0.1, 13));
        assert_eq!(cost.seconds_to_connect, 2.0);
        assert_eq!(super::cost(&looks, 101, 7.0), None);
    }

    #[test]
    fn the_best_other_is_the_measure() {
        let cost = |ms| {
            Ok(Cost {
                connecting: Duration::from_millis(ms),
                starting: Duration::from_millis(ms),
                users: 10,
                bytes_per_user: 1.0,
                cores_in_hold: 0.0,
                heartbeats: 0,
                seconds_to_connect: 1.0,
            })
        };
        let missing = Err("missing | gone".to_string());
        let rows = [
            (Peer::Throng, cost(5)),
            (Peer::K6, cost(50)),
            (Peer::Tsung, cost(10)),
            (Peer::Locust, missing),
        ];
        let text = table(10, &rows, &[]);
        assert!(text.contains("met: 0.50 x tsung"), "{text}");
        assert!(text.contains("| k6 | 5000.0 µs | 0.100 |"), "{text}");
        assert!(text.contains("| locust | missing / gone |"), "{text}");
        assert!(verdict(&rows[1..], None).ends_with("not measured"));
    }

    #[test]
    fn a_short_stay_has_no_heartbeat() {
        let folder = Path::new("/");
        let load = |users, hold| Load { port: 1, epmd_port: 2, users, hold, folder };
        let (short, long) = (load(1, HOLD_ALONE), load(10_000, HOLD));
        for scenario in [tsung_scenario, artillery_scenario] {
            assert!(!scenario(&short).contains("heartbeat"));
            assert!(scenario(&long).contains("heartbeat"));
        }
        assert_eq!(long.stay(), Duration::from_secs(60));
    }
}
