//! The servers that are loaded: nginx, an echo of npm's `ws`, and throng's own targets. All of them
//! listen on loopback only.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Places;
use super::SERVER_CORE;
use super::child::{self, Running};
use crate::{files, packages};

/// nginx listens on as many addresses, so that short connections find free ports.
pub(super) const ADDRESSES: u8 = 60;
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
const START_PATIENCE: Duration = Duration::from_secs(10);
/// As long as nginx's own default page.
const PAGE_BYTES: usize = 615;

/// A server that answers on `port`. Dropped, it is stopped.
pub(super) struct Server {
    pub(super) port: u16,
    /// Of a target of throng: where it tells its statistics.
    pub(super) admin: u16,
    running: Running,
}

impl Server {
    /// The URL at one of the server's addresses.
    pub(super) fn url(&self, scheme: &str, address: u8) -> String {
        format!("{scheme}://127.0.0.{address}:{}/", self.port)
    }

    pub(super) fn pid(&self) -> i32 {
        self.running.pid()
    }

    /// What a target of throng has counted.
    pub(super) fn stats(&self) -> Result<Value, String> {
        let body = ask(self.admin, "GET /throng/stats HTTP/1.1", "")?;
        serde_json::from_str(&body).map_err(|error| format!("the statistics are not JSON: {error}"))
    }
}

/// One nginx process with Debian's defaults, but no access log and no end to a connection. What it
/// listens for may be ` http2`, by prior knowledge.
pub(super) fn nginx(folder: &Path, protocol: &str) -> Result<Server, String> {
    let name = format!("nginx{}", protocol.replace(' ', "-"));
    let program = packages::program("nginx").ok_or("nginx is missing: apt-get install nginx")?;
    let (home, port) = (folder.join(&name), free_port()?);
    let page = format!("<!DOCTYPE html>\n<title>{:x<1$}</title>\n", "", PAGE_BYTES - 32);
    files::write(&home.join("www/index.html"), page)?;
    files::write(&home.join("nginx.conf"), nginx_conf(&home, port, protocol))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(&home).arg("-c").arg(home.join("nginx.conf"));
    command.arg("-e").arg(home.join("error.log"));
    started(command, Some(SERVER_CORE), [port, 0], &home, &name)
}

fn nginx_conf(home: &Path, port: u16, protocol: &str) -> String {
    let home = home.display();
    // With HTTP/2, nginx sends head and page by themselves, and Nagle's algorithm holds the page
    // back for 40 ms: a write of both together is none of its business.
    let push = if protocol.is_empty() { "on" } else { "off" };
    let listen = |n| format!("    listen 127.0.0.{n}:{port}{protocol} backlog=4096;\n");
    let listens: String = (1..=ADDRESSES).map(listen).collect();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("  {name}_temp_path {home}/{name};\n"))
        .collect();
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {home}/nginx.pid;\n\
         error_log {home}/error.log;\nevents {{ worker_connections 8192; }}\nhttp {{\n  \
         access_log off;\n  sendfile {push};\n  tcp_nopush {push};\n  keepalive_requests 1000000000;\n  \
         keepalive_timeout 600s;\n{temporary}  server {{\n{listens}    root {home}/www;\n  }}\n}}\n"
    )
}

/// A WebSocket server by others: `ws` of npm sends each message back.
pub(super) fn ws_echo(places: &Places) -> Result<Server, String> {
    let program = packages::program("node").ok_or("node is missing: apt-get install nodejs")?;
    let text = "\
const { WebSocketServer } = require('ws');
const server = new WebSocketServer({
  host: '127.0.0.1', port: Number(process.argv[2]), perMessageDeflate: false, backlog: 4096 });
server.on('connection', (socket) => {
  socket.on('error', () => socket.terminate());
  socket.on('message', (data, binary) => socket.send(data, { binary }));
});
";
    let script = places.write("server.js", text)?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.arg(script).arg(port.to_string());
    command.env("NODE_PATH", packages::ensure_node(&places.target)?);
    started(command, Some(SERVER_CORE), [port, 0], &places.folder, "ws-server")
}

/// `throng target` with these words, on this core or on all of them.
pub(super) fn target(
    throng: &Path,
    folder: &Path,
    words: &[&str],
    core: Option<usize>,
) -> Result<Server, String> {
    let [port, admin] = [free_port()?, free_port()?];
    let mut command = Command::new(throng);
    command.arg("target").args(words).args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--admin", &format!("127.0.0.1:{admin}")]);
    started(command, core, [port, admin], folder, "target")
}

fn started(
    command: Command,
    core: Option<usize>,
    [port, admin]: [u16; 2],
    folder: &Path,
    name: &str,
) -> Result<Server, String> {
    let running = child::start(command, core, folder, name)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let answers = || TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
    match child::holds_within(START_PATIENCE, answers) {
        true => Ok(Server { port, admin, running }),
        false => Err(format!("{name} does not listen on {address}: {}", running.errors().trim())),
    }
}

/// Sends a request to a server, and returns the body of the response.
pub(super) fn ask(port: u16, head: &str, body: &str) -> Result<String, String> {
    let ask = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
        let length = body.len();
        write!(
            stream,
            "{head}\r\nHost: localhost\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = ask().map_err(|error: io::Error| format!("{head}: {error}"))?;
    Ok(text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_string())
}

pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}
