//! Errors of the `.proto` parser and linker as diagnostics with a fix. The libraries report only
//! English sentences: common ones are reworded, others are passed on.

use std::sync::Arc;

use miette::Diagnostic as Found;
use protox_parse::ParseError;
use throng_base::{Said, Source};
use throng_protocol::protobuf::NotLinked;

use super::Texts;
use crate::read::Context;
use crate::syntax::Place;
use crate::words::shorten;

const SYNTAX_HELP: Said =
    say!("write a field as `string name = 1;`; run `protoc` to see more details");
const NAME_HELP: Said = say!("declare it, or import the file that declares it");
const NUMBER_HELP: Said = say!("give every field its own number");

/// Reports all parse errors of a text.
pub(super) fn parse(cx: &mut Context<'_>, number: u16, source: &Arc<Source>, error: &ParseError) {
    for found in all(error) {
        let said = found.to_string();
        let end = source.text.trim_end().len();
        let (start, end) = primary(found).unwrap_or((end, end));
        note(cx, Place::new(number, floor(source, start), floor(source, end)), found, &said);
    }
}

/// Reports link errors, all of them if a file has several.
pub(super) fn link(cx: &mut Context<'_>, texts: &Texts, place: Place, error: NotLinked) {
    let error = match error {
        NotLinked::Descriptor(error) => error,
        NotLinked::Syntax(_) => return tell(cx, place, editions()),
    };
    let known = error.file().and_then(|file| texts.0.get(file));
    let Some((number, source)) = known else {
        return note(cx, place, &error, &error.to_string());
    };
    let error = error.with_source_code(&source.text);
    for found in all(&error) {
        if let Some((start, end)) = primary(found) {
            let (start, end) = (byte_of(source, start), byte_of(source, end));
            let place = Place::new(*number, start, end.max(start));
            note(cx, place, found, &found.to_string());
        }
    }
    if primary(&error).is_none() {
        note(cx, Place::new(*number, 0, 0), &error, &error.to_string());
    }
}

fn all(first: &dyn Found) -> impl Iterator<Item = &dyn Found> {
    std::iter::once(first).chain(first.related().into_iter().flatten())
}

/// The bytes of the mistake, not those of the first declaration.
fn primary(found: &dyn Found) -> Option<(usize, usize)> {
    let labels: Vec<_> = found.labels()?.collect();
    let is_wrong = |word: Option<&str>| matches!(word, Some("found here" | "defined again here"));
    let label = labels.iter().find(|label| is_wrong(label.label())).or(labels.last())?;
    Some((label.offset(), label.offset() + label.len()))
}

fn floor(source: &Source, at: usize) -> usize {
    source.text.floor_char_boundary(at.min(source.text.len()))
}

/// Converts a position that was computed from bytes as if they were characters.
fn byte_of(source: &Source, at: usize) -> usize {
    let at = floor(source, at);
    let start = source.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    floor(source, start + source.text[start..at].chars().count())
}

/// The text of a diagnostic.
struct MistakeText {
    code: &'static str,
    message: Said,
    label: Said,
    help: Said,
}

fn note(cx: &mut Context<'_>, place: Place, found: &dyn Found, said: &str) {
    let text = &cx.source(place).text[place.start()..place.end()];
    let told = match (text, reworded(said)) {
        ("edition", Some(_)) => editions(),
        (_, Some(told)) => told,
        (_, None) => passed_on(said, found),
    };
    tell(cx, place, told);
}

fn tell(cx: &mut Context<'_>, place: Place, told: MistakeText) {
    cx.report(told.code, place, told.message, told.label, told.help);
}

fn editions() -> MistakeText {
    MistakeText {
        code: "proto-feature",
        message: say!("protobuf editions are not supported"),
        label: say!("not allowed here"),
        help: say!(
            "write `syntax = \"proto3\";`, or use the output of `protoc --include_imports \
             --descriptor_set_out=shop.desc`"
        ),
    }
}

fn passed_on(said: &str, found: &dyn Found) -> MistakeText {
    let hint = found.help().map(|help| help.to_string());
    let said = said.replace('\'', "`");
    let message = say!("the `.proto` file is not valid: {}", shorten(&said));
    let label = shorten(&hint.unwrap_or_default().replace('\'', "`"));
    let label = if label.is_empty() { say!("here") } else { Said::of_others(label) };
    MistakeText { code: "bad-proto", message, label, help: SYNTAX_HELP }
}

const TOKEN: &str = "expected {}, but found '{}'";
const END: &str = "expected {}, but reached end of file";
const COMMENT: &str = "comment terminator";
const OR: &str = " or ";
const STRING: &str = "unterminated string";
const NUMBER_RANGE: &str = "message numbers must be between {}";
const NUMBER_TWICE: &str = "field number '{}' is already used";
const NAME_TWICE: &str = "name '{}' is defined twice";
const NAME_ELSEWHERE: &str = "name '{}' is already defined in file '{}'";
const NO_NAME: &str = "name '{}' is not defined";
const SHADOWED: &str = "'{}' resolves to '{}', which is not defined";
const NOT_A: &str = "'{}' is not {}";
const NO_LABEL: &str = "fields must have a label with proto2 syntax {}";
const MAP_KEY: &str = "a map field key type must be {}";
const NO_OPTION: &str = "option field '{}' is not defined";
const ENUM_ZERO: &str = "the first value for proto3 enums must be 0";
const TOO_DEEP: &str = "reached maximum recursion limit for nested messages";
const IMPORT: &str = "invalid group name";

/// Rewords common errors.
fn reworded(said: &str) -> Option<MistakeText> {
    of_syntax(said).or_else(|| of_names(said)).or_else(|| of_rules(said))
}

fn told(message: Said, label: Said, help: Said) -> Option<MistakeText> {
    Some(MistakeText { code: "bad-proto", message, label, help })
}

fn of_syntax(said: &str) -> Option<MistakeText> {
    if let Some([expected]) = captures(END, said) {
        return match expected {
            COMMENT => told(
                say!("a comment is not closed"),
                say!("the comment is still open here"),
                SYNTAX_HELP,
            ),
            _ => told(say!("the file is incomplete"), wanted(expected), SYNTAX_HELP),
        };
    }
    if let Some([expected, found]) = captures(TOKEN, said) {
        let message = say!("`{}` is not allowed here", shorten(found));
        return told(message, wanted(expected), SYNTAX_HELP);
    }
    if said == TOO_DEEP {
        let message = say!("messages are nested too deeply");
        let (label, help) = (
            say!("this message is nested too deeply"),
            say!("move it out of the enclosing messages"),
        );
        return Some(MistakeText { code: "too-deep", message, label, help });
    }
    let help = say!(
        "write the path relative to a folder of `proto_path`, with `/` and without \
                     `..`"
    );
    match said {
        STRING => told(say!("a string is not closed"), say!("the string starts here"), SYNTAX_HELP),
        IMPORT => told(say!("this is not a valid import path"), say!("not allowed"), help),
        _ => None,
    }
}

fn of_names(said: &str) -> Option<MistakeText> {
    const TWICE_HELP: Said = say!("remove or rename one of the two");
    if let Some([name, file]) = captures(NAME_ELSEWHERE, said) {
        let message = say!("`{}` is declared twice", shorten(name));
        return told(message, say!("also in `{}`", shorten(file)), TWICE_HELP);
    }
    if let Some([name]) = captures(NAME_TWICE, said) {
        let message = say!("`{}` is declared twice", shorten(name));
        return told(message, say!("declared again here"), TWICE_HELP);
    }
    if let Some([name]) = captures(NO_OPTION, said) {
        let message = say!("there is no option `{}`", shorten(name));
        return told(message, say!("unknown"), NAME_HELP);
    }
    if let Some([name]) = captures(NO_NAME, said) {
        return told(say!("there is no type `{}`", shorten(name)), say!("unknown"), NAME_HELP);
    }
    if let Some([name, other]) = captures(SHADOWED, said) {
        let message = say!("there is no type `{}`", shorten(name));
        let label = say!("the name resolves to `{}`, which does not exist", shorten(other));
        return told(message, label, say!("start the full name with a dot: `.shop.Order`"));
    }
    let [name, kind] = captures(NOT_A, said)?;
    let message = say!("`{}` is not `{}`", shorten(name), shorten(kind));
    told(message, say!("another type is required"), NAME_HELP)
}

fn of_rules(said: &str) -> Option<MistakeText> {
    if let Some([number]) = captures(NUMBER_TWICE, said) {
        let message = say!("the field number {number} is used twice");
        return told(message, say!("another field already uses this number"), NUMBER_HELP);
    }
    if captures::<1>(NUMBER_RANGE, said).is_some() {
        let label = say!("field numbers range from 1 to 536870911");
        return told(say!("this is not a valid field number"), label, NUMBER_HELP);
    }
    if captures::<1>(NO_LABEL, said).is_some() {
        let help = say!(
            "write `optional`, `required` or `repeated` before the type, or \
                    `syntax = \"proto3\";` as the first line"
        );
        return told(say!("the field has no label"), say!("proto2 requires one"), help);
    }
    if captures::<1>(MAP_KEY, said).is_some() {
        let help = say!("map keys must be whole numbers, `bool` or `string`");
        return told(say!("this type is not allowed for map keys"), say!("not allowed here"), help);
    }
    let help = say!("write a value such as `UNKNOWN = 0;` first");
    match said == ENUM_ZERO {
        true => told(say!("the first value of an enum must be 0"), say!("not 0"), help),
        false => None,
    }
}

/// `'enum', 'import' or ';'` as a list of code.
fn wanted(expected: &str) -> Said {
    let parts = expected.split(", ").flat_map(|part| part.split(OR));
    let parts: Vec<&str> = parts.map(|part| part.trim_matches('\'')).collect();
    match &parts[..] {
        [one] => say!("expected `{}`", shorten(one)),
        several => say!("expected one of `{}`", several.join("`, `")),
    }
}

/// The texts that match the `{}` of a pattern.
fn captures<'s, const N: usize>(pattern: &str, said: &'s str) -> Option<[&'s str; N]> {
    let mut found = [""; N];
    let mut pieces = pattern.split("{}");
    let mut rest = said.strip_prefix(pieces.next()?)?;
    for (index, piece) in pieces.enumerate() {
        let end = if piece.is_empty() { rest.len() } else { rest.find(piece)? };
        *found.get_mut(index)? = &rest[..end];
        rest = &rest[end + piece.len()..];
    }
    rest.is_empty().then_some(found)
}
