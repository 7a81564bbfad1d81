//! The client of one connection: bytes in, results out; statements in, bytes out.

use super::frame::{Frame, Frames};
use super::scram::{Scram, md5_password};
use super::write;
use crate::sql::ask::{Ask, Login};
use crate::sql::error::{ServerError, SqlError, shown};
use crate::sql::found::{Found, Step};
use crate::sql::parts::Parts;
use crate::sql::reply::Came;

/// The state of a connection.
#[derive(Debug)]
enum Doing {
    /// The login; the flag is set once the server has accepted it.
    LogsIn {
        login: Box<Login>,
        scram: Option<Box<Scram>>,
        accepted: bool,
    },
    Nothing,
    Asks,
}

/// Tags of statements that change rows, before their count.
const CHANGES: [&[u8]; 4] = [b"INSERT ", b"UPDATE ", b"DELETE ", b"MERGE "];

/// See the module.
#[derive(Debug)]
pub struct Client {
    doing: Doing,
    frames: Frames,
    /// By number: the server has prepared it.
    prepared: Vec<u64>,
    /// The statement that the server is asked to prepare.
    preparing: Option<u16>,
    /// A `rollback` was sent whose result has not arrived; that of the request follows it.
    rolls_back: bool,
    /// The transaction is rolled back when the running request has ended.
    is_given_up: bool,
    is_extended: bool,
    keeps: bool,
    /// The server's status: `I` for none, `T` for an open one, `E` for a failed one.
    transaction: u8,
    /// Rows of a statement whose end has not arrived.
    open_rows: u64,
    found: Found,
}

impl Client {
    /// Creates a client that logs in, and writes its first message.
    pub fn new(login: Login, out: &mut Vec<u8>) -> Client {
        write::startup(&login.user, &login.database, out);
        Client {
            doing: Doing::LogsIn { login: Box::new(login), scram: None, accepted: false },
            frames: Frames::default(),
            prepared: Vec::new(),
            preparing: None,
            rolls_back: false,
            is_given_up: false,
            is_extended: false,
            keeps: false,
            transaction: b'I',
            open_rows: 0,
            found: Found::default(),
        }
    }

    /// Writes a statement.
    pub fn ask(&mut self, ask: &Ask<'_>, out: &mut Vec<u8>) {
        self.found.clear();
        self.open_rows = 0;
        (self.doing, self.keeps, self.preparing) = (Doing::Asks, ask.keeps, None);
        self.is_extended = ask.values.is_some();
        let Some(values) = ask.values else { return write::query(ask.sql, out) };
        if ask.number.is_none_or(|number| !self.has_prepared(number)) {
            write::parse(ask.number, ask.sql, out);
            self.preparing = ask.number;
        }
        write::execute(ask.number, values, ask.keeps, out);
    }

    /// Rolls back the open transaction, if any.
    pub fn roll_back(&mut self, out: &mut Vec<u8>) {
        self.is_given_up = matches!(self.doing, Doing::Asks);
        if self.is_in_transaction() && !self.rolls_back && !self.is_given_up {
            self.rolls_back = true;
            write::query(b"rollback", out);
        }
    }

    pub fn is_in_transaction(&self) -> bool {
        self.transaction != b'I'
    }

    /// Ends the connection.
    pub fn terminate(&self, out: &mut Vec<u8>) {
        write::message(b'X', out, |_| {});
    }

    fn has_prepared(&self, number: u16) -> bool {
        let word = self.prepared.get(usize::from(number / 64)).copied().unwrap_or(0);
        word & 1 << (number % 64) != 0
    }

    fn has_been_prepared(&mut self) {
        let Some(number) = self.preparing.take() else { return };
        let word = usize::from(number / 64);
        if self.prepared.len() <= word {
            self.prepared.resize(word + 1, 0);
        }
        self.prepared[word] |= 1 << (number % 64);
    }

    /// Reads up to the next event; data that it borrows is copied to `kept`. Data to send is
    /// appended to `out`.
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
        loop {
            let starts = matches!(self.doing, Doing::LogsIn { accepted: false, .. });
            if let Some(kind) = input.first().filter(|_| starts && self.frames.half() == 0)
                && !matches!(kind, b'R' | b'E' | b'N' | b'v')
            {
                return Err(SqlError::NotPostgres(*kind));
            }
            let before = input.len();
            let keeps_row = self.keeps && !self.found.has_row;
            let wants = |kind| match kind {
                b'R' | b'E' | b'Z' | b'C' => true,
                b'T' | b'D' => keeps_row,
                _ => false,
            };
            // The closure cannot borrow the client: the message is processed afterwards.
            let read = self.frames.next(input, bytes_max, wants, |Frame { kind, body }| {
                kept.clear();
                kept.extend_from_slice(body);
                kind
            });
            self.found.bytes += (before - input.len()) as u64;
            let Some(kind) = read? else { return Ok(None) };
            match self.came(kind, kept, out)? {
                Step::More => {}
                step => return Ok(step.came(&self.found, kept)),
            }
        }
    }

    fn came(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<Step, SqlError> {
        match (&self.doing, kind) {
            (Doing::LogsIn { .. }, _) => self.login_came(kind, body, out),
            // Settings, notices and notifications may arrive at any time.
            (_, b'S' | b'N' | b'A') => Ok(Step::More),
            (_, b'E') => self.error_came(body).map(|()| Step::More),
            _ if self.is_asked() => self.answer_came(kind, body, out),
            _ => Err(SqlError::Unexpected(kind)),
        }
    }

    fn login_came(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<Step, SqlError> {
        let Doing::LogsIn { login, scram, accepted } = &mut self.doing else {
            return Err(SqlError::Unexpected(kind));
        };
        match kind {
            b'E' => Err(SqlError::Server(Box::new(ServerError::read(body)))),
            b'R' if !*accepted => {
                *accepted = authenticate(login, scram, body, out)?;
                Ok(Step::More)
            }
            b'N' | b'v' | b'S' | b'K' => Ok(Step::More),
            b'Z' if *accepted => {
                self.transaction = ready(body)?;
                self.doing = Doing::Nothing;
                Ok(Step::Open)
            }
            kind => Err(SqlError::Unexpected(kind)),
        }
    }

    fn error_came(&mut self, body: &[u8]) -> Result<(), SqlError> {
        let error = ServerError::read(body);
        if error.is_fatal() || !self.is_asked() {
            return Err(SqlError::Server(Box::new(error)));
        }
        if error.code == "26000" {
            // It has lost its prepared statements, as after DISCARD ALL.
            self.prepared.clear();
        }
        if !self.rolls_back && !self.found.is_error {
            let found = &mut self.found;
            (found.is_error, found.has_row) = (true, true);
            found.kept.clear();
            found.kept.extend_from_slice(body);
        }
        Ok(())
    }

    fn answer_came(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<Step, SqlError> {
        let found = &mut self.found;
        match kind {
            b'D' => {
                self.open_rows += 1;
                if std::mem::replace(&mut found.has_row, true) {
                    return Ok(Step::More);
                }
                if self.keeps {
                    found.row_at = found.kept.len();
                    found.kept.extend_from_slice(body);
                }
                return Ok(Step::FirstRow);
            }
            b'T' if self.keeps && !found.has_row => {
                found.kept.clear();
                found.kept.extend_from_slice(body);
            }
            b'C' => {
                let tag = body.strip_suffix(b"\0").ok_or(SqlError::Malformed(kind))?;
                let counted = std::mem::take(&mut self.open_rows);
                let said = tag.rsplit(|byte| *byte == b' ').next();
                let said = said.and_then(|said| std::str::from_utf8(said).ok()?.parse().ok());
                let rows = said.unwrap_or(counted);
                found.rows = found.rows.saturating_add(rows);
                if CHANGES.iter().any(|verb| tag.starts_with(verb)) {
                    found.affected = found.affected.saturating_add(rows);
                }
            }
            b'1' => self.has_been_prepared(),
            b'Z' => {
                self.transaction = ready(body)?;
                if std::mem::take(&mut self.rolls_back) {
                    self.found.clear();
                    return Ok(Step::More);
                }
                self.doing = Doing::Nothing;
                if self.is_given_up {
                    self.roll_back(out);
                }
                return Ok(Step::Done);
            }
            // COPY FROM STDIN: there is nothing to copy. An earlier Sync was ignored.
            b'G' => {
                write::message(b'f', out, |out| write::text(b"throng sends no data", out));
                if self.is_extended {
                    write::sync(out);
                }
            }
            b'T' | b'2' | b'3' | b't' | b'n' | b'I' | b's' | b'H' | b'd' | b'c' => {}
            kind => return Err(SqlError::Unexpected(kind)),
        }
        Ok(Step::More)
    }

    /// Whether a result is expected.
    fn is_asked(&self) -> bool {
        self.rolls_back || matches!(self.doing, Doing::Asks)
    }

    /// Bytes of an incomplete message.
    pub fn half(&self) -> usize {
        self.frames.half()
    }

    pub fn heap_bytes(&self) -> usize {
        let own = self.prepared.capacity() * 8 + self.found.kept.capacity();
        own + self.frames.heap_bytes()
    }
}

/// Answers an authentication request. True when the login is accepted.
fn authenticate(
    login: &Login,
    scram: &mut Option<Box<Scram>>,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    let mut parts = Parts(body);
    let kind = parts.four().ok_or(SqlError::Malformed(b'R'))?;
    let password = || login.password.as_deref().map(str::as_bytes).ok_or(SqlError::NoPassword);
    match (kind, scram) {
        (0, _) => return Ok(true),
        (3, _) => write::password(password()?, out),
        (5, _) => {
            let salt = parts.take(4).ok_or(SqlError::Malformed(b'R'))?;
            let digest = md5_password(login.user.as_bytes(), password()?, salt);
            write::password(&digest, out);
        }
        (10, scram) => {
            password()?;
            const MECHANISM: &[u8] = b"SCRAM-SHA-256";
            let offered = parts.0;
            if !offered.split(|byte| *byte == 0).any(|one| one == MECHANISM) {
                let names = offered.split(|byte| *byte == 0).filter(|one| !one.is_empty());
                let names: Vec<String> = names.map(shown).collect();
                return Err(SqlError::Mechanisms(names.join(", ")));
            }
            let scram = scram.insert(Box::new(Scram::new(&login.nonce)));
            write::message(b'p', out, |out| {
                write::text(MECHANISM, out);
                scram.first(out);
            });
        }
        (11, Some(scram)) => {
            let answer = scram.answer(parts.0, password()?)?;
            write::message(b'p', out, |out| out.extend_from_slice(&answer));
        }
        (12, Some(scram)) => scram.check(parts.0)?,
        (11 | 12, None) => return Err(SqlError::Unexpected(b'R')),
        (kind, _) => return Err(SqlError::Authentication(kind)),
    }
    Ok(false)
}

/// The state of the transaction.
fn ready(body: &[u8]) -> Result<u8, SqlError> {
    match body {
        [state @ (b'I' | b'T' | b'E')] => Ok(*state),
        _ => Err(SqlError::Malformed(b'Z')),
    }
}
