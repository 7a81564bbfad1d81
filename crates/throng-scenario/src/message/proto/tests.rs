//! How imports are found, and diagnostics for broken files. Mistakes and their messages are in
//! `tests-md/protocol.md`.

use std::path::Path;

use prost_reflect::prost::Message;
use prost_reflect::prost_types::FileDescriptorSet;
use throng_base::{Diagnostic, Source};

use super::*;
use crate::read::Found;
use crate::scope::SessionNames;
use crate::syntax;

/// Reads `proto` of a scenario in the folder `base` from files in memory: the messages, and the
/// diagnostics.
fn read_from(text: &str, files: &[(&str, impl AsRef<[u8]>)]) -> (Vec<String>, Vec<Diagnostic>) {
    let source = Source::new("base/test.yaml", text);
    let read_file = |path: &Path, _: usize| {
        let path = name_of(path);
        let file = files.iter().find(|(name, _)| *name == path);
        let missing = || std::io::Error::new(ErrorKind::NotFound, "no such file");
        file.map(|(_, text)| text.as_ref().to_vec()).ok_or_else(missing)
    };
    let (mut found, mut names) = (Found::default(), SessionNames::default());
    let file = (&source, Path::new("base"));
    let mut cx = Context::new((&mut found, &mut names), file, (&read_file, &|_| None));
    let root = syntax::parse(&source, 0).unwrap().unwrap();
    let Kind::Map(entries) = &root.kind else { panic!("a map") };
    let find = |name: &str| entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node);
    let read = read(&mut cx, find("proto").unwrap(), find("proto_path"));
    let messages = read.iter().flat_map(|files| files.pool.all_messages().collect::<Vec<_>>());
    let mut sorted: Vec<String> = messages.map(|one| one.full_name().to_owned()).collect();
    sorted.sort_unstable();
    (sorted, found.finish().0)
}

/// The messages of valid files.
fn messages(text: &str, files: &[(&str, impl AsRef<[u8]>)]) -> Vec<String> {
    let (names, told) = read_from(text, files);
    let told: String = told.iter().map(|one| one.render(false)).collect();
    assert!(told.is_empty(), "{told}");
    names
}

/// A file with a message that has a field of each type in `others`.
fn declares(name: &str, imports: &[&str], others: &[&str]) -> String {
    let imports: String = imports.iter().map(|path| format!("import \"{path}\";\n")).collect();
    let fields = others.iter().enumerate();
    let fields: String = fields.map(|(at, ty)| format!("{ty} f{at} = {};\n", at + 1)).collect();
    format!("syntax = \"proto3\";\n{imports}message {name} {{\n{fields}}}\n")
}

#[test]
fn imports_are_found_beside_the_first_file_and_the_importing_one() {
    let shop = declares("Shop", &["deep/item.proto"], &["Item"]);
    // `size.proto` is next to the file that imports it, `money.proto` next to the first one.
    let item = declares("Item", &["size.proto", "money.proto"], &["Size", "Money"]);
    let (size, money) = (declares("Size", &[], &[]), declares("Money", &[], &[]));
    let files = [
        ("base/wire/shop.proto", shop.as_str()),
        ("base/wire/deep/item.proto", item.as_str()),
        ("base/wire/deep/size.proto", size.as_str()),
        ("base/wire/money.proto", money.as_str()),
    ];
    assert_eq!(messages("proto: wire/shop.proto", &files), ["Item", "Money", "Shop", "Size"]);
    // A file with two paths is declared only once.
    let both = "proto: [wire/shop.proto, wire/deep/../deep/item.proto, ./wire/deep/size.proto]";
    assert_eq!(messages(both, &files), ["Item", "Money", "Shop", "Size"]);
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_file() {
    let marked = format!("\u{feff}{}", declares("Shop", &[], &[]));
    assert_eq!(messages("proto: shop.proto", &[("base/shop.proto", &marked)]), ["Shop"]);
}

#[test]
fn folders_of_proto_path_come_first() {
    let shop = declares("Shop", &["google/api/item.proto"], &["Item"]);
    let (item, other) = (declares("Item", &[], &[]), declares("Item", &[], &["Item"]));
    let files = [
        ("base/shop.proto", shop.as_str()),
        ("vendor/google/api/item.proto", item.as_str()),
        ("base/google/api/item.proto", other.as_str()),
    ];
    let text = "proto: shop.proto\nproto_path: [nothing, ../vendor]";
    assert_eq!(messages(text, &files), ["Item", "Shop"]);
    // Files that `proto` names are looked for there as well.
    assert_eq!(messages("proto: google/api/item.proto\nproto_path: ../vendor", &files), ["Item"]);
    let (names, told) = read_from("proto: api/item.proto\nproto_path: ../vendor/google", &files);
    assert_eq!((names.len(), told.len()), (1, 0));
}

#[test]
fn files_of_protobuf_are_built_in() {
    let names = ["any", "api", "descriptor", "duration", "empty", "field_mask", "struct"];
    let more = ["source_context", "timestamp", "type", "wrappers"];
    let all = names.iter().chain(&more).map(|name| format!("google/protobuf/{name}.proto"));
    let all: Vec<String> = all.collect();
    let imports: Vec<&str> = all.iter().map(String::as_str).collect();
    let types = [".google.protobuf.Timestamp", ".google.protobuf.Struct", "google.protobuf.Any"];
    let file = declares("A", &imports, &types);
    let names = messages("proto: a.proto", &[("base/a.proto", &file)]);
    assert!(names.contains(&"google.protobuf.BytesValue".to_owned()), "{names:?}");
    // A file of that name is ignored: its version may be unsupported.
    let own = "edition = \"2024\"; package google.protobuf; message Empty {}\n";
    let file = declares("A", &["google/protobuf/empty.proto", "b/b.proto"], &[]);
    let other = declares("B", &["google/protobuf/empty.proto"], &["google.protobuf.Empty"]);
    let files = [
        ("base/a.proto", file.as_str()),
        ("base/b/b.proto", other.as_str()),
        ("base/google/protobuf/empty.proto", own),
    ];
    let names = messages("proto: a.proto", &files);
    assert_eq!(names, ["A", "B", "google.protobuf.Empty"]);
}

#[test]
fn public_imports_are_transitive() {
    let public =
        |name: &str, next: &str| declares(name, &[next], &[]).replace("import", "import public");
    let (one, two, three) =
        (public("B", "c.proto"), public("C", "d.proto"), public("D", "e.proto"));
    let last = declares("E", &[], &[]);
    let first = declares("A", &["b.proto"], &["B", "C", "D", "E"]);
    let mut files = [
        ("base/a.proto", first.as_str()),
        ("base/b.proto", &one),
        ("base/c.proto", &two),
        ("base/d.proto", &three),
        ("base/e.proto", &last),
    ];
    assert_eq!(messages("proto: a.proto", &files), ["A", "B", "C", "D", "E"]);
    // Other imports are not transitive.
    let plain = declares("C", &["d.proto"], &[]);
    files[2].1 = &plain;
    let (_, told) = read_from("proto: a.proto", &files);
    assert_eq!(told.len(), 2);
}

#[test]
fn descriptor_sets_of_protoc_are_read() {
    const SET: &[u8] =
        include_bytes!("../../../../throng-protocol/src/protobuf/tests/edition.desc");
    let file = declares("A", &["shop.proto"], &["shapes.edition.New"]);
    let shop = declares("Shop", &[], &[]);
    let new = ["shapes.edition.New", "shapes.edition.New.CountsEntry", "shapes.edition.New.Inner"];
    for name in ["new.desc", "new.protoset", "new.binpb", "new.pb", "new.fds"] {
        let path = format!("base/{name}");
        assert_eq!(messages(&format!("proto: {name}"), &[(&path, SET)]), new);
    }
    // Together with text files that do not import it.
    let files = [("base/new.desc", SET), ("base/shop.proto", shop.as_bytes())];
    let names = messages("proto: [new.desc, shop.proto]", &files);
    assert_eq!(names, [&["Shop"], &new[..]].concat());
    // Imports that are not in a set are searched like others.
    let text = file.replace("shapes.edition.New", "Shop");
    let set = FileDescriptorSet { file: vec![protox_parse::parse("a.proto", &text).unwrap()] };
    let set = set.encode_to_vec();
    let files = [("base/a.desc", &set[..]), ("base/shop.proto", shop.as_bytes())];
    assert_eq!(messages("proto: a.desc", &files), ["A", "Shop"]);
    let told = read_from("proto: a.desc", &files[..1]).1;
    assert_eq!(told[0].code, "file-unreadable");
    // A file that is not a set, whatever its name.
    let (names, told) = read_from("proto: a.desc", &[("base/a.desc", "message A {}")]);
    assert_eq!((names.len(), told[0].code), (0, "bad-proto"));
    let large = vec![0; DESCRIPTORS_BYTES_MAX + 1];
    let told = read_from("proto: a.desc", &[("base/a.desc", large)]).1;
    assert_eq!(told[0].code, "file-too-large");
}

#[test]
fn import_cycles_end() {
    let one = declares("One", &["two.proto"], &["Two"]);
    let two = declares("Two", &["one.proto"], &["One"]);
    let files = [("base/one.proto", one.as_str()), ("base/two.proto", two.as_str())];
    let (names, told) = read_from("proto: one.proto", &files);
    assert!(names.is_empty() != told.is_empty(), "{names:?} {told:?}");
}

#[test]
fn the_number_of_files_is_limited() {
    let chain: Vec<(String, String)> = (0..PROTO_FILES_MAX + 9)
        .map(|at| {
            let next = format!("f{}.proto", at + 1);
            (format!("base/f{at}.proto"), declares(&format!("M{at}"), &[&next], &[]))
        })
        .collect();
    let files: Vec<(&str, &str)> =
        chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let (names, told) = read_from("proto: f0.proto", &files);
    assert!(names.is_empty());
    assert_eq!(told.iter().map(|one| one.code).collect::<Vec<_>>(), ["too-many"]);
}

#[test]
fn places_are_exact_after_other_scripts() {
    let file = "syntax = \"proto3\";\nmessage A {\n  /* größe, 大小 */ Bee b = 1; Sea c = 2;\n}\n";
    let (_, told) = read_from("proto: a.proto", &[("base/a.proto", file)]);
    let marked = |one: &Diagnostic| {
        let span = one.span.clone().unwrap();
        span.source.text[span.start..span.end].to_owned()
    };
    assert_eq!(told.iter().map(marked).collect::<Vec<_>>(), ["Bee", "Sea"]);
}
