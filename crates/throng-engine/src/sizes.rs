//! The memory of a user, by part: the sizes of the real types, with what the allocator and the
//! runtime add. The parts are documented here; a test limits the sum.

use throng_metrics::Stage;
use throng_program::{Link, Program, Scheme, Session, Statement};

use crate::connector::protocol::{client_bytes, session_bytes};
use crate::prepared::code::Code;
use crate::prepared::{connects, is_websocket};
use crate::recorder::Recorder;
use crate::scope::memory::Memory;
use crate::shard::due::DueQueue;
use crate::shard::slots::SLOT_BYTES;
use crate::transport::datagrams::Datagrams;
use crate::user::{CONNECTION_BYTES, TRANSACTIONS_BYTES, User};

/// The head of a task (state, next, table, owner), its scheduler and number, its place in the list
/// of tasks, its waker and its hooks: `Header`, `Core` and `Trailer` of tokio's `task/core.rs`.
const TASK_BYTES: u64 = 32 + 16 + 8 + 40;
/// Tasks and sockets are aligned to cache lines (x86-64: two of 64 bytes).
const LINE_BYTES: u64 = 128;
/// tokio's `ScheduledIo` (places in lists, readiness, two wakers) after the counts of its `Arc`:
/// two lines.
const SOCKET_BYTES: u64 = 2 * LINE_BYTES;
/// Memory of rustls per session: keys, the state of both directions, record buffers. Measured with
/// 10,000 users, because its types are boxed many times.
const TLS_BYTES: u64 = 9_700;
/// A saved text with the counts of its `Arc`.
const SAVED_BYTES: u64 = 48;

/// Memory of a user, and of the measurements, which do not depend on the number of users.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// For a user that waits, on average over the sessions by weight.
    pub parts: Vec<SizePart>,
    pub recorder: RecorderSizes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizePart {
    pub kind: SizeKind,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeKind {
    /// The user itself, a future in the runtime; includes the next four.
    Task,
    /// Its program counter, times, counters, and what it waits for.
    State,
    /// Its connection with unsent and unread data, by reference.
    Connection,
    /// The machine that reads messages or responses.
    Reader,
    /// The runtime's data of a task, and the rest of its last cache line.
    Runtime,
    /// Orders of the shard for it.
    #[serde(rename = "seat")]
    Slot,
    /// Its wake-up time.
    Due,
    /// Connections besides the first, and sessions that outlive connections.
    Connections,
    /// The runtime's data of a socket.
    Socket,
    /// Saved values, loop registers, data rows.
    Memory,
    /// Open transactions.
    Transactions,
    Tls,
}

impl SizeKind {
    /// Part of the task, and must not be added to it.
    pub fn is_within(self) -> bool {
        use SizeKind::{Connection, Reader, Runtime, State};
        matches!(self, State | Connection | Reader | Runtime)
    }
}

/// Memory of the measurements: it depends on the number of steps, not on users or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderSizes {
    pub steps: u64,
    pub stages: u64,
    /// Of a shard before anything has happened.
    pub shard_empty_bytes: u64,
    /// Of a shard when every step and stage has values in [`TYPICAL_OCTAVES`] powers of two,
    /// including the interval that it has handed over.
    pub shard_typical_bytes: u64,
}

/// From 1 ms to 32 ms.
pub const TYPICAL_OCTAVES: u32 = 5;
/// Intervals of all shards together: the one being merged, the totals of the run and of its phase.
const MERGED: u64 = 3;

impl Sizes {
    /// Memory in this process, for one user.
    pub fn user_bytes(&self) -> u64 {
        self.parts.iter().filter(|part| !part.kind.is_within()).map(|part| part.bytes).sum()
    }
}

impl RecorderSizes {
    pub fn run_bytes(&self, shards: u64) -> u64 {
        self.shard_typical_bytes.saturating_mul(shards.saturating_add(MERGED))
    }
}

/// Memory of a user of the program, and of its measurements.
pub fn sizes(program: &Program) -> Sizes {
    let weights: u64 = program.sessions.iter().map(|session| u64::from(session.weight)).sum();
    let mean = |of: &dyn Fn(&Session) -> u64| {
        let sum: u64 = program.sessions.iter().map(|it| u64::from(it.weight) * of(it)).sum();
        sum.div_ceil(weights.max(1))
    };
    let state = size_of::<User>() as u64;
    let task = size_class((TASK_BYTES + state).next_multiple_of(LINE_BYTES));
    let connection = CONNECTION_BYTES;
    let reader = mean(&|session| reader(first(session, program)));
    let tls = |scheme: Scheme| if scheme.is_secure() { TLS_BYTES } else { 0 };
    let secured = |session: &Session| {
        let links = 0..session.links.len() as u8;
        links.filter(|link| session.secures(*link)).count() as u64 * TLS_BYTES
    };
    let sockets = |session: &Session| of_links(session, program, socket);
    let parts = [
        (SizeKind::Task, task),
        (SizeKind::State, state.saturating_sub(connection)),
        (SizeKind::Connection, connection.saturating_sub(reader)),
        (SizeKind::Reader, reader),
        (SizeKind::Runtime, task.saturating_sub(state)),
        (SizeKind::Slot, SLOT_BYTES + queues(program)),
        (SizeKind::Due, DueQueue::USER_BYTES),
        (SizeKind::Connections, mean(&further)),
        (SizeKind::Socket, mean(&sockets)),
        (SizeKind::Memory, mean(&|session| memory(session, program))),
        (SizeKind::Transactions, mean(&transactions)),
        (SizeKind::Tls, mean(&|session| of_links(session, program, tls) + secured(session))),
    ];
    let mut parts = parts.map(|(kind, bytes)| SizePart { kind, bytes }).to_vec();
    parts.retain(|part| part.bytes > 0);
    Sizes { parts, recorder: recorder(program.steps.len()) }
}

/// What mimalloc allocates for this many bytes: steps of 16 up to 64, then four steps per power of
/// two (`mi_bin` in its `page-queue.c`).
fn size_class(bytes: u64) -> u64 {
    match bytes {
        0 => 0,
        1..=64 => bytes.next_multiple_of(16),
        _ => {
            let step = (1 << (bytes - 1).ilog2()) / 4;
            bytes.next_multiple_of(step)
        }
    }
}

/// Total of the connections of a session, each by the scheme of its targets.
fn of_links(session: &Session, program: &Program, of: impl Fn(Scheme) -> u64) -> u64 {
    let target = |link: &Link| program.targets.get(usize::from(*link.targets.first()?));
    session.links.iter().filter_map(target).map(|target| of(target.scheme)).sum()
}

/// The scheme of a session's first link.
fn first(session: &Session, program: &Program) -> Option<Scheme> {
    let target = session.links.first()?.targets.first()?;
    program.targets.get(usize::from(*target)).map(|target| target.scheme)
}

/// Connections that are not stored inline, and sessions that outlive connections.
fn further(session: &Session) -> u64 {
    let options = |link| connects(session, link).find_map(|connect| connect.options.as_deref());
    let sessions = (0..session.links.len() as u8).filter_map(options).map(session_bytes);
    (session.connections() as u64 - 1) * size_class(CONNECTION_BYTES)
        + sessions.map(size_class).sum::<u64>()
}

fn reader(scheme: Option<Scheme>) -> u64 {
    use throng_protocol::{http1::ResponseReader, stream::StreamReader, websocket::FrameReader};
    let bytes = match scheme {
        None => 0,
        Some(scheme) if is_websocket(scheme) => size_of::<FrameReader>(),
        Some(Scheme::Http | Scheme::Https) => size_of::<ResponseReader>(),
        Some(_) => size_of::<StreamReader>(),
    };
    bytes as u64
}

/// Queues of users that stay, may disconnect, or wait for an iteration: a slot number in each.
fn queues(program: &Program) -> u64 {
    let phases = || program.phases();
    let churns = phases().any(|phase| phase.churn.is_some());
    let iterates =
        phases().any(|phase| matches!(phase.drive, throng_program::Drive::Iterations(_)));
    let queues = 1 + u64::from(churns) + u64::from(iterates);
    queues * size_of::<u32>() as u64
}

fn memory(session: &Session, program: &Program) -> u64 {
    let slots = session.slots.len() as u64;
    let registers = u64::from(Code::new(session).registers);
    let rows = program.data.len() as u64;
    if slots + registers + rows == 0 {
        return 0;
    }
    let values = slots * size_of::<throng_expression::Value>() as u64;
    let places = rows * size_of::<Option<throng_data::Row>>() as u64;
    size_class(size_of::<Memory>() as u64)
        + size_class(values)
        + size_class(registers * size_of::<u64>() as u64)
        + size_class(places)
        + (slots + rows) * SAVED_BYTES
}

fn socket(scheme: Scheme) -> u64 {
    let besides: u64 = match scheme {
        Scheme::Udp => Datagrams::HEAP_BYTES.into_iter().map(size_class).sum(),
        scheme => size_class(client_bytes(scheme)),
    };
    SOCKET_BYTES + besides
}

fn transactions(session: &Session) -> u64 {
    let is_one = |step: &Statement| matches!(step, Statement::Transaction { .. });
    match session.all().any(is_one) {
        true => TRANSACTIONS_BYTES.into_iter().map(size_class).sum(),
        false => 0,
    }
}

fn recorder(steps: usize) -> RecorderSizes {
    let mut recorder = Recorder::new(steps, &crate::network::routes::Places::default());
    let empty = recorder.bytes();
    recorder.fill(TYPICAL_OCTAVES);
    RecorderSizes {
        steps: steps as u64,
        stages: Stage::ALL.len() as u64,
        shard_empty_bytes: empty,
        // What was handed over is as large as what is being recorded.
        shard_typical_bytes: 2 * recorder.bytes(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use throng_program::{ConnectOptions, Text, mqtt};
    use throng_protocol::mqtt::{Version, Wishes};

    use super::*;

    /// Maximum memory of one user in this process (RSS).
    const USER_BYTES_MAX: u64 = 1_200;

    fn program(scheme: Scheme) -> Program {
        let program = crate::run::tests::program(Vec::new(), 1, Duration::from_secs(1));
        let mut program = Arc::unwrap_or_clone(program);
        program.targets[0].scheme = scheme;
        program.sessions[0].links[0].targets = [0].into();
        program
    }

    #[test]
    fn a_user_is_small_including_all_its_state() {
        for scheme in [Scheme::Ws, Scheme::Http, Scheme::Tcp, Scheme::Udp] {
            let sizes = sizes(&program(scheme));
            assert!((500..USER_BYTES_MAX).contains(&sizes.user_bytes()), "{sizes:#?}");
            let within = sizes.parts.iter().filter(|part| part.kind.is_within());
            let of = |kind| sizes.parts.iter().find(|part| part.kind == kind).map(|it| it.bytes);
            assert_eq!(Some(within.map(|part| part.bytes).sum()), of(SizeKind::Task));
            assert_eq!(of(SizeKind::Tls), None);
        }
        assert!(sizes(&program(Scheme::Wss)).user_bytes() < 16_000);
    }

    #[test]
    fn a_subscriber_costs_little_more() {
        let client = mqtt::Client {
            version: Version::V5,
            client_id: Text::default(),
            clean_start: true,
            keep_alive_s: 0,
            user: None,
            password: None,
            will: None,
            properties: Vec::new(),
            wishes: Wishes::default(),
        };
        let mut connect = crate::run::tests::connect();
        let mut program = program(Scheme::Mqtt);
        program.sessions[0].steps = vec![Statement::Connect(Arc::new(connect.clone()))];
        let raw = sizes(&program).user_bytes();
        connect.options = Some(Box::new(ConnectOptions::Mqtt(client)));
        program.sessions[0].steps = vec![Statement::Connect(Arc::new(connect))];
        let own = sizes(&program).user_bytes();
        assert!((raw + 1..raw + 100).contains(&own) && own <= 1_100, "{raw} {own}");
    }

    #[test]
    fn each_session_counts_by_its_weight_and_scheme() {
        let mut mixed = program(Scheme::Wss);
        let plain = throng_program::Target { scheme: Scheme::Http, ..mixed.targets[0].clone() };
        mixed.targets.push(plain);
        let mut second = mixed.sessions[0].clone();
        (second.weight, second.links[0].targets) = (3, [1].into());
        mixed.sessions.push(second);
        let tls = sizes(&mixed).parts.iter().find(|part| part.kind == SizeKind::Tls).copied();
        assert_eq!(tls.map(|part| part.bytes), Some(TLS_BYTES / 4));
    }

    #[test]
    fn measurements_grow_only_with_the_number_of_steps() {
        let [none, ten, twenty] = [0, 10, 20].map(recorder);
        let of_ten = ten.shard_typical_bytes - none.shard_typical_bytes;
        assert_eq!(twenty.shard_typical_bytes - ten.shard_typical_bytes, of_ten);
        assert!(of_ten < 2 * 10 * 4096 && of_ten > 10 * 2048, "{of_ten}");
        let mut recorder = Recorder::new(10, &crate::network::routes::Places::default());
        recorder.fill(TYPICAL_OCTAVES);
        let bytes = recorder.bytes();
        (0..1000).for_each(|_| recorder.fill(TYPICAL_OCTAVES));
        assert_eq!(recorder.bytes(), bytes);
    }

    #[test]
    fn the_allocator_rounds_up() {
        for (bytes, class) in [(0, 0), (1, 16), (48, 48), (65, 80), (128, 128), (129, 160)] {
            assert_eq!(size_class(bytes), class);
        }
        assert_eq!([321, 448, 449, 513].map(size_class), [384, 448, 512, 640]);
    }
}
