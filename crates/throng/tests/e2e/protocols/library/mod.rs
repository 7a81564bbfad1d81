//! The protocols that come with throng, against real servers whose books are compared.

mod captures;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use throng_fuzz::{nats_server, python_packages};

use crate::http::tls::Papers;
use crate::run::{Child, Run, throng};
use crate::servers::{Node, fetch, free_port, program};

/// Iterations of each scenario.
const TIMES: usize = 100;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/protocols/library").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect(name)
}

/// Runs the scenario of a protocol, of which nothing may fail; each of these steps is done in each
/// iteration.
#[track_caller]
fn spoken(name: &str, target: &str, steps: &[&str]) -> Run {
    spoken_in(&text(&format!("{name}.yaml")).replace("TARGET", target), steps)
}

#[track_caller]
fn spoken_in(scenario: &str, steps: &[&str]) -> Run {
    let run = throng("run it.yaml --json --out record").file("it.yaml", scenario).run().exits(0);
    run.has("/total/failed", 0);
    run.has("/messages/broken", 0);
    for step in steps {
        run.check(run.row("steps", step)["ok"] == TIMES, step);
    }
    run
}

#[track_caller]
fn node(name: &str) -> Node {
    Node::start(&text(name), &[])
}

/// A server written in Python, and its port. It prints what it receives.
#[track_caller]
fn python(name: &str, package: &str, port: Option<u16>) -> (Child, u16) {
    let mut command = Command::new(program("python3", "python3"));
    command.arg(file(name)).args(port.map(|port| port.to_string()));
    command.env("PYTHONPATH", python_packages(package));
    let child = Child::start(command);
    let port = child.line("listening ").parse().expect("a port");
    (child, port)
}

/// Waits until a server has printed so many lines with this text.
#[track_caller]
fn prints(server: &Child, text: &str, times: usize) {
    server.hears(&format!("{times} times `{text}`"), |out, errors| {
        let lines = out.lines().chain(errors.lines());
        (lines.filter(|line| line.contains(text)).count() == times).then_some(())
    });
}

/// RabbitMQ with STOMP over TCP and WebSocket, and a port where it tells its counts.
struct Rabbit {
    server: Child,
    _names: Child,
    _home: TempDir,
    amqp: u16,
    stomp: u16,
    web_stomp: u16,
    counts: u16,
}

impl Rabbit {
    #[track_caller]
    fn start() -> Rabbit {
        let home = tempfile::tempdir().expect("a temporary folder");
        let folder = home.path().to_string_lossy().into_owned();
        let [amqp, stomp, web_stomp, counts, nodes, names] = [(); 6].map(|()| free_port());
        let settings = format!(
            "listeners.tcp.local = 127.0.0.1:{amqp}\n\
             stomp.listeners.tcp.local = 127.0.0.1:{stomp}\n\
             web_stomp.tcp.ip = 127.0.0.1\nweb_stomp.tcp.port = {web_stomp}\n\
             prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = {counts}\nlog.console = true\n"
        );
        let plugins = "[rabbitmq_web_stomp,rabbitmq_prometheus].";
        std::fs::write(home.path().join("rabbitmq.conf"), settings).expect("settings");
        std::fs::write(home.path().join("plugins"), plugins).expect("plugins");
        // The daemon of Erlang that knows its nodes would otherwise be started, and stay.
        let mut command = Command::new(program("epmd", "rabbitmq-server"));
        command.args(["-address", "127.0.0.1", "-port", &names.to_string()]);
        let nodes_known = Child::start(command);
        nodes_known.until("epmd to listen", || TcpStream::connect(("127.0.0.1", names)).is_ok());
        let server = Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
        assert!(server.is_file(), "`apt-get install rabbitmq-server`, or `cargo xtask ci`");
        let mut command = Command::new(server);
        command.current_dir(home.path()).env("HOME", &folder);
        command.env("ERL_EPMD_PORT", names.to_string());
        // Its script becomes the server, and does not only wait for it.
        command.env("RUNNING_UNDER_SYSTEMD", "1");
        command.env("RABBITMQ_NODENAME", format!("throng{amqp}@localhost"));
        command.env("RABBITMQ_DIST_PORT", nodes.to_string());
        command.env("RABBITMQ_MNESIA_BASE", format!("{folder}/data"));
        command.env("RABBITMQ_LOG_BASE", format!("{folder}/log"));
        command.env("RABBITMQ_CONFIG_FILE", format!("{folder}/rabbitmq.conf"));
        command.env("RABBITMQ_ENABLED_PLUGINS_FILE", format!("{folder}/plugins"));
        let server = Child::start(command);
        server.hears("RabbitMQ to start", |out, _| {
            out.contains("Server startup complete").then_some(())
        });
        Rabbit { server, _names: nodes_known, _home: home, amqp, stomp, web_stomp, counts }
    }

    /// Waits until a counter of all its protocols has this value.
    #[track_caller]
    fn counts(&self, name: &str, value: usize) {
        let name = format!("rabbitmq_global_messages_{name}_total{{protocol=\"amqp091\"");
        self.server.until(&format!("{value} of {name}"), || {
            let all = fetch(([127, 0, 0, 1], self.counts).into(), "/metrics");
            let rows = all.lines().filter(|line| line.starts_with(&name));
            let values = rows.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
            values.sum::<usize>() == value
        });
    }
}

/// STOMP is carried by the same machinery as AMQP: its messages count as those of AMQP.
#[test]
fn rabbitmq_counts_the_messages_of_amqp_and_stomp() {
    let rabbit = Rabbit::start();
    let target = format!("tcp://127.0.0.1:{}", rabbit.amqp);
    let steps = ["start_ok", "channel_open", "declare_queue", "first", "get", "consume", "payload"];
    let run = spoken("amqp", &target, &steps);
    for name in ["received", "confirmed"] {
        rabbit.counts(name, 2 * TIMES);
    }
    for name in ["acknowledged", "delivered_consume_manual_ack", "delivered_get_auto_ack"] {
        rabbit.counts(name, TIMES);
    }
    run.check(run.row("steps", "delivered")["ok"] == TIMES, "deliveries");
    let before = 2 * TIMES;
    let steps = ["login", "subscribe", "send", "message", "disconnect"];
    spoken("stomp", &format!("tcp://127.0.0.1:{}", rabbit.stomp), &steps);
    rabbit.counts("received", before + TIMES);
    // A receipt is the confirmation of a message.
    rabbit.counts("confirmed", before + TIMES);
    let target = format!("ws://127.0.0.1:{}", rabbit.web_stomp);
    let connect = "- {connect: /ws, protocols: v12.stomp}\n";
    let scenario = text("stomp.yaml").replace("TARGET", &target).replace("- connect\n", connect);
    // Over WebSocket, RabbitMQ closes the connection and sends no receipt.
    let (scenario, _) = scenario.split_once("    - request: disconnect").expect("the last request");
    spoken_in(scenario, &steps[..4]);
    rabbit.counts("received", before + 2 * TIMES);
}

#[test]
fn the_ledger_counts_the_deliveries_that_rabbitmq_counts() {
    let rabbit = Rabbit::start();
    let run = spoken("amqp_fanout", &format!("tcp://127.0.0.1:{}", rabbit.amqp), &["payload"]);
    rabbit.counts("received", TIMES);
    let news = run.row("deliveries", "news");
    run.check(news["sent"] == TIMES && news["lost"] == 0, "all are delivered");
    run.check(news["twice"] == 0 && news["expected"] == news["delivered"], "to each user once");
    let delivered = run.figure("/messages/pushes") as usize;
    rabbit.counts("delivered_consume_auto_ack", delivered);
    run.check(news["delivered"].as_u64() <= Some(delivered as u64), "the ledger knows of no other");
}

/// prosody with these settings, in a folder of its own.
#[track_caller]
fn prosody(settings: &str, users: &[String]) -> (Child, u16, TempDir) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let port = free_port();
    let settings = settings.replace("FOLDER", &home.path().to_string_lossy());
    let path = home.path().join("prosody.cfg.lua");
    std::fs::write(&path, settings.replace("PORT", &port.to_string())).expect("settings");
    for user in users {
        let mut command = Command::new(program("prosodyctl", "prosody"));
        command.arg("--config").arg(&path).args(["register", user, "throng.test", "secret"]);
        Child::start(command).wait().exits(0);
    }
    let mut command = Command::new(program("prosody", "prosody"));
    command.arg("-F").arg("--config").arg(&path);
    let server = Child::start(command);
    server.until("prosody to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, port, home)
}

#[test]
fn prosody_receives_the_stanzas_of_xmpp() {
    let (server, port, _home) = prosody(&text("prosody.cfg.lua"), &[]);
    spoken("xmpp", &format!("ws://127.0.0.1:{port}"), &["bind", "received", "ping"]);
    prints(&server, "Received[c2s]: <message ", TIMES);
    prints(&server, "Received[c2s]: <iq ", TIMES);
}

#[test]
fn prosody_receives_the_stanzas_of_xmpp_over_tcp() {
    let papers = Papers::own();
    let folder = papers.path("self.pem").parent().expect("a folder").display().to_string();
    let settings = text("prosody_tcp.cfg.lua").replace("PAPERS", &folder);
    let users: Vec<String> = (1..=5).map(|user| format!("user-{user}")).collect();
    let (server, port, _home) = prosody(&settings, &users);
    let scenario = text("xmpp_tcp.yaml").replace("PAPERS", &folder);
    let scenario = scenario.replace("TARGET", &format!("tcp://127.0.0.1:{port}"));
    let steps = ["secure", "login", "bind", "received", "ping", "roster", "self", "close"];
    let run = spoken_in(&scenario, &steps);
    run.has("/messages/unasked", 0);
    prints(&server, "Authenticated as user-", TIMES);
    prints(&server, "Received[c2s]: <message ", TIMES);
    // It receives what users send to each other, and sends it to them.
    prints(&server, "Sending[c2s]: <message ", TIMES);
    prints(&server, "Received[c2s]: <presence xml:lang='en'>", TIMES);
}

#[test]
fn slapd_counts_the_requests_of_ldap() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = home.path().to_string_lossy();
    let settings = text("slapd.conf").replace("FOLDER", &folder);
    std::fs::write(home.path().join("slapd.conf"), settings).expect("settings");
    std::fs::create_dir(home.path().join("data")).expect("a folder");
    let in_home = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(program(name, "slapd"));
        command.args(arguments).current_dir(home.path());
        Child::start(command)
    };
    let entries = file("slapd.ldif");
    in_home("slapadd", &["-f", "slapd.conf", "-l", &entries.to_string_lossy()]).wait().exits(0);
    let address = format!("127.0.0.1:{}", free_port());
    let url = format!("ldap://{address}");
    let server = in_home("slapd", &["-d", "256", "-h", &url, "-f", "slapd.conf"]);
    server.hears("slapd to start", |_, errors| errors.contains("slapd starting").then_some(()));
    spoken("ldap", &format!("tcp://{address}"), &["bind", "search", "refused"]);
    prints(&server, "SRCH base=\"dc=test\"", TIMES);
    prints(&server, "RESULT tag=97 err=0", TIMES);
    prints(&server, "RESULT tag=97 err=49", TIMES);
}

#[test]
fn a_central_system_receives_the_calls_of_ocpp() {
    let (server, port) = python("ocpp_server.py", "ocpp", None);
    spoken("ocpp", &format!("ws://127.0.0.1:{port}"), &["boot", "unknown"]);
    prints(&server, "boot", TIMES);
    prints(&server, "beat", 5 * TIMES);
    prints(&server, "cleared Accepted", TIMES);
}

#[test]
fn aiocoap_receives_the_requests_of_coap() {
    let (server, port) = python("coap_server.py", "aiocoap", Some(free_port()));
    spoken("coap", &format!("udp://127.0.0.1:{port}"), &["get", "put", "missing", "ping"]);
    prints(&server, "get", TIMES);
    prints(&server, "put 22", TIMES);
}

#[test]
fn dnslib_receives_the_queries_of_dns() {
    let (server, port) = python("dns_server.py", "dnslib", None);
    spoken("dns", &format!("udp://127.0.0.1:{port}"), &["known", "unknown"]);
    prints(&server, "A www.test.", TIMES);
    prints(&server, "AAAA nothing.test.", TIMES);
}

#[test]
fn pymodbus_receives_the_requests_of_modbus() {
    let (server, port) = python("modbus_server.py", "pymodbus", Some(free_port()));
    spoken("modbus", &format!("tcp://127.0.0.1:{port}"), &["write", "read", "refused"]);
    prints(&server, "WriteSingleRegisterRequest", TIMES);
    prints(&server, "ReadHoldingRegistersRequest", 2 * TIMES);
}

#[test]
fn a_hub_receives_the_invocations_of_signalr() {
    let (server, port) = python("signalr_server.py", "aiosignalr", None);
    let steps = ["handshake", "add", "fail", "received"];
    spoken("signalr", &format!("ws://127.0.0.1:{port}"), &steps);
    for what in ["add", "fail", "say"] {
        prints(&server, what, TIMES);
    }
}

#[test]
fn graphql_ws_executes_the_operations_of_graphql() {
    let server = node("graphql.js");
    let steps = ["connection_init", "query", "first", "refused", "ping"];
    spoken("graphql", &server.url("ws"), &steps);
    for (what, times) in [("connected", 1), ("operation", 2), ("next", 4), ("error", 1)] {
        server.tells(what, times * TIMES);
    }
}

#[test]
fn socket_io_receives_the_events_of_its_protocol() {
    let server = node("socketio.js");
    let run = spoken("socketio", &server.url("ws"), &["opened", "join", "add", "received"]);
    for (what, times) in [("joined", 1), ("add", 2), ("say", 1)] {
        server.tells(what, times * TIMES);
    }
    run.check(server.child.output().contains("\npong\n"), "pings are answered");
}

/// With the serializer of Phoenix's own client; its server is in no registry.
#[test]
fn channels_receive_the_events_of_phoenix() {
    let server = node("phoenix.js");
    spoken("phoenix", &server.url("ws"), &["join", "say", "broadcast", "heartbeat"]);
    for event in ["phx_join", "new_msg", "heartbeat"] {
        server.tells(event, TIMES);
    }
}

#[test]
fn sockjs_repeats_the_messages_of_its_protocol() {
    let server = node("sockjs.js");
    spoken("sockjs", &server.url("ws"), &["opened"]);
    server.tells("connected", TIMES);
    server.tells("data", TIMES);
}

#[test]
fn nats_server_counts_the_messages_of_nats() {
    let [port, counts] = [(); 2].map(|()| free_port());
    let mut command = Command::new(nats_server());
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-m", &counts.to_string()]);
    let server = Child::start(command);
    server.hears("nats-server to start", |_, errors| {
        errors.contains("Server is ready").then_some(())
    });
    let steps = ["login", "subscribe", "publish", "message", "ping"];
    spoken("nats", &format!("tcp://127.0.0.1:{port}"), &steps);
    server.until("the messages of nats", || {
        let all = fetch(([127, 0, 0, 1], counts).into(), "/varz");
        let all: Value = serde_json::from_str(&all).expect("JSON");
        all["in_msgs"] == TIMES && all["out_msgs"] == TIMES
    });
}

#[test]
fn memcached_logs_the_commands_of_its_protocol() {
    let port = free_port();
    let mut command = Command::new(program("memcached", "memcached"));
    command.args(["-vv", "-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-p", &port.to_string()]);
    let server = Child::start(command);
    server.hears("memcached to listen", |_, errors| {
        errors.contains("server listening").then_some(())
    });
    let steps = ["set", "get", "missing", "delete"];
    spoken("memcached", &format!("tcp://127.0.0.1:{port}"), &steps);
    for command in [" set k", " get k", " get nothing", " delete k"] {
        prints(&server, command, TIMES);
    }
}

#[test]
fn shipped_protocols_are_listed_shown_and_used_by_name() {
    let list = throng("protocol --list").run().exits(0);
    list.says(&["throng:dns", "throng:nats", "throng:stomp", "NATS, client protocol"]);
    let shown = throng("protocol --show nats").run().exits(0);
    shown.says(&["# NATS, client protocol", "license: MIT OR Apache-2.0"]);
    let decoded = throng("protocol throng:nats --decode").arg("2b4f4b0d0a").run().exits(0);
    decoded.says(&["ok"]);
    let unknown = throng("protocol throng:natts").run().exits(2);
    unknown.says(&["did you mean `throng:nats`?"]);
    let native = throng("protocol throng:redis").run().exits(2);
    native.says(&["Redis needs no file: write the target as `redis://…`"]);
}
