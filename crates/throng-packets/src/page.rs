//! `throng protocol FILE`: the packets of a declaration, as drawings and tables, and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use throng_base::Said;
use throng_base::columns::{left, right, wrap};
use throng_base::units::write_duration;
use throng_protocol::framed::declaration::{
    Declaration, Endian, Heartbeat, Message, MessageKind, More, Role,
};
use unicode_width::UnicodeWidthStr as _;

use crate::Ink;
use crate::diagram::diagram;
use crate::layout::{
    Bytes, Row, body_rows, condition_text, framing_text, packet_rows, transport_word,
};

const WIDTH_MAX: usize = 120;
/// The column width of names and types; a longer one shifts the rest of the line.
const ID_COLUMNS_MAX: usize = 24;
const TYPE_COLUMNS_MAX: usize = 20;

/// The whole page, or only one message.
pub fn page(declaration: &Declaration, name: &str, only: Option<&Message>, ink: &Ink) -> String {
    let mut out = format!("{}\n", ink.bold(name));
    let is_document = declaration.format.is_some();
    let endian = match declaration.format {
        Some(format) => say!("{} documents", format.name()),
        None => endian_text(declaration.endian),
    };
    let transport = transport_word(declaration.transport);
    let head = format!("{transport} · {} · {}", endian.spoken(), framing_text(declaration));
    for line in wrap(&head, ink.width.clamp(40, WIDTH_MAX)) {
        let _ = writeln!(out, "{}", ink.dim(&line));
    }
    let packet = packet_rows(declaration);
    let columns = Columns::of(declaration, &packet, only);
    let _ = writeln!(out, "\n{}\n", ink.bold(&tell!("every packet")));
    let header: Vec<Row> = packet.iter().filter(|row| row.depth == 0).cloned().collect();
    // The parts of a document have no fixed order.
    if !is_document {
        out += &diagram(&header, Bytes::default());
        out.push('\n');
    }
    out += &columns.head(ink);
    out += &columns.rows(&packet, ink);
    for message in chosen(declaration, only) {
        let _ = writeln!(out, "\n{}", message_title(declaration, message, ink));
        let rows = body_rows(declaration, message);
        if let (Some(_), Some(first)) = (only.filter(|_| !is_document), rows.first()) {
            let _ = write!(out, "\n{}\n", diagram(&rows, first.at));
        }
        out += &columns.rows(&rows, ink);
    }
    if let Some(heartbeat) = declaration.heartbeat.as_ref().filter(|_| only.is_none()) {
        let _ = writeln!(out, "\n{}", heartbeat_text(heartbeat));
    }
    if columns.has_plus {
        let text =
            tell!("`+`: at least this many bytes; the length of this or an earlier field varies");
        let _ = writeln!(out, "\n{}", ink.dim(&text));
    }
    out
}

/// All messages, or only one.
fn chosen<'d>(
    declaration: &'d Declaration,
    only: Option<&'d Message>,
) -> impl Iterator<Item = &'d Message> {
    let is_it =
        move |message: &&Message| only.is_none_or(|one| one.name.value == message.name.value);
    declaration.messages.iter().filter(is_it)
}

fn endian_text(endian: Endian) -> Said {
    match endian {
        Endian::Big => say!("big endian"),
        Endian::Little => say!("little endian"),
    }
}

/// The column positions of all tables, so that they are aligned.
struct Columns {
    at: usize,
    size: usize,
    id: usize,
    ty: usize,
    has_plus: bool,
}

impl Columns {
    fn of(declaration: &Declaration, packet: &[Row], only: Option<&Message>) -> Columns {
        let mut columns = Columns {
            at: tell!("offset").width(),
            size: tell!("bytes").width(),
            id: tell!("field").width(),
            ty: tell!("type").width(),
            has_plus: false,
        };
        columns.take(packet);
        for message in chosen(declaration, only) {
            columns.take(&body_rows(declaration, message));
        }
        columns.id = columns.id.min(ID_COLUMNS_MAX);
        columns.ty = columns.ty.min(TYPE_COLUMNS_MAX);
        columns
    }

    fn take(&mut self, rows: &[Row]) {
        for row in rows {
            self.at = self.at.max(bytes_text(row.at).width());
            self.size = self.size.max(size_text(row).width());
            self.id = self.id.max(row.id.width() + 2 * row.depth);
            self.ty = self.ty.max(row.ty.width());
            self.has_plus |= row.at.varies || (row.size.varies && row.size.least > 0);
        }
    }

    fn line(&self, at: &str, size: &str, id: &str, ty: &str) -> String {
        let (at, size) = (right(at, self.at), right(size, self.size));
        format!("  {at}  {size}  {}  {}  ", left(id, self.id), left(ty, self.ty))
    }

    fn head(&self, ink: &Ink) -> String {
        let words = [tell!("offset"), tell!("bytes"), tell!("field"), tell!("type")];
        let line = self.line(&words[0], &words[1], &words[2], &words[3]);
        format!("{}\n", ink.dim(&format!("{line}{}", tell!("purpose"))))
    }

    fn rows(&self, rows: &[Row], ink: &Ink) -> String {
        let mut out = String::new();
        for row in rows {
            let id = format!("{}{}", "  ".repeat(row.depth), row.id);
            let start = self.line(&bytes_text(row.at), &size_text(row), &id, &row.ty);
            let notes: Vec<String> = row.notes.iter().map(Said::spoken).collect();
            let notes = notes.join("; ");
            // Notes continue below themselves; with too little room, further left.
            let width = ink.width.clamp(40, WIDTH_MAX);
            let indent = match start.width() + 20 <= width {
                true => start.width(),
                false => self.at + self.size + 8,
            };
            let first_fits = indent == start.width() || start.width() + notes.width() <= width;
            let lines = wrap(&notes, width.saturating_sub(indent).max(20));
            let coloured = start.replacen(&row.id, &ink.bold(&row.id), 1);
            out.push_str(if notes.is_empty() { coloured.trim_end() } else { &coloured });
            for (at, line) in lines.iter().filter(|line| !line.is_empty()).enumerate() {
                if at > 0 || !first_fits {
                    let _ = write!(out, "\n{}", " ".repeat(indent));
                }
                out.push_str(line);
            }
            while out.ends_with(' ') {
                out.pop();
            }
            out.push('\n');
        }
        out
    }
}

fn bytes_text(bytes: Bytes) -> String {
    format!("{}{}", bytes.least, if bytes.varies { "+" } else { "" })
}

fn size_text(row: &Row) -> String {
    match (row.bits, row.size) {
        (Some((_, bits)), _) => format!("{bits}b"),
        (None, Bytes { least: 0, varies: true }) => "…".to_string(),
        (None, size) => bytes_text(size),
    }
}

/// `join · kind 1 · to the target · answered by joined`
fn message_title(declaration: &Declaration, message: &Message, ink: &Ink) -> String {
    let name = &message.name.value;
    let title = format!("{name} · {}", message_facts(declaration, message).join(" · "));
    let mut lines = wrap(&title, ink.width.clamp(40, WIDTH_MAX) - 2).into_iter();
    let first = lines.next().unwrap_or_default();
    let mut out = format!("{}{}", ink.bold(name), first.strip_prefix(name).unwrap_or_default());
    for line in lines {
        let _ = write!(out, "\n  {line}");
    }
    out
}

fn message_facts(declaration: &Declaration, message: &Message) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(kind) = &message.kind {
        parts.push(say!("kind {}", kind.value));
    }
    parts.push(match declaration.comes_from_target(message) {
        true => say!("from the target"),
        false => say!("to the target"),
    });
    if !message.answers.is_empty() {
        let asked = names(message.answers.iter().map(|name| &name.value));
        parts.push(say!("reply to {asked}"));
    }
    match &message.more {
        None => {}
        Some(More::Always) => parts.push(say!("more packets follow")),
        Some(More::If(test)) => {
            parts.push(say!("more packets follow if {}", condition_text(test)));
        }
    }
    let replies: Vec<&String> = replies(declaration, message).collect();
    if !replies.is_empty() {
        parts.push(say!("answered by {}", names(replies.into_iter())));
    }
    if message.push {
        parts.push(say!("a push (unsolicited)"));
    }
    if message.holds_packets {
        parts.push(say!("contains packets"));
    }
    if let Some(acknowledgement) = &message.acknowledged_by {
        parts.push(say!("acknowledged with {}", acknowledgement.message.value));
    }
    if declaration.heartbeat.as_ref().is_some_and(|it| it.send.value == message.name.value) {
        parts.push(say!("the heartbeat"));
    }
    parts.iter().map(Said::spoken).collect()
}

fn replies<'d>(
    declaration: &'d Declaration,
    message: &'d Message,
) -> impl Iterator<Item = &'d String> {
    let answers = |one: &&Message| one.answers.iter().any(|it| it.value == message.name.value);
    declaration.messages.iter().filter(answers).map(|one| &one.name.value)
}

fn names<'n>(names: impl Iterator<Item = &'n String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn heartbeat_text(heartbeat: &Heartbeat) -> String {
    let (send, every) = (&heartbeat.send.value, write_duration(heartbeat.every));
    let expect = heartbeat.expect.as_ref().map(|expect| &expect.value);
    match (expect, heartbeat.lost_after.map(write_duration)) {
        (Some(expect), Some(lost_after)) => {
            tell!(
                "heartbeat: {send} every {every}, expected reply {expect}, considered lost after \
                 {lost_after}"
            )
        }
        (Some(expect), None) => tell!("heartbeat: {send} every {every}, expected reply {expect}"),
        (None, _) => tell!("heartbeat: {send} every {every}"),
    }
}

/// The same as JSON.
pub fn machine(declaration: &Declaration, only: Option<&Message>) -> Value {
    let messages: Vec<Value> = chosen(declaration, only)
        .map(|message| {
            json!({
                "name": message.name.value,
                "kind": message.kind.as_ref().map(|kind| kind_json(&kind.value)),
                "from": if declaration.comes_from_target(message) { "target" } else { "user" },
                "push": message.push,
                "answers": message.answers.iter().map(|it| &it.value).collect::<Vec<_>>(),
                "more": message.more.as_ref().map(|more| match more {
                    More::Always => json!(true),
                    More::If(test) => json!(condition_text(test)),
                }),
                "holds_packets": message.holds_packets,
                "answered_by": replies(declaration, message).collect::<Vec<_>>(),
                "acknowledged_by": message.acknowledged_by.as_ref().map(|it| &it.message.value),
                "body": rows_json(&body_rows(declaration, message)),
            })
        })
        .collect();
    let heartbeat = declaration.heartbeat.as_ref().map(|it| {
        json!({
            "send": it.send.value,
            "expect": it.expect.as_ref().map(|expect| &expect.value),
            "every_ns": it.every.as_nanos() as u64,
            "lost_after_ns": it.lost_after.map(|time| time.as_nanos() as u64),
        })
    });
    let roles: Vec<Value> = declaration
        .packet
        .iter()
        .map(|field| {
            let role = match field.role {
                Role::Value => "value",
                Role::Length { .. } => "length",
                Role::Selects => "selects",
                Role::Correlates => "correlates",
                Role::Body => "body",
                Role::Checksum { .. } => "checksum",
            };
            json!({"id": field.id.value, "role": role})
        })
        .collect();
    json!({
        "transport": transport_word(declaration.transport),
        "endian": match declaration.endian {
            Endian::Big => "big",
            Endian::Little => "little",
        },
        "packet": rows_json(&packet_rows(declaration)),
        "roles": roles,
        "messages": messages,
        "heartbeat": heartbeat,
    })
}

fn kind_json(kind: &MessageKind) -> Value {
    match kind {
        MessageKind::Numbers(numbers) => match numbers.as_slice() {
            [number] => json!(number),
            numbers => json!(numbers),
        },
        MessageKind::Text(text) => json!(String::from_utf8_lossy(text)),
    }
}

fn rows_json(rows: &[Row]) -> Vec<Value> {
    let row = |row: &Row| {
        json!({
            "id": row.id,
            "depth": row.depth,
            "type": row.ty,
            "at": row.at.least,
            "at_varies": row.at.varies,
            "bytes": row.size.least,
            "bytes_vary": row.size.varies,
            "bits": row.bits.map(|(_, bits)| bits),
            "notes": row.notes.iter().map(Said::english).collect::<Vec<_>>(),
        })
    };
    rows.iter().map(row).collect()
}
