//! Logins, results and errors as MySQL and MariaDB send them, split and damaged; and protocol
//! violations.

use super::login::{caching_proof, native_proof};
use super::packets::{FULL_BYTES, write_packet};
use super::*;
use crate::field::Field;
use crate::sql::ask::push_counted;
use crate::sql::{Ask, Came, Carrier, Dialect, Login, SqlError, Values};

const LIMIT: usize = 64 * 1024 * 1024;

/// `SERVER_STATUS_AUTOCOMMIT`, in a transaction, with more results.
const IDLE: u16 = 2;
const OPEN: u16 = 3;
const MORE: u16 = 10;

const SALT: [u8; 20] =
    [10, 47, 74, 111, 75, 73, 34, 48, 88, 76, 114, 74, 37, 13, 3, 80, 82, 2, 23, 21];

const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];

fn login() -> Login {
    Login {
        dialect: Dialect::MySql,
        user: "ann".into(),
        password: Some("secret".into()),
        database: "shop".into(),
        nonce: "n0nce".into(),
        carrier: Carrier::Plain,
    }
}

/// Packets one after another, from this number on.
fn packets(begin: u8, bodies: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (sequence, body) in (begin..).zip(bodies) {
        write_packet(sequence, &mut out, |out| out.extend_from_slice(body));
    }
    out
}

fn greeting(plugin: &str) -> Vec<u8> {
    let mut body = b"\x0a5.5.5-10.11.19-MariaDB\0\x07\0\0\0".to_vec();
    body.extend_from_slice(&SALT[..8]);
    body.extend_from_slice(&[
        0, 0xfe, 0xff, 45, 2, 0, 0xff, 0x81, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    body.extend_from_slice(&SALT[8..]);
    body.push(0);
    body.extend_from_slice(plugin.as_bytes());
    body.push(0);
    body
}

fn ok(rows: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![0, rows, 0, low, high, 0, 0]
}

fn error(number: u16, text: &str) -> Vec<u8> {
    [&[0xff], &number.to_le_bytes()[..], text.as_bytes()].concat()
}

fn column(name: &str, kind: u8, flags: u16, decimals: u8) -> Vec<u8> {
    let mut body = Vec::new();
    for text in ["def", "shop", "t", "items", name, "own"] {
        push_counted(text.as_bytes(), &mut body);
    }
    let [low, high] = flags.to_le_bytes();
    let fixed = [&[45, 0], &[0; 4][..], &[kind, low, high, decimals, 0, 0]].concat();
    push_counted(&fixed, &mut body);
    body
}

/// `id`, `name` and `price` in the text protocol.
fn result() -> Vec<u8> {
    let columns = [column("id", 3, 0, 0), column("name", 253, 0, 0), column("price", 5, 0, 31)];
    let [id, name, price] = &columns;
    packets(1, &[&[3], id, name, price, EOF, b"\x017\0\x037.5", b"\x018\xfb\xfb", EOF])
}

/// The same in the binary protocol, after the response to COM_STMT_PREPARE.
fn prepared() -> Vec<u8> {
    let [id, name, price] =
        &[column("id", 3, 0, 0), column("name", 253, 0, 0), column("price", 5, 0, 31)];
    let mark = column("?", 253, 0, 0);
    let begin =
        packets(1, &[&[0, 9, 0, 0, 0, 3, 0, 1, 0, 0, 0, 0], &mark, EOF, id, name, price, EOF]);
    let row = [&[0, 0, 7, 0, 0, 0, 0][..], &7.5f64.to_le_bytes()].concat();
    let nulls = [0, 0b11000, 8, 0, 0, 0];
    [begin, packets(1, &[&[3], id, name, price, EOF, &row, &nulls, EOF])].concat()
}

/// A client that receives bytes in pieces: its events in readable form, and its output.
struct Bench {
    client: Client,
    kept: Vec<u8>,
    said: Vec<u8>,
}

impl Bench {
    fn new(login: Login) -> Bench {
        Bench { client: Client::new(login), kept: Vec::new(), said: Vec::new() }
    }

    fn open() -> Bench {
        let mut bench = Bench::new(login());
        let told = bench.hear(&[&packets(0, &[&greeting("mysql_native_password")])]);
        assert_eq!(told, (vec![], None));
        assert_eq!(bench.hear(&[&packets(2, &[&ok(0, IDLE)])]), (vec!["open".into()], None));
        bench.said.clear();
        bench
    }

    fn ask(&mut self, sql: &str, values: Option<&Values>) {
        let ask = Ask { sql: sql.as_bytes(), values, number: Some(3), keeps: true };
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

    /// The client's output since the last call.
    fn said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.said)
    }
}

fn in_words(came: &Came<'_>) -> String {
    match came {
        Came::Open => "open".into(),
        Came::FirstRow => "row".into(),
        Came::Done(reply) => match reply.error() {
            Some(error) => format!("{} {} {}", error.number, error.code, error.message),
            None => {
                let names = ["id", "name", "price"].map(|name| format!("column.{name}"));
                format!("{} rows {:?}", reply.rows, names.map(|name| reply.field(&name)))
            }
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const ROW: &str = "2 rows [Some(Number(7)), Some(Bytes([])), Some(Float(7.5))]";

#[test]
fn a_text_statement_has_the_same_result_however_it_is_split() {
    throng_fuzz::splits(&result(), |parts| {
        let mut bench = Bench::open();
        bench.ask("select …", None);
        assert!(bench.said().starts_with(b"\x0b\0\0\0\x03select"));
        assert_eq!(bench.hear(parts), (vec!["row".into(), ROW.into()], None));
        assert!(bench.client.half() == 0 && bench.client.heap_bytes() < 2_000);
    });
}

#[test]
fn a_statement_with_values_is_prepared_once() {
    throng_fuzz::splits(&prepared(), |parts| {
        let mut bench = Bench::open();
        let mut values = Values::default();
        values.push(Dialect::MySql, Field::Number(7));
        bench.ask("select ?", Some(&values));
        assert_eq!(bench.said(), b"\x09\0\0\0\x16select ?");
        assert_eq!(bench.hear(parts), (vec!["row".into(), ROW.into()], None));
        let execute = b"\x16\0\0\0\x17\x09\0\0\0\0\x01\0\0\0\0\x01\x08\0\x07\0\0\0\0\0\0\0";
        assert_eq!(bench.said(), execute);
        bench.ask("select ?", Some(&values));
        assert_eq!(bench.said(), execute);
    });
    let mut bench = Bench::open();
    let mut values = Values::default();
    values.push(Dialect::MySql, Field::Null);
    values.push(Dialect::MySql, Field::Bytes(b"x"));
    let ask = Ask { sql: b"do ?", values: Some(&values), number: None, keeps: false };
    bench.client.ask(&ask, &mut bench.said);
    bench.said();
    let descriptions = packets(1, &[&[0, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], b"?", b"?", EOF]);
    assert_eq!(bench.hear(&[&descriptions]).1, None);
    assert!(bench.said().ends_with(b"\x01\x01\x06\0\xfd\0\x01x"));
    bench.hear(&[&packets(1, &[&ok(0, IDLE)])]);
    assert_eq!(bench.said(), b"\x05\0\0\0\x19\x04\0\0\0");
}

#[test]
fn a_wrong_number_of_values_is_not_sent() {
    let mut bench = Bench::open();
    let mut values = Values::default();
    values.push(Dialect::MySql, Field::Bool(true));
    bench.ask("select ?, ?", Some(&values));
    bench.said();
    let descriptions = packets(1, &[&[0, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], b"?", b"?", EOF]);
    let (told, failed) = bench.hear(&[&descriptions]);
    assert_eq!((&*told[0], failed), ("1210 HY000 Incorrect number of parameters", None));
    assert_eq!(bench.said(), b"");
}

/// Of each type what the binary protocol sends, and what a check sees.
#[test]
fn values_of_all_types_look_like_those_of_the_text_protocol() {
    let date = [7, 0xea, 7, 11, 28, 13, 11, 9];
    let micros = [11, 0xea, 7, 11, 28, 13, 11, 9, 0x90, 0xd0, 3, 0];
    for (kind, flags, decimals, value, wanted) in [
        (1, 0, 0, &[0xff][..], "Number(-1)"),
        (1, 32, 0, &[0xff], "Number(255)"),
        (2, 0, 0, &[0xfe, 0xff], "Number(-2)"),
        (13, 32, 0, &[0xea, 7], "Number(2026)"),
        (9, 0, 0, &[5, 0, 0, 0], "Number(5)"),
        (8, 32, 0, &[0xff; 8], "18446744073709551615"),
        (4, 0, 31, &0.1f32.to_le_bytes(), "Float(0.1)"),
        (5, 0, 31, &0.1f64.to_le_bytes(), "Float(0.1)"),
        (246, 0, 2, b"\x047.50", "7.50"),
        (16, 32, 0, &[2, 1, 2], "Number(258)"),
        (252, 0, 0, &[2, b'a', b'b'], "ab"),
        (245, 0, 0, b"\x02{}", "{}"),
        (10, 0, 0, &[4, 0xea, 7, 11, 28], "2026-11-28"),
        (10, 0, 0, &[0], "0000-00-00"),
        (12, 0, 0, &date, "2026-11-28 13:11:09"),
        (7, 0, 3, &micros, "2026-11-28 13:11:09.250"),
        (11, 0, 0, &[8, 1, 1, 0, 0, 0, 2, 3, 4], "-26:03:04"),
        (11, 0, 6, &[0], "00:00:00.000000"),
    ] {
        let described = column("id", kind, flags, decimals);
        let (mut kept, mut row) = (1u16.to_be_bytes().to_vec(), vec![0, 0]);
        let column = row::column(&described, &mut kept).unwrap();
        let row_at = kept.len();
        row.extend_from_slice(value);
        row::row(&row, &[column], true, &mut kept).unwrap();
        let reply = crate::sql::Reply { kept: &kept, row_at, ..Default::default() };
        let found = match reply.field("column.id") {
            Some(Field::Bytes(text)) => String::from_utf8_lossy(text).into_owned(),
            found => format!("{:?}", found.unwrap()),
        };
        assert_eq!(found, wanted, "{kind}");
        row.pop();
        assert!(row::row(&row, &[column], true, &mut kept).is_none() || value.len() == 1);
    }
}

#[test]
fn rows_count_changes_summed_over_several_statements() {
    let mut bench = Bench::open();
    bench.ask("update …; select …; update …", None);
    let more = [0xfe, 0, 0, 10, 0];
    let id = column("id", 8, 0, 0);
    let results = [&ok(5, MORE)[..], &[1], &id, EOF, b"\x017", &more, &ok(2, IDLE)];
    let (told, failed) = bench.hear(&[&packets(1, &results)]);
    assert_eq!((told.len(), &*told[0], failed), (2, "row", None));
    assert!(told[1].starts_with("8 rows [Some(Number(7)), None"), "{told:?}");
}

#[test]
fn an_error_is_a_result_and_an_unsolicited_one_ends_the_connection() {
    let mut bench = Bench::open();
    throng_fuzz::splits(&packets(1, &[&error(1062, "#23000Duplicate entry")]), |parts| {
        bench.ask("insert …", None);
        assert_eq!(bench.hear(parts), (vec!["1062 23000 Duplicate entry".into()], None));
    });
    bench.ask("select 1", None);
    let row = packets(1, &[&[1], &column("id", 3, 0, 0), EOF, &error(1317, "#70100Interrupted")]);
    assert_eq!(bench.hear(&[&row]), (vec!["1317 70100 Interrupted".into()], None));
    let (_, failed) = bench.hear(&[&packets(0, &[&error(4031, "#HY000idle")])]);
    let Some(SqlError::Server(error)) = failed else { panic!("{failed:?}") };
    assert_eq!(error.status(), throng_base::sql::status(4031, ""));
    assert_eq!(error.said().english(), "ERROR 4031 (HY000): idle");
}

#[test]
fn an_open_transaction_is_rolled_back_before_the_next_statement() {
    let mut bench = Bench::open();
    let open = |bench: &mut Bench| {
        bench.ask("begin", None);
        bench.hear(&[&packets(1, &[&ok(0, OPEN)])]);
        bench.said();
    };
    let rolls_back = |bench: &mut Bench| {
        bench.client.roll_back(&mut bench.said);
        bench.said() == b"\x09\0\0\0\x03rollback"
    };
    open(&mut bench);
    assert!(rolls_back(&mut bench) && !rolls_back(&mut bench), "once");
    // What follows waits for it.
    bench.ask("select 1", None);
    assert_eq!(bench.said(), b"");
    assert_eq!(bench.hear(&[&packets(1, &[&ok(0, IDLE)])]), (vec![], None));
    assert_eq!(bench.said(), b"\x09\0\0\0\x03select 1");
    assert_eq!(bench.hear(&[&packets(1, &[&ok(1, IDLE)])]).0.len(), 1);
    assert!(!rolls_back(&mut bench), "nothing is open");
    // It arrives while no request waits.
    open(&mut bench);
    assert!(rolls_back(&mut bench));
    throng_fuzz::splits(&packets(1, &[&ok(0, IDLE)]), |parts| {
        assert_eq!(bench.hear(parts), (vec![], None));
        assert!(!bench.client.is_in_transaction());
        open(&mut bench);
        assert!(rolls_back(&mut bench));
    });
    bench.hear(&[&packets(1, &[&ok(0, IDLE)])]);
    // A statement is in flight: after it.
    open(&mut bench);
    bench.ask("do 1", None);
    bench.said();
    assert!(!rolls_back(&mut bench), "not in the middle");
    assert_eq!(bench.hear(&[&packets(1, &[&ok(0, OPEN)])]).0.len(), 1);
    assert_eq!(bench.said(), b"\x09\0\0\0\x03rollback");
    assert_eq!(bench.hear(&[&packets(1, &[&ok(0, IDLE)])]), (vec![], None));
}

#[test]
fn changed_rows_and_the_key_of_the_last_one_are_read() {
    let mut bench = Bench::open();
    let mut read = |heard: &[&[u8]]| {
        bench.ask("…", None);
        let heard = packets(1, heard);
        let came = bench.client.next(&mut &heard[..], LIMIT, &mut bench.kept, &mut bench.said);
        let Ok(Some(Came::Done(reply))) = came else { panic!("{came:?}") };
        (reply.rows, reply.affected, reply.insert_id)
    };
    assert_eq!(read(&[&[0, 2, 0xfc, 0x2c, 1, 2, 0, 0, 0]]), (2, 2, Some(300)));
    assert_eq!(read(&[&ok(3, IDLE)]), (3, 3, Some(0)));
    // Of several statements.
    let more = [0, 1, 7, 10, 0, 0, 0];
    assert_eq!(read(&[&more, &ok(1, IDLE)]), (2, 2, Some(7)));
    bench.ask("select …", None);
    let rows = packets(1, &[&[1], &column("id", 3, 0, 0), EOF, &[1, b'5'], EOF]);
    assert_eq!(bench.hear(&[&rows]).0.len(), 2);
}

/// The vectors of go-sql-driver's tests, and what `openssl pkeyutl` decrypts.
#[test]
fn password_proofs_match_other_clients() {
    let proof = caching_proof(b"secret", &SALT);
    assert_eq!(hex(&proof), "f490e76f66d9d86665ce54d98c78d0acfe2fb0b08b423da807144873d30b312c");
    let proof = native_proof(b"secret", &SALT);
    assert_eq!(hex(&proof), "6a149bdd80bda1ebf0fa2bd2cf2e9717fecc34bb");
    let key = rsa::Key::read(KEY.as_bytes()).unwrap();
    let encrypted = key.encrypt(b"word\0", std::array::from_fn(|at| at as u8)).unwrap();
    assert_eq!(
        hex(&encrypted),
        "9814fa1dad55fda380aa2dcf927f44b589b44b781778a8d608102642260377d9e2cba375d7631d2b65092e23\
         68ef5316699079b90ad95d93032985a2b0eab6e9537e099a45b16f3356ceae0ee8bcab46d096593019a9ae37\
         90bb3f19bbb2258e5a604d745d028c14dc2038e52ad69a6fb0e102af4e40747b5432bec8be331e68"
    );
    assert!(key.encrypt(&[0; 87], [0; 20]).is_none());
    assert!(rsa::Key::read(b"-----BEGIN PUBLIC KEY-----\nMA==\n-----END").is_none());
}

const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDLirZRUKQjD0QzI5B7GYXZ3V5/
/6kPqlPPYwkg1/1aWHbk7zCaTG9YyWhBsJ9Cqyjro5TVcDejY125F+X8eNnyBxve
12xfzVY2n/WsdBUAri/Gs7kWlr2yjYAoYsW4PCuE9V0T+7O0BEmvBBPvR0ZTD4k5
8JOs53KMM0eesvCBOQIDAQAB
-----END PUBLIC KEY-----\n";

#[test]
fn logins_follow_the_requests_of_the_server() {
    // Its cache has the password.
    let mut bench = Bench::new(login());
    let hello = packets(0, &[&greeting("caching_sha2_password")]);
    assert_eq!(bench.hear(&[&hello]), (vec![], None));
    let said = bench.said();
    assert!(said[3] == 1 && said.windows(5).any(|part| part == b"ann\0\x20"), "{said:?}");
    assert!(said.ends_with(b"shop\0caching_sha2_password\0"));
    let fast = packets(2, &[b"\x01\x03", &ok(0, IDLE)]);
    assert_eq!(bench.hear(&[&fast]), (vec!["open".into()], None));
    // It has not, and the connection may be read: its key hides the password.
    let mut bench = Bench::new(login());
    bench.hear(&[&hello]);
    bench.said();
    bench.hear(&[&packets(2, &[b"\x01\x04"])]);
    assert_eq!(bench.said(), b"\x01\0\0\x03\x02");
    bench.hear(&[&packets(4, &[&[b"\x01", KEY.as_bytes()].concat()])]);
    let said = bench.said();
    assert_eq!((said.len(), &said[..4]), (132, &b"\x80\0\0\x05"[..]));
    assert_eq!(bench.hear(&[&packets(6, &[&ok(0, IDLE)])]), (vec!["open".into()], None));
    // With TLS, the password is sent; and the response has the next number.
    let mut bench = Bench::new(Login { carrier: Carrier::Tls, ..login() });
    bench.hear(&[&hello]);
    assert_eq!(bench.said()[3], 2);
    bench.hear(&[&packets(3, &[b"\x01\x04"])]);
    assert_eq!(bench.said(), b"\x07\0\0\x04secret\0");
    // The server switches.
    let mut bench = Bench::new(Login { database: String::new(), ..login() });
    bench.hear(&[&packets(0, &[&greeting("auth_gssapi_client")])]);
    assert!(!bench.said().windows(4).any(|part| part == b"shop"));
    let switch = [b"\xfecaching_sha2_password\0", &SALT[..], b"\0"].concat();
    bench.hear(&[&packets(2, &[&switch])]);
    assert_eq!(bench.said()[4..], caching_proof(b"secret", &SALT));
}

#[test]
fn parts_of_16_mib_are_one_packet() {
    let mut bench = Bench::open();
    let long = "x".repeat(FULL_BYTES);
    bench.ask(&long, None);
    let said = bench.said();
    assert_eq!(said[..5], [0xff, 0xff, 0xff, 0, 3]);
    assert_eq!(said[4 + FULL_BYTES..], [1, 0, 0, 1, b'x']);
    let mut row = Vec::new();
    push_counted(&vec![b'y'; FULL_BYTES - 4], &mut row);
    assert_eq!(row.len(), FULL_BYTES);
    let mut stream = packets(1, &[&[1], &column("name", 252, 0, 0), EOF]);
    write_packet(4, &mut stream, |out| out.extend_from_slice(&row));
    stream.extend_from_slice(&packets(6, &[EOF]));
    let (first, second) = stream.split_at(stream.len() - 7);
    let (told, failed) = bench.hear(&[first, second]);
    assert_eq!((told.len(), failed), (2, None));
    assert!(told[1].starts_with("1 rows [None, Some(Bytes([121, 121"));
}

#[test]
fn protocol_violations_end_the_connection() {
    let text = |error: SqlError| error.said().english().to_string();
    let of = |stream: &[u8]| Bench::new(login()).hear(&[stream]).1.expect("it is not allowed");
    for (stream, part) in [
        (&b"SSH-2.0-OpenSSH_9.2\r\n"[..], "does not speak MySQL: it sent `S` first"),
        (b"220 mail ESMTP\r\n", "does not speak MySQL"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "does not speak MySQL"),
        (b"\x05\0\0\0\x0b\x08\x05\x1a\0", "version 11"),
        (&packets(0, &[b"\x0a5.5"]), "greeting of the server is malformed"),
        (&packets(0, &[&error(1040, "#08004Too many connections")]), "1040 (08004)"),
        (&packets(0, &[&error(1129, "Host is blocked")]), "1129 (HY000)"),
        (&packets(0, &[b""]), "does not speak MySQL"),
    ] {
        let told = text(of(stream));
        assert!(told.contains(part), "{told}");
    }
    let greeted = |answer: &[u8]| {
        let mut bench = Bench::new(login());
        bench.hear(&[&packets(0, &[&greeting("caching_sha2_password")])]);
        text(bench.hear(&[&packets(2, &[answer])]).1.expect("it is not allowed"))
    };
    for (answer, part) in [
        (&error(1045, "#28000Access denied")[..], "1045 (28000): Access denied"),
        (b"\xfe", "mysql_old_password"),
        (b"\xfeclient_ed25519\0", "client_ed25519"),
        (b"\xfemysql_clear_password\0", "cleartext"),
        (b"\x01-----BEGIN", "unexpected MySQL packet during the login"),
        (b"\x07", "unexpected MySQL packet during the login"),
    ] {
        let told = greeted(answer);
        assert!(told.contains(part), "{told}");
    }
    let asked = |stream: &[u8]| {
        let mut bench = Bench::open();
        bench.ask("load data local …", None);
        text(bench.hear(&[stream]).1.expect("it is not allowed"))
    };
    let id = column("id", 3, 0, 0);
    for (stream, part) in [
        (packets(1, &[b"\xfb/etc/passwd"]), "LOAD DATA LOCAL"),
        (packets(2, &[&ok(0, IDLE)]), "out of order"),
        (packets(1, &[b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"]), "malformed"),
        (packets(1, &[&[0]]), "malformed"),
        (packets(1, &[&[1], &id, EOF, b"\xfe\xff\xff\xff\xff\0\0\0\0"]), "malformed"),
        (packets(1, &[&[1], &id, &id]), "malformed"),
        (packets(1, &[b""]), "empty"),
    ] {
        let told = text_of(asked(&stream), part);
        assert!(told.is_none(), "{told:?}");
    }
    // Parts of 16 MiB that never end.
    let full = [&[0xff, 0xff, 0xff, 1, 1][..], &vec![0; FULL_BYTES - 1]].concat();
    let endless: Vec<u8> = (1..=8)
        .flat_map(|number| {
            let mut part = full.clone();
            part[3] = number;
            part
        })
        .collect();
    assert!(asked(&endless).contains("more than the limit"));
    let mut bench = Bench::open();
    let unasked = bench.hear(&[&packets(0, &[&ok(0, IDLE)])]).1.expect("nothing was asked");
    assert!(text(unasked).contains("without a statement"));
}

/// The message that was sent instead.
fn text_of(told: String, part: &str) -> Option<String> {
    (!told.contains(part)).then_some(told)
}

#[test]
fn the_tls_offer_is_read_once_the_greeting_is_complete() {
    let hello = packets(0, &[&greeting("mysql_native_password")]);
    for bytes in 0..hello.len() {
        assert_eq!(offers_tls(&hello[..bytes]), Ok(None));
    }
    assert_eq!(offers_tls(&hello), Ok(Some(true)));
    assert!(offers_tls(b"SSH-2.0").is_err() && offers_tls(b"\xff\xff\xff\0").is_err());
    assert!(SSL_REQUEST.starts_with(b"\x20\0\0\x01") && SSL_REQUEST.len() == 36);
}

#[test]
fn fuzz_damaged_streams_do_not_depend_on_the_split() {
    let hello = packets(0, &[&greeting("caching_sha2_password")]);
    let logs_in = [&hello[..], &packets(2, &[b"\x01\x03", &ok(0, IDLE)])].concat();
    let failed = packets(1, &[&error(1062, "#23000Duplicate entry")]);
    let corpus = [&logs_in[..], &result(), &prepared(), &failed];
    throng_fuzz::mutations(&corpus, |input, random| {
        let made = |parts: &[&[u8]], opens: bool, values: Option<&Values>| {
            let mut bench = if opens { Bench::new(login()) } else { Bench::open() };
            if !opens {
                bench.ask("select 1", values);
            }
            let told = bench.hear(parts);
            assert!(bench.client.heap_bytes() < 300_000);
            (told, bench.said())
        };
        let mut values = Values::default();
        values.push(Dialect::MySql, Field::Number(7));
        let (first, second) = input.split_at(random.below(input.len() as u64 + 1) as usize);
        for (opens, values) in [(true, None), (false, None), (false, Some(&values))] {
            assert_eq!(made(&[first, second], opens, values), made(&[input], opens, values));
        }
    });
}
