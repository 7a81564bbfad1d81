//! Logins, results and errors as PostgreSQL sends them, split and damaged; and protocol violations.

use super::scram::{Scram, md5_password};
use super::write::message;
use super::*;
use crate::field::Field;
use crate::sql::{Ask, Came, Dialect, Login, ServerError, SqlError, Values};

const LIMIT: usize = 1024 * 1024;

fn login() -> Login {
    let (user, database) = ("ann".to_string(), "shop".to_string());
    Login {
        user,
        password: Some("word".into()),
        database,
        nonce: "n0nce".into(),
        ..Login::default()
    }
}

fn authentication(kind: u32, rest: &[u8]) -> Vec<u8> {
    one(b'R', &[&kind.to_be_bytes(), rest].concat())
}

fn one(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    message(kind, &mut out, |out| out.extend_from_slice(body));
    out
}

/// `id` is an integer, `name` a text, `paid` a truth.
fn description() -> Vec<u8> {
    let mut body = 3u16.to_be_bytes().to_vec();
    for (name, kind) in [("id", 23u32), ("name", 25), ("paid", 16)] {
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&[0; 7]);
        body.extend_from_slice(&kind.to_be_bytes());
        body.extend_from_slice(&[0; 8]);
    }
    one(b'T', &body)
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        let length = value.map_or(u32::MAX, |value| value.len() as u32);
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    one(b'D', &body)
}

fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    let fields = format!("S{severity}\0V{severity}\0C{code}\0M{text}\0DKey (id)=(1)\0\0");
    one(b'E', fields.as_bytes())
}

fn greeting() -> Vec<u8> {
    let status = one(b'S', b"server_version\x0015.4\0");
    [authentication(0, b""), status, one(b'K', &[0; 8]), one(b'Z', b"I")].concat()
}

fn result() -> Vec<u8> {
    let rows = [row(&[Some("7"), Some(""), Some("t")]), row(&[Some("8"), None, None])];
    let begin = [one(b'1', b""), one(b'2', b""), description()].concat();
    [&begin[..], &rows.concat(), &one(b'C', b"SELECT 2\0"), &one(b'Z', b"I")].concat()
}

/// A client that receives bytes in pieces: its events in readable form, and its output.
struct Bench {
    client: Client,
    kept: Vec<u8>,
    said: Vec<u8>,
}

impl Bench {
    fn new() -> Bench {
        let mut said = Vec::new();
        let client = Client::new(login(), &mut said);
        Bench { client, kept: Vec::new(), said }
    }

    fn open() -> Bench {
        let mut bench = Bench::new();
        assert_eq!(bench.hear(&[&greeting()]), (vec!["open".into()], None));
        bench.said.clear();
        bench
    }

    fn ask(&mut self, sql: &str, values: Option<&Values>) {
        let number = values.map(|_| 3);
        let ask = Ask { sql: sql.as_bytes(), values, number, keeps: true };
        self.client.ask(&ask, &mut self.said);
    }

    fn hear(&mut self, parts: &[&[u8]]) -> (Vec<String>, Option<SqlError>) {
        let mut told = Vec::new();
        for part in parts {
            let mut rest = *part;
            loop {
                match self.client.next(&mut rest, LIMIT, &mut self.kept, &mut self.said) {
                    Ok(Some(came)) => told.push(in_words(&came)),
                    Ok(None) => break,
                    Err(error) => return (told, Some(error)),
                }
            }
            assert!(rest.is_empty());
        }
        (told, None)
    }
}

fn in_words(came: &Came<'_>) -> String {
    match came {
        Came::Open => "open".into(),
        Came::FirstRow => "row".into(),
        Came::Done(reply) => match reply.error() {
            Some(error) => format!("{} {}", error.code, error.message),
            None => {
                let names = ["id", "name", "paid"].map(|name| format!("column.{name}"));
                let values = names.map(|name| reply.field(&name));
                format!("{} rows {values:?}", reply.rows)
            }
        },
    }
}

#[test]
fn a_statement_is_prepared_once_and_has_the_same_result_however_it_is_split() {
    throng_fuzz::splits(&result(), |parts| {
        let mut bench = Bench::open();
        let mut values = Values::default();
        values.push(Dialect::Postgres, Field::Bytes(b"7"));
        values.push(Dialect::Postgres, Field::Null);
        bench.ask("select 1 where $1 = $2", Some(&values));
        assert!(bench.said.starts_with(b"P"), "{:?}", bench.said);
        let want = "2 rows [Some(Number(7)), Some(Bytes([])), Some(Bool(true))]";
        assert_eq!(bench.hear(parts), (vec!["row".into(), want.into()], None));
        bench.said.clear();
        bench.ask("select 1 where $1 = $2", Some(&values));
        assert!(bench.said.starts_with(b"B"), "{:?}", bench.said);
        assert!(bench.client.half() == 0 && bench.client.heap_bytes() < 1_000);
    });
}

#[test]
fn rows_count_changes_summed_over_several_statements() {
    let mut bench = Bench::open();
    bench.ask("begin; insert …; update …; commit", None);
    let tags: Vec<u8> = ["BEGIN", "INSERT 0 5", "UPDATE 2", "COMMIT"]
        .iter()
        .flat_map(|tag| one(b'C', format!("{tag}\0").as_bytes()))
        .collect();
    let (told, failed) = bench.hear(&[&tags, &one(b'Z', b"I")]);
    assert_eq!((&*told[0], failed), ("7 rows [None, None, None]", None));
    bench.ask("show port", None);
    let tag = one(b'C', b"SHOW\0");
    let (told, _) = bench.hear(&[&description(), &row(&[Some("5432")]), &tag, &one(b'Z', b"I")]);
    assert_eq!(told[1], "1 rows [Some(Number(5432)), None, None]");
}

#[test]
fn an_error_is_a_result_and_a_fatal_one_ends_the_connection() {
    let mut bench = Bench::open();
    let failed = [error("ERROR", "23505", "duplicate key"), one(b'Z', b"E")].concat();
    throng_fuzz::splits(&failed, |parts| {
        bench.ask("insert …", None);
        assert_eq!(bench.hear(parts), (vec!["23505 duplicate key".into()], None));
    });
    bench.ask("select 1", None);
    let (told, failed) = bench.hear(&[&error("FATAL", "57P01", "terminating connection")]);
    let Some(SqlError::Server(error)) = failed else { panic!("{failed:?}") };
    assert_eq!((told.len(), error.status()), (0, throng_base::sql::status(0, "57P01")));
    let said = error.said();
    assert_eq!(said.english(), "FATAL 57P01: terminating connection (Key (id)=(1))");
}

#[test]
fn errors_of_a_connection_pooler_include_a_fix() {
    let message = "prepared statement \"throng_0\" already exists".into();
    let (severity, code) = ("ERROR".into(), "42P05".into());
    let error = ServerError { severity, code, message, ..ServerError::default() };
    let said = error.said().english().to_string();
    assert!(said.ends_with("set `prepare: false`"), "{said}");
}

#[test]
fn an_open_transaction_is_rolled_back_before_the_next_statement() {
    let mut bench = Bench::open();
    let open = |bench: &mut Bench| {
        bench.ask("begin", None);
        bench.hear(&[&one(b'C', b"BEGIN\0"), &one(b'Z', b"T")]);
        bench.said.clear();
    };
    let rolls_back = |bench: &mut Bench| {
        bench.client.roll_back(&mut bench.said);
        std::mem::take(&mut bench.said) == b"Q\0\0\0\x0drollback\0"
    };
    let rolled_back = [one(b'C', b"ROLLBACK\0"), one(b'Z', b"I")].concat();
    open(&mut bench);
    assert!(rolls_back(&mut bench) && !rolls_back(&mut bench), "once");
    // What follows does not wait for it.
    bench.ask("select 1", None);
    assert_eq!(std::mem::take(&mut bench.said), b"Q\0\0\0\x0dselect 1\0");
    let (told, _) = bench.hear(&[&rolled_back, &one(b'C', b"SELECT 1\0"), &one(b'Z', b"I")]);
    assert_eq!(told, ["1 rows [None, None, None]"]);
    assert!(!rolls_back(&mut bench), "nothing is open");
    // It arrives while no request waits; its bytes do not belong to the next result.
    open(&mut bench);
    assert!(rolls_back(&mut bench));
    throng_fuzz::splits(&rolled_back, |parts| {
        assert_eq!(bench.hear(parts), (vec![], None));
        assert!(!bench.client.is_in_transaction());
        open(&mut bench);
        assert!(rolls_back(&mut bench));
    });
    bench.hear(&[&rolled_back]);
    // A request is in flight: after it.
    open(&mut bench);
    bench.ask("select 1", None);
    bench.said.clear();
    assert!(!rolls_back(&mut bench), "not in the middle");
    assert_eq!(bench.hear(&[&one(b'C', b"SELECT 1\0"), &one(b'Z', b"T")]).0.len(), 1);
    assert_eq!(bench.said, b"Q\0\0\0\x0drollback\0");
    assert_eq!(bench.hear(&[&rolled_back]), (vec![], None));
}

#[test]
fn changed_rows_are_counted_separately() {
    let mut bench = Bench::open();
    let tags: [(&[u8], u64, u64); 7] = [
        (b"SELECT 3\0", 3, 0),
        (b"INSERT 0 2\0", 2, 2),
        (b"UPDATE 4\0", 4, 4),
        (b"DELETE 1\0", 1, 1),
        (b"MERGE 5\0", 5, 5),
        (b"COPY 6\0", 6, 0),
        (b"BEGIN\0", 0, 0),
    ];
    for (tag, rows, affected) in tags {
        bench.ask("…", None);
        let heard = [one(b'C', tag), one(b'Z', b"I")].concat();
        let came = bench.client.next(&mut &heard[..], LIMIT, &mut bench.kept, &mut bench.said);
        let Ok(Some(Came::Done(reply))) = came else { panic!("{came:?}") };
        assert_eq!((reply.rows, reply.affected), (rows, affected), "{tag:?}");
        assert_eq!(reply.field("insert_id"), None);
        assert_eq!(reply.field("affected"), Some(Field::Number(affected as i64)));
    }
}

#[test]
fn nothing_is_copied_from_the_client() {
    let mut bench = Bench::open();
    bench.ask("copy t from stdin", None);
    bench.said.clear();
    assert_eq!(bench.hear(&[&one(b'G', &[0; 7])]), (vec![], None));
    assert!(bench.said.starts_with(b"f"));
}

/// The example of RFC 7677, 3, with the name of the user that PostgreSQL ignores.
#[test]
fn scram_matches_the_example_of_the_rfc() {
    let mut scram = Scram::new("rOprNGfwEbeRWgbNEkqO");
    let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    let answer = scram.answer(challenge.as_bytes(), b"pencil").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p="));
    assert_eq!(scram.check(b"v=AAAA").unwrap_err(), scram.check(b"e=other").unwrap_err());
    let wrong = |challenge: &[u8]| {
        let mut scram = Scram::new("abc");
        scram.answer(challenge, b"pencil").unwrap_err().said()
    };
    assert_eq!(wrong(b"r=x,s=AAAA,i=1"), wrong(b"r=abc,s=AAAA,i=1"));
    assert!(wrong(b"r=abcd,s=AAAA,i=4000000000").english().contains("100,000"));
    assert!(wrong(b"").english().contains("malformed"));
}

#[test]
fn passwords_are_sent_in_the_requested_form() {
    let mut bench = Bench::new();
    bench.said.clear();
    bench.hear(&[&authentication(3, b"")]);
    assert_eq!(bench.said, one(b'p', b"word\0"));
    let mut bench = Bench::new();
    bench.said.clear();
    bench.hear(&[&authentication(5, b"salt")]);
    assert!(bench.said.starts_with(b"p\0\0\0\x28md5"), "{:?}", bench.said);
    assert_eq!(md5_password(b"ann", b"word", b"salt").len(), 35);
    let mut bench = Bench::new();
    bench.said.clear();
    bench.hear(&[&authentication(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")]);
    assert!(bench.said.ends_with(b"n,,n=,r=n0nce"), "{:?}", bench.said);
}

#[test]
fn protocol_violations_end_the_connection() {
    let of = |stream: &[u8]| Bench::new().hear(&[stream]).1.expect("it is not allowed");
    let text = |error: SqlError| error.said().english().to_string();
    for (stream, part) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "does not speak PostgreSQL"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "does not speak PostgreSQL"),
        (b"J\0\0\0\x0a8.0.36\0", "does not speak PostgreSQL"),
        (b"R\xff\xff\xff\xff", "4294967295 bytes"),
        (b"R\0\0\0\x03", "invalid length of 3"),
        (&authentication(7, b""), "authentication method 7"),
        (&authentication(10, b"OTHER\0\0"), "OTHER"),
        (&authentication(11, b""), "unexpected"),
        (&one(b'R', b""), "malformed"),
        (&error("FATAL", "28P01", "password authentication failed"), "28P01"),
        (&[authentication(0, b""), one(b'D', b"")].concat(), "unexpected"),
        (&[authentication(0, b""), one(b'Z', b"?")].concat(), "malformed"),
    ] {
        let told = text(of(stream));
        assert!(told.contains(part), "{told}");
    }
    let mut bench = Bench::open();
    let unasked = bench.hear(&[&one(b'C', b"SELECT 1\0")]).1.expect("nothing was asked");
    assert_eq!(text(unasked), "the server sent the unexpected message `C`");
    let login = Login { password: None, ..login() };
    let mut client = Client::new(login, &mut Vec::new());
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    let stream = authentication(3, b"");
    let told = client.next(&mut &stream[..], LIMIT, &mut kept, &mut out);
    assert_eq!(told, Err(SqlError::NoPassword));
}

#[test]
fn fuzz_damaged_streams_do_not_depend_on_the_split() {
    let failed = [error("ERROR", "23505", "duplicate"), one(b'Z', b"E")].concat();
    let stream = [greeting(), result()].concat();
    throng_fuzz::mutations(&[&stream, &result(), &failed, &greeting()], |input, random| {
        let made = |parts: &[&[u8]], opens: bool| {
            let mut bench = if opens { Bench::new() } else { Bench::open() };
            if !opens {
                bench.ask("select 1", None);
            }
            let (told, failed) = bench.hear(parts);
            assert!(bench.client.heap_bytes() < 200_000);
            (told, failed)
        };
        let (first, second) = input.split_at(random.below(input.len() as u64 + 1) as usize);
        for opens in [true, false] {
            assert_eq!(made(&[first, second], opens), made(&[input], opens));
        }
    });
}
