//! The client of one connection: bytes in, results out; statements in, bytes out.

use throng_base::Said;

use super::login::{GREETING_BYTES_MAX, LogIn};
use super::packets::{Packet, Packets, write_packet};
use super::row::{self, Column, error_of};
use crate::sql::ask::{Ask, Login, NULL, Values};
use crate::sql::error::{ServerError, SqlError};
use crate::sql::found::{Found, KEPT_BYTES_MAX, Step};
use crate::sql::parts::Parts;
use crate::sql::reply::Came;

/// Commands.
const QUIT: u8 = 1;
const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// Status flags of the server after each result (`SERVER_…`).
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 8;

/// The error of an unknown prepared statement.
const UNKNOWN_STATEMENT: &[u8] = b"#1243\0";

/// No table has more columns.
const COLUMNS_MAX: u64 = u16::MAX as u64;

/// See the module.
#[derive(Debug)]
pub struct Client {
    packets: Packets,
    session: Session,
}

/// The connection above its packets.
#[derive(Debug)]
struct Session {
    doing: Doing,
    /// The sequence number of the server's next packet; `None` accepts any.
    expects: Option<u8>,
    /// Prepared statements: their numbers, and their IDs on the server.
    prepared: Vec<(u16, u32)>,
    /// The statement that follows when the server has answered.
    later: Option<Box<Later>>,
    /// The statement to close after its result.
    closes: Option<u32>,
    status: u16,
    /// The transaction is rolled back when the running request has ended.
    is_given_up: bool,
    keeps: bool,
    is_binary: bool,
    bytes_max: usize,
    columns: Vec<Column>,
    found: Found,
}

/// The state of a connection.
#[derive(Debug)]
enum Doing {
    LogsIn(Box<LogIn>),
    Nothing,
    Asks(Stage),
}

/// The expected next part of a response.
#[derive(Clone, Copy, Debug)]
enum Stage {
    RolledBack,
    Prepared,
    /// This many packets describe a prepared statement.
    Described {
        id: u32,
        left: u32,
    },
    Result,
    Columns {
        left: u64,
    },
    ColumnsEnd,
    Rows,
}

/// A statement that runs when the server is ready for it.
#[derive(Debug)]
struct Later {
    /// Empty if it is prepared already.
    sql: Vec<u8>,
    values: Values,
    number: Option<u16>,
}

impl Client {
    /// A client that logs in when the server has greeted it.
    pub fn new(login: Login) -> Client {
        let packets = Packets::expecting(0);
        let session = Session {
            doing: Doing::LogsIn(Box::new(LogIn::new(login))),
            expects: None,
            prepared: Vec::new(),
            later: None,
            closes: None,
            status: 0,
            is_given_up: false,
            keeps: false,
            is_binary: false,
            bytes_max: 0,
            columns: Vec::new(),
            found: Found::default(),
        };
        Client { packets, session }
    }

    /// Writes a statement.
    pub fn ask(&mut self, ask: &Ask<'_>, out: &mut Vec<u8>) {
        let session = &mut self.session;
        session.forget_result();
        session.keeps = ask.keeps;
        if matches!(session.doing, Doing::Asks(Stage::RolledBack)) {
            let values = ask.values.cloned().unwrap_or_default();
            let later = Later { sql: ask.sql.to_vec(), values, number: ask.number };
            session.later = Some(Box::new(later));
        } else {
            session.begin(ask.sql, ask.values, ask.number, out);
        }
        self.packets.expects = self.session.expects;
    }

    /// Rolls back the open transaction, if any.
    pub fn roll_back(&mut self, out: &mut Vec<u8>) {
        self.session.roll_back(out);
        self.packets.expects = self.session.expects;
    }

    pub fn is_in_transaction(&self) -> bool {
        self.session.status & IN_TRANSACTION != 0
    }

    /// Ends the connection.
    pub fn terminate(&self, out: &mut Vec<u8>) {
        write_packet(0, out, |out| out.push(QUIT));
    }

    /// Reads up to the next event; data that it borrows is copied to `kept`.
    ///
    /// # Errors
    /// The connection can no longer be used.
    pub fn next<'r>(
        &mut self,
        input: &mut &[u8],
        bytes_max: usize,
        kept: &'r mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Came<'r>>, SqlError> {
        let Client { packets, session } = self;
        session.bytes_max = bytes_max;
        loop {
            let before = input.len();
            let wants_all = session.wants_all();
            let wants = |first, length| wants_all || first == 0xff || is_eof(first, length);
            let bytes_max = if session.is_new() { GREETING_BYTES_MAX } else { bytes_max };
            let read = packets.next(input, bytes_max, wants, |packet| session.came(packet, out));
            session.found.bytes += (before - input.len()) as u64;
            let step = match read {
                Ok(Some(step)) => step?,
                Ok(None) => return Ok(None),
                Err(_) if session.is_new() => return Err(SqlError::NotMySql(packets.head[0])),
                Err(error) => return Err(error),
            };
            packets.expects = session.expects;
            match step {
                Step::More => {}
                step => return Ok(step.came(&session.found, kept)),
            }
        }
    }

    /// Bytes of an incomplete packet.
    pub fn half(&self) -> usize {
        self.packets.half()
    }

    pub fn heap_bytes(&self) -> usize {
        let Session { prepared, found, columns, .. } = &self.session;
        let columns = columns.capacity() * size_of::<Column>();
        let own = prepared.capacity() * size_of::<(u16, u32)>() + columns;
        own + found.kept.capacity() + self.packets.heap_bytes()
    }
}

/// A row may start with the same byte, but is longer.
fn is_eof(first: u8, length: usize) -> bool {
    first == 0xfe && length < 9
}

impl Session {
    fn forget_result(&mut self) {
        self.found.clear();
        self.columns.clear();
        self.columns.shrink_to(KEPT_BYTES_MAX / size_of::<Column>());
    }

    fn roll_back(&mut self, out: &mut Vec<u8>) {
        let rolls_back = matches!(self.doing, Doing::Asks(Stage::RolledBack));
        self.is_given_up =
            matches!(self.doing, Doing::Asks(_)) && !(rolls_back && self.later.is_none());
        if self.status & IN_TRANSACTION != 0 && matches!(self.doing, Doing::Nothing) {
            self.command(Stage::RolledBack, QUERY, out, |out| out.extend_from_slice(b"rollback"));
        }
    }

    fn is_new(&self) -> bool {
        matches!(&self.doing, Doing::LogsIn(login) if login.begins())
    }

    /// Whether packets other than errors and ends are needed.
    fn wants_all(&self) -> bool {
        match self.doing {
            Doing::Asks(Stage::Columns { .. } | Stage::Rows) => self.keeps && !self.found.has_row,
            Doing::Asks(Stage::Described { .. }) => false,
            _ => true,
        }
    }

    /// Writes a command, and sets the expected response.
    fn command(
        &mut self,
        stage: Stage,
        command: u8,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        write_packet(0, out, |out| {
            out.push(command);
            body(out);
        });
        (self.doing, self.expects) = (Doing::Asks(stage), Some(1));
    }

    /// Starts a statement: as text if it has no values.
    fn begin(
        &mut self,
        sql: &[u8],
        values: Option<&Values>,
        number: Option<u16>,
        out: &mut Vec<u8>,
    ) {
        let text = |out: &mut Vec<u8>| out.extend_from_slice(sql);
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            self.is_binary = false;
            return self.command(Stage::Result, QUERY, out, text);
        };
        self.is_binary = true;
        let known = self.prepared.iter().find(|(own, _)| Some(*own) == number);
        match known {
            Some((_, id)) => self.execute(*id, values, out),
            None => {
                let later = Later { sql: Vec::new(), values: values.clone(), number };
                self.later = Some(Box::new(later));
                self.command(Stage::Prepared, PREPARE, out, text);
            }
        }
    }

    fn execute(&mut self, id: u32, values: &Values, out: &mut Vec<u8>) {
        self.command(Stage::Result, EXECUTE, out, |out| {
            out.extend_from_slice(&id.to_le_bytes());
            // No cursor, one iteration.
            out.extend_from_slice(&[0, 1, 0, 0, 0]);
            let types = &values.types;
            out.extend(types.chunks(8).map(|types| {
                let bits = (0..).zip(types).filter(|(_, kind)| **kind == NULL);
                bits.fold(0, |byte, (bit, _)| byte | 1 << bit)
            }));
            // The types follow.
            out.push(1);
            out.extend(types.iter().flat_map(|kind| [*kind, 0]));
            out.extend_from_slice(&values.bytes);
        });
    }

    fn came(&mut self, packet: &Packet<'_>, out: &mut Vec<u8>) -> Result<Step, SqlError> {
        self.expects = Some(packet.sequence.wrapping_add(1));
        match &mut self.doing {
            Doing::LogsIn(login) => match packet.first {
                0xff => Err(refusal(packet.body)),
                0 if !login.begins() => {
                    self.result_ends(ok(packet.body)?.status);
                    Ok(Step::Open)
                }
                _ => {
                    if let Some(own) = login.came(packet, out)? {
                        self.expects = Some(own.wrapping_add(1));
                    }
                    Ok(Step::More)
                }
            },
            Doing::Nothing if packet.first == 0xff => Err(refusal(packet.body)),
            Doing::Nothing => Err(SqlError::Packet(&UNASKED)),
            Doing::Asks(stage) => {
                let stage = *stage;
                self.answer_came(stage, packet, out)
            }
        }
    }

    fn answer_came(
        &mut self,
        stage: Stage,
        packet: &Packet<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, SqlError> {
        let is_eof = is_eof(packet.first, packet.bytes);
        let next = match (stage, packet.first) {
            (Stage::RolledBack, 0xff) => return Err(refusal(packet.body)),
            (_, 0xff) if !matches!(stage, Stage::Described { .. }) => {
                return Ok(self.failed(error_of(packet.body), out));
            }
            (Stage::RolledBack, 0) => {
                let status = ok(packet.body)?.status;
                self.found.clear();
                self.result_ends(status);
                if let Some(later) = self.later.take() {
                    self.begin(&later.sql, Some(&later.values), later.number, out);
                }
                return Ok(Step::More);
            }
            (Stage::Prepared, 0) => return self.was_prepared(packet.body, out),
            (Stage::Described { id, left }, _) if left > 1 => {
                Stage::Described { id, left: left - 1 }
            }
            (Stage::Described { id, .. }, _) => return self.execute_later(id, out),
            (Stage::Result, 0) => {
                let done = ok(packet.body)?;
                let found = &mut self.found;
                found.rows = found.rows.saturating_add(done.rows);
                found.affected = found.affected.saturating_add(done.rows);
                // Of several statements, the last one that inserted a row with a key.
                if done.insert_id > 0 || found.insert_id.is_none() {
                    found.insert_id = Some(done.insert_id);
                }
                return Ok(self.ended(done.status, out));
            }
            (Stage::Result, 0xfb) => return Err(SqlError::Packet(&LOCAL_FILE)),
            (Stage::Result, _) => {
                let left = Parts(packet.body).counted().filter(|count| *count <= COLUMNS_MAX);
                let left = left.filter(|count| *count > 0).ok_or(SqlError::Packet(&MALFORMED))?;
                if self.keeps && !self.found.has_row {
                    self.columns.clear();
                    self.found.kept.clear();
                    self.found.kept.extend_from_slice(&(left as u16).to_be_bytes());
                }
                Stage::Columns { left }
            }
            (Stage::Columns { left }, _) => {
                self.column_came(packet.body)?;
                if left > 1 { Stage::Columns { left: left - 1 } } else { Stage::ColumnsEnd }
            }
            (Stage::ColumnsEnd, 0xfe) if is_eof => Stage::Rows,
            (Stage::Rows, 0xfe) if is_eof => {
                let &[_, _, _, low, high, ..] = packet.body else {
                    return Err(SqlError::Packet(&MALFORMED));
                };
                return Ok(self.ended(u16::from_le_bytes([low, high]), out));
            }
            (Stage::Rows, _) => return self.row_came(packet.body),
            _ => return Err(SqlError::Packet(&MALFORMED)),
        };
        self.doing = Doing::Asks(next);
        Ok(Step::More)
    }

    /// The server has prepared a statement: its description follows, and then it is executed.
    fn was_prepared(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Step, SqlError> {
        let mut parts = Parts(&body[1..]);
        let mut number = |bytes| parts.little(bytes).ok_or(SqlError::Packet(&MALFORMED));
        let (id, columns, parameters) = (number(4)? as u32, number(2)?, number(2)?);
        if let Some(later) = &mut self.later {
            match later.number {
                Some(number) => self.prepared.push((number, id)),
                None => self.closes = Some(id),
            }
            // Set when the descriptions no longer matter.
            later.sql.clear();
            if parameters != u64::from(later.values.count) {
                later.sql.extend_from_slice(b"?");
            }
        }
        let described = |count| if count > 0 { count as u32 + 1 } else { 0 };
        match described(columns) + described(parameters) {
            0 => self.execute_later(id, out),
            left => {
                self.doing = Doing::Asks(Stage::Described { id, left });
                Ok(Step::More)
            }
        }
    }

    fn execute_later(&mut self, id: u32, out: &mut Vec<u8>) -> Result<Step, SqlError> {
        let later = self.later.take().ok_or(SqlError::Packet(&UNASKED))?;
        if !later.sql.is_empty() {
            // ER_WRONG_ARGUMENTS: the server would read beyond the values.
            return Ok(
                self.failed(error_of(b"\xff\xba\x04#HY000Incorrect number of parameters"), out)
            );
        }
        self.execute(id, &later.values, out);
        Ok(Step::More)
    }

    fn column_came(&mut self, body: &[u8]) -> Result<(), SqlError> {
        if !self.keeps || self.found.has_row {
            return Ok(());
        }
        let column = row::column(body, &mut self.found.kept);
        self.columns.push(column.ok_or(SqlError::Packet(&MALFORMED))?);
        self.check_kept()
    }

    fn row_came(&mut self, body: &[u8]) -> Result<Step, SqlError> {
        let found = &mut self.found;
        found.rows = found.rows.saturating_add(1);
        if std::mem::replace(&mut found.has_row, true) {
            return Ok(Step::More);
        }
        if self.keeps {
            found.row_at = found.kept.len();
            let kept = row::row(body, &self.columns, self.is_binary, &mut found.kept);
            kept.ok_or(SqlError::Packet(&MALFORMED))?;
            self.check_kept()?;
        }
        Ok(Step::FirstRow)
    }

    /// A description may have many columns, each of which is short enough.
    fn check_kept(&self) -> Result<(), SqlError> {
        let (bytes, bytes_max) = (self.found.kept.len(), self.bytes_max);
        match bytes > 4 * bytes_max {
            true => Err(SqlError::PacketTooLarge { bytes, bytes_max }),
            false => Ok(()),
        }
    }

    /// A statement failed; the following ones were not executed.
    fn failed(&mut self, error: Vec<u8>, out: &mut Vec<u8>) -> Step {
        if error.windows(UNKNOWN_STATEMENT.len()).any(|part| part == UNKNOWN_STATEMENT) {
            self.prepared.clear();
        }
        self.later = None;
        (self.found.is_error, self.found.kept) = (true, error);
        let status = self.status & !MORE_RESULTS;
        self.ended(status, out)
    }

    /// A result is complete, and with the last one the response.
    fn ended(&mut self, status: u16, out: &mut Vec<u8>) -> Step {
        self.status = status;
        if status & MORE_RESULTS != 0 {
            self.doing = Doing::Asks(Stage::Result);
            return Step::More;
        }
        self.result_ends(status);
        if let Some(id) = self.closes.take() {
            write_packet(0, out, |out| {
                out.push(CLOSE);
                out.extend_from_slice(&id.to_le_bytes());
            });
        }
        if self.is_given_up {
            self.roll_back(out);
        }
        Step::Done
    }

    fn result_ends(&mut self, status: u16) {
        (self.doing, self.status, self.expects) = (Doing::Nothing, status, None);
    }
}

/// The content of an OK packet.
struct Done {
    /// Rows that were changed.
    rows: u64,
    insert_id: u64,
    status: u16,
}

fn ok(body: &[u8]) -> Result<Done, SqlError> {
    let mut parts = Parts(&body[1..]);
    let mut read = || {
        let (rows, insert_id) = (parts.counted()?, parts.counted()?);
        Some(Done { rows, insert_id, status: parts.little(2)? as u16 })
    };
    read().ok_or(SqlError::Packet(&MALFORMED))
}

/// An error that ends the connection.
fn refusal(body: &[u8]) -> SqlError {
    SqlError::Server(Box::new(ServerError::read(&error_of(body))))
}

static UNASKED: Said = say!("the server sent a MySQL packet without a statement");
static MALFORMED: Said = say!("the server sent a malformed MySQL packet");
static LOCAL_FILE: Said =
    say!("the server asked for a local file (LOAD DATA LOCAL), but throng sends no files");
