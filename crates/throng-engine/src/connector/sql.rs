//! Opens database connections: TLS if the scenario requests it, then the login.

use std::cell::Cell;

use throng_base::Random;
use throng_base::Said;
use throng_metrics::Cause;
use throng_program::{Database, SslMode, Target};
use throng_protocol::machine::{Event, Machine};
use throng_protocol::sql::{Came, Client, Login, SSL_REQUEST, SqlError};
use tokio_rustls::TlsConnector;

use super::{Opened, pull, write_all};
use crate::failure::{Failure, io_failure};
use crate::network::Network;
use crate::shard::Lane;
use crate::transport::Transport;

/// Number of random bytes in the nonce of a login; each gives 6 bits.
const NONCE_CHARS: usize = 24;

/// The credentials of a login.
pub(crate) fn login(database: &Database, random: &mut Random) -> Login {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |_| char::from(DIGITS[random.below(DIGITS.len() as u64) as usize]);
    Login {
        user: database.user.clone(),
        password: database.password.clone(),
        database: database.name.clone(),
        nonce: (0..NONCE_CHARS).map(digit).collect(),
    }
}

/// Requests TLS, and returns its settings once the server has agreed.
pub(super) async fn tls<'n>(
    network: &'n Network,
    (target, database): (&Target, &Database),
    carrier: &mut Transport,
) -> Result<Option<&'n TlsConnector>, Failure> {
    if database.tls == SslMode::Disable || target.unix_socket.is_some() {
        return Ok(None);
    }
    write_all(carrier, &SSL_REQUEST).await?;
    // Only one byte: everything after it belongs to TLS.
    let mut answer = [0];
    let read = std::future::poll_fn(|cx| carrier.poll_read(cx, &mut answer)).await;
    let read = read.map_err(|error| io_failure(&error))?.bytes;
    match (read, answer, database.tls) {
        (0, ..) => Err(Failure::new(Cause::ClosedEarly, NO_ANSWER)),
        (_, [b'S'], _) => Ok(network.tls_sql.as_ref()),
        (_, [b'N'], SslMode::Prefer) => Ok(None),
        (_, [b'N'], _) => Err(Failure::new(Cause::WrongScheme, NO_TLS)),
        (_, [first], _) => Err(failure(&SqlError::NotPostgres(first))),
    }
}

pub(super) async fn open(
    shard: &Lane,
    login: &Login,
    mut transport: Transport,
) -> Result<Opened, Failure> {
    let mut hello = Vec::new();
    let mut machine = Machine::Sql(Box::new(Client::new(login.clone(), &mut hello)));
    let first = Cell::new([0; 5]);
    let came = |bytes: &[u8]| {
        if let (Some(begin), [0, ..]) = (bytes.first_chunk(), first.get()) {
            first.set(*begin);
        }
    };
    let is_open = |event: &Event<'_>| matches!(event, Event::Sql(Came::Open)).then_some(());
    let pulled = pull(shard, &mut transport, &mut machine, hello, came, is_open).await;
    let (open, pulled) = pulled.map_err(|failure| in_other_words(failure, first.get()))?;
    open.ok_or_else(|| Failure::new(Cause::ClosedEarly, CLOSED))?;
    Ok(Opened::by(machine, transport, pulled))
}

/// A server that speaks another protocol does not violate this one.
fn in_other_words(failure: Failure, first: [u8; 5]) -> Failure {
    match first {
        [b'H', b'T', b'T', b'P', b'/'] => Failure::new(Cause::WrongScheme, SPEAKS_HTTP),
        _ => failure,
    }
}

/// The error of a connection that can no longer be used.
pub(crate) fn failure(error: &SqlError) -> Failure {
    let (cause, status) = match error {
        SqlError::Server(error) => (Cause::of_status(error.status()), error.status()),
        SqlError::TooLarge { .. } => (Cause::TooLarge, 0),
        SqlError::NotPostgres(_) => (Cause::WrongScheme, 0),
        SqlError::Authentication(_) | SqlError::Mechanisms(_) | SqlError::NoPassword => {
            (Cause::SqlRequest, 0)
        }
        SqlError::Scram(_) => (Cause::SqlServer, 0),
        SqlError::Length { .. } | SqlError::Malformed(_) | SqlError::Unexpected(_) => {
            (Cause::Malformed, 0)
        }
    };
    Failure { status, ..Failure::new(cause, error.said()) }
}

const CLOSED: Said = say!("the connection was closed before the login was complete");
const NO_ANSWER: Said = say!("the connection was closed instead of a response to SSLRequest");
const NO_TLS: Said =
    say!("the server does not support TLS: remove `sslmode=require`, or enable TLS on the server");
const SPEAKS_HTTP: Said = say!("the server on this port uses HTTP: write `http://`");
