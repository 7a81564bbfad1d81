//! The output of a command: it runs once, in its own process group, without input, up to a time
//! limit.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use throng_base::system::in_own_group;
use throng_base::units::{format_bytes, write_duration};
use throng_base::{Clock, Said, Time};
use throng_host::kill_group;

/// Limits of each output stream, and of the time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: u64,
    pub time: Duration,
}

/// Blocks until the program has ended. After the time limit, it is killed with all processes that
/// it has started.
pub fn printed<S: AsRef<str>>(
    command: &[S],
    limits: Limits,
    clock: &Clock,
) -> Result<String, Said> {
    let until = clock.now() + limits.time;
    let (program, arguments) = command.split_first().ok_or(say!("there is no command"))?;
    let mut own = Command::new(program.as_ref());
    own.args(arguments.iter().map(AsRef::as_ref)).stdin(Stdio::null());
    in_own_group(&mut own).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = own.spawn().map_err(|error| Said::of_error(&error))?;
    let output = read(child.stdout.take(), limits.bytes);
    let errors = read(child.stderr.take(), limits.bytes);
    let take = |pipe: &Receiver<String>| take(pipe, until, limits.time, clock);
    let came = take(&output).and_then(|text| Ok((text, take(&errors)?)));
    // Background processes would keep its pipes open.
    kill_group(&mut child);
    let status = ended(&mut child)?;
    let (output, errors) = came?;
    if output.len() as u64 > limits.bytes {
        return Err(say!("it prints more than {}", format_bytes(limits.bytes as f64)));
    }
    if !status.success() {
        let first = errors.lines().next().unwrap_or_default().trim().to_string();
        return Err(match status.code() {
            Some(code) if first.is_empty() => say!("it exited with code {code}"),
            Some(code) => say!("it exited with code {code}: {first}"),
            None => say!("it was killed by a signal"),
        });
    }
    Ok(output)
}

fn ended(child: &mut Child) -> Result<ExitStatus, Said> {
    child.wait().map_err(|error| Said::of_error(&error))
}

/// The content of a pipe, up to one byte above the limit.
fn read(pipe: Option<impl std::io::Read + Send + 'static>, bytes_max: u64) -> Receiver<String> {
    let (tell, told) = channel();
    let work = move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // After an error, the bytes before it are used.
            let _ = pipe.take(bytes_max + 1).read_to_end(&mut bytes);
        }
        let _ = tell.send(String::from_utf8_lossy(&bytes).into_owned());
    };
    drop(std::thread::Builder::new().name("command".into()).spawn(work));
    told
}

fn take(
    pipe: &Receiver<String>,
    until: Time,
    time_max: Duration,
    clock: &Clock,
) -> Result<String, Said> {
    match pipe.recv_timeout(until.since(clock.now())) {
        Ok(text) => Ok(text),
        Err(RecvTimeoutError::Timeout) => {
            Err(say!("it did not end within {}", write_duration(time_max)))
        }
        Err(RecvTimeoutError::Disconnected) => Err(say!("its output cannot be read")),
    }
}
