//! Starts a server for a test, and stops it with the test.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use throng_base::Clock;
use tokio::time::{sleep, timeout};

use super::PATIENCE;
use crate::MESSAGE_BYTES_MAX;
use crate::identity::Identity;
use crate::port::free_address;

pub(super) struct Server {
    child: Child,
    pub(super) folder: TempDir,
    pub(super) address: SocketAddr,
    file: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns when the condition is true.
pub(super) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let tried = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, tried).await.expect("in time");
}

impl Server {
    /// Starts one without TLS and authentication, with additional configuration.
    pub(super) fn start(more: &str) -> Server {
        loop {
            let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
            let store = folder.path().join("store");
            let file = format!(
                "listen: \"{address}\"\nserver_name: hub\nping_interval: \"2s\"\nping_max: 2\n\
                 max_payload: {MESSAGE_BYTES_MAX}\njetstream {{ domain: hub, store_dir: \"{}\", max_file: 20GB, \
                 sync_interval: always }}\n{more}\n",
                store.display()
            );
            let path = folder.path().join("server.conf");
            fs::write(&path, file).unwrap();
            // Another process may have taken the port meanwhile.
            if let Ok(server) = Server::with(folder, address, path) {
                return server;
            }
        }
    }

    pub(super) fn with(
        folder: TempDir,
        address: SocketAddr,
        file: PathBuf,
    ) -> Result<Server, String> {
        let child = launch(&file);
        let mut server = Server { child, folder, address, file };
        server.ready().map(|()| server)
    }

    pub(super) fn identity(&self, name: &str) -> Identity {
        Identity { name: name.to_string(), address: self.address, tls: None, seed: None }
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again.
    pub(super) fn begin(&mut self) {
        self.child = launch(&self.file);
        self.ready().unwrap();
    }

    pub(super) fn signal(&self, name: &str) {
        let number = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &number]).status();
        assert!(status.unwrap().success());
    }

    /// True if all its threads are stopped: a signal reaches one after the other (proc(5)).
    pub(super) fn is_frozen(&self) -> bool {
        let mut tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.all(|task| {
            let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
        })
    }

    /// An error if the port is taken; anything else fails the test.
    fn ready(&mut self) -> Result<(), String> {
        let clock = Clock::start();
        loop {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if self.child.try_wait().unwrap().is_some() {
                assert!(log.contains("address already in use"), "the server ended: {log}");
                return Err(log);
            }
            // Checks the log, because another server might reply on the port.
            if log.contains("Server is ready") {
                return Ok(());
            }
            assert!(clock.now().as_secs_f64() < 60.0, "the server is not there: {log}");
            Clock::start_in(Duration::from_millis(10)).wait_for_zero();
        }
    }
}

fn launch(file: &std::path::Path) -> Child {
    let log = fs::File::create(file.with_file_name("log")).unwrap();
    Command::new(throng_fuzz::nats_server())
        .arg("-c")
        .arg(file)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("nats-server starts")
}
