//! What lies between: packets, ports, addresses, and the processor that does TLS.

use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::process::Command;

use super::{finds, running};
use crate::faulty::Faulty;
use crate::run::{FIRST, Throng, binary, throng, throng_first};
use crate::servers::{Haproxy, Node, Target, free_port, openssl};

/// Head and body in two writes with Nagle's algorithm: the second waits for the acknowledgement of
/// the first, and that for its timer.
const NAGLE: &str = r#"
let count = 0;
const server = require("net").createServer((socket) => {
  socket.setNoDelay(false);
  socket.on("error", () => {});
  socket.on("data", () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    if (++count % 4 === 0) {
      socket.write(head);
      setImmediate(() => socket.write("hello"));
    } else socket.write(head + "hello");
  });
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;

#[test]
fn forty_milliseconds_of_nagle_are_named() {
    let node = Node::start(NAGLE, &[]);
    let line = format!("bench {} -c 20 -d 4s --json", node.url("http"));
    let run = throng(&line).run().exits(0);
    finds(&run, "two-peaks");
    run.check(run.json()["findings"].to_string().contains("TCP_NODELAY"), "the cause is named");
}

/// One process with three addresses; the second is slow.
const ADDRESSES: &str = r#"
const port = Number(process.argv[2]);
let up = 0;
["127.0.0.1", "127.0.0.2", "127.0.0.3"].forEach((address, at) => {
  const answer = (_, response) => setTimeout(() => response.end("x"), at === 1 ? 30 : 3);
  const told = () => { if (++up === 3) console.log("listening " + port); };
  require("http").createServer(answer).listen(port, address, told);
});
"#;

fn three_addresses(port: u16, more: &str) -> String {
    let addresses: Vec<String> =
        (1..=3).map(|last| format!("http://127.0.0.{last}:{port}")).collect();
    format!(
        "target: {{addresses: [{}]}}\n{more}load: [{{users: 12, for: 4s}}]\nsessions: {{s: {{steps: \
         [http: GET /]}}}}\n",
        addresses.join(", ")
    )
}

/// HAProxy has three servers, and each response names the one that it came from.
#[test]
fn a_slow_instance_behind_a_load_balancer_is_named() {
    let port = free_port();
    let number = port.to_string();
    let _node = Node::start(ADDRESSES, &[number.as_ref()]);
    let server = |last: u8| format!("  server web-{last} 127.0.0.{last}:{port}\n");
    let sections = format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
         backend shop\n  balance roundrobin\n  http-response set-header X-Served-By %s\n{}",
        [1, 2, 3].map(server).concat()
    );
    let haproxy = Haproxy::start(&sections, "shop");
    let text = format!(
        "target: {{url: \"http://127.0.0.1:{}\", instance: header x-served-by}}\n\
         load: [{{users: 12, for: 4s}}]\nsessions: {{s: {{steps: [http: GET /]}}}}\n",
        haproxy.port
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    let found = finds(&run, "one-bad-address");
    run.check(found.contains("web-2"), "which");
    let rows = run.json()["instances"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["instance"].as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "web-3"], "{run}");
    let counted: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
    assert_eq!(counted as f64, run.figure("/total/count"), "{run}");
}

#[test]
fn one_slow_address_of_three_is_named() {
    let port = free_port();
    let number = port.to_string();
    let _node = Node::start(ADDRESSES, &[number.as_ref()]);
    let text = three_addresses(port, "");
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(0);
    finds(&run, "one-bad-address");
    run.check(run.json()["findings"].to_string().contains(&format!("127.0.0.2:{port}")), "which");
}

/// The kernel gives the filter of a socket each segment that comes for it. This one drops a share
/// of the SYNs, or of the segments with data, as a network does: nothing counts them, and the
/// client sends them again. Accepted connections have it, too.
fn loses(listener: &TcpListener, share: f64, is_data: bool) {
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    /// No header of TCP without data is longer.
    const HEADER_MAX: u32 = 60;
    let random = libc::SKF_AD_OFF.wrapping_add(libc::SKF_AD_RANDOM).cast_unsigned();
    let word =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let jump = libc::BPF_JMP | libc::BPF_K;
    let of_concern = match is_data {
        true => [
            word(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0, 0),
            word(jump | libc::BPF_JGT, 0, 3, HEADER_MAX),
        ],
        false => [
            word(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, FLAGS),
            word(jump | libc::BPF_JEQ, 0, 3, SYN),
        ],
    };
    let mut program = [
        of_concern[0],
        of_concern[1],
        word(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, random),
        word(jump | libc::BPF_JGT, 1, 0, (share * f64::from(u32::MAX)) as u32),
        word(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        word(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the socket is open, and the filter outlives the call, which copies it.
    let done = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "SO_ATTACH_FILTER is set");
}

/// This thread and the children that it starts have a network of their own, with counters of its
/// own: other tests fill accept queues.
fn enters_a_network() {
    // SAFETY: it changes nothing but the network of this thread.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    let why = std::io::Error::last_os_error();
    assert_eq!(done, 0, "this host allows no network namespaces, as this needs: {why}");
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip");
    assert!(up.success(), "the loopback interface is up");
}

#[test]
fn lost_syns_are_told_by_their_second() {
    enters_a_network();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    loses(&listener, 0.1, false);
    let server = Faulty::start_by(listener, |mut peer| {
        peer.request();
        peer.says(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx");
        peer.closes();
    });
    let line = format!("bench {} --no-keepalive -c 20 -d 6s --json", server.url("http"));
    let run = throng_first(&line).run().exits(0);
    finds(&run, "syn-lost");
}

/// A server on a socket that loses this share of the data, with this module of node.
fn loses_data(module: &str, share: f64) -> Node {
    const SERVER: &str = r#"
const [name, fd, port] = process.argv.slice(2);
const answer = (_, response) => setTimeout(() => response.end("x"), 3);
const server = require(name).createServer(answer);
server.listen({ fd: Number(fd) }, () => console.log("listening " + port));
"#;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    loses(&listener, share, true);
    let port = listener.local_addr().expect("an address").port().to_string();
    // SAFETY: the socket is open; children have it from now on.
    let done = unsafe { libc::fcntl(listener.as_raw_fd(), libc::F_SETFD, 0) };
    assert_eq!(done, 0, "FD_CLOEXEC is cleared");
    let descriptor = listener.as_raw_fd().to_string();
    let arguments = [module.as_ref(), descriptor.as_ref(), port.as_ref()];
    // A server that waits for a processor has a slow peak of its own.
    match FIRST.is_empty() {
        true => Node::start(SERVER, &arguments),
        false => Node::under(&FIRST, SERVER, &arguments),
    }
}

#[test]
fn requests_that_are_lost_are_told_by_their_retransmission() {
    let node = loses_data("http", 0.02);
    let line = format!("bench {} -c 20 -d 5s --json", node.url("http"));
    let run = throng_first(&line).run().exits(0);
    let found = finds(&run, "two-peaks");
    assert!(found.contains("a lost packet and its retransmission"), "{found}");
}

/// It takes 200 ms as well, but no packet is lost.
#[test]
fn a_pause_is_not_a_lost_packet() {
    const PAUSES: &str = r#"
let count = 0;
const server = require("http").createServer((_, response) => {
  const begin = Date.now();
  if (++count % 700 === 0) while (Date.now() - begin < 210);
  setTimeout(() => response.end("x"), 3);
});
server.listen(0, "127.0.0.1", () => console.log("listening " + server.address().port));
"#;
    let node = Node::start(PAUSES, &[]);
    let run = throng(&format!("bench {} -c 20 -d 5s --json", node.url("http"))).run().exits(0);
    let found = run.json()["findings"].to_string();
    run.check(!found.contains("retransmission"), "what was lost");
}

/// Twenty streams share each of four connections.
#[test]
fn a_lost_segment_holds_up_all_streams_of_its_connection() {
    let node = loses_data("http2", 0.005);
    let text = format!(
        "target: {}\nconnection: {{http_version: 2, streams: 20}}\nload: [{{users: 4, for: 5s}}]\n\
         sessions: {{s: {{steps: [http: GET /]}}}}\n",
        node.url("http")
    );
    let run = running(&text).run().exits(0);
    let found = finds(&run, "head-of-line");
    assert!(found.contains("on different connections"), "{found}");
}

/// Twenty ports for forty users who stay.
#[test]
fn source_ports_run_out() {
    let echo = Target::start("echo");
    let text = format!(
        "target: {}\nsource: {{addresses: [127.0.0.1], ports: 20000..20019}}\nload: [{{arrivals: 10/s, for: 4s}}]\n\
         graceful_stop: 0s\nsessions: {{s: {{steps: [connect, stay: forever]}}}}\n",
        echo.url("tcp", "")
    );
    let run = running(&text).arg("--force").run().exits(5);
    finds(&run, "ports-exhausted");
}

/// Two networks, of the target and of throng, with a cable between them: so throng sees a target
/// on another host. `sh` runs the rest of its arguments in that of throng.
const CABLE: &str = r#"
ip link add near0 type veth peer name far0 netns $0
ip addr add 10.77.0.1/30 dev near0
ip link set near0 up
nsenter --net=/proc/$0/ns/net sh -c 'ip addr add 10.77.0.2/30 dev far0; ip link set far0 up'
chrt --rr 1 true 2> /dev/null && set -- chrt --rr 1 "$@"
exec "$@"
"#;

fn in_a_network() -> Command {
    let may = Command::new("unshare").args(["--net", "true"]).output().expect("unshare");
    let why = String::from_utf8_lossy(&may.stderr).into_owned();
    assert!(may.status.success(), "this host allows no network namespaces, as this needs: {why}");
    let mut command = Command::new("unshare");
    command.arg("--net");
    command
}

/// One thread that signs with a long key, first for two users and then for thirty.
#[test]
fn a_processor_that_does_handshakes_is_named() {
    const SERVER: &str = r#"
const folder = process.argv[2];
const read = (name) => require("fs").readFileSync(folder + "/" + name);
const options = { key: read("key.pem"), cert: read("cert.pem") };
const server = require("https").createServer(options, (_, response) => response.end("x"));
server.listen(8443, "0.0.0.0", () => console.log("listening 8443"));
"#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = "req -x509 -newkey rsa:4096 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=a";
    openssl(folder.path(), key);
    let node = Node::by(in_a_network(), SERVER, &[folder.path()]);
    let text = "target: https://10.77.0.2:8443\ntls: {verify: false}\nconnection: \
                {keep_alive: false}\nload: [{users: 2, for: 7s}, {users: 30, for: 7s}]\nsessions: \
                {s: {steps: [http: GET /, {think: 20ms}]}}\n";
    let mut command = in_a_network();
    command.args(["sh", "-ec", CABLE]).arg(node.child.id().to_string()).arg(binary());
    command.args(["run", "s.yaml", "--json"]);
    let run = Throng::new(command).file("s.yaml", text).run().exits(0);
    run.check(run.json()["run"]["same_host"] == false, "another host");
    finds(&run, "tls-bound");
}

/// A server at two addresses; nobody listens on the third.
fn two_of_three(port: u16) -> Node {
    const TWO: &str = r#"
const port = Number(process.argv[2]);
let up = 0;
for (const address of ["127.0.0.1", "127.0.0.2"]) {
  const told = () => { if (++up === 2) console.log("listening " + port); };
  require("http").createServer((_, response) => response.end("x")).listen(port, address, told);
}
"#;
    Node::start(TWO, &[port.to_string().as_ref()])
}

#[test]
fn a_dead_address_is_named() {
    let port = free_port();
    let _node = two_of_three(port);
    let text = three_addresses(port, "");
    let found = finds(&running(&text).run(), "one-bad-address");
    assert!(found.contains(&format!("127.0.0.3:{port}")), "{found}");
}

/// Where one name has three addresses, connections go to the next of them.
#[test]
fn connections_that_move_to_another_address_are_unbalanced() {
    let port = free_port();
    let _node = two_of_three(port);
    let text = format!(
        "target: http://shop.test:{port}\nconnection: {{keep_alive: false, resolve: \
         {{\"shop.test:{port}\": [127.0.0.1, 127.0.0.2, 127.0.0.3]}}}}\nload: [{{users: 12, for: \
         3s}}]\nsessions: {{s: {{steps: [http: GET /, {{think: 10ms}}]}}}}\n"
    );
    let found = finds(&running(&text).run(), "unbalanced");
    assert!(found.contains(&format!("127.0.0.1:{port} received 2.0 times")), "{found}");
}
