//! Runs a load in several processes of this machine. Each is started as `throng generator`,
//! receives its part, and is connected to the controller by its standard input and output.
//! Announcements of one process's ledgers are forwarded to the others.

pub(crate) mod child;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::value::RawValue;
use throng_base::system::{LocalStream, in_own_group, signal_of, to_child};
use throng_base::{Clock, Diagnostic, Exit, LoadPart, Said, clock::wall_now};
use throng_fleet::wire::{Announcement, Start};
use throng_program::Source;
use throng_results::{MachineInfo, RunInfo};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::controller::{Orders, Posts};
use crate::generator::Lines;
use crate::here;
use crate::wire::{Assignment, Heard, Inputs, Message, Order, Ready, read_line, write_line};
use crate::{Conduct, Line, Operator};

/// Delay between the readiness of the last process and the start of the load, so that all have
/// received it.
const AHEAD: Duration = Duration::from_millis(300);

/// Processes of one machine share a clock, so they start within this time of each other.
const CLOCKS_APART: Duration = Duration::from_millis(1);

/// Maximum number of announcements that wait for a process. Further ones are dropped; the process
/// detects the gap.
const ANNOUNCED_MAX: usize = 256;

/// The input of a process, for orders and announcements.
type Input = Arc<Mutex<LocalStream>>;
/// A line including its line break.
type Word = Arc<[u8]>;

/// A process that waits for its start.
struct Waiting {
    ready: Ready,
    child: Child,
    input: LocalStream,
    output: BufReader<ChildStdout>,
    errors: Errors,
}

/// A process's standard error. Shown only on failure, because all report the same about a scenario.
type Errors = JoinHandle<Vec<u8>>;

/// Maximum size of that output.
const ERRORS_BYTES_MAX: u64 = 64 * 1024;

/// The processes of a run, for the run directory.
pub(crate) fn machines(count: u16) -> Vec<MachineInfo> {
    let machine = |number: u16| MachineInfo {
        name: format!("process {}", number + 1),
        part: LoadPart { first: u64::from(number), width: 1, of: u64::from(count) },
        ..MachineInfo::default()
    };
    (0..count).map(machine).collect()
}

/// The option that several processes (`together`) or separate parts do not support, if it is used.
pub(crate) fn unbridged(conduct: &Conduct<'_>, together: bool) -> Option<Box<Diagnostic>> {
    let program = &conduct.program;
    if !program.audits.is_empty() && !together {
        let message = say!("`audits` is not supported with `--part`");
        let help = say!("remove --part: an audit requires all users of the run");
        return Some(Box::new(Diagnostic::error("processes-unbridged", message).help(help)));
    }
    let mut views = program.audits.iter().flat_map(|audit| audit.views());
    if conduct.settings.fleet.is_some() && views.any(|view| matches!(view.source, Source::Run(_))) {
        let message = say!("views with `run` are not supported in a fleet");
        let help = say!("read the view with `redis` or `http`: each agent compares its own users");
        return Some(Box::new(Diagnostic::error("fleet-unbridged", message).help(help)));
    }
    let name = match () {
        () if !together && program.rendezvous > 0 => "rendezvous",
        () if !together && !program.deliveries.is_empty() => "deliveries",
        // Each process would count the others as other programs.
        () if together && conduct.limits.back_off.is_some() => "--back-off",
        () => return None,
    };
    let (message, help) = match together {
        true => (
            say!("`{name}` does not work across processes"),
            say!("remove --processes: one process can use all processors through its shards"),
        ),
        false => (
            say!("`{name}` does not work across parts that run separately"),
            say!("remove --part; `{name}` works with --processes and --fleet"),
        ),
    };
    Some(Box::new(Diagnostic::error("processes-unbridged", message).help(help)))
}

/// Starts all processes, and the load once all are ready. If one fails, all are stopped, and
/// nothing was sent.
pub(crate) fn start(
    conduct: &Conduct<'_>,
    info: &mut RunInfo,
    errors: &dyn Operator,
) -> Result<Posts, Exit> {
    let mut all = Vec::new();
    for machine in &mut info.generator.machines {
        all.push(one(conduct, machine, errors)?);
    }
    info.targets.same_host =
        here::is_same_host(&conduct.program, &here::resolved(&conduct.program));
    let clock = Clock::start_in(AHEAD);
    let unix_ns = u64::try_from((wall_now() + AHEAD).as_nanos()).unwrap_or(u64::MAX);
    info.generator.shards = info.generator.machines.iter().map(|machine| machine.shards).sum();
    info.time.zero_unix_ns = unix_ns;
    let (lines, told) = unbounded_channel();
    let mut orders = Vec::new();
    let users_spare: Vec<_> = all.iter().map(|one| one.ready.spare()).collect();
    let sockets: Vec<_> = all.iter().map(|one| one.input.try_clone()).collect();
    let mut words = Vec::new();
    for (machine, waiting) in (0..).zip(all) {
        let Waiting { child, mut input, output, errors, .. } = waiting;
        // A process that has exited is reported as lost.
        let _ = write_line(&mut input, &Start { unix_ns });
        let (order, ordered) = unbounded_channel();
        orders.push(order);
        let input = Arc::new(Mutex::new(input));
        let own = Arc::clone(&input);
        std::thread::spawn(move || give(&input, ordered));
        let (said, heard) = sync_channel(ANNOUNCED_MAX);
        words.push(said);
        std::thread::spawn(move || pass(&own, &heard));
        let lines = lines.clone();
        std::thread::spawn(move || take(child, (output, errors), machine, &lines));
    }
    for (machine, socket) in sockets.into_iter().enumerate() {
        let others = words.iter().enumerate().filter(|(other, _)| *other != machine);
        let others: Vec<_> = others.map(|(_, said)| said.clone()).collect();
        // Without a socket, the other processes detect missing announcements.
        if let Ok(socket) = socket {
            std::thread::spawn(move || carry(socket, &others));
        }
    }
    Ok(Posts::new(clock, Orders::Here(orders), told, users_spare.into_iter()))
}

fn one(
    conduct: &Conduct<'_>,
    machine: &mut MachineInfo,
    errors: &dyn Operator,
) -> Result<Waiting, Exit> {
    let failed = |error: &std::io::Error| {
        let error = Said::of_error(error);
        let message = say!("cannot start a process of this run: {error}");
        let help = say!("raise `ulimit -u`, or use fewer --processes");
        errors.refuse(&Diagnostic::error("host-unfit", message).help(help), Exit::HostUnfit)
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    // A separate process group: an interrupt from the keyboard goes only to the controller, which
    // gives the orders.
    let mut command = Command::new(program);
    let (mut input, theirs) = to_child().map_err(|error| failed(&error))?;
    command.arg("post").stdin(theirs).stdout(Stdio::piped());
    in_own_group(&mut command).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    // Closes this process's handle of the socket.
    drop(command);
    let (Some(output), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Exit::Bug);
    };
    let said = std::thread::spawn(move || listen(said));
    let part = Assignment {
        words: std::env::args().collect(),
        scenario: Some(conduct.recorded.text(&[])),
        inputs: Inputs::of(&conduct.program),
        machine: machine.clone(),
        neighbours: machine.part.of,
        audits: false,
    };
    let told = write_line(&mut input, &part);
    let mut output = BufReader::new(output);
    match told.and_then(|()| read_line(&mut output)) {
        Ok(Message::Ready(ready)) => {
            machine.shards = ready.shards;
            Ok(Waiting { ready, child, input, output, errors: said })
        }
        // The process has printed the reason.
        _ => {
            drop(input);
            errors.tell(Line::Text(heard(said).into()));
            let code = child.wait().ok().and_then(|status| status.code());
            let exits = [Exit::Usage, Exit::HostUnfit, Exit::TargetUnreachable];
            let exit = exits.into_iter().find(|exit| Some(i32::from(exit.code())) == code);
            Err(exit.unwrap_or(Exit::Bug))
        }
    }
}

fn listen(said: ChildStderr) -> Vec<u8> {
    let mut said = said;
    let mut text = Vec::new();
    let _ = said.by_ref().take(ERRORS_BYTES_MAX).read_to_end(&mut text);
    // Discard the rest, so that the process is not blocked.
    let _ = std::io::copy(&mut said, &mut std::io::sink());
    text
}

fn heard(said: Errors) -> String {
    String::from_utf8_lossy(&said.join().unwrap_or_default()).into_owned()
}

fn locked(input: &Input) -> MutexGuard<'_, LocalStream> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forwards orders until no more follow.
fn give(input: &Input, mut orders: UnboundedReceiver<Order>) {
    while let Some(order) = orders.blocking_recv() {
        if write_line(&mut *locked(input), &Heard::<()>::Order(order)).is_err() {
            return;
        }
    }
    let _ = locked(input).shutdown(Shutdown::Write);
}

/// Forwards the announcements of a process to the others until it exits. It never blocks on them.
fn carry(from: LocalStream, others: &[SyncSender<Word>]) {
    let error_ns = CLOCKS_APART.as_nanos() as u64;
    for line in BufReader::new(from).lines() {
        let Ok(announced) = line.and_then(|line| Ok(serde_json::from_str::<Box<RawValue>>(&line)?))
        else {
            return;
        };
        let heard = Heard::Announced(Announcement { announced, error_ns });
        let Ok(mut word) = serde_json::to_vec(&heard) else { return };
        word.push(b'\n');
        let word: Word = word.into();
        for other in others {
            let _ = other.try_send(Arc::clone(&word));
        }
    }
}

/// Sends the announcements of the other processes to a process. Fails silently if it has exited.
fn pass(input: &Input, words: &Receiver<Word>) {
    for word in words {
        let _ = locked(input).write_all(&word);
    }
}

/// Forwards the messages of a process until its load ends or it exits.
fn take(
    mut child: Child,
    (mut output, said): (BufReader<ChildStdout>, Errors),
    machine: u16,
    lines: &Lines,
) {
    while let Ok(message) = read_line(&mut output) {
        let is_over = matches!(message, Message::Over { .. });
        let _ = lines.send((machine, message));
        if is_over {
            let _ = child.wait();
            return;
        }
    }
    // Its messages are not readable: it must not generate load that is not recorded.
    let _ = child.kill();
    let status = child.wait();
    let _ = lines.send((machine, Message::Said { text: heard(said) }));
    let detail = status.ok().and_then(how_it_ended).unwrap_or(say!("it ended"));
    let _ = lines.send((machine, Message::Lost { detail }));
}

/// How a process ended, if the system tells.
pub(crate) fn how_it_ended(status: ExitStatus) -> Option<Said> {
    match (signal_of(status), status.code()) {
        (Some(signal), _) => Some(say!("it was terminated by signal {signal}")),
        (None, code) => code.map(|code| say!("it exited with code {code}")),
    }
}
