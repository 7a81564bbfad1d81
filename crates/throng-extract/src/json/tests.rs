//! JSON paths and queries, on typical and on malicious responses.

mod suite;

use serde_json::{Value as Json, json};
use throng_expression::Value;

use super::*;
use crate::{Document, JsonThere, Refusal};

const SHOP: &str = r#"{"code": 0, "message": "ok", "data": {"token": "eyJhbGciOi", "user-id": 17,
  "a.b": true, "items": [
    {"id": 1, "name": "Sayings", "price": 8.95, "tags": ["book", "old"]},
    {"id": 2, "name": "Sword", "price": 12.99, "tags": []},
    {"id": 3, "name": "Moby Dick", "price": 8.99, "isbn": "0-553-21311-3", "tags": ["book"]}]}}"#;

fn shop() -> Json {
    serde_json::from_str(SHOP).unwrap()
}

fn all(path: &str, value: &Json) -> Json {
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error:?}"));
    path.all(value).into_iter().cloned().collect()
}

#[test]
fn simple_paths_are_followed() {
    let shop = shop();
    for (path, want) in [
        ("code", json!([0])),
        ("data.items[1].name", json!(["Sword"])),
        ("$.data.items[0].tags[1]", json!(["old"])),
        ("$['data']['a.b']", json!([true])),
        ("data.user-id", json!([17])),
        ("$.data.user-id", json!([17])),
        ("data.items[3]", json!([])),
        ("data.items.id", json!([])),
        ("code[0]", json!([])),
        ("nothing", json!([])),
    ] {
        assert_eq!(all(path, &shop), want, "{path}");
        assert!(JsonPath::parse(path).unwrap().parts().is_some(), "{path}");
    }
    assert_eq!(JsonPath::parse("$").unwrap().first(&shop), Some(&shop));
    assert_eq!(all("[1][0]", &json!([0, [7]])), json!([7]));
    assert_eq!(all("$[1]", &json!([0, [7]])), json!([[7]]));
}

#[test]
fn queries_follow_rfc_9535() {
    let shop = shop();
    for (path, want) in [
        ("$..id", json!([1, 2, 3])),
        ("$.data.items[*].name", json!(["Sayings", "Sword", "Moby Dick"])),
        ("$..items[?@.price < 10].id", json!([1, 3])),
        ("$..items[?@.isbn].id", json!([3])),
        ("$..items[?!@.isbn].id", json!([1, 2])),
        ("$..items[?@.price<10&&@.id!=1||@.name=='Sword'].id", json!([2, 3])),
        ("$..items[?(@.price >= 8.95 && @.price <= 8.99)].id", json!([1, 3])),
        ("$..items[-1].id", json!([3])),
        ("$..items[-9].id", json!([])),
        ("$..items[0:2].id", json!([1, 2])),
        ("$..items[::-1].id", json!([3, 2, 1])),
        ("$..items[2:0:-1].id", json!([3, 2])),
        ("$..items[-2:].id", json!([2, 3])),
        ("$..items[::0].id", json!([])),
        ("$..items[0,2]['id','name']", json!([1, "Sayings", 3, "Moby Dick"])),
        ("$..items[?length(@.tags) > 1].id", json!([1])),
        ("$..items[?count(@.tags[*]) == 1].id", json!([3])),
        ("$..items[?value(@..isbn) == '0-553-21311-3'].id", json!([3])),
        ("$..items[?match(@.name, 'S.*')].id", json!([1, 2])),
        ("$..items[?search(@.name, 'wor')].id", json!([2])),
        ("$..items[?match(@.name, 'wor')].id", json!([])),
        ("$..items[?@.tags[?@ == 'old']].id", json!([1])),
        ("$..items[?@.id == $.code].id", json!([])),
        ("$..items[?@.tags == $..items[1].tags]", json!(null)),
        ("$.data.items[?@['tags'] == $.data.items[1].tags].id", json!([2])),
        ("$..[\"token\"]", json!(["eyJhbGciOi"])),
        ("$ .data ['token']", json!(["eyJhbGciOi"])),
        ("$.data.items[?@.missing == @.gone].id", json!([1, 2, 3])),
        ("$.data.items[?@.name < 'N'].id", json!([3])),
        ("$.data.items[?@.id == 1.0].id", json!([1])),
        ("$.data.items[?1 == 1e0 && @.id > 2].id", json!([3])),
    ] {
        if want.is_null() {
            assert!(JsonPath::parse(path).is_err(), "{path}");
            continue;
        }
        assert_eq!(all(path, &shop), want, "{path}");
    }
    assert_eq!(all("$['☺', \"\\u263a\\n\"]", &json!({"☺": 1, "☺\n": 2})), json!([1, 2]));
    assert_eq!(all("$['\\uD83D\\uDE00\\'']", &json!({"😀'": 1})), json!([1]));
    // No double is between these, nor are the integers beyond it their neighbors.
    let large = json!([9007199254740993_u64, 18446744073709551614_u64, 18446744073709551615_u64]);
    assert_eq!(all("$[?@ < 18446744073709551615]", &large).as_array().map(Vec::len), Some(2));
    assert_eq!(all("$[?@ > 18446744073709551614]", &large), json!([18446744073709551615_u64]));
    assert_eq!(all("$[?@ <= 9007199254740992.0]", &large), json!([]));
    assert_eq!(all("$..*", &json!({"a": [1, {"b": 2}]})), json!([[1, {"b": 2}], 1, {"b": 2}, 2]));
    assert_eq!(all("$[?@.*]", &json!([[], [0], {}, {"a": null}])), json!([[0], {"a": null}]));
}

#[test]
fn errors_have_a_position() {
    for (path, start, end) in [
        ("", 0, 0),
        ("a..b", 1, 2),
        (".a", 0, 1),
        ("a.", 1, 2),
        ("a[x]", 1, 4),
        ("a[0", 1, 3),
        ("a.b[0]x", 6, 7),
        ("a[-1]", 1, 5),
        ("items[*].id", 5, 8),
        ("data.*", 5, 6),
        ("$id", 1, 2),
        ("$.", 99, 0),
        ("$..", 3, 3),
        ("$[", 2, 2),
        ("$['a]", 5, 5),
        ("$[-01]", 2, 3),
        ("$[-9007199254740992]", 2, 3),
        ("$.a[?@.b =]", 9, 10),
        ("$.a[?@.b = 1]", 9, 10),
        ("$.a[?@.* == 1]", 5, 8),
        ("$.a[?!@.b == 1]", 0, 0),
        ("$.a[?length(@.*) > 1]", 12, 15),
        ("$.a[?nope(@) > 1]", 5, 6),
        ("$.a[?'x']", 8, 9),
        ("$.a[?(@.b]", 9, 10),
        ("$.a[?match(@.b, '(')]", 16, 17),
        ("$['\\q']", 2, 6),
        ("$.a b", 3, 5),
    ] {
        match JsonPath::parse(path) {
            Ok(_) => assert_eq!(start, 99, "{path}"),
            Err(_) if end == 0 && start == 0 => {}
            Err(error) if path == "$.a b" => assert_eq!(error.start, 3),
            Err(error) => assert_eq!((error.start, error.end), (start, end), "{path}: {error:?}"),
        }
    }
    for deep in ["$[?".repeat(40), "$[?(".to_string() + &"(".repeat(2_000), "[0]".repeat(3_000)] {
        assert!(JsonPath::parse(&deep).is_err());
    }
}

#[test]
fn paths_are_shown_as_written_and_joined() {
    for (path, shown) in [
        ("data.items[0].id", "data.items[0].id"),
        ("$.data.items[0].id", "data.items[0].id"),
        ("$['a.b'].c[1]", "$['a.b']['c'][1]"),
        ("$..items[?@.a]", "$..items[?@.a]"),
        ("$", "$"),
        ("user-name", "user-name"),
    ] {
        let parsed = JsonPath::parse(path).unwrap();
        assert_eq!(parsed.to_string(), shown);
        assert_eq!(JsonPath::parse(shown).unwrap(), parsed, "{path}");
    }
    let shop = shop();
    for (first, second, shown, want) in [
        ("data", "items[0].id", "data.items[0].id", json!([1])),
        ("$", "code", "code", json!([0])),
        ("data", "$.items[*].id", "$.data.items[*].id", json!([1, 2, 3])),
        ("$..items[0]", "tags[0]", "$..items[0].tags[0]", json!(["book"])),
        ("$..items[*]", "$..tags[0]", "$..items[*]..tags[0]", json!(["book", "book"])),
        ("$.data", "$['a.b']", "$['data']['a.b']", json!([true])),
    ] {
        let joined = JsonPath::parse(first).unwrap().join(&JsonPath::parse(second).unwrap());
        assert_eq!(joined.to_string(), shown);
        assert_eq!(JsonPath::parse(shown).unwrap(), joined);
        assert_eq!(Json::from_iter(joined.all(&shop).into_iter().cloned()), want);
    }
    let items = JsonPath::parse("$..items").unwrap().index(2).join(&JsonPath::parse("id").unwrap());
    assert_eq!(items.first(&shop), Some(&json!(3)));
}

#[test]
fn documents_return_values() {
    let document = Document::new(SHOP.as_bytes());
    let path = |text| JsonPath::parse(text).unwrap();
    assert_eq!(path("code").first_in(&document), Some(Value::Int(0)));
    assert_eq!(path("$..price").all_in(&document).len(), 3);
    assert_eq!(path("data.token").first_in(&document), Some(Value::Text("eyJhbGciOi".into())));
    assert_eq!(
        path("code").first_in(&Document::new(b"\xef\xbb\xbf{\"code\":1}")),
        Some(Value::Int(1))
    );
    let broken = Document::new(b"<html>");
    assert_eq!((path("code").first_in(&broken), broken.refusal()), (None, None));
}

#[test]
fn hostile_bodies_are_refused() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let document = Document::new(deep.as_bytes());
    assert_eq!(JsonPath::parse("$..x").unwrap().first_in(&document), None);
    assert_eq!(document.refusal(), Some(Refusal::TooDeep));

    let large = vec![b' '; JSON_BYTES_MAX + 1];
    let document = Document::new(&large);
    assert!(document.json().is_none());
    assert_eq!(document.refusal(), Some(Refusal::TooLarge));

    // Every level of nesting multiplies what `..*` finds.
    let nested = "[".repeat(120) + "1,2,3" + &"]".repeat(120);
    let document = Document::new(nested.as_bytes());
    for path in ["$..*..*..*..*..*", "$[?@..*[?@..*[?@..*[?@..*]]]]..*..*..*..*"] {
        assert!(JsonPath::parse(path).unwrap().all_in(&document).is_empty());
        assert_eq!(document.refusal(), Some(Refusal::TooMuchWork));
    }
    let texts = format!("[{}]", vec!["{\"a\":\"x\",\"p\":\"x{1,900}\"}"; 2_000].join(","));
    let document = Document::new(texts.as_bytes());
    assert!(JsonPath::parse("$[?match(@.a, @.p)]").unwrap().all_in(&document).is_empty());
    assert_eq!(document.refusal(), Some(Refusal::TooMuchWork));
}

#[test]
fn all_well_formed_json_is_read() {
    let document = Document::new(br#"{"far": -1e400, "half": "a\ud800b", "code": 1}"#);
    let found = |path: &str| JsonPath::parse(path).unwrap().first_in(&document);
    assert_eq!(found("far"), Some(Value::Float(f64::MIN)));
    assert_eq!(found("half"), Some(Value::Text("a\u{fffd}b".into())));
    assert_eq!(found("code"), Some(Value::Int(1)));
}

/// The expected result of reading paths together.
fn one_by_one(paths: &JsonPaths, bytes: &[u8]) -> Option<Vec<Option<Value>>> {
    let value = parse(bytes).ok()?;
    let found = paths.paths().iter().map(|path| path.first(&value).map(Value::from_json));
    Some(found.collect())
}

fn same_as_one_by_one(paths: &JsonPaths, bytes: &[u8]) {
    let mut out = vec![None; paths.paths().len()];
    let done = paths.read(bytes, &mut out);
    match one_by_one(paths, bytes) {
        Some(want) => {
            assert_eq!(done, Ok(()));
            assert_eq!(out, want);
        }
        None => {
            assert!(done.is_err());
            assert!(out.iter().all(Option::is_none));
        }
    }
}

fn paths(texts: &[&str]) -> JsonPaths {
    let paths = texts.iter().map(|text| JsonPath::parse(text).unwrap()).collect();
    JsonPaths::new(paths).unwrap()
}

const TOGETHER: [&str; 10] = [
    "code",
    "data.token",
    "data.items[1].name",
    "data.items[0]",
    "data.items[0].tags[1]",
    "data",
    "data.items[1].tags",
    "message",
    "$",
    "x[2][1].y",
];

const BODIES: [&[u8]; 12] = [
    SHOP.as_bytes(),
    br#"{"code": 1, "code": 2.5, "data": {"token": 1}, "data": {"items": []}}"#,
    br#"{"data": {"items": [{"name": 1}, {"name": 2}]}, "data": null}"#,
    br#"{"x": [0, 1, [0, {"y": true}]], "code": 18446744073709551615}"#,
    br#"{"x": [0, 1, [0]], "code": -9223372036854775808, "z": 1e308}"#,
    br#"{"other": 1e999, "code": 1}"#,
    br#"{"other": "\ud800", "code": 1}"#,
    b"{\"other\": \"\xff\", \"code\": 1}",
    br#"{"\u0063ode": "caf\u00e9", "message": "a\nb"} "#,
    br#"{"code": 1} x"#,
    br#"["code", 1]"#,
    b"\xef\xbb\xbf7",
];

#[test]
fn paths_read_together_find_the_same_values() {
    for body in BODIES {
        same_as_one_by_one(&paths(&TOGETHER), body);
        same_as_one_by_one(&paths(&TOGETHER[..5]), body);
        same_as_one_by_one(&paths(&["code"]), body);
        same_as_one_by_one(&paths(&["x[2][1].y", "x[0]", "code", "code"]), body);
        same_as_one_by_one(&paths(&[]), body);
    }
    for depth in [126, 127, 128, 129, 100_000] {
        let body = "{\"a\":[".repeat(depth / 2) + "1" + &"]}".repeat(depth / 2);
        same_as_one_by_one(&paths(&["a[0].a", "code"]), body.as_bytes());
    }
    let deep = "[".repeat(1_000);
    let error = paths(&["a"]).read(deep.as_bytes(), &mut [None]).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::TooDeep));
    assert!(JsonPaths::new(vec![JsonPath::parse("$..a").unwrap()]).is_none());
}

#[test]
fn fuzz_paths_read_together_find_the_same_values() {
    let sets = [paths(&TOGETHER), paths(&TOGETHER[..5]), paths(&["code", "data.items[1].id"])];
    throng_fuzz::mutations(&BODIES, |input, random| {
        same_as_one_by_one(&sets[random.below(3) as usize], input);
    });
}

#[test]
fn fuzz_any_path_on_any_body() {
    let good: [&[u8]; 7] = [
        b"data.items[0].id",
        b"$..items[?@.price < 10 && (@.name == 'a' || !@.x)].id",
        b"$[1:2:-1,*,'a\\u00e9']..*",
        b"$..[?match(@.a, 'x.*') && search(@.b, @.c)]",
        b"$[?length(@.a)>=count(@..b)]",
        b"$[?value($.a[0]) != -1.5e3]",
        b"$.x[?@.a==null]..y[-1]",
    ];
    let shop = shop();
    throng_fuzz::mutations(&good, |input, _| {
        let text = String::from_utf8_lossy(input);
        match JsonPath::parse(&text) {
            Ok(path) => {
                let found = path.all(&shop);
                assert_eq!(path.first(&shop), found.first().copied());
                let again = JsonPath::parse(&path.to_string()).unwrap();
                assert_eq!(again.all(&shop), found, "{path}");
                let joined = path.join(&JsonPath::parse("a[0]").unwrap());
                JsonPath::parse(&joined.to_string()).unwrap_or_else(|e| panic!("{joined}: {e:?}"));
            }
            Err(error) => {
                assert!(text.get(error.start..error.end).is_some(), "{text}: {error:?}");
                assert!(!error.message.is_empty() && !error.help.is_empty());
            }
        }
    });
}
#[test]
fn a_json_path_reports_how_far_it_matches() {
    let body = r#"{"data":{"token":"t","äö":1},"items":[{"id":7},{"id":8}],"n":null}"#;
    let document = Document::new(body.as_bytes());
    let keys = |keys: &[&str]| JsonThere::Keys(keys.iter().map(|key| key.to_string()).collect());
    for (path, reached, missing, there) in [
        ("data.tokn", "data", Some("tokn"), keys(&["token", "äö"])),
        ("$.data.tokn.x", "data", Some("tokn"), keys(&["token", "äö"])),
        ("date", "$", Some("date"), keys(&["data", "items", "n"])),
        ("items.id", "items", Some("id"), JsonThere::List(2)),
        ("items[2].id", "items", None, JsonThere::List(2)),
        ("$.items[*].name", "$.items[*]", Some("name"), keys(&["id"])),
        ("$['data']['tok.en']", "data", Some("tok.en"), keys(&["token", "äö"])),
        ("n.x", "n", Some("x"), JsonThere::Null),
        ("data.token.x", "data.token", Some("x"), JsonThere::Text),
    ] {
        let reach = JsonPath::parse(path).unwrap().reach(&document).unwrap();
        assert_eq!(reach.path.to_string(), reached, "{path}");
        assert_eq!(reach.missing.as_deref(), missing, "{path}");
        let (JsonThere::Keys(mut found), JsonThere::Keys(mut want)) =
            (reach.there.clone(), there.clone())
        else {
            assert_eq!(reach.there, there, "{path}");
            continue;
        };
        found.sort();
        want.sort();
        assert_eq!(found, want, "{path}");
    }
    assert_eq!(JsonPath::parse("a").unwrap().reach(&Document::new(b"<a>")), None);
}
