//! `throng monitor` on another host, started over ssh. Its readings arrive over the connection; a
//! host without this version of throng gets a copy of the program for the duration of the run.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throng_base::{Said, system::in_own_group};
use throng_host::kill_group;
use throng_program::monitor::SshHost;

/// A shell command to use instead of `ssh`, like git's GIT_SSH_COMMAND.
const SSH_COMMAND: &str = "THRONG_SSH_COMMAND";
/// Options without prompts, and with detection of a lost connection.
const SSH_OPTIONS: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];
/// The exit code of ssh(1) itself, as opposed to that of the remote command.
const SSH_FAILED: i32 = 255;
/// The line in which a host requests the program: its architecture, and its version of throng.
const NEEDED: &str = "# needs throng: ";
const READING_BYTES_MAX: usize = 16 * 1024 * 1024;
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// The maximum number of readings that wait to be taken; more are not read.
const WAITING_MAX: usize = 4;
/// How long a closed connection may take to report its cause.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A monitor that runs on another host until this is dropped.
pub struct Remote {
    child: Child,
    told: Receiver<Heard>,
    last_words: Arc<Mutex<String>>,
    /// What was received before the run started.
    kept: VecDeque<Heard>,
}

/// A message from the other host.
pub(crate) enum Heard {
    /// A text of metrics.
    Reading(String),
    /// A note for the user.
    Note(Said),
    /// The end: with a cause, if it is known.
    End(Option<Said>),
}

impl Remote {
    /// Starts it. Whether the host can be reached is known later.
    pub fn start(host: &SshHost, every: Duration, throng_version: &str) -> Result<Remote, Said> {
        let (mut command, program) = ssh();
        command.args(SSH_OPTIONS);
        if let Some(port) = host.port {
            command.args(["-p", &port.to_string()]);
        }
        let own = File::open("/proc/self/exe").and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, own) = own.map_err(|error| Said::of_error(&error))?;
        let script = script(host, every, throng_version, bytes);
        command.arg("--").arg(&host.login).arg(format!("exec sh -c {}", quoted(&script)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at the terminal ends the run first, which then ends this.
        in_own_group(&mut command);
        let failed = |error: io::Error| {
            let error = Said::of_error(&error);
            say!("`{program}` cannot be started: {error}", error = &error)
        };
        let mut child = command.spawn().map_err(failed)?;
        let (tell, told) = sync_channel(WAITING_MAX);
        let (words, ended) = (Arc::<Mutex<String>>::default(), channel());
        let (errors, last_words, note) = (child.stderr.take(), Arc::clone(&words), tell.clone());
        let closed = ended.0;
        in_thread(move || {
            listen(errors, &last_words, &note);
            drop(closed);
        });
        let (output, input) = (child.stdout.take(), child.stdin.take());
        let reader = RemoteReader { tell, program: Some((own, input)), last: ended.1 };
        in_thread(move || reader.work(output));
        Ok(Remote { child, told, last_words: words, kept: VecDeque::new() })
    }

    /// The next message; `None` after this time.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Heard> {
        if let Some(heard) = self.kept.pop_front() {
            return Some(heard);
        }
        match self.told.recv_timeout(within) {
            Ok(Heard::End(None)) | Err(RecvTimeoutError::Disconnected) => {
                Some(Heard::End(Some(self.ended())))
            }
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Waits for the first reading, which is kept, or for the end; `None` on a timeout.
    pub(crate) fn begins(&mut self, within: Duration) -> Option<Result<(), Said>> {
        // Warnings precede the first reading, and their number is limited.
        for _ in 0..WAITING_MAX * 2 {
            match self.told.recv_timeout(within) {
                Ok(Heard::End(cause)) => return Some(Err(cause.unwrap_or_else(|| self.ended()))),
                Err(RecvTimeoutError::Disconnected) => return Some(Err(self.ended())),
                Err(RecvTimeoutError::Timeout) => return None,
                Ok(heard) => {
                    let is_reading = matches!(heard, Heard::Reading(_));
                    self.kept.push_back(heard);
                    if is_reading {
                        return Some(Ok(()));
                    }
                }
            }
        }
        Some(Ok(()))
    }

    /// Why the connection has ended.
    fn ended(&mut self) -> Said {
        kill_group(&mut self.child);
        let code = self.child.wait().ok().and_then(|status| status.code());
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match code {
            Some(SSH_FAILED) | None if words.is_empty() => say!("the ssh connection ended"),
            Some(SSH_FAILED) | None => Said::of_others(words),
            Some(code) if words.is_empty() => {
                say!("`throng monitor` on that host ended with exit code {code}")
            }
            Some(code) => say!(
                "`throng monitor` on that host ended with exit code {code}: \
                 {words}"
            ),
        }
    }
}

impl Drop for Remote {
    /// The other end can no longer write, so it stops and removes the copied binary.
    fn drop(&mut self) {
        kill_group(&mut self.child);
        let _ = self.child.wait();
    }
}

/// The client program, and its name.
fn ssh() -> (Command, String) {
    match std::env::var(SSH_COMMAND).ok().filter(|line| !line.trim().is_empty()) {
        None => (Command::new("ssh"), "ssh".to_string()),
        Some(line) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(format!("{line} \"$@\"")).arg("ssh");
            (command, line)
        }
    }
}

/// The script for the other host's shell. A copy is removed in any case.
fn script(host: &SshHost, every: Duration, version: &str, bytes: u64) -> String {
    let mut words = format!("monitor --stdio --every {}ms", every.as_millis());
    for option in &host.options {
        words.push(' ');
        words.push_str(&quoted(option));
    }
    format!(
        "v=$(throng --version 2>/dev/null | head -n 1 | cut -d ' ' -f 1,2)\n\
         if [ \"$v\" = 'throng {version}' ]; then exec throng {words}; fi\n\
         echo \"{NEEDED}$(uname -s) $(uname -m) $v\"\n\
         umask 077\n\
         d=$(mktemp -d /tmp/throng-monitor-XXXXXX) || exit 1\n\
         trap 'rm -rf \"$d\"' EXIT\n\
         trap 'exit 1' HUP INT TERM PIPE\n\
         head -c {bytes} > \"$d/throng\" || exit 1\n\
         [ \"$(wc -c < \"$d/throng\")\" -eq {bytes} ] || exit 1\n\
         chmod 700 \"$d/throng\"\n\
         \"$d/throng\" {words} < /dev/null\n"
    )
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn in_thread(work: impl FnOnce() + Send + 'static) {
    drop(std::thread::Builder::new().name("ssh".into()).spawn(work));
}

/// Keeps the last line of the error output, and passes on the monitor's warnings.
fn listen(errors: Option<impl io::Read>, last: &Mutex<String>, tell: &SyncSender<Heard>) {
    let Some(errors) = errors else { return };
    let mut errors = BufReader::new(errors);
    while let Some(line) = line(&mut errors) {
        let line = line.trim();
        if let Some(warning) = line.strip_prefix("warning: ") {
            let _ = tell.try_send(Heard::Note(Said::of_others(warning.to_string())));
        } else if !line.is_empty() {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = line.to_string();
        }
    }
}

/// The next line, without its end. A line that is too long is returned in parts.
fn line(from: &mut impl io::BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
        Ok(1..) => Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_string()),
        _ => None,
    }
}

/// Receives readings from an output.
struct RemoteReader {
    tell: SyncSender<Heard>,
    /// The program to copy if needed, and its destination.
    program: Option<(File, Option<ChildStdin>)>,
    /// Closed when the error output has ended.
    last: Receiver<()>,
}

impl RemoteReader {
    fn work(mut self, output: Option<impl io::Read>) {
        let cause = output.and_then(|output| self.read(&mut BufReader::new(output)));
        // The cause may still arrive.
        let _ = self.last.recv_timeout(LAST_WORDS);
        let _ = self.tell.send(Heard::End(cause));
    }

    /// Until the end: a cause, if it is one of ours.
    fn read(&mut self, output: &mut impl io::BufRead) -> Option<Said> {
        let mut reading = String::new();
        loop {
            let line = line(output)?;
            if let Some(needed) = line.strip_prefix(NEEDED) {
                reading.clear();
                if let Err(cause) = self.copy(needed) {
                    return Some(cause);
                }
            } else if line == "# EOF" {
                let whole = std::mem::take(&mut reading);
                self.tell.send(Heard::Reading(whole)).ok()?;
            } else if reading.len() + line.len() > READING_BYTES_MAX {
                return Some(say!("its response is larger than 16 MiB"));
            } else {
                reading.push_str(&line);
                reading.push('\n');
            }
        }
    }

    /// Sends the program to a host that requested it.
    fn copy(&mut self, needed: &str) -> Result<(), Said> {
        let mut words = needed.splitn(3, ' ');
        let (system, machine) =
            (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let version = words.next().unwrap_or_default().trim();
        let own = (std::env::consts::OS, std::env::consts::ARCH);
        let machine = if machine == "arm64" { "aarch64" } else { machine };
        if (system.to_ascii_lowercase().as_str(), machine) != own {
            let own = format!("{} {}", own.0, own.1);
            return Err(say!(
                "it runs {system} on {machine}, but this throng is built for {own}: install \
                 throng on that host"
            ));
        }
        if !version.is_empty() {
            let note = say!("the host has {version}, so throng runs a copy of itself there");
            let _ = self.tell.send(Heard::Note(note));
        }
        let Some((mut own, Some(mut input))) = self.program.take() else {
            return Err(say!("the ssh connection ended"));
        };
        let copied = io::copy(&mut own, &mut input).and_then(|_| input.flush());
        // A host that stops reading reports the reason itself.
        drop(copied);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> (RemoteReader, Receiver<Heard>) {
        let (tell, told) = sync_channel(WAITING_MAX);
        (RemoteReader { tell, program: None, last: channel().1 }, told)
    }

    #[test]
    fn readings_are_delimited_by_end_lines() {
        let (mut reader, told) = reader();
        let text = "Welcome!\nup 1\n# EOF\nup 2\nload 3\r\n# EOF\nup";
        assert!(reader.read(&mut BufReader::new(text.as_bytes())).is_none());
        drop(reader);
        let readings: Vec<String> = told
            .into_iter()
            .filter_map(|heard| if let Heard::Reading(text) = heard { Some(text) } else { None })
            .collect();
        assert_eq!(readings, ["Welcome!\nup 1\n", "up 2\nload 3\n"]);
    }

    #[test]
    fn a_host_of_another_architecture_gets_no_copy() {
        let (mut reader, _told) = reader();
        let text = format!("{NEEDED}Linux riscv64 \n");
        let cause = reader.read(&mut BufReader::new(text.as_bytes())).expect("a cause");
        assert!(cause.english().contains("Linux on riscv64"), "{}", cause.english());
    }

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        let options = vec!["--process=a b".to_string()];
        let host = SshHost { login: "shop-1".into(), port: None, options };
        let script = script(&host, Duration::from_secs(1), "0.1.0", 7);
        assert!(script.contains("throng monitor --stdio --every 1000ms '--process=a b'"));
    }
}
