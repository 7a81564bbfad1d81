//! Mutated expressions, and valid ones over odd values: no panic, no hang, positions within the
//! text.

use throng_base::Random;
use throng_fuzz::mutations;

use super::{Known, World, compile};
use crate::expression::Expression;
use crate::functions::FUNCTIONS;
use crate::value::Value;

const CORPUS: &[&str] = &[
    "user.id",
    "vars.server.port + 1 > 80 && has(saved.map.nope) || !vars.on",
    "response.json.data.items.filter(i, i.n > 1).map(i, {'n': i.n, 'u': user.id})[0].n",
    "[1, 2.5, 'a\\u00e9\\n', b'\\xff', null].exists_one(x, x == 1) ? saved.list[0] : -0x7f",
    "random.string(8, 'abc') + string(now.ms()) + sha256(saved.token).substring(0, 8)",
    "'a,b,c'.split(',').map(x, x + '!').join('-').replace('!', '?', 2).padStart(20, '*')",
    "hmac.sha256_base64('key', json({'a': [1, {'b': vars.list}]}))",
    "aes.gcm_decrypt(hash.md5_bytes(saved.token), random.bytes(12), aes.cbc_encrypt(\
        hash.sha256_bytes('k'), random.bytes(16), saved.token))",
    "aes.cbc_decrypt('sixteen byte key', random.bytes(16), aes.ctr(hash.md5_bytes('k'), \
        hash.md5_bytes('n'), json([saved.map, saved.list])))",
    "saved.token.matches('^[a-z]+(x|y){2,3}$') && 'x' in vars.server && 3 in vars.list",
    "min(1, 2u, 3.0) * max(vars.list) / 2 % 7 - abs(-5) + round(2.5)",
    "((((1 + 2) * 3) - 4) / 5) == 6 ? (true ? 'é' : '漢字') : r'\\d'",
    "json.parse('{\"a\": [1, 2]}').a[1] + vars.`count` // comment",
    "Foo{a: 1}.b ? \"\"\"long\n'text'\"\"\" : 1.5e-3",
];

/// Compiles any text, and evaluates it if it compiles.
fn try_text(text: &str, world: &mut World) {
    match Expression::compile(text, &mut Known) {
        Ok(expression) => {
            let _ = expression.evaluate(world);
            let _ = expression.write_text(world, &mut Vec::new());
            let _ = expression.test(world);
        }
        Err(error) => {
            assert!(error.start <= error.end && error.end <= text.len(), "{error:?}");
            assert!(text.get(error.start..error.end).is_some(), "{error:?}");
            assert!(!error.message.is_empty(), "{error:?}");
        }
    }
}

#[test]
fn fuzz_compile_accepts_any_text() {
    let examples: Vec<&[u8]> = CORPUS
        .iter()
        .copied()
        .chain(FUNCTIONS.iter().map(|function| function.example))
        .map(str::as_bytes)
        .collect();
    mutations(&examples, |input, random| {
        let mut world = World::new(random.next_u64());
        try_text(&String::from_utf8_lossy(input), &mut world);
    });
}

/// Random tokens get further than damaged bytes.
#[test]
fn fuzz_compile_accepts_any_tokens() {
    const TOKENS: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        ":",
        "?",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        " in ",
        "x",
        "vars",
        "saved",
        "user.id",
        "vars.list",
        "saved.map",
        "1",
        "2.5",
        "0u",
        "'a'",
        "b'b'",
        "null",
        "true",
        "has(",
        ".map(x,",
        ".filter(x,",
        ".all(x,",
        ".size()",
        "random.",
        "int(",
        "json",
        "hash.md5(",
        "min(",
        ".matches('a')",
        " ",
        "é",
        "`a`",
        "if",
    ];
    for round in 0..throng_fuzz::rounds() * 3 {
        let mut random = Random::for_owner(throng_fuzz::seed(), round);
        let count = 1 + random.below(24);
        let pick = |_| TOKENS[random.below(TOKENS.len() as u64) as usize];
        let text: String = (0..count).map(pick).collect();
        try_text(&text, &mut World::new(round));
    }
}

fn odd_value(random: &mut Random, depth: u32) -> Value {
    const TEXTS: &[&str] = &["", "é", "a,b", "\0\u{10ffff}", "9223372036854775808", "-1", "true"];
    const FLOATS: &[f64] = &[0.0, -0.0, f64::NAN, f64::INFINITY, -1e308, 1e-320, 1.5, 9.3e18];
    const INTS: &[i64] = &[0, 1, -1, i64::MIN, i64::MAX, 1_048_577, 3];
    let mut pick = |length: usize| random.below(length as u64) as usize;
    match pick(if depth == 0 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => Value::Bool(pick(2) == 0),
        2 => Value::Int(INTS[pick(INTS.len())]),
        3 => Value::UInt(u64::MAX - pick(2) as u64),
        4 => Value::Float(FLOATS[pick(FLOATS.len())]),
        5 => Value::from(TEXTS[pick(TEXTS.len())]),
        6 => Value::from(vec![0xff_u8; pick(4)]),
        7 => {
            let count = pick(4);
            (0..count).map(|_| odd_value(random, depth - 1)).collect::<Vec<_>>().into()
        }
        _ => {
            let count = pick(4);
            let entry = |index| (format!("k{index}").into(), odd_value(random, depth - 1));
            (0..count).map(entry).collect::<Vec<_>>().into()
        }
    }
}

#[test]
fn fuzz_evaluate_accepts_any_values() {
    let slots = ["saved.token", "saved.map", "saved.later", "saved.list"];
    let mut expressions: Vec<Expression> =
        CORPUS.iter().filter_map(|it| compile(it).ok()).collect();
    for operator in ["+", "-", "*", "/", "%", "==", "<", ">=", "in", "&&", "||"] {
        expressions.push(compile(&format!("saved.token {operator} saved.map")).expect("compiles"));
    }
    for text in ["-saved.token", "!saved.map", "saved.token[saved.map]", "has(saved.map.k0.k1)"] {
        expressions.push(compile(text).expect("compiles"));
    }
    for text in ["saved.map.map(x, [x])", "saved.map.all(x, x)", "{saved.token: saved.map}"] {
        expressions.push(compile(text).expect("compiles"));
    }
    for function in FUNCTIONS {
        for count in (0..=4).filter(|count| function.takes(*count)) {
            let call = format!("{}({})", function.name, slots[..count].join(", "));
            expressions.push(compile(&call).expect("compiles"));
        }
    }
    for round in 0..throng_fuzz::rounds() / 4 {
        let mut random = Random::for_owner(throng_fuzz::seed(), round);
        let mut world = World::new(round);
        world.slots.fill_with(|| odd_value(&mut random, 3));
        for expression in &expressions {
            if let Ok(value) = expression.evaluate(&mut world) {
                let mut out = Vec::new();
                value.write_json(&mut out);
                Value::parse_json(&out).expect("JSON is written");
            }
        }
    }
}
