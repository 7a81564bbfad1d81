//! The servers that the tests load: nginx, node with npm's `ws`, openssl, and throng's own targets.
//! All listen on loopback, on a port that is free.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{self as unix, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tempfile::TempDir;
use throng_fuzz::node_modules;

use crate::run::{Child, PATIENCE, Throng, throng};

/// How often another port is tried when somebody else took the one that was free.
const STARTS_MAX: usize = 5;

/// `throng target …`, with its statistics.
pub(crate) struct Target {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Target {
    /// `words` are the kind and what further flags there are.
    #[track_caller]
    pub(crate) fn start(words: &str) -> Target {
        Target::begun(words, throng)
    }

    /// By one of the ways to begin a command.
    #[track_caller]
    pub(crate) fn begun(words: &str, command: fn(&str) -> Throng) -> Target {
        Target::begun_on("127.0.0.1:0", words, command)
    }

    /// At an address of its own.
    #[track_caller]
    pub(crate) fn start_on(listen: &str, words: &str) -> Target {
        Target::begun_on(listen, words, throng)
    }

    #[track_caller]
    fn begun_on(listen: &str, words: &str, command: fn(&str) -> Throng) -> Target {
        let (kind, words) = words.split_once(' ').unwrap_or((words, ""));
        // Every flag of these has one value, and that may have blanks: `stall 1s every 5s`.
        let flags = words.split("--").map(str::trim).filter(|flag| !flag.is_empty());
        let flags: Vec<String> =
            flags.map(|flag| format!("--{}", flag.replacen(' ', "=", 1))).collect();
        // Room for more connections would cost workers.
        let line = format!("target {kind} --listen {listen} --admin 127.0.0.1:0");
        let child = flags.iter().fold(command(&line), |it, flag| it.arg(flag));
        let child = child.arg("--connections=2k").start();
        let first = child.line("listening on ");
        let address = first.split(' ').next().and_then(|word| word.parse().ok());
        let second = child.line("statistics on http://");
        let admin = second.split('/').next().and_then(|word| word.parse().ok());
        Target { child, address: address.expect("an address"), admin: admin.expect("an address") }
    }

    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.address)
    }

    pub(crate) fn http(&self, path: &str) -> String {
        self.url("http", path)
    }

    /// Waits until it has told this on its standard error.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        self.child.hears(text, |_, err| err.contains(text).then_some(()));
    }

    pub(crate) fn stats(&self) -> Value {
        serde_json::from_str(&fetch(self.admin, "/throng/stats")).expect("statistics in JSON")
    }

    /// One figure of the statistics, by its pointer.
    #[track_caller]
    pub(crate) fn counts(&self, pointer: &str) -> u64 {
        let stats = self.stats();
        stats.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{stats}"))
    }

    /// Waits until a figure of the statistics has a value: what it knows of closes comes late.
    #[track_caller]
    pub(crate) fn comes_to(&self, pointer: &str, value: u64) {
        let what = format!("{pointer} to be {value}");
        self.child.until(&what, || self.counts(pointer) == value);
    }
}

/// The body of an answer to a GET.
pub(crate) fn fetch(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_string()).expect("a body")
}

/// One nginx process. It logs a line `connection method uri status …` for every request.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) home: TempDir,
    pub(crate) port: u16,
}

impl Nginx {
    /// `listen` may hold more parameters, such as `ssl`; `server` is what the server block has.
    #[track_caller]
    pub(crate) fn start(parameters: &str, server: &str) -> Nginx {
        Nginx::start_with("", parameters, server)
    }

    /// `http` is what the block of that name has beside the server.
    #[track_caller]
    pub(crate) fn start_with(http: &str, parameters: &str, server: &str) -> Nginx {
        let program = program("nginx", "nginx-light");
        for _ in 0..STARTS_MAX {
            let home = tempfile::tempdir().expect("a temporary folder");
            let (path, port) = (home.path(), free_port());
            std::fs::create_dir(path.join("www")).expect("a folder");
            let page = format!("<p>front page, to be found</p>{}", "lorem ipsum ".repeat(200));
            std::fs::write(path.join("www/index.html"), page).expect("a page");
            let text = nginx_conf(path, port, (http, parameters, server));
            std::fs::write(path.join("nginx.conf"), text).expect("a configuration");
            let mut command = Command::new(&program);
            command.arg("-p").arg(path).arg("-c").arg(path.join("nginx.conf"));
            command.arg("-e").arg("stderr");
            let child = Child::start(command);
            // The file is written once the port is bound.
            let bound = || std::fs::metadata(path.join("nginx.pid")).is_ok_and(|it| it.len() > 0);
            child.hears("nginx to listen or to give up", |_, err| {
                (bound() || err.contains("emerg") || !err.is_empty() && err.contains("bind()"))
                    .then_some(())
            });
            if bound() {
                return Nginx { child, home, port };
            }
            assert!(child.output().is_empty(), "nginx says something");
        }
        panic!("nginx does not start");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Waits for so many lines of the access log, and gives them, in words.
    #[track_caller]
    pub(crate) fn log(&self, lines: usize) -> Vec<Vec<String>> {
        let path = self.home.path().join("access.log");
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        self.child.until("the access log", || read().lines().count() >= lines);
        let words = |line: &str| line.split(' ').map(String::from).collect();
        read().lines().map(words).collect()
    }
}

fn nginx_conf(home: &Path, port: u16, (http, parameters, server): (&str, &str, &str)) -> String {
    let home = home.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("  {name}_temp_path {home}/{name};\n"))
        .collect();
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {home}/nginx.pid;\n\
         error_log stderr;\nevents {{ worker_connections 1024; }}\nhttp {{\n{temporary}\
         log_format words '$connection $request_method $uri $status $sent_http_content_encoding';\n\
         access_log {home}/access.log words;\nkeepalive_requests 1000000;\ndefault_type text/plain;\n\
         {http}\nserver {{\nlisten 127.0.0.1:{port} {parameters};\nlisten [::1]:{port} {parameters};\n\
         root {home}/www;\nlocation / {{ index index.html; }}\n{server}\n}}\n}}\n"
    )
}

/// One HAProxy process.
pub(crate) struct Haproxy {
    _child: Child,
    home: TempDir,
    pub(crate) port: u16,
}

impl Haproxy {
    /// `sections` follow those of the process and have the backend to which all connections go.
    #[track_caller]
    pub(crate) fn start(sections: &str, backend: &str) -> Haproxy {
        let (home, port) = (tempfile::tempdir().expect("a temporary folder"), free_port());
        let socket = home.path().join("socket");
        let text = format!(
            "global\n  maxconn 4000\n  stats socket {}\n{sections}\nfrontend front\n  \
             bind 127.0.0.1:{port}\n  default_backend {backend}\n",
            socket.display()
        );
        let path = home.path().join("haproxy.cfg");
        std::fs::write(&path, text).expect("a configuration");
        let mut command = Command::new(program("haproxy", "haproxy"));
        command.arg("-db").arg("-f").arg(path);
        let child = Child::start(command);
        child.until("HAProxy to listen", || unix::UnixStream::connect(&socket).is_ok());
        Haproxy { _child: child, home, port }
    }

    /// Where its statistics are.
    pub(crate) fn socket(&self) -> String {
        self.home.path().join("socket").display().to_string()
    }
}

/// A server written for node. Its script prints `listening PORT`, and what the test wants to know.
pub(crate) struct Node {
    pub(crate) child: Child,
    _home: TempDir,
    pub(crate) port: u16,
}

impl Node {
    #[track_caller]
    pub(crate) fn start(script: &str, arguments: &[&Path]) -> Node {
        Node::by(Command::new("env"), script, arguments)
    }

    /// Under another program, as `prlimit --nofile=64:64`.
    #[track_caller]
    pub(crate) fn under(words: &str, script: &str, arguments: &[&Path]) -> Node {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words);
        Node::by(command, script, arguments)
    }

    /// By a command that runs the rest of its arguments.
    #[track_caller]
    pub(crate) fn by(mut command: Command, script: &str, arguments: &[&Path]) -> Node {
        let home = tempfile::tempdir().expect("a temporary folder");
        let path = home.path().join("server.js");
        std::fs::write(&path, script).expect("a script");
        command.arg(program("node", "nodejs")).arg(path).args(arguments);
        command.env("NODE_PATH", node_modules("ws"));
        let child = Child::start(command);
        let port = child.line("listening ").parse().expect("a port");
        Node { child, _home: home, port }
    }

    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/", self.port)
    }

    /// Waits until so many lines of its output are this one.
    #[track_caller]
    pub(crate) fn tells(&self, line: &str, times: usize) {
        self.child.hears(&format!("{times} times `{line}`"), |out, _| {
            (out.lines().filter(|it| *it == line).count() == times).then_some(())
        });
    }
}

/// Where a program is: in `PATH`, or where Debian puts servers.
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    match folders.find(|folder| folder.join(name).is_file()) {
        Some(folder) => folder.join(name),
        None => panic!("{name} is missing: `apt-get install {package}`, or `cargo xtask ci`"),
    }
}

/// Below the ports that the kernel gives to connections: none of them takes a port of a test.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A port that is free and that no other test is given as long as this one runs: each is reserved
/// by the name of a socket, which ends with its process.
pub(crate) fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let ports = PORTS.len() as u32;
    let first = std::process::id().wrapping_mul(97) % ports;
    for at in 0..ports {
        let port = PORTS.start + ((first + at) % ports) as u16;
        let name = unix::SocketAddr::from_abstract_name(format!("throng-test-port-{port}"));
        let Ok(lock) = UnixListener::bind_addr(&name.expect("a name")) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            reserved.push(lock);
            return port;
        }
    }
    panic!("no port is free");
}

/// Runs openssl to its end.
#[track_caller]
pub(crate) fn openssl(folder: &Path, line: &str) {
    let mut command = Command::new(program("openssl", "openssl"));
    command.args(line.split_whitespace()).current_dir(folder);
    Child::start(command).wait().exits(0);
}

/// The child of a program that listens, once `begin` and its address are printed.
#[track_caller]
pub(crate) fn openssl_server(folder: &Path, line: &str) -> (Child, SocketAddr) {
    let mut command = Command::new(program("openssl", "openssl"));
    command.args(line.split_whitespace()).current_dir(folder);
    let child = Child::start(command);
    let address = child.line("ACCEPT ").parse().expect("an address");
    (child, address)
}
