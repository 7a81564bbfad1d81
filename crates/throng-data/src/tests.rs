//! Declared sources, opened and read: each way to take rows, each end, each mistake.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use throng_base::{Random, Share, UserId};
use throng_expression::Value;

use crate::file::Limits;
use crate::*;

/// A folder with one file of data.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new(content: impl AsRef<[u8]>) -> Fixture {
        let fixture = Fixture { folder: TempDir::new().unwrap() };
        fixture.write(content);
        fixture
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("rows")
    }

    fn write(&self, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(), content).unwrap();
    }

    fn csv(&self) -> Origin {
        Origin::Csv { path: self.path(), separator: b',', columns: None }
    }

    fn json_lines(&self) -> Origin {
        Origin::JsonLines { path: self.path() }
    }
}

/// So small that a few rows need many blocks and several fillings of the window, and no file is
/// kept in memory.
const TINY: Limits =
    Limits { row_bytes_max: 48, memory_bytes_max: 0, block_rows_max: 3, block_bytes_max: 40 };

fn source(origin: Origin, take: Take) -> Source {
    Source::new("rows", origin, take, AtEnd::Stop)
}

fn numbers(count: u64) -> Origin {
    let columns = vec![("n".to_string(), Generator::Range { first: 0, last: i64::MAX })];
    Origin::Generate { columns, rows: Some(count) }
}

/// A reader whose column 0 is `column`.
fn reader(mut source: Source, column: &str, share: Share) -> Reader {
    assert_eq!(source.column(column), Ok(0));
    Reader::open(&Table::open(&source, 7, share).unwrap()).unwrap()
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?} is not a text"),
    }
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(int) => *int,
        other => panic!("{other:?} is not an int"),
    }
}

/// The first column of the next `count` rows for user 1.
fn take_ints(reader: &mut Reader, count: usize) -> Vec<i64> {
    let mut random = Random::new(1);
    let mut next = || int(reader.take(UserId(1), &mut random).unwrap().field(0));
    (0..count).map(|_| next()).collect()
}

#[test]
fn common_variants_of_csv_are_read() {
    let rows = "\u{feff}name, code ,\r\nRome,007,x\r\n\r\n\"a, \"\"b\"\"\nc\",,\n";
    let fixture = Fixture::new(rows);
    assert_eq!(
        columns(&fixture.csv()),
        Ok(Some(vec!["name".into(), "code".into(), String::new()]))
    );
    let mut source = source(fixture.csv(), Take::Circular);
    assert_eq!(source.column("code"), Ok(0));
    assert_eq!(source.column("name"), Ok(1));
    assert_eq!(source.column("code"), Ok(0));
    source.use_whole();
    let table = Table::open(&source, 1, Share::WHOLE).unwrap();
    assert_eq!(table.rows(), Some(2));
    let mut reader = Reader::open(&table).unwrap();
    let mut random = Random::new(1);
    let mut next = || reader.take(UserId(1), &mut random).unwrap();
    let first = next();
    assert_eq!((text(first.field(0)), text(first.field(1))), ("007".into(), "Rome".into()));
    let name = ("name".into(), Value::Text("Rome".into()));
    let code = ("code".into(), Value::Text("007".into()));
    assert_eq!(*first.whole(), Value::Map([name, code].into()));
    let second = next();
    assert_eq!(text(second.field(0)), "");
    assert_eq!(text(second.field(1)), "a, \"b\"\nc");
    assert_eq!(next(), first);
    assert_eq!(*first.field(9), Value::Null);
}

#[test]
fn csv_without_a_header_and_with_another_separator_is_read() {
    let fixture = Fixture::new("1;2\n3;4");
    let names = Some(vec!["a".to_string(), "b".to_string()]);
    let origin = Origin::Csv { path: fixture.path(), separator: b';', columns: names.clone() };
    assert_eq!(columns(&origin), Ok(names));
    let mut reader = reader(source(origin, Take::Unique), "b", Share::WHOLE);
    let mut random = Random::new(1);
    assert_eq!(text(reader.take(UserId(1), &mut random).unwrap().field(0)), "2");
    assert_eq!(text(reader.take(UserId(1), &mut random).unwrap().field(0)), "4");
    assert_eq!(reader.take(UserId(1), &mut random), Err(Untaken::RunEnds));
}

#[test]
fn json_lines_keep_their_types() {
    let fixture = Fixture::new("{\"kind\":\"a\",\"n\":1}\n\n  {\"n\":[1.5]}  \r\n\"scalar\"\n");
    assert_eq!(columns(&fixture.json_lines()), Ok(None));
    for whole in [false, true] {
        let mut source = source(fixture.json_lines(), Take::Circular);
        assert_eq!((source.column("n"), source.column("kind")), (Ok(0), Ok(1)));
        if whole {
            source.use_whole();
        }
        let table = Table::open(&source, 1, Share::WHOLE).unwrap();
        let mut reader = Reader::open(&table).unwrap();
        let mut row = |number| reader.row(number).unwrap();
        assert_eq!(*row(0).field(0), Value::Int(1));
        assert_eq!(*row(0).field(1), Value::Text("a".into()));
        assert_eq!(*row(1).field(0), Value::List([Value::Float(1.5)].into()));
        assert_eq!(*row(1).field(1), Value::Null);
        assert_eq!(*row(2).field(0), Value::Null);
        let scalar = if whole { Value::Text("scalar".into()) } else { Value::Null };
        assert_eq!(*row(2).whole(), scalar);
    }
}

#[test]
fn lists_can_have_items_of_any_kind() {
    let kyoto = Value::Map(
        [("name".into(), Value::Text("Kyoto".into())), ("code".into(), Value::Int(7))].into(),
    );
    let items = [Value::Text("Rome".into()), kyoto.clone()];
    let mut source = source(Origin::List(items.into()), Take::Circular);
    source.use_whole();
    source.column("code").unwrap();
    let mut reader = Reader::open(&Table::open(&source, 1, Share::WHOLE).unwrap()).unwrap();
    assert_eq!(*reader.row(0).unwrap().whole(), Value::Text("Rome".into()));
    assert_eq!(*reader.row(0).unwrap().field(0), Value::Null);
    assert_eq!(*reader.row(1).unwrap().whole(), kyoto);
    assert_eq!(*reader.row(1).unwrap().field(0), Value::Int(7));
}

#[test]
fn generated_rows_depend_only_on_seed_and_names() {
    let origin = || {
        let phone = Generator::parse("1##########").unwrap();
        let id = Generator::parse("1..1_000_000").unwrap();
        let n = Generator::Constant(Value::Int(5));
        let columns = vec![("phone".into(), phone), ("id".into(), id), ("n".into(), n)];
        Origin::Generate { columns, rows: Some(10_000) }
    };
    let all = |seed, extra: &[&str]| {
        let mut source = source(origin(), Take::Unique);
        for name in extra {
            source.column(name).unwrap();
        }
        let phone = source.column("phone").unwrap();
        let table = Table::open(&source, seed, Share::WHOLE).unwrap();
        let mut reader = Reader::open(&table).unwrap();
        let rows = (0..10_000).map(|row| text(reader.row(row).unwrap().field(phone)));
        rows.collect::<Vec<String>>()
    };
    let phones = all(1, &[]);
    assert_eq!(phones, all(1, &["n", "id"]));
    assert_ne!(phones, all(2, &[]));
    assert_eq!(phones.iter().collect::<HashSet<_>>().len(), 10_000);
    assert!(phones.iter().all(|phone| phone.len() == 11 && phone.starts_with('1')));

    let mut endless = source(
        Origin::Generate {
            columns: vec![("x".into(), Generator::parse("##").unwrap())],
            rows: None,
        },
        Take::Unique,
    );
    let table = Table::open(&endless, 1, Share::WHOLE).unwrap();
    assert_eq!(table.rows(), None);
    endless.take = Take::Shuffle;
    assert!(Table::open(&endless, 1, Share::WHOLE).is_err());
    endless.take = Take::Random;
    let mut reader = reader(endless, "x", Share::WHOLE);
    assert_eq!(text(reader.take(UserId(1), &mut Random::new(4)).unwrap().field(0)).len(), 2);
}

#[test]
fn each_end_matches_the_scenario() {
    for (take, at_end, want) in [
        (Take::Unique, AtEnd::Stop, Err(Untaken::RunEnds)),
        (Take::Unique, AtEnd::Error, Err(Untaken::StepFails)),
        (Take::Unique, AtEnd::Wrap, Ok(0)),
        (Take::PerUser, AtEnd::Stop, Err(Untaken::RunEnds)),
        (Take::PerUser, AtEnd::Error, Err(Untaken::StepFails)),
        (Take::PerUser, AtEnd::Wrap, Ok(0)),
        (Take::Circular, AtEnd::Stop, Ok(0)),
    ] {
        let source = Source::new("rows", numbers(5), take, at_end);
        let mut reader = reader(source, "n", Share::WHOLE);
        let mut random = Random::new(1);
        let mut next = |user| reader.take(UserId(user), &mut random).map(|row| int(row.field(0)));
        for user in 1..=5 {
            assert_eq!(next(user), Ok(user as i64 - 1));
        }
        assert_eq!(next(6), want, "{take:?} {at_end:?}");
    }
}

#[test]
fn a_user_keeps_its_row() {
    let mut reader = reader(source(numbers(5), Take::PerUser), "n", Share::of_machine(1, 1, 2));
    let mut random = Random::new(1);
    for user in [3, 1, 3, 3, 5, 1] {
        let row = reader.take(UserId(user), &mut random).unwrap();
        assert_eq!(int(row.field(0)), user as i64 - 1);
    }
}

#[test]
fn rounds_of_a_shuffle_are_complete_and_differ() {
    for count in [1, 2, 3, 10, 97] {
        let order = |seed| {
            let mut source = source(numbers(count), Take::Shuffle);
            source.column("n").unwrap();
            let table = Table::open(&source, seed, Share::WHOLE).unwrap();
            take_ints(&mut Reader::open(&table).unwrap(), 4 * count as usize)
        };
        let rows = order(1);
        for round in rows.chunks(count as usize) {
            assert_eq!(round.iter().collect::<HashSet<_>>().len() as u64, count);
        }
        assert_eq!(rows, order(1));
        if count == 97 {
            assert_ne!(rows[..97], rows[97..194]);
            assert_ne!(rows, order(2));
        }
    }
}

#[test]
fn random_rows_depend_on_the_user() {
    let mut reader = reader(source(numbers(4), Take::Random), "n", Share::WHOLE);
    let first = take_ints(&mut reader, 4000);
    assert_eq!(first, take_ints(&mut reader, 4000));
    for number in 0..4 {
        let count = first.iter().filter(|row| **row == number).count();
        assert!((850..1150).contains(&count), "{count} of {number}");
    }
}

#[test]
fn machines_share_rows_without_coordination() {
    for (take, count) in [(Take::Unique, 103), (Take::Shuffle, 103), (Take::Unique, 2)] {
        let mut seen = HashMap::new();
        for machine in 0..5 {
            let mut reader =
                reader(source(numbers(count), take), "n", Share::of_machine(machine, 1, 5));
            let mut random = Random::new(1);
            let share = (count + 4 - machine) / 5;
            for _ in 0..share {
                let row = reader.take(UserId(1), &mut random).unwrap();
                *seen.entry(int(row.field(0))).or_insert(0) += 1;
            }
            let end = reader.take(UserId(1), &mut random);
            assert_eq!(end.is_err(), take == Take::Unique);
        }
        assert_eq!(seen.len() as u64, count, "{take:?}");
        assert!(seen.values().all(|times| *times == 1), "{take:?}");
    }
    let mut second = reader(source(numbers(5), Take::Circular), "n", Share::of_machine(1, 1, 2));
    assert_eq!(take_ints(&mut second, 6), [1, 3, 0, 2, 4, 1]);
}

#[test]
fn shards_never_take_the_same_row() {
    let rows: String = (0..20_000).map(|row| format!("{row},user{row}\n")).collect();
    let fixture = Fixture::new(format!("id,name\n{rows}"));
    let in_file = Limits { memory_bytes_max: 0, ..Limits::default() };
    for limits in [Limits::default(), in_file] {
        let mut source = source(fixture.csv(), Take::Unique);
        source.column("name").unwrap();
        source.column("id").unwrap();
        let table = Table::open_within(&source, 1, Share::WHOLE, &limits).unwrap();
        let take_all = |shard: u64| {
            let mut reader = Reader::open(&table).unwrap();
            let mut random = Random::new(shard);
            let mut taken = Vec::new();
            while let Ok(row) = reader.take(UserId(shard), &mut random) {
                assert_eq!(text(row.field(0)), format!("user{}", text(row.field(1))));
                taken.push(text(row.field(1)));
            }
            taken
        };
        let all: Vec<String> = std::thread::scope(|scope| {
            let shards: Vec<_> =
                (1..=8).map(|shard| scope.spawn(move || take_all(shard))).collect();
            shards.into_iter().flat_map(|shard| shard.join().unwrap()).collect()
        });
        assert_eq!(all.len(), 20_000);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 20_000);
    }
}

#[test]
fn mistakes_have_line_cause_and_fix() {
    let long = "x".repeat(2 * ROW_BYTES_MAX);
    let wide = vec!["x"; 10_000].join(",");
    for (content, line, message) in [
        ("", None, "the file has no header line"),
        ("\n\r\n", None, "the file has no header line"),
        ("a,b\n", None, "`rows` has no rows"),
        ("a,b\n\n", None, "`rows` has no rows"),
        ("a,b\n1,2\n\n3\n", Some(4), "the row has only 1 of 2 fields"),
        ("a,b\n\"1\n\",2\n3,4,5", Some(4), "the row has 3 fields, but there are 2 columns"),
        ("a,b\n1,2\n\"3\n\n,4\n", Some(3), "a quote is never closed"),
        ("a,b\n\"3\"x,4\n", Some(2), "a closing quote is not followed by `,`"),
        ("a,b\n1,2\n\"\n3\"x,4\n", Some(4), "a closing quote is not followed by `,`"),
        ("a,b,a\n1,2,3\n", Some(1), "two columns are named `a`"),
        ("a,b\r1,2\r", Some(1), "the header line contains carriage returns"),
        (&wide, Some(1), "there are more than 1000 columns"),
        (&format!("a\n1\n{long}"), Some(3), "the row is longer than 1048576 bytes"),
        (&format!("a\n1\n\"{long}"), Some(3), "a quote is never closed"),
        (&format!("a\n1\n\"{long}\"\n"), Some(3), "the row is longer than 1048576 bytes"),
        (&format!("a\n1\n\"{long}{long}"), Some(3), "a quote is not closed within 1048576 bytes"),
        ("a;b\n1;2\n", Some(1), "`rows` has no column `b`"),
        ("bb,a\n1,2\n", Some(1), "`rows` has no column `b`"),
    ] {
        let fixture = Fixture::new(content);
        let mut source = source(fixture.csv(), Take::Unique);
        if message.contains("no column") {
            source.column("b").unwrap();
        }
        let error = Table::open(&source, 1, Share::WHOLE).unwrap_err();
        assert_eq!((error.line, error.message.english().as_str()), (line, message));
        assert_eq!(error.file, Some(fixture.path()));
        assert!(error.help.is_some() && CODES.contains(&error.code));
    }
}

#[test]
fn fixes_match_the_mistake() {
    for (content, help) in [
        ("a;b\n1;2\n", "write `separator: \";\"` if this character separates the columns"),
        ("bb,a\n1,2\n", "did you mean `bb`?"),
        ("x,yyy\n1,2\n", "the columns are `x`, `yyy`"),
    ] {
        let fixture = Fixture::new(content);
        let mut source = source(fixture.csv(), Take::Unique);
        source.column("bbb").unwrap();
        let error = Table::open(&source, 1, Share::WHOLE).unwrap_err();
        assert_eq!(error.help.map(|help| help.english()).as_deref(), Some(help));
    }
    let fixture = Fixture::new("a,b\n1\n");
    let error = Table::open(&source(fixture.csv(), Take::Unique), 1, Share::WHOLE).unwrap_err();
    let place = fixture.path().display().to_string() + ":2";
    assert_eq!(error.said(), format!("{place}: the row has only 1 of 2 fields"));
    assert_eq!(
        error.diagnostic().render(false),
        format!(
            "error[data-malformed]: the row has only 1 of 2 fields\n\
             \x20 = in {place}\n\
             \x20 = help: add the missing fields; an empty field still needs its separator `,`\n"
        )
    );
}

#[test]
fn mistakes_in_json_lines_have_line_cause_and_fix() {
    for (content, line, message) in [
        (&b""[..], None, "`rows` has no rows"),
        (b"\n \n", None, "`rows` has no rows"),
        (b"{}\n\n{\"a\":}\n", Some(3), "the line is not valid JSON: expected value in column 6"),
        (b"{}\n\"\xff\"\n", Some(2), "the line is not valid UTF-8"),
        (b"{\n}\n", Some(1), "the line is not valid JSON: EOF while parsing an object in column 1"),
    ] {
        let fixture = Fixture::new(content);
        let source = source(fixture.json_lines(), Take::Unique);
        let error = Table::open(&source, 1, Share::WHOLE).unwrap_err();
        assert_eq!((error.line, error.message.english().as_str()), (line, message));
        assert!(error.help.is_some());
    }
}

#[test]
fn only_regular_files_are_accepted() {
    let folder = TempDir::new().unwrap();
    for path in [folder.path().to_path_buf(), "/dev/null".into(), folder.path().join("none")] {
        let origin = Origin::Csv { path, separator: b',', columns: None };
        let error = columns(&origin).unwrap_err();
        assert_eq!(error.code, "data-unreadable");
        assert!(error.help.is_some());
        assert_eq!(Table::open(&source(origin, Take::Random), 1, Share::WHOLE).err(), Some(error));
    }
    let fixture = Fixture::new("a\"b\n1\"2\n");
    for separator in [b'"', b'\n', b'\r', 0xC3] {
        let origin = Origin::Csv { path: fixture.path(), separator, columns: None };
        assert_eq!(columns(&origin).unwrap_err().code, "data-column");
    }
}

#[test]
fn columns_have_a_limit() {
    let mut none = source(Origin::Generate { columns: Vec::new(), rows: Some(1) }, Take::Unique);
    none.column("x").unwrap();
    assert_eq!(Table::open(&none, 1, Share::WHOLE).unwrap_err().code, "data-column");
    let mut source = source(numbers(1), Take::Unique);
    for number in 0..COLUMNS_MAX {
        assert_eq!(source.column(&number.to_string()), Ok(number as u16));
    }
    assert!(source.column("one more").is_err());
    assert_eq!(source.column("7"), Ok(7));
}

#[test]
fn a_changed_file_is_detected() {
    let rows: String = (100..200).map(|row| format!("{row}\n")).collect();
    let content = format!("n\n{rows}");
    let fixture = Fixture::new(&content);
    let mut source = source(fixture.csv(), Take::Circular);
    source.column("n").unwrap();
    let table = Table::open_within(&source, 1, Share::WHOLE, &TINY).unwrap();
    let mut reader = Reader::open(&table).unwrap();
    assert_eq!(text(reader.row(40).unwrap().field(0)), "140");
    for changed in [content.replace("150", "15x"), content.replace("150\n", ""), "n\n1\n".into()] {
        fixture.write(&changed);
        let error = reader.row(50).unwrap_err();
        assert_eq!(error.code, "data-changed");
    }
    fixture.write(&content);
    assert_eq!(text(reader.row(50).unwrap().field(0)), "150");
    // A reader with the file open continues when it is deleted; later ones fail.
    std::fs::remove_file(fixture.path()).unwrap();
    assert_eq!(text(reader.row(99).unwrap().field(0)), "199");
    assert_eq!(Reader::open(&table).unwrap_err().code, "data-unreadable");
}

/// Reads CSV character by character, as a reference for the real reader. None for files that must
/// be refused.
fn plain_csv(text: &str) -> Option<Vec<Vec<String>>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut row, mut field) = (Vec::new(), String::new());
    let (mut row_bytes, mut blank) = (String::new(), true);
    // 0: at the start of a field, 1: within, 2: within quotes, 3: after quotes.
    let mut state = 0;
    let mut chars = text.chars().map(Some).chain([None]).peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek();
        let ends_row = match c {
            None | Some('\n') => true,
            Some('\r') => next == Some(&None) || next == Some(&Some('\n')),
            Some(_) => false,
        };
        match (state, c) {
            (2, None) => return None,
            (2, Some('"')) if chars.peek() == Some(&Some('"')) => {
                chars.next();
                field.push('"');
                row_bytes.push_str("\"\"");
                continue;
            }
            (2, Some('"')) => state = 3,
            (2, Some(c)) => field.push(c),
            (_, _) if ends_row => {
                if c == Some('\r') {
                    chars.next();
                }
                row.push(std::mem::take(&mut field));
                if row_bytes.len() > TINY.row_bytes_max {
                    return None;
                }
                let row = std::mem::take(&mut row);
                if !blank {
                    rows.push(row);
                }
                (state, blank) = (0, true);
                row_bytes.clear();
                continue;
            }
            (_, Some(',')) => {
                row.push(std::mem::take(&mut field));
                state = 0;
            }
            (3, _) => return None,
            (0, Some('"')) => state = 2,
            (_, Some(c)) => {
                field.push(c);
                state = 1;
            }
            (_, None) => unreachable!("the end of the text ends the row"),
        }
        row_bytes.extend(c);
        blank = false;
    }
    let header = rows.first()?;
    let names: Vec<&str> = header.iter().map(|name| name.trim()).collect();
    let named: Vec<&&str> = names.iter().filter(|name| !name.is_empty()).collect();
    let good = rows.len() > 1
        && rows.iter().all(|row| row.len() == header.len())
        && named.iter().collect::<HashSet<_>>().len() == named.len()
        && header.iter().all(|name| !name.contains('\r'));
    good.then_some(rows)
}

/// All rows, in order and in another order, from memory and from the file.
fn read_all(mut source: Source, used: &[String], fixture: &Fixture) -> Option<Vec<Row>> {
    let known = columns(&source.origin);
    source.use_whole();
    for name in used {
        source.column(name).unwrap();
    }
    let in_memory = Limits { memory_bytes_max: 1 << 20, ..TINY };
    let memory = Table::open_within(&source, 1, Share::WHOLE, &in_memory);
    let file = Table::open_within(&source, 1, Share::WHOLE, &TINY);
    let (Ok(memory), Ok(file)) = (&memory, &file) else {
        assert_eq!(memory.err(), file.err());
        return None;
    };
    assert!(known.is_ok(), "{known:?} of {}", fixture.path().display());
    let rows = memory.rows().unwrap();
    assert_eq!(file.rows(), Some(rows));
    let (mut a, mut b) = (Reader::open(memory).unwrap(), Reader::open(file).unwrap());
    let all: Vec<Row> = (0..rows).map(|number| a.row(number).unwrap()).collect();
    let order = (0..rows).chain((0..rows).map(|number| number * 7 % rows)).chain((0..rows).rev());
    for number in order {
        assert_eq!(b.row(number).unwrap(), all[number as usize], "row {number}");
        assert_eq!(a.row(number).unwrap(), all[number as usize], "row {number}");
    }
    Some(all)
}

#[test]
fn fuzz_indexed_csv_equals_the_reference() {
    let many: String = (0..40).map(|row| format!("{row},\"{row}\n\"\"x\",z\r\n")).collect();
    let many = format!("id,name,more\n{many}");
    let corpus: [&[u8]; 6] = [
        b"a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n",
        b"\xEF\xBB\xBFa,b\r\n\"1\",\"2\n\r\n\"\r\n\r\n3,\"\"\"\"\r\n4,5\"6",
        b"a\n1\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n2\n3\n4",
        many.as_bytes(),
        "ä,ö\nü,ß\n\"é\",ñ\n".as_bytes(),
        b"a,b,c\n1,2,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n1,2,3\n",
    ];
    let fixture = Fixture::new("");
    let mut good = 0;
    throng_fuzz::mutations(&corpus, |input, _| {
        fixture.write(input);
        let want = std::str::from_utf8(input).ok().and_then(plain_csv);
        let header = want.as_ref().map_or(Vec::new(), |rows| rows[0].clone());
        let header: Vec<String> = header.iter().map(|name| name.trim().to_string()).collect();
        let used: Vec<String> = header.iter().filter(|name| !name.is_empty()).cloned().collect();
        let found = read_all(source(fixture.csv(), Take::Circular), &used, &fixture);
        assert_eq!(found.is_some(), want.is_some(), "{want:?}");
        let (Some(found), Some(want)) = (found, want) else { return };
        good += 1;
        assert_eq!(found.len(), want.len() - 1);
        for (row, want) in found.iter().zip(&want[1..]) {
            let entries: Vec<(Arc<str>, Value)> = header
                .iter()
                .zip(want)
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, field)| ((&**name).into(), Value::Text((&**field).into())))
                .collect();
            for ((_, value), column) in entries.iter().zip(0..) {
                assert_eq!(row.field(column), value);
            }
            assert_eq!(*row.whole(), Value::Map(entries.into()));
        }
    });
    assert!(good > throng_fuzz::rounds() / 20, "only {good} inputs had rows");
}

#[test]
fn fuzz_indexed_json_lines_equal_the_reference() {
    let many: String = (0..40).map(|row| format!("{{\"a\":{row},\"b\":\"x\"}}\n")).collect();
    let corpus: [&[u8]; 4] = [
        b"{\"a\":1}\n{\"a\":2,\"b\":[1,{\"a\":3}]}\r\n\n \t\n\"text\"\n-1.5e3",
        many.as_bytes(),
        b"null\n[1,2,3]\n{\"b\":\"\\u00e9\\n\",\"a\":true,\"a\":false}\n18446744073709551615\n",
        b"\xEF\xBB\xBF{}\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
    ];
    let fixture = Fixture::new("");
    let mut good = 0;
    throng_fuzz::mutations(&corpus, |input, _| {
        fixture.write(input);
        let used = ["a".to_string(), "b".to_string()];
        let found = read_all(source(fixture.json_lines(), Take::Circular), &used, &fixture);
        let text = std::str::from_utf8(input).ok();
        let lines = text.map(|text| text.strip_prefix('\u{feff}').unwrap_or(text).split('\n'));
        let want: Option<Vec<Value>> = lines.and_then(|lines| {
            lines
                .map(|line| line.strip_suffix('\r').unwrap_or(line))
                .filter(|line| !line.trim_ascii().is_empty())
                .map(|line| {
                    let fits = line.len() <= TINY.row_bytes_max;
                    fits.then(|| serde_json::from_str(line).ok()).flatten()
                })
                .collect()
        });
        let want = want.filter(|rows| !rows.is_empty());
        assert_eq!(found.is_some(), want.is_some(), "{want:?}");
        let (Some(found), Some(want)) = (found, want) else { return };
        good += 1;
        let whole: Vec<Value> = found.iter().map(|row| row.whole().clone()).collect();
        assert_eq!(whole, want);

        // Without whole rows the same fields are found.
        let mut source = source(fixture.json_lines(), Take::Circular);
        for name in &used {
            source.column(name).unwrap();
        }
        let table = Table::open_within(&source, 1, Share::WHOLE, &TINY).unwrap();
        let mut reader = Reader::open(&table).unwrap();
        for (number, row) in found.iter().enumerate() {
            let again = reader.row(number as u64).unwrap();
            assert_eq!((again.field(0), again.field(1)), (row.field(0), row.field(1)));
        }
    });
    assert!(good > throng_fuzz::rounds() / 20, "only {good} inputs had rows");
}
