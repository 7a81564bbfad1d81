//! `throng monitor`: its figures are those of the kernel, and only readers that may see them do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::run::{Child, Run, Throng, binary, throng, throng_first};
use crate::servers::{Target, fetch, free_port};

/// A monitor of this host, and where it is read.
pub(crate) struct Monitor {
    child: Child,
    address: SocketAddr,
    path: String,
}

impl Monitor {
    pub(crate) fn start(words: &str) -> Monitor {
        Monitor::of(throng(&format!("monitor {words}")))
    }

    /// In time, whatever else this machine does.
    pub(crate) fn start_first(words: &str) -> Monitor {
        Monitor::of(throng_first(&format!("monitor {words}")))
    }

    fn of(command: Throng) -> Monitor {
        let child = command.start();
        let url = child.hears("its URL", |_, errors| {
            let complete = &errors[..errors.rfind('\n')?];
            complete
                .lines()
                .find_map(|line| line.strip_prefix("metrics: http://"))
                .map(String::from)
        });
        let (host, path) = url.split_once('/').expect("a path");
        let port = host.rsplit_once(':').expect("a port").1;
        let address = format!("127.0.0.1:{port}").parse().expect("an address");
        Monitor { child, address, path: format!("/{path}") }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    fn text(&self) -> String {
        fetch(self.address, &self.path)
    }
}

/// The value of a series in a text.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let value = line.unwrap_or_else(|| panic!("no {series} in\n{text}"));
    value.parse().expect("a number")
}

/// A counter of this host's kernel in `/proc/net/netstat`.
fn kernel(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/net/netstat").expect("a kernel");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let place = names.split(' ').position(|it| it == name).expect(name);
    values.split(' ').nth(place).and_then(|it| it.parse().ok()).expect("a number")
}

/// What an answer begins with, to a request with these lines.
fn status(address: SocketAddr, lines: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let request = format!("{lines}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.lines().next().unwrap_or_default().to_string()
}

#[test]
fn a_full_accept_queue_is_told_as_the_kernel_counted_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // SAFETY: the call sets the backlog of a socket that lives.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 2) }, 0);
    let monitor = Monitor::start(&format!("--listen 127.0.0.1:0 --port {}", address.port()));
    let labels = format!("{{address=\"127.0.0.1\",port=\"{}\"}}", address.port());
    let series = |name: &str| format!("{name}{labels}");
    let before = monitor.text();
    assert_eq!(value(&before, &series("throng_listen_queue_limit")), 2.0);
    assert_eq!(value(&before, &series("throng_listen_drops_total")), 0.0);

    let connect = move || TcpStream::connect_timeout(&address, Duration::from_millis(1_500));
    let clients: Vec<_> = (0..24).map(|_| std::thread::spawn(connect)).collect();
    let clients: Vec<TcpStream> =
        clients.into_iter().filter_map(|client| client.join().expect("a thread").ok()).collect();
    monitor.child.until("the queue is seen to be full", || {
        value(&monitor.text(), &series("throng_listen_full_total")) > 0.0
    });
    // A queue is full when it is longer than its limit.
    assert_eq!(value(&monitor.text(), &series("throng_listen_queue_max")), 3.0);
    drop(clients);

    // Other tests may overflow queues at the same time: what is read between two equal counts of
    // the kernel has to be the same, to the last connection.
    monitor.child.until("a reading between two equal counts", || {
        let counts = || ["ListenOverflows", "ListenDrops"].map(kernel);
        let (first, text, second) = (counts(), monitor.text(), counts());
        let told = ["ListenOverflows", "ListenDrops"]
            .map(|name| value(&text, &format!("node_netstat_TcpExt_{name}")));
        let is_fresh = value(&text, "throng_monitor_readings_total") > 1.0;
        is_fresh && first == second && told == first
    });
    let dropped = value(&monitor.text(), &series("throng_listen_drops_total"));
    // A socket counts some drops that `ListenDrops` does not, such as packets of its backlog.
    assert!(dropped >= 21.0, "24 came, 3 had room, {dropped} were dropped");
    drop(listener);
}

/// The series of the only source of a report, by its name.
fn series<'a>(run: &Run, json: &'a Value, name: &str) -> &'a Value {
    let mut rows = json["monitors"][0]["series"].as_array().expect("series").iter();
    rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {run}"))
}

#[test]
fn a_run_has_the_figures_of_its_target_s_host() {
    let target = Target::start("http");
    let listen = target.http("");
    let port = listen.trim_end_matches('/').rsplit_once(':').expect("a port").1.to_string();
    let own = std::process::id();
    let words = format!("--listen 127.0.0.1:0 --process {own} --process throng --port {port}");
    let monitor = Monitor::start(&words);
    let text = format!(
        "target: {listen}
monitor: [{{url: \"{}\", every: 2s}}]
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 5ms}}]}}}}
load: [{{users: 4, for: 7s}}]
",
        monitor.url()
    );
    let run = throng("run s.yaml --json --out record").file("s.yaml", text).run().exits(0);
    let json = run.json();
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("a kernel");
    let total = meminfo.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    let last = |name: &str| series(&run, &json, name)["last"].as_f64().expect("a figure");
    assert_eq!(Some(last("node_memory_MemTotal_bytes")), total.map(|kib| kib * 1024.0), "{run}");
    assert_eq!(last(&format!("throng_processes{{name=\"{own}\"}}")), 1.0, "{run}");
    let cpu = "throng_process_cpu_seconds_total{name=\"throng\",mode=\"user\"}";
    run.check(series(&run, &json, cpu)["mean"].as_f64() > Some(0.0), "the target works");
    let idle = series(&run, &json, "node_cpu_seconds_total{mode=\"idle\"}");
    run.check(idle["counter"] == true, "time is a counter");
    let rows = json["monitors"][0]["series"].as_array().expect("series");
    let is_queue = |row: &&Value| {
        let name = row["name"].as_str().unwrap_or_default();
        name.starts_with("throng_listen_drops_total{") && name.contains(&port)
    };
    let drops = rows.iter().find(is_queue).expect("the queue of the target");
    assert_eq!((&drops["max"], &drops["counter"]), (&0.0.into(), &true.into()), "{run}");
    // A reading that takes longer than two seconds on a busy machine is one that failed.
    run.check(json["monitors"][0]["read"].as_u64() >= Some(2), "readings");
    let record = run.folder().join("record");
    let shown = throng("report --details").arg(&record).run().exits(0);
    shown.says(&["throng_listen_queue_max", "ListenOverflows"]);
}

#[test]
fn the_memory_of_the_target_is_told_by_its_connections() {
    let target = Target::start("echo");
    // The process of the test watches itself in place of a service: only what is read matters.
    let process = std::process::id();
    let monitor = Monitor::start(&format!("--listen 127.0.0.1:0 --process {process}"));
    let text = format!(
        "target: ws://{}
monitor: [{{url: \"{}\", every: 2s}}]
sessions: {{s: {{steps: [{{connect: /}}, {{stay: forever}}]}}}}
load: [{{users: {{to: 40, step: 20, every: 5s}}, for: 10s}}]
",
        target.address,
        monitor.url()
    );
    let run = throng("run s.yaml --json --out record").file("s.yaml", text).run().exits(0);
    let json = run.json();
    let levels = json["levels"].as_array().expect("levels").clone();
    let open: Vec<_> = levels.iter().map(|level| level["connections_open"].clone()).collect();
    assert_eq!(open, [20, 40], "{run}");
    let record = run.folder().join("record");
    let shown = throng("report --details").arg(&record).run().exits(0);
    shown.says(&["target memory", "per connection"]);
    let resident = format!("throng_process_resident_bytes{{name=\"{process}\"}}");
    let seen = series(&run, &json, &resident);
    // On a busy machine, a level may be without a reading.
    let told = levels.iter().filter_map(|level| level["target_memory_bytes"].as_f64());
    let told: Vec<f64> = told.collect();
    run.check(!told.is_empty(), "a level with memory");
    for bytes in told.into_iter().map(Some) {
        run.check(bytes >= seen["min"].as_f64() && bytes <= seen["max"].as_f64(), "one of them");
    }
}

#[test]
fn only_readers_that_may_see_it_do() {
    let monitor = Monitor::start("--listen 127.0.0.1:0");
    let (address, host) = (monitor.address, format!("Host: {}", monitor.address));
    assert!(monitor.text().ends_with("# EOF\n"));
    let is = |lines: String, wanted: &str| {
        let status = status(address, &lines);
        assert!(status.starts_with(wanted), "{lines}: {status}");
    };
    is(format!("GET /metrics?window=60s HTTP/1.1\r\n{host}"), "HTTP/1.1 200");
    is(format!("GET /metrics?window=61s HTTP/1.1\r\n{host}"), "HTTP/1.1 400");
    is(format!("GET /metrics?window=x HTTP/1.1\r\n{host}"), "HTTP/1.1 400");
    is(format!("GET /etc/passwd HTTP/1.1\r\n{host}"), "HTTP/1.1 404");
    is(format!("POST /metrics HTTP/1.1\r\n{host}\r\nContent-Length: 0"), "HTTP/1.1 405");
    is("GET /metrics HTTP/1.1\r\nHost: evil.example".to_string(), "HTTP/1.1 403");

    let monitor = Monitor::start("--listen 0.0.0.0:0");
    let (address, host) = (monitor.address, format!("Host: {}", monitor.address));
    let token = monitor.path.strip_prefix("/metrics?token=").expect("a token");
    monitor.child.hears("a warning", |_, errors| errors.contains("not encrypted").then_some(()));
    assert!(monitor.text().ends_with("# EOF\n"));
    let is = |lines: String, wanted: &str| {
        let status = status(address, &lines);
        assert!(status.starts_with(wanted), "{lines}: {status}");
    };
    is(format!("GET /metrics HTTP/1.1\r\n{host}"), "HTTP/1.1 403");
    is(format!("GET /metrics?token=x HTTP/1.1\r\n{host}"), "HTTP/1.1 403");
    let bearer = format!("Authorization: Bearer {token}");
    is(format!("GET /metrics HTTP/1.1\r\n{host}\r\n{bearer}"), "HTTP/1.1 200");
    is(format!("GET /metrics HTTP/1.1\r\n{host}\r\n{bearer}0"), "HTTP/1.1 403");

    let taken = format!("monitor --listen {}", address);
    throng(&taken).run().exits(2).says(&["monitor-failed", "--listen"]);
    throng("monitor --cert none.pem --key none.pem").run().exits(2).says(&["none.pem"]);
    throng("monitor --cert none.pem").run().exits(2).says(&["--key"]);
    throng("monitor --process a/b").run().exits(2).says(&["`a/b`", "nginx"]);
    throng("monitor --stdio --every 1ms").run().exits(2).says(&["--every", "100 ms"]);
}

#[test]
fn working_services_are_reported_and_a_failed_one_once() {
    let dead = free_port();
    let child = throng("monitor --listen 127.0.0.1:0")
        .arg("--command")
        .arg("queue=echo in queue: 17")
        .arg("--command")
        .arg("jobs=printf 'jobs{kind=\"mail\"} 7\\n'")
        .arg("--command")
        .arg("hangs=sleep 600")
        .arg("--redis")
        .arg(format!("127.0.0.1:{dead}"));
    let monitor = Monitor::of(child);
    monitor.child.until("all services have been asked", || {
        monitor.text().matches("\nthrong_source_up{").count() == 4
    });
    let text = monitor.text();
    assert_eq!(value(&text, "throng_command_value{source=\"queue\"}"), 17.0);
    assert_eq!(value(&text, "jobs{source=\"jobs\",kind=\"mail\"}"), 7.0);
    assert_eq!(value(&text, "throng_source_up{source=\"queue\"}"), 1.0);
    assert_eq!(value(&text, "throng_source_up{source=\"hangs\"}"), 0.0);
    let down = format!("127.0.0.1:{dead}");
    assert_eq!(value(&text, &format!("throng_source_up{{source=\"{down}\"}}")), 0.0);

    // A Redis that begins to answer, and the two times that it is spoken of.
    let listener = TcpListener::bind(&down).expect("the port is free");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 14];
            while stream.read_exact(&mut request).is_ok() {
                let told = stream.write_all(b"$22\r\nconnected_clients:5\r\n\r\n");
                assert!(told.is_ok() && request.ends_with(b"INFO\r\n"));
            }
        }
    });
    let series = format!("\nredis_connected_clients{{source=\"{down}\"}} 5\n");
    monitor.child.until("Redis is read", || monitor.text().contains(&series));
    monitor.child.hears("both", |_, errors| {
        let told = |what: &str| errors.matches(&format!("{down} {what}")).count();
        (told("cannot be read") == 1 && told("can be read again") == 1).then_some(())
    });
    throng("monitor --redis here").run().exits(2).says(&["127.0.0.1:6379"]);
    throng("monitor --command x").run().exits(2).says(&["queue='mailq | wc -l'"]);
    let twice = "monitor --prometheus http://a/m --nginx http://a/m";
    throng(twice).run().exits(2).says(&["two sources are named `a/m`"]);
}

#[test]
fn a_monitor_that_nothing_reads_stops() {
    let monitor = Monitor::start("--listen 127.0.0.1:0 --idle 1s");
    assert!(monitor.child.is_alive());
    drop(monitor.text());
    monitor.child.wait().exits(0).says(&["there are no readers"]);
}

#[test]
fn readings_on_standard_output_end_with_their_reader() {
    let mut command = Command::new(binary());
    command.args(["monitor", "--stdio", "--every", "200ms", "--process", "throng"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("throng starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut readings = Vec::new();
    for _ in 0..3 {
        let lines = lines.by_ref().map_while(Result::ok);
        let text: Vec<String> = lines.take_while(|line| line != "# EOF").collect();
        readings.push(value(&text.join("\n"), "throng_monitor_readings_total"));
    }
    assert_eq!(readings[0], 1.0);
    assert!(readings[2] >= 2.0, "{readings:?}");
    drop(lines);
    assert!(child.wait().expect("it ends").success());
}

/// A client that runs the command here, in a session of its own as on another host, with this PATH.
const FAKE_SSH: &str = "#!/bin/sh
while [ \"$1\" != -- ]; do shift; done
if [ \"$2\" = nobody@gone ]; then echo 'ssh: connect to host gone: No route' >&2; exit 255; fi
PATH=$THRONG_TEST_PATH setsid sh -c \"$3\"
";

#[test]
fn a_host_is_read_over_ssh_with_a_copy_that_is_removed() {
    let target = Target::start("http");
    let text = format!(
        "target: {}
monitor:
- {{host: root@shop-1, processes: [throng]}}
- {{host: nobody@gone}}
sessions: {{s: {{steps: [{{http: GET /}}, {{think: 20ms}}]}}}}
load: [{{users: 2, for: 4s}}]
thresholds: [\"host cpu <= 100%\", \"root@shop-1 memory max < 100%\", \"host node_load1 < 9000\"]
",
        target.http("")
    );
    let old = "#!/bin/sh\necho throng 0.0.9 older\n";
    let run = throng("run s.yaml --json --out record").file("s.yaml", text);
    let run = run.file("bin/throng", old).file("ssh.sh", FAKE_SSH);
    let folder = run.folder().to_path_buf();
    let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
    let run = run.env("THRONG_TEST_PATH", &path).env("TMPDIR", "/tmp");
    let command = format!("chmod +x {0}/bin/throng; sh {0}/ssh.sh", folder.display());
    let command = format!("sh -c '{command} \"$@\"' ssh");
    let run = run.env("THRONG_SSH_COMMAND", &command).run().exits(0);
    run.says(&["nobody@gone cannot be read: ssh: connect to host gone: No route", "throng 0.0.9"]);
    let json = run.json();
    let rows = json["monitors"].as_array().expect("sources");
    run.check(rows[0]["read"].as_u64() >= Some(2), "readings of the host");
    run.check(rows[1]["read"] == 0 && rows[1]["failed"].as_u64() >= Some(1), "of the other");
    let processes = series(&run, &json, "throng_processes{name=\"throng\"}");
    run.check(processes["last"].as_f64() >= Some(2.0), "this, and the copy, and the target");
    let verdicts = json["thresholds"].as_array().expect("thresholds");
    run.check(verdicts.iter().all(|it| it["verdict"] == "met"), "all are met");
    let waits = Monitor::start("--listen 127.0.0.1:0");
    waits.child.until("the copy is removed", || {
        let own = std::fs::read_dir("/tmp").expect("a folder").flatten();
        own.filter(|it| it.file_name().to_string_lossy().starts_with("throng-monitor-"))
            .all(|it| !it.path().join("throng").exists())
    });
}

#[test]
fn invalid_settings_of_a_source_are_refused() {
    let check = |monitor: &str, threshold: &str| {
        let text = format!(
            "target: http://127.0.0.1:9
monitor: [{monitor}]
sessions: {{s: {{steps: [{{http: GET /}}]}}}}
load: [{{users: 1, for: 1s, name: hold}}]
thresholds: [\"{threshold}\"]
"
        );
        throng("check s.yaml").file("s.yaml", text).run()
    };
    let host = "{host: user@shop-1}";
    check(host, "host cpu < 80%").exits(0);
    check(host, "host cpu < 80% in hold").exits(2).says(&["covers all measured phases"]);
    check(host, "host cpu max < 80%").exits(2).says(&["only the mean is available"]);
    check("{host: \"-oProxyCommand=x\"}", "errors < 1%").exits(2).says(&["user@shop-1"]);
    check("{host: a, values: {b: c}}", "errors < 1%").exits(2).says(&["`values` has no effect"]);
    let json = "{json: \"http://127.0.0.1:9/\", name: shop, values: {clients: clientsLen}}";
    check(json, "shop clients max < 5").exits(0);
    check(json, "shop client max < 5").exits(2).says(&["there is no value `client`", "clients"]);
    check("{json: \"http://127.0.0.1:9/\"}", "errors < 1%").exits(2).says(&["values"]);
}
