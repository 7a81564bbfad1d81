//! Expressions with a few names: results, evaluation errors, compile errors with their positions,
//! randomness.

use throng_base::{Random, Said};

use super::*;
use crate::functions::FUNCTIONS;
use crate::names::{Name, UnknownName};
use crate::scope::Answer;

mod cipher;
mod fuzz;

/// A user with a few saved values, a row and a response.
pub(super) struct World {
    random: Random,
    pub slots: Vec<Value>,
    answer: Value,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let saved = Value::parse_json(br#"{"id": 7, "tags": ["a", "b"], "deep": {"x": null}}"#);
        let answer = br#"{"code": 0, "data": {"items": [{"n": 1}, {"n": 2}, {"n": 3}]}}"#;
        World {
            random: Random::new(seed),
            slots: vec![
                Value::from("t0ken"),
                saved.expect("JSON"),
                Value::Null,
                Value::from(vec![Value::Int(1), Value::Float(2.5), Value::from("three")]),
            ],
            answer: Value::parse_json(answer).expect("JSON"),
        }
    }
}

impl Scope for World {
    fn user_id(&self) -> u64 {
        42
    }

    fn iteration(&self) -> u64 {
        3
    }

    fn slot(&self, slot: u16) -> &Value {
        &self.slots[usize::from(slot)]
    }

    fn field(&mut self, source: u16, column: u16) -> Result<Value, EvaluationError> {
        Ok(Value::from(format!("cell {source}/{column}")))
    }

    fn row(&mut self, _: u16) -> Result<Value, EvaluationError> {
        Ok(Value::parse_json(br#"{"ssoid": "s1", "name": "Ann"}"#).expect("JSON"))
    }

    fn answer(&mut self, part: Answer) -> Result<Value, EvaluationError> {
        match part {
            Answer::Status => Ok(Value::Int(200)),
            Answer::Json => Ok(self.answer.clone()),
            _ => Err(EvaluationError(Said::of_others("there is no such part"))),
        }
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unix_nanos(&self) -> u64 {
        1_700_000_000_123_456_789
    }
}

pub(super) struct Known;

impl Names for Known {
    fn resolve(&mut self, path: &[&str]) -> Result<(Name, usize), UnknownName> {
        let vars = || {
            let json = br#"{"room": "lobby", "count": 5, "big": 9223372036854775807, "on": true,
                "list": [3, 1, 2], "server": {"host": "h", "port": 80}, "nothing": null}"#;
            Value::parse_json(json).expect("JSON")
        };
        Ok(match path {
            ["vars", name, ..] => match vars().get(name) {
                Some(value) => (Name::Constant(value.clone()), 2),
                None => {
                    return Err(UnknownName {
                        message: Said::of_others(format!("there is no variable `{name}`")),
                        label: Some(Said::of_others("did you mean `room`?")),
                        help: Said::of_others("set it under `vars`"),
                    });
                }
            },
            ["user", "id", ..] => (Name::UserId, 2),
            ["iteration", ..] => (Name::Iteration, 1),
            ["saved", "token", ..] => (Name::Slot(0), 2),
            ["saved", "map", ..] => (Name::Slot(1), 2),
            ["saved", "later", ..] => (Name::Slot(2), 2),
            ["saved", "list", ..] => (Name::Slot(3), 2),
            ["data", "accounts", "ssoid", ..] => (Name::Field { source: 0, column: 1 }, 3),
            ["data", "accounts"] => (Name::Row(0), 2),
            ["response", "status", ..] => (Name::Answer(Answer::Status), 2),
            ["response", "json", ..] => (Name::Answer(Answer::Json), 2),
            ["json", ..] => (Name::Answer(Answer::Json), 1),
            _ => {
                return Err(UnknownName {
                    message: Said::of_others(format!("there is no name `{}`", path[0])),
                    ..UnknownName::default()
                });
            }
        })
    }
}

pub(super) fn compile(text: &str) -> Result<Expression, Box<CompileError>> {
    Expression::compile(text, &mut Known)
}

/// The value as JSON, or the evaluation error, or the compile error with the marked text.
fn outcome(text: &str) -> String {
    let expression = match compile(text) {
        Ok(expression) => expression,
        Err(error) => {
            let marked = &text[error.start..error.end];
            return format!("{} at `{marked}`: {}", error.code, error.message.english());
        }
    };
    match expression.evaluate(&mut World::new(1)) {
        Ok(value) => {
            let mut out = Vec::new();
            value.write_json(&mut out);
            String::from_utf8(out).expect("UTF-8")
        }
        Err(error) => format!("fault: {}", error.0.english()),
    }
}

fn check(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let found = outcome(text);
        if found != *expected {
            wrong.push_str(&format!("{text}\n  expected {expected}\n  found    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn names_resolve_to_values_of_the_scenario() {
    check(&[
        ("vars.room", r#""lobby""#),
        (" vars.room ", r#""lobby""#),
        ("vars['room']", r#""lobby""#),
        ("vars.server.port", "80"),
        ("vars.server['host']", r#""h""#),
        ("user.id", "42"),
        ("iteration + 1", "4"),
        ("saved.token", r#""t0ken""#),
        ("saved.map.id", "7"),
        ("saved.map.tags[1]", r#""b""#),
        ("saved.later", "null"),
        ("saved.later == null", "true"),
        ("data.accounts.ssoid", r#""cell 0/1""#),
        ("data.accounts", r#"{"ssoid":"s1","name":"Ann"}"#),
        ("response.status == 200", "true"),
        ("response.json.data.items.size()", "3"),
        ("response.json.data.items[2].n", "3"),
        ("json.code", "0"),
        ("json.size()", "2"),
        ("vars.`room`", r#""lobby""#),
        ("(saved.map).id", "7"),
    ]);
}

#[test]
fn literals_and_arithmetic_follow_cel() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("7.0 / 2", "3.5"),
        ("1 + 1.5", "2.5"),
        ("1u + 2u", "3"),
        ("0x1F", "31"),
        ("-0x10", "-16"),
        ("1e3", "1000"),
        (".5 + 1", "1.5"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615u", "18446744073709551615"),
        ("18446744073709551615u - 1", "18446744073709551614"),
        ("-(5)", "-5"),
        ("--5", "5"),
        ("!!true", "true"),
        ("'a' + \"b\"", r#""ab""#),
        (r"'\x41é\n\101'", r#""Aé\nA""#),
        (r"r'\d'", r#""\\d""#),
        ("'''it's'''", r#""it's""#),
        ("b'abc' + b'\\xff'", r#""YWJj/w==""#),
        ("[1, 2] + [3]", "[1,2,3]"),
        ("{'a': 1, 'b': [true, null]}", r#"{"a":1,"b":[true,null]}"#),
        ("{1: 'x'}[1]", r#""x""#),
        ("[1, 2, 3][1.0]", "2"),
        ("{}", "{}"),
        ("[]", "[]"),
        ("1.0", "1"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 // a comment", "1"),
    ]);
}

#[test]
fn conditions_follow_cel() {
    check(&[
        ("1 == 1.0 && 1u == 1", "true"),
        ("1 == '1'", "false"),
        ("[1, 2] == [1.0, 2u]", "true"),
        ("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "true"),
        ("1 < 1.5 && 2u > 1 && 'a' < 'b' && b'a' <= b'a' && false < true", "true"),
        ("0.0 / 0.0 == 0.0 / 0.0", "false"),
        ("0.0 / 0.0 < 1.0", "false"),
        ("1.0 / 0.0 > 1", "true"),
        ("true ? 1 : 2", "1"),
        ("false ? 1 : true ? 2 : 3", "2"),
        ("user.id > 40 ? 'high' : 'low'", r#""high""#),
        ("true || 1 / 0 == 1", "true"),
        ("1 / 0 == 1 || true", "true"),
        ("false && 1 / 0 == 1", "false"),
        ("1 / 0 == 1 && false", "false"),
        ("saved.list[9] == 1 || user.id == 42", "true"),
        ("2 in [1, 2.0]", "true"),
        ("'x' in {'x': 1}", "true"),
        ("'host' in vars.server", "true"),
        ("!(1 in [])", "true"),
        ("has(saved.token)", "true"),
        ("has(saved.later)", "false"),
        ("has(saved.map.id)", "true"),
        ("has(saved.map.nope)", "false"),
        ("has(saved.map.nope.deeper)", "false"),
        ("has(saved.map.deep.x)", "false"),
        ("has(vars.server.port)", "true"),
        ("has(vars.server.nope)", "false"),
        ("has(vars.server.nope) ? vars.server.nope : 'none'", r#""none""#),
        ("has({'a': 1}.a)", "true"),
        ("has(response.json.data.items)", "true"),
        ("saved.map.deep.x == null", "true"),
    ]);
}

#[test]
fn macros_are_loops() {
    check(&[
        ("[1, 2, 3].all(x, x > 0)", "true"),
        ("[1, 2, 3].all(x, x > 1)", "false"),
        ("[].all(x, x)", "true"),
        ("[1, 2, 3].exists(x, x == 2)", "true"),
        ("[].exists(x, x)", "false"),
        ("[0, 2].exists(x, 4 / x == 2)", "true"),
        ("[0, 2].all(x, 4 / x == 3)", "false"),
        ("[1, 2, 2].exists_one(x, x == 2)", "false"),
        ("[1, 2, 3].exists_one(x, x == 2)", "true"),
        ("[1, 2, 3].map(x, x * 2)", "[2,4,6]"),
        ("[1, 2, 3].map(x, x > 1, x * 2)", "[4,6]"),
        ("[1, 2, 3].filter(x, x % 2 == 1)", "[1,3]"),
        ("{'a': 1, 'b': 2}.map(k, k + '!')", r#"["a!","b!"]"#),
        ("[[1, 2], [3]].map(l, l.map(x, x + l.size()))", "[[3,4],[4]]"),
        ("[1, 2].map(x, [10, 20].map(y, x * y + user.id))", "[[52,62],[62,82]]"),
        ("[1, 2].map(x, [1].map(y, [5].map(z, 7)))", "[[[7]],[[7]]]"),
        ("user.id > 0 ? [1].map(x, [2, 3].map(y, y)) : []", "[[2,3]]"),
        ("response.json.data.items.map(item, item.n)", "[1,2,3]"),
        ("response.json.data.items.exists(item, item.n == 3)", "true"),
        ("response.json.data.items.filter(item, item.n > 2)[0].n", "3"),
        ("[1].map(random, random + 1)", "[2]"),
        ("[1].map(vars, vars + 1)", "[2]"),
        ("saved.list.map(x, string(x))", r#"["1","2.5","three"]"#),
    ]);
}

#[test]
fn text_functions_count_characters() {
    check(&[
        ("size('héé')", "3"),
        ("'héé'.size()", "3"),
        ("size([1, 2])", "2"),
        ("size(b'abc')", "3"),
        ("size({'a': 1})", "1"),
        ("'hello'.contains('ell')", "true"),
        ("contains('hello', 'x')", "false"),
        ("'hello'.startsWith('he') && 'hello'.endsWith('lo')", "true"),
        ("'abc'.matches('^[a-c]+$')", "true"),
        ("saved.token.matches('[0-9]')", "true"),
        ("saved.token.matches(string(saved.map.id))", "false"),
        ("'Äb'.upper() + 'Äb'.upperAscii() + 'ÄB'.lower() + 'ÄB'.lowerAscii()", r#""ÄBÄBäbÄb""#),
        ("'  x '.trim()", r#""x""#),
        ("'a-b-c'.replace('-', '')", r#""abc""#),
        ("'a-b-c'.replace('-', '+', 1)", r#""a+b-c""#),
        ("'ab'.replace('', '-')", r#""-a-b-""#),
        ("'a,b,c'.split(',')", r#"["a","b","c"]"#),
        ("'a,b,c'.split(',', 2)", r#"["a","b,c"]"#),
        ("'héé'.split('')", r#"["h","é","é"]"#),
        ("'héé'.split('', 2)", r#"["h","éé"]"#),
        ("'a,b'.split(',', 0)", "[]"),
        ("[1, 'x', 2.5].join('-')", r#""1-x-2.5""#),
        ("['a', 'b'].join()", r#""ab""#),
        ("'héllo'.substring(1, 3)", r#""él""#),
        ("'héllo'.substring(3)", r#""lo""#),
        ("'abc'.substring(3)", r#""""#),
        ("'héllo'.charAt(1)", r#""é""#),
        ("'abc'.charAt(3)", r#""""#),
        ("'éabab'.indexOf('ab')", "1"),
        ("'éabab'.indexOf('ab', 2)", "3"),
        ("'éabab'.lastIndexOf('ab')", "3"),
        ("'abc'.indexOf('x')", "-1"),
        ("'héy'.reverse()", r#""yéh""#),
        ("[1, 2].reverse()", "[2,1]"),
        ("string(7).padStart(3, '0')", r#""007""#),
        ("'abc'.padStart(2)", r#""abc""#),
        ("'a'.padEnd(4, 'xy')", r#""axyx""#),
    ]);
}

#[test]
fn values_are_converted_explicitly() {
    check(&[
        ("int('42') + int(3.9) + int(-3.9) + int(7u)", "49"),
        ("uint('42')", "42"),
        ("double('1.5') + double(1)", "2.5"),
        ("string(1.0) + string(true) + string(-5) + string(b'x')", r#""1true-5x""#),
        ("bool('true') && !bool('false')", "true"),
        ("bytes('é')", r#""w6k=""#),
        ("bytes(12)", r#""MTI=""#),
        ("dyn(5)", "5"),
        ("abs(-5) + abs(-2.5)", "7.5"),
        ("abs(-9223372036854775808)", "9223372036854775808"),
        ("[round(2.5), round(-2.5), floor(-1.5), ceil(1.2), round(3)]", "[3,-3,-2,2,3]"),
        ("min(3, 1.5, 2)", "1.5"),
        ("max([1, 5, 2u])", "5"),
        ("max(4)", "4"),
        ("min(vars.list)", "1"),
    ]);
}

/// The exchanges of RFC 5802, 5, and RFC 7677, 3.
#[test]
fn scram_matches_its_standards() {
    check(&[
        ("scram.first('a=b,c', 'xyz')", r#""n,,n=a=3Db=2Cc,r=xyz""#),
        (
            "scram.sha1_last(scram.first('user', 'fyko+d2lbbFgONRv9qkxdawL'), \
             'r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096', 'pencil')",
            r#""c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=""#,
        ),
        (
            "scram.sha256_signature(scram.first('user', 'rOprNGfwEbeRWgbNEkqO'), \
             'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096\
             ', 'pencil')",
            r#""v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=""#,
        ),
    ]);
}

#[test]
fn digests_and_encodings_match_their_standards() {
    // RFC 1321, FIPS 180-4, RFC 2202, RFC 4231, RFC 4648, checked with coreutils and OpenSSL.
    check(&[
        ("md5('')", r#""d41d8cd98f00b204e9800998ecf8427e""#),
        ("hash.md5('abc')", r#""900150983cd24fb0d6963f7d28e17f72""#),
        ("hash.md5_base64('abc')", r#""kAFQmDzST7DWlj99KOF/cg==""#),
        ("hash.sha1('abc')", r#""a9993e364706816aba3e25717850c26c9cd0d89d""#),
        ("sha256('abc')", r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#),
        ("hash.sha256_base64(b'abc')", r#""ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=""#),
        ("hash.sha512('abc').substring(0, 16)", r#""ddaf35a193617aba""#),
        ("hash.crc32('123456789')", "3421780262"),
        (
            "hmac.sha1('Jefe', 'what do ya want for nothing?')",
            r#""effcdf6ae5eb2fa2d27416d5f184df9c259a7c79""#,
        ),
        (
            "hmac.sha256('Jefe', 'what do ya want for nothing?')",
            r#""5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843""#,
        ),
        ("hmac.sha512('Jefe', 'what do ya want for nothing?').size()", "128"),
        ("base64('foobar') + base64('f')", r#""Zm9vYmFyZg==""#),
        ("base64.url(b'\\xff\\xfe')", r#""__4""#),
        ("base64.decode('Zm9v') == b'foo'", "true"),
        ("base64.decode('Zg') + base64.decode('Zg==') == b'ff'", "true"),
        ("base64.decode('__4') == b'\\xff\\xfe'", "true"),
        ("hex.encode('az')", r#""617a""#),
        // Bytes whatever they contain: whether they are UTF-8 is accidental.
        ("hex.decode('617A') == b'az'", "true"),
        ("hex.decode('c3bc') + hex.decode('ff') == b'\\xc3\\xbc\\xff'", "true"),
        ("hex.decode('c3bc').size()", "2"),
        ("string(hex.decode('617A'))", r#""az""#),
        ("hash.sha1_bytes('abc') == hex.decode(hash.sha1('abc'))", "true"),
        ("hmac.sha256_bytes('k', 'abc') == hex.decode(hmac.sha256('k', 'abc'))", "true"),
        ("hex(xor(hex.decode('0f0f'), 'AA'))", r#""4e4e""#),
        (
            "xor('a', 'bc')",
            "wrong-arguments at `xor('a', 'bc')`: `xor` requires two values of the same length, \
             not 1 and 2 bytes",
        ),
        ("hex(bytes.big(258, 4)) + hex(bytes.little(258, 3))", r#""00000102020100""#),
        ("hex(bytes.big(-2, 2) + bytes.little(255, 1))", r#""fffeff""#),
        ("hex(bytes.big(18446744073709551615u, 8))", r#""ffffffffffffffff""#),
        (
            "bytes.big(256, 1)",
            "wrong-arguments at `bytes.big(256, 1)`: the number 256 is out of range for a size of 1",
        ),
        (
            "bytes.little(1, 9)",
            "wrong-arguments at `bytes.little(1, 9)`: a number has 1 to 8 bytes, not 9",
        ),
        ("json({'a': 'q\"'})", r#""{\"a\":\"q\\\"\"}""#),
        ("json.parse('{\"a\": [1, 2.5]}').a[1]", "2.5"),
        ("url.encode('a b&ü~/')", r#""a%20b%26%C3%BC~%2F""#),
        ("url.decode('a%20b%c3%bc+')", r#""a bü+""#),
        (
            "url.decode('%ff')",
            "wrong-arguments at `url.decode('%ff')`: the decoded bytes are not UTF-8 text",
        ),
        ("now.ns()", "1700000000123456789"),
        ("now.us()", "1700000000123456"),
        ("now.ms()", "1700000000123"),
        ("now.s()", "1700000000"),
        ("now.iso()", r#""2023-11-14T22:13:20.123Z""#),
        ("now.format('%Y-%m-%d %H:%M:%S')", r#""2023-11-14 22:13:20""#),
    ]);
}

#[test]
fn a_missing_value_is_an_evaluation_error() {
    check(&[
        ("saved.later + 'x'", "fault: `saved.later` has no value yet"),
        ("saved.later.id", "fault: `saved.later` has no value yet"),
        ("sha256(saved.later)", "fault: `saved.later` has no value yet"),
        ("saved.later ? 1 : 2", "fault: `saved.later` has no value yet"),
        ("saved.map.nope", "fault: there is no field `nope`; available: id, tags, deep"),
        ("saved.token.nope", "fault: there is no field `nope` in text"),
        ("saved.list[3]", "fault: index 3 is out of range: the list has 3 items, counted from 0"),
        ("saved.list[-1]", "fault: index -1 is out of range: the list has 3 items, counted from 0"),
        ("saved.list['x']", "fault: there is no field `x` in a list"),
        ("saved.list[saved.token]", "fault: a list index must be a whole number, not text"),
        ("saved.token + saved.map.id", "fault: `+` cannot combine text and a whole number"),
        ("saved.token < saved.map.id", "fault: `<` cannot compare text with a whole number"),
        ("vars.big + user.id", "fault: the result of `+` does not fit into 64 bits"),
        ("user.id / (iteration - 3)", "fault: a whole number cannot be divided by zero"),
        ("user.id % (iteration - 3)", "fault: a whole number cannot be divided by zero"),
        ("1u - uint(user.id)", "fault: the result of `-` does not fit into 64 bits"),
        ("-(vars.big * -1 - iteration + 2)", "fault: the result of `-` does not fit into 64 bits"),
        ("saved.token && true", "fault: `&&` takes true or false, not text"),
        ("!saved.token", "fault: `!` takes true or false, not text"),
        (
            "'t' in saved.token",
            "fault: `in` supports only lists and maps: for text, write `text.contains(part)`",
        ),
        ("saved.token.map(x, x)", "fault: only lists and maps can be iterated, not text"),
        ("int(saved.token)", "fault: `t0ken` is not a whole number"),
        ("saved.map.id.contains('x')", "fault: `contains` takes text, not a whole number"),
        (
            "saved.token.substring(9)",
            "fault: `substring`: index 9 is out of range: the text has 5 characters",
        ),
        (
            "saved.token.substring(3, 1)",
            "fault: the end index of `substring` is before its start index",
        ),
        (
            "saved.token.padStart(user.id * 1000000)",
            "fault: `padStart` takes a length from 0 to 1048576, not 42000000",
        ),
        ("random.int(user.id, 1)", "fault: the range of `random.int` from 42 to 1 is empty"),
        ("{saved.token: 1, 't0ken': 2}", "fault: the key `t0ken` occurs twice in a map"),
        ("{saved.list: 1}", "fault: the keys of a map must be text, not a list"),
        (
            "json.parse(saved.token)",
            "fault: the text is not JSON: expected ident at line 1 column 2",
        ),
    ]);
    let later = compile("saved.later").expect("compiles");
    let error = later.write_text(&mut World::new(1), &mut Vec::new());
    assert_eq!(error, Err(EvaluationError(Said::of_others("`saved.later` has no value yet"))));
    assert!(later.test(&mut World::new(1)).is_err());
}

#[test]
fn certain_errors_are_found_at_compile_time() {
    check(&[
        (
            "'a' + 1",
            "wrong-arguments at `'a' + 1`: `+` cannot be used with text and a whole number",
        ),
        (
            "'x' == 'y' ? 1 : user.id + '-1'",
            "wrong-arguments at `user.id + '-1'`: `+` cannot be used with a whole number and text",
        ),
        (
            "hex.decode(saved.token) == 'a'",
            "wrong-arguments at `hex.decode(saved.token) == 'a'`: `==` cannot be used with bytes \
             and text",
        ),
        ("1 / 0", "wrong-arguments at `1 / 0`: a whole number cannot be divided by zero"),
        ("user.id + 1 / 0", "wrong-arguments at `1 / 0`: a whole number cannot be divided by zero"),
        (
            "vars.big + 1",
            "wrong-arguments at `vars.big + 1`: the result of `+` does not fit into 64 bits",
        ),
        (
            "user.id ? 1 : 2",
            "wrong-arguments at `user.id`: `?` takes true or false, not a whole number",
        ),
        (
            "user.id.contains('4')",
            "wrong-arguments at `user.id`: `contains` takes text, not a whole number",
        ),
        (
            "saved.token.contains(4)",
            "wrong-arguments at `4`: `contains` takes text, not a whole number",
        ),
        (
            "random.int(1)",
            "wrong-arguments at `random.int(1)`: wrong number of arguments for `random.int`: 1",
        ),
        (
            "random.int(2, 1)",
            "wrong-arguments at `random.int(2, 1)`: the range of `random.int` from 2 to 1 is \
             empty",
        ),
        (
            "random.int('a', 9)",
            "wrong-arguments at `'a'`: `random.int` takes a whole number, not text",
        ),
        (
            "random.int(1.5, 9)",
            "wrong-arguments at `random.int(1.5, 9)`: `random.int` takes a whole number, not 1.5",
        ),
        (
            "random.choice([])",
            "wrong-arguments at `random.choice([])`: \
             `random.choice` cannot choose from an empty list",
        ),
        (
            "now.format('%Q')",
            "wrong-arguments at `now.format('%Q')`: `now.format` does not support `%Q`",
        ),
        (
            "saved.token.matches('(')",
            "wrong-arguments at `'('`: `(` is not a regular expression: unclosed group",
        ),
    ]);
}

#[test]
fn unknown_names_and_functions_are_found_at_compile_time() {
    check(&[
        ("now.ms", "unknown-name at `now.ms`: `now.ms` is a function"),
        ("1 + now.ms", "unknown-name at `now.ms`: `now.ms` is a function"),
        ("vars.rom", "unknown-name at `vars.rom`: there is no variable `rom`"),
        ("1 + vars.rom.x", "unknown-name at `vars.rom.x`: there is no variable `rom`"),
        ("vars.server.prt", "unknown-name at `prt`: `vars.server` has no field `prt`"),
        ("'é' + vars.server.prt", "unknown-name at `prt`: `vars.server` has no field `prt`"),
        ("vars.room.size", "unknown-name at `size`: `vars.room` is text and has no field `size`"),
        ("x", "unknown-name at `x`: there is no name `x`"),
        ("[1].map(x, y)", "unknown-name at `y`: there is no name `y`"),
        ("[1].map(x, x) + x", "unknown-name at `x`: there is no name `x`"),
        ("{a: 1}", "unknown-name at `a`: there is no name `a`"),
        (
            "random.itn(1, 2)",
            "unknown-function at `random.itn(1, 2)`: there is no function `random.itn`",
        ),
        (
            "user.id == 1 && nope(1, (2))",
            "unknown-function at `nope(1, (2))`: there is no function `nope`",
        ),
        ("saved.token.nope(1) + 'x'", "unknown-function at `nope(1)`: there is no function `nope`"),
        (
            "Foo{a: 1}",
            "bad-expression at `Foo{a: 1}`: `Foo{…}` is not supported: there are no named types",
        ),
    ]);
}

#[test]
fn an_error_includes_a_fix() {
    let error = |text: &str| *compile(text).expect_err(text);
    assert_eq!(error("random.itn(1, 2)").label, "did you mean `random.int`?");
    assert!(error("random.itn(1, 2)").help.english().contains("`random.int(low, high)`"));
    assert_eq!(error("uuid()").label, "did you mean `random.uuid`?");
    assert_eq!(error("saved.token.startswith('a')").label, "did you mean `startsWith`?");
    assert_eq!(error("len('a')").label, "");
    assert_eq!(error("random.int(1)").label, "write `random.int(low, high)`");
    assert_eq!(error("'a'.padStart()").label, "write `text.padStart(length, [fill])`");
    assert_eq!(error("vars.rom").label, "did you mean `room`?");
    assert_eq!(error("vars.server.prt").label, "did you mean `port`?");
    assert_eq!(error("vars.server.prt").help, "available: `host`, `port`");
    assert_eq!(error("now.ms").label, "write `now.ms()`");
    assert_eq!(error("{a: 1}").label, "write `'a'` if it is text");
    assert_eq!(error("user.id = 1").label, "write `==`");
    assert_eq!(error("true and false").label, "write `&&`");
    assert!(error("user.id + 'x'").help.english().contains("string("));
}

#[test]
fn invalid_syntax_is_marked() {
    check(&[
        ("", "bad-expression at ``: the expression is empty"),
        ("  ", "bad-expression at `  `: the expression is empty"),
        ("1 +", "bad-expression at `+`: the expression is incomplete"),
        ("1 2", "bad-expression at `2`: `2` is not expected here"),
        ("(1 + 2", "bad-expression at `(`: `(` is never closed"),
        ("1 + 2)", "bad-expression at `)`: `)` has no opening bracket"),
        ("[1, 2)", "bad-expression at `)`: `)` has no opening bracket"),
        ("'abc", "bad-expression at `'abc`: the text has no closing quote"),
        ("user.id & 1", "bad-expression at `&`: `&` is not an operator"),
        ("user.id = 1", "bad-expression at `=`: `=` is not an operator"),
        ("not true", "bad-expression at `not`: `not` is not an operator"),
        ("‘a’", "bad-expression at `‘`: text cannot be quoted with `‘` here"),
        ("1 + é", "bad-expression at `é`: `é` is not allowed in an expression"),
        ("a #b", "bad-expression at `#`: `#` is not allowed in an expression"),
        ("12abc", "bad-expression at `12a`: `12a` is not a number"),
        (
            "99999999999999999999",
            "bad-expression at `99999999999999999999`: \
             `99999999999999999999` does not fit into 64 bits",
        ),
        ("if", "bad-expression at `if`: `if` is a reserved word, not a name"),
        ("1 + * 2", "bad-expression at `*`: `*` is not expected here"),
        ("true ? 1", "bad-expression at `1`: the expression is incomplete"),
        ("has(1)", "bad-expression at `1`: the argument of `has` must be a field"),
        (
            "[1].map(1, 2)",
            "bad-expression at `1`: the first argument of a loop must be a name for its item",
        ),
        ("'a\\q'", "bad-expression at `'a\\q'`: 'a\\q' has an invalid escape sequence"),
        ("vars.", "bad-expression at `.`: the expression is incomplete"),
        ("f(1,)", "bad-expression at `)`: `)` is not expected here"),
    ]);
}

#[test]
fn oversized_expressions_are_rejected_before_parsing() {
    let deep = |open: &str, close: &str, count: usize| {
        outcome(&format!("{}1{}", open.repeat(count), close.repeat(count)))
    };
    for (open, close) in [("(", ")"), ("[", "]"), ("{'a':", "}"), ("abs(", ")"), ("1+(", ")")] {
        assert!(!deep(open, close, 60).contains("deeply"), "{open}");
        assert!(deep(open, close, 70).contains("deeply"), "{open}");
    }
    let long = |part: &str, count: usize| outcome(&format!("user.id{}", part.repeat(count)));
    assert_eq!(long(" + 1", 150), "192");
    assert!(long(" + 1", 300).contains("deeply"));
    assert!(long(".a", 300).contains("deeply"));
    assert!(long("[0]", 300).contains("deeply"));
    assert!(long(" > 1 ? 2 : user.id", 200).contains("deeply"));
    assert!(long(" + 1", 3000).contains("4096 bytes"));
    assert_eq!(outcome(&format!("[{}1].size()", "1,".repeat(1500))), "1501");
    assert!(outcome(&"-".repeat(4000)).starts_with("bad-expression"));
    assert!(outcome(&"!".repeat(4000)).starts_with("bad-expression"));
    assert!(outcome(&"(".repeat(4000)).starts_with("bad-expression"));
}

#[test]
fn every_evaluation_ends() {
    let tens = "[1,2,3,4,5,6,7,8,9,user.id]";
    let mut nested = "1".to_string();
    for depth in 0..10 {
        nested = format!("{tens}.map(x{depth}, {nested})");
    }
    let message =
        "fault: the expression takes too many steps to evaluate: use smaller lists or shorter text";
    assert_eq!(outcome(&nested), message);
    let doubled = format!("{}{}", "[saved.token]", ".map(x, x + x)".repeat(40));
    assert_eq!(outcome(&doubled), message);
    let replaced =
        format!("'aaaaaaaa{}'{}", "a".repeat(50), ".replace('a', 'aaaaaaaa')".repeat(30));
    assert_eq!(outcome(&replaced.replace("'aaaaaaaaa", "saved.token + 'aaaaaaaaa")), message);
    // The same over constants alone is not folded and does not stop the compiler.
    assert_eq!(outcome(&replaced), message);
}

#[test]
fn saved_values_cannot_grow_deeper_forever() {
    let mut world = World::new(1);
    let wrap = compile("[saved.token]").expect("compiles");
    let mut rounds = 0;
    let error = loop {
        match wrap.evaluate(&mut world) {
            Ok(value) => world.slots[0] = value,
            Err(error) => break error,
        }
        rounds += 1;
        assert!(rounds <= crate::VALUE_DEPTH_MAX);
    };
    assert_eq!(error.0, "lists and maps cannot be nested more than 128 levels deep");
}

#[test]
fn constants_are_computed_once() {
    let constant = |text: &str| compile(text).expect(text).as_constant().cloned();
    assert_eq!(constant("vars.room"), Some(Value::from("lobby")));
    assert_eq!(constant("vars.room + '-' + string(vars.count * 2)"), Some("lobby-10".into()));
    assert_eq!(constant("sha256(vars.room).size()"), Some(Value::Int(64)));
    assert_eq!(constant("vars.list.map(x, x * 2).filter(x, x > 2).size()"), Some(Value::Int(2)));
    assert_eq!(constant("vars.on ? 1 : user.id"), Some(Value::Int(1)));
    assert_eq!(constant("vars.on || user.id == 1"), Some(Value::Bool(true)));
    assert_eq!(constant("random.int(1, 1)"), None);
    assert_eq!(constant("now.ms()"), None);
    assert_eq!(constant("user.id"), None);
}

#[test]
fn the_inputs_of_an_expression_are_known() {
    let facts = |text: &str| {
        let expression = compile(text).expect(text);
        (expression.uses_answer(), expression.is_simple())
    };
    assert_eq!(facts("vars.room"), (false, true));
    assert_eq!(facts("now.ms() + 1"), (false, false));
    assert_eq!(facts("random.int(1, 2)"), (false, false));
    assert_eq!(facts("user.id"), (false, true));
    assert_eq!(facts("saved.token"), (false, true));
    assert_eq!(facts("saved.map.id"), (false, false));
    assert_eq!(facts("data.accounts.ssoid"), (false, false));
    assert_eq!(facts("[1].exists(x, x == response.status)"), (true, false));
    assert_eq!(facts("vars.on ? 1 : response.status"), (false, true));
    assert!(compile("response.status == 200").expect("compiles").may_be_condition());
    assert!(compile("saved.token").expect("compiles").may_be_condition());
    assert!(!compile("user.id + 1").expect("compiles").may_be_condition());
}

#[test]
fn expressions_are_small_and_shared_by_threads() {
    fn shared<T: Send + Sync + Clone + std::fmt::Debug>() {}
    shared::<Expression>();
    assert_eq!(size_of::<Expression>(), size_of::<usize>());
}

#[test]
fn every_function_works_as_its_example_says() {
    for function in FUNCTIONS {
        let (name, example) = (function.name, function.example);
        let expression = compile(example).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let value =
            expression.evaluate(&mut World::new(5)).unwrap_or_else(|f| panic!("{name}: {f:?}"));
        assert!(!value.is_null(), "{name}");
        assert!(value.types().may_be(function.result), "{name} gave {value:?}");
        assert!(example.contains(name) || name == "size", "{name}: {example}");
        assert_eq!(function.arguments.len(), function.parameters.len(), "{name}");
        assert!(!function.doc.is_empty() && !function.doc.english().ends_with('.'), "{name}");
        let double = FUNCTIONS.iter().filter(|other| other.name == name).count();
        assert_eq!(double, 1, "{name} stands twice");
    }
}

#[test]
fn the_same_seed_gives_the_same_values() {
    let text = "[random.int(1, 1000), random.u64(), random.float(), random.bool(), \
        random.string(5), random.string(5, 'äö'), random.hex(5), random.uuid(), \
        random.choice([1, 2, 3]), \
        round(random.normal(0, 1) * 1000), round(random.exponential(2) * 1000)]";
    let draw = |seed| compile(text).expect("compiles").evaluate(&mut World::new(seed));
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    // Guaranteed results of a seed: these values must not change between releases.
    let json = draw(7).expect("a value").to_json().to_string();
    assert_eq!(json, PROMISED, "{json}");
}

const PROMISED: &str = concat!(
    r#"[390,309689372594955804,0.9007606806068834,true,"cPdUI","ääööö","dd2f9","#,
    r#""8c5c906b-1aeb-45f8-a12e-5d006cd3d6af",1,64,2245]"#
);

#[test]
fn random_values_follow_their_distribution() {
    const N: usize = 20_000;
    let mut world = World::new(99);
    let mut draw = |text: &str| -> Vec<Value> {
        let expression = compile(text).expect(text);
        (0..N).map(|_| expression.evaluate(&mut world).expect(text)).collect()
    };
    let mean = |values: &[Value]| {
        values.iter().filter_map(Value::as_f64).sum::<f64>() / values.len() as f64
    };
    let ints = draw("random.int(1, 6)");
    assert!((mean(&ints) - 3.5).abs() < 0.05);
    for face in 1..=6 {
        let share =
            ints.iter().filter(|value| **value == Value::Int(face)).count() as f64 / N as f64;
        assert!((share - 1.0 / 6.0).abs() < 0.015, "{face}: {share}");
    }
    assert!(
        draw("random.int(-9223372036854775808, 9223372036854775807)")
            .iter()
            .any(|v| v.as_i64() < Some(0))
    );
    let floats = draw("random.float(2, 4)");
    assert!((mean(&floats) - 3.0).abs() < 0.03);
    let normals = draw("random.normal(10, 2)");
    let center = mean(&normals);
    let squares: Vec<f64> =
        normals.iter().filter_map(Value::as_f64).map(|value| (value - center).powi(2)).collect();
    let deviation = (squares.iter().sum::<f64>() / N as f64).sqrt();
    assert!((center - 10.0).abs() < 0.06 && (deviation - 2.0).abs() < 0.06, "{center} {deviation}");
    assert!((mean(&draw("random.exponential(3)")) - 3.0).abs() < 0.1);
    let yes = draw("random.bool()").iter().filter(|value| **value == Value::Bool(true)).count();
    assert!((yes as f64 / N as f64 - 0.5).abs() < 0.02);
    let uuid = draw("random.uuid()");
    let shape =
        regex::Regex::new("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$");
    let shape = shape.expect("a pattern");
    assert!(uuid.iter().all(|value| shape.is_match(value.as_text().expect("text"))));
}

#[test]
fn text_is_written_directly() {
    let written = |text: &str| {
        let mut out = b"<".to_vec();
        compile(text).expect(text).write_text(&mut World::new(1), &mut out).expect(text);
        String::from_utf8(out).expect("UTF-8")
    };
    assert_eq!(written("user.id"), "<42");
    assert_eq!(written("iteration"), "<3");
    assert_eq!(written("saved.token"), "<t0ken");
    assert_eq!(written("saved.map"), r#"<{"id":7,"tags":["a","b"],"deep":{"x":null}}"#);
    assert_eq!(written("vars.count"), "<5");
    assert_eq!(written("1.5 * 2"), "<3");
    assert_eq!(written("b'raw'"), "<raw");
    assert_eq!(written("null"), "<");
}

#[test]
fn needed_values_are_distinguished_from_tested_ones() {
    for (text, needed, tested) in [
        ("saved.token", &[0][..], &[][..]),
        ("user.id", &[], &[]),
        ("saved.map.id + saved.later", &[1, 2], &[]),
        ("has(saved.later)", &[], &[2]),
        ("has(saved.map.deep)", &[], &[1]),
        ("saved.later == null", &[], &[2]),
        ("null != saved.later ? saved.later : saved.token", &[0], &[2]),
        ("saved.later == saved.token", &[2, 0], &[]),
        ("saved.list.exists(x, x == saved.later)", &[3, 2], &[]),
    ] {
        let slots = compile(text).expect(text).slots();
        assert_eq!((&slots.needed[..], &slots.tested[..]), (needed, tested), "{text}");
    }
}
