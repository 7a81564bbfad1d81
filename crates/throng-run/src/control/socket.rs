//! The control socket of a run (`throng control`): one line of JSON per request and reply. Only the
//! owner of the run can use it. A client that is slow or sends invalid lines delays nothing.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use throng_base::system::{LocalListener, LocalStream, listen};
use throng_base::{Diagnostic, Said};
use tokio::sync::mpsc::UnboundedSender;

use super::system;
use crate::control::command::{Answer, LINE_BYTES_MAX, Request, SOCKET, VERSION};
use crate::wire::{read_line, write_line};

/// Timeout for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum time to a reply. A busy run replies sooner, unless it is stuck.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Maximum number of clients; further connections are closed.
const CLIENTS_MAX: usize = 8;

/// A request, and the function that sends its reply.
pub(crate) type Asked = (Request, Box<dyn FnOnce(Answer) + Send>);

/// The socket of one run, removed on drop.
pub(crate) struct Socket {
    path: PathBuf,
}

impl Socket {
    /// Opens the socket in the run directory. Returns `None` if the file system does not support
    /// sockets; the run continues.
    pub(crate) fn open(directory: &Path, asked: UnboundedSender<Asked>) -> Option<Socket> {
        let path = directory.join(SOCKET);
        let listener = system::in_directory(directory, SOCKET, listen).ok()?;
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || hear(&listener, &asked))
            .ok()?;
        Some(Socket { path })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Sends a request to the run in this directory.
///
/// # Errors
/// The run has ended, is stuck, or belongs to another account.
pub fn ask(directory: &Path, request: &Request) -> Result<Answer, Box<Diagnostic>> {
    let failed = |error: std::io::Error| {
        let shown = directory.display();
        let message = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                say!("the run in {shown} belongs to another account")
            }
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                say!("the run in {shown} has ended")
            }
            _ => {
                say!("the run in {shown} does not respond: {error}", error = Said::of_error(&error))
            }
        };
        Box::new(Diagnostic::error("control-refused", message).help(say!(
            "only a recorded run in progress can be changed, and only by the account that \
             started it"
        )))
    };
    let exchange = || {
        let mut stream = system::in_directory(directory, SOCKET, throng_base::system::connect)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        write_line(&mut stream, request)?;
        read_line(&mut BufReader::new(stream.take(LINE_BYTES_MAX)))
    };
    exchange().map_err(failed)
}

fn hear(listener: &LocalListener, asked: &UnboundedSender<Asked>) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if asked.is_closed() {
            return;
        }
        let Ok(stream) = stream else { continue };
        if clients.load(Ordering::Relaxed) >= CLIENTS_MAX || !system::is_owner(&stream) {
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let (mine, asked) = (Arc::clone(&clients), asked.clone());
        let spawned = std::thread::Builder::new().spawn(move || {
            let _ = serve(&stream, &asked);
            mine.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Serves one request.
fn serve(mut stream: &LocalStream, asked: &UnboundedSender<Asked>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let answer = match read_line::<Request>(&mut BufReader::new(stream.take(LINE_BYTES_MAX))) {
        Ok(request) if request.version == VERSION => {
            let (sender, answered) = mpsc::channel();
            // The client may have disconnected.
            let reply = Box::new(move |answer| drop(sender.send(answer)));
            let _ = asked.send((request, reply));
            answered.recv_timeout(PATIENCE).ok()
        }
        _ => None,
    };
    let answer = answer.unwrap_or_else(|| Answer::Refused {
        message: say!("the run did not accept this command, or has ended"),
        help: say!("use the version of throng that started the run"),
    });
    write_line(&mut stream, &answer)
}
