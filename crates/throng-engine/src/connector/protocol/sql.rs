//! Opens database connections: TLS if the scenario requests it, then the login.

use throng_base::Random;
use throng_base::Said;
use throng_metrics::Cause;
use throng_program::{Database, Scheme, SslMode, Target};
use throng_protocol::machine::{Ends, Event, Input, Machine};
use throng_protocol::sql::{Carrier, Client, Dialect, Login, SqlError, mysql, postgres};
use tokio_rustls::TlsConnector;

use super::{FirstBytes, Missing, Opens, violation_failure};
use crate::connector::{Opened, Order, Pulled, pull, write_all};
use crate::failure::{Failure, io_failure};
use crate::network::{Network, tls};
use crate::shard::Lane;
use crate::transport::Transport;

/// Number of random bytes in the nonce of a login; each gives 6 bits.
const NONCE_CHARS: usize = 24;

/// The credentials of a login.
pub(super) fn login(database: &Database, random: &mut Random) -> Login {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |_| char::from(DIGITS[random.below(DIGITS.len() as u64) as usize]);
    Login {
        dialect: database.dialect,
        user: database.user.clone(),
        password: database.password.clone(),
        database: database.name.clone(),
        nonce: (0..NONCE_CHARS).map(digit).collect(),
        carrier: Carrier::default(),
    }
}

impl Opens for Login {
    fn missing(&self) -> Missing {
        match self.dialect {
            Dialect::Postgres => {
                |waited| say!("the login to the database was not complete within {waited}")
            }
            Dialect::MySql => |waited| {
                say!(
                    "the login to the database was not complete within {waited}; MySQL servers \
                     send first, so a server that sends nothing speaks another protocol, such as \
                     PostgreSQL"
                )
            },
        }
    }

    fn is_greeted(&self) -> bool {
        true
    }

    async fn open(
        &self,
        shard: &Lane,
        _: &Order,
        mut transport: Transport,
        greeting: &[u8],
    ) -> Result<Opened, Failure> {
        let carrier = match transport {
            Transport::Tls(_) => Carrier::Tls,
            Transport::Unix(_) => Carrier::UnixSocket,
            _ => Carrier::Plain,
        };
        let login = Login { carrier, ..self.clone() };
        let mut hello = Vec::new();
        let mut machine = Machine::Sql(Box::new(Client::new(login, &mut hello)));
        if !greeting.is_empty() {
            let mut input = Input::new(greeting, shard.clock.now(), Ends::Whole);
            let mut lent = shard.lent.borrow_mut();
            let read = machine.next(&mut input, &mut lent, &mut hello);
            read.map_err(|violation| violation_failure(&violation))?;
        }
        let first = FirstBytes::default();
        let came = |bytes: &[u8]| first.note(bytes);
        let is_open = |event: &Event<'_>| matches!(event, Event::Open).then_some(());
        let pulled = pull(shard, &mut transport, &mut machine, hello, came, is_open).await;
        let (open, pulled) = pulled.map_err(|failure| match (first.0.get(), failure.cause) {
            // The greeting of MySQL's version 10.
            ([_, 0, 0, 0, 10], Cause::WrongScheme) => {
                Failure::new(Cause::WrongScheme, SPEAKS_MYSQL)
            }
            _ => first.explain(failure, SPEAKS_HTTP, SPEAKS_TLS),
        })?;
        open.ok_or_else(|| Failure::new(Cause::ClosedEarly, CLOSED))?;
        Ok(Opened::by(machine, transport, pulled))
    }
}

/// Requests TLS, and returns its settings once the server has agreed.
pub(super) async fn tls<'n>(
    network: &'n Network,
    (target, database): (&Target, &Database),
    carrier: &mut Transport,
    before: &mut Pulled,
) -> Result<Option<&'n TlsConnector>, Failure> {
    if database.tls == SslMode::Disable || target.unix_socket.is_some() {
        return Ok(None);
    }
    if database.dialect == Dialect::MySql {
        return tls_of_mysql(network, database, carrier, before).await;
    }
    write_all(carrier, &postgres::SSL_REQUEST).await?;
    match (byte(carrier).await?, database.tls) {
        (None, _) => Err(Failure::new(Cause::ClosedEarly, NO_ANSWER)),
        (Some(b'S'), _) => Ok(Scheme::Postgres.alpn().and_then(|own| network.tls(&[own]))),
        (Some(b'N'), SslMode::Prefer) => Ok(None),
        (Some(b'N'), _) => Err(Failure::new(Cause::WrongScheme, NO_TLS)),
        (Some(first), _) => Err(failure(&SqlError::NotPostgres(first))),
    }
}

/// The same for MySQL, whose server sends its greeting first: the greeting is left for the login.
async fn tls_of_mysql<'n>(
    network: &'n Network,
    database: &Database,
    carrier: &mut Transport,
    before: &mut Pulled,
) -> Result<Option<&'n TlsConnector>, Failure> {
    let offers = loop {
        if let Some(offers) = mysql::offers_tls(&before.surplus).map_err(|it| failure(&it))? {
            break offers;
        }
        let next = byte(carrier).await?;
        before.surplus.push(next.ok_or_else(|| Failure::new(Cause::ClosedEarly, NO_GREETING))?);
        before.bytes_in += 1;
    };
    match (offers, database.tls) {
        (true, _) => {
            write_all(carrier, &mysql::SSL_REQUEST).await?;
            before.bytes_out += mysql::SSL_REQUEST.len() as u64;
            Ok(network.tls(tls::HTTP1))
        }
        (false, SslMode::Prefer) => Ok(None),
        (false, _) => Err(Failure::new(Cause::WrongScheme, NO_MYSQL_TLS)),
    }
}

/// Reads only the next byte: what follows may belong to TLS. `None` at the end.
async fn byte(carrier: &mut Transport) -> Result<Option<u8>, Failure> {
    let mut byte = [0];
    let read = std::future::poll_fn(|cx| carrier.poll_read(cx, &mut byte)).await;
    let read = read.map_err(|error| io_failure(&error))?.bytes;
    Ok((read > 0).then_some(byte[0]))
}

/// The error of a connection that can no longer be used.
pub(crate) fn failure(error: &SqlError) -> Failure {
    let (cause, status) = match error {
        SqlError::Server(error) => (Cause::of_status(error.status()), error.status()),
        SqlError::NotPostgres(_) | SqlError::NotMySql(_) | SqlError::Version(_) => {
            (Cause::WrongScheme, 0)
        }
        SqlError::Authentication(_)
        | SqlError::Mechanisms(_)
        | SqlError::Plugin(_)
        | SqlError::Cleartext
        | SqlError::NoPassword => (Cause::SqlRequest, 0),
        SqlError::Scram(_) | SqlError::Key => (Cause::SqlServer, 0),
        SqlError::TooLarge { .. } | SqlError::PacketTooLarge { .. } => (Cause::TooLarge, 0),
        SqlError::Length { .. }
        | SqlError::Malformed(_)
        | SqlError::Unexpected(_)
        | SqlError::Packet(_) => (Cause::Malformed, 0),
    };
    Failure { status, ..Failure::new(cause, error.said()) }
}

const CLOSED: Said = say!("the connection was closed before the login was complete");
const NO_ANSWER: Said = say!("the connection was closed instead of a response to SSLRequest");
const NO_GREETING: Said = say!("the connection was closed before the MySQL greeting");
const NO_MYSQL_TLS: Said = say!(
    "the server does not support TLS: remove `ssl-mode=REQUIRED`, or enable TLS on the server"
);
const NO_TLS: Said =
    say!("the server does not support TLS: remove `sslmode=require`, or enable TLS on the server");
const SPEAKS_TLS: Said =
    say!("the server on this port uses TLS from the first byte, so it is not a database");
const SPEAKS_MYSQL: Said = say!("the server on this port speaks MySQL: write `mysql://`");
const SPEAKS_HTTP: Said = say!("the server on this port uses HTTP: write `http://`");
