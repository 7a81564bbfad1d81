//! Prints the packets that were found, in readable form or as one JSON line each.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use throng_base::Said;
use throng_base::columns::{cut, left, right};
use throng_base::units::{format_count, format_duration};
use throng_expression::Value;
use throng_protocol::framed::{Broken, Decoded, Packet, PacketPart, Protocol};
use unicode_width::UnicodeWidthStr as _;

use crate::Ink;
use crate::capture::Passed;
use crate::layout::hex_text;
use crate::reading::{Exchange, Found, PacketPlace, Tally};
use crate::streams::Direction;

/// Bytes per line of a field, and lines per field, unless everything is shown.
const FIELD_BYTES: usize = 8;
const FIELD_LINES_MAX: usize = 4;
/// Bytes per line of a broken packet, and lines around the position.
const EXCERPT_BYTES: usize = 16;
const EXCERPT_LINES: usize = 3;
/// Characters of a value.
const VALUE_CHARS_MAX: usize = 160;
/// Fields of one packet.
const FIELDS_MAX: usize = 400;

#[derive(Clone, Debug)]
pub struct How {
    pub json: bool,
    /// Nothing is shortened.
    pub full: bool,
    /// Show only this message.
    pub only: Option<String>,
    /// Only the totals, without packets.
    pub summary: bool,
}

pub struct Telling<'p> {
    protocol: &'p Protocol,
    how: How,
    ink: Ink,
    /// The time of the first packet.
    begun_ns: Option<u64>,
    packets: u64,
    /// The connection that was named last.
    named: usize,
}

impl<'p> Telling<'p> {
    pub fn new(protocol: &'p Protocol, how: How, ink: Ink) -> Telling<'p> {
        Telling { protocol, how, ink, begun_ns: None, packets: 0, named: 0 }
    }

    /// The text of a result; empty if it is not shown.
    pub fn tell(&mut self, place: PacketPlace, found: &Found<'_>) -> String {
        if let Some(now) = place.time_ns {
            self.begun_ns.get_or_insert(now);
        }
        if matches!(found, Found::Packet { .. } | Found::Broken { .. }) {
            self.packets += 1;
        }
        if self.how.summary || !self.is_wanted(found) {
            return String::new();
        }
        match self.how.json {
            true => format!("{}\n", self.machine(place, found)),
            false => self.person(place, found),
        }
    }

    fn is_wanted(&self, found: &Found<'_>) -> bool {
        let Some(only) = &self.how.only else { return true };
        match found {
            Found::Packet { packet, .. } => self.protocol.info(packet.message).name == *only,
            _ => true,
        }
    }

    fn person(&mut self, place: PacketPlace, found: &Found<'_>) -> String {
        let mut out = self.stream(place);
        match found {
            Found::Packet { bytes, decoded, packet, exchange } => {
                out += &self.head(place, *packet, bytes.len(), *exchange);
                out += &self.fields(bytes, &self.protocol.describe(bytes, decoded));
            }
            Found::Broken { bytes, broken, decoded } => {
                out += &self.broken(place, bytes, broken, *decoded);
            }
            Found::Skipped { bytes } => {
                let text = match bytes {
                    1 => say!("1 byte is skipped"),
                    _ => say!("{} bytes are skipped", format_count(*bytes)),
                };
                out += &self.remark(place, &text);
            }
            Found::Gap { bytes } => {
                let text = match bytes {
                    1 => say!("1 byte is missing in the capture"),
                    _ => say!("{} bytes are missing in the capture", format_count(*bytes)),
                };
                out += &self.remark(place, &text);
            }
            Found::Left { bytes, is_cut_off } => {
                let text = match (is_cut_off, bytes.len()) {
                    (true, 1) => say!("1 byte is left: an incomplete packet"),
                    (true, left) => say!("{left} bytes are left: an incomplete packet"),
                    (false, 1) => {
                        say!("1 byte is left: the rest of the packet is not in the input")
                    }
                    (false, left) => {
                        say!("{left} bytes are left: the rest of the packet is not in the input")
                    }
                };
                out += &self.remark(place, &text);
                out += &self.excerpt(bytes, None);
            }
            Found::Web { reason } => out += &self.remark(place, reason),
        }
        out.push('\n');
        out
    }

    /// Names the connection if it differs from the last one.
    fn stream(&mut self, place: PacketPlace) -> String {
        match place.stream {
            Some((ends, _)) if ends.number != self.named => {
                self.named = ends.number;
                let (number, client, server) = (ends.number, ends.client, ends.server);
                let text = tell!("connection {number}");
                format!("{}\n\n", self.ink.bold(&format!("{text}: {client} → {server}")))
            }
            _ => String::new(),
        }
    }

    /// `12  +0.001500s  →  `
    fn start(&self, place: PacketPlace) -> String {
        let mut out = String::new();
        if let (Some(now), Some(begun)) = (place.time_ns, self.begun_ns) {
            let _ = write!(out, "+{:.6}s  ", now.saturating_sub(begun) as f64 / 1e9);
        }
        if let Some((_, direction)) = place.stream {
            out.push_str(if direction == Direction::Up { "→ " } else { "← " });
        }
        out
    }

    fn head(&self, place: PacketPlace, packet: Packet, bytes: usize, exchange: Exchange) -> String {
        let info = self.protocol.info(packet.message);
        let mut parts = vec![bytes_text(bytes), say!("from byte {}", place.position)];
        match exchange {
            Exchange::Alone if info.push => parts.push(say!("a push")),
            Exchange::Alone | Exchange::Request => {}
            Exchange::Reply { to, took_ns, is_part } => {
                let to = &self.protocol.info(to).name;
                let took = took_ns.map(|ns| format_duration(Duration::from_nanos(ns)));
                parts.push(match (is_part, took) {
                    (false, Some(took)) => say!("reply to {to} after {took}"),
                    (false, None) => say!("reply to {to}"),
                    (true, Some(took)) => {
                        say!("part of the reply to {to}, {took} after the request")
                    }
                    (true, None) => say!("part of the reply to {to}"),
                });
            }
            Exchange::Unpaired => parts.push(say!("reply to one of several requests")),
            Exchange::Orphan => parts.push(say!("no matching request was seen")),
        }
        let parts: Vec<String> = parts.iter().map(Said::spoken).collect();
        let (number, start) = (self.packets, self.start(place));
        let notes = self.ink.dim(&parts.join(" · "));
        format!("{} {start}{}  {notes}\n", self.ink.dim(&format!("#{number}")), {
            self.ink.bold(&info.name)
        })
    }

    fn fields(&self, packet: &[u8], parts: &[PacketPart]) -> String {
        let most = if self.how.full { usize::MAX } else { FIELDS_MAX };
        let shown = &parts[..parts.len().min(most)];
        let paths = shown.iter().map(|part| part.path.width()).max().unwrap_or(0).min(24);
        let mut out = String::new();
        for part in shown {
            out += &self.field(packet, part, paths);
        }
        if parts.len() > shown.len() {
            let more = parts.len() - shown.len();
            let _ = writeln!(out, "        {}", tell!("… and {more} more fields"));
        }
        out
    }

    fn field(&self, packet: &[u8], part: &PacketPart, paths: usize) -> String {
        let all = packet.get(part.start..part.end).unwrap_or_default();
        let places = match (part.bits, part.end.saturating_sub(part.start)) {
            (Some((first, 1)), _) => format!("{}.{first}", part.start),
            (Some((first, bits)), _) => format!("{}.{first}-{}", part.start, first + bits - 1),
            (None, 0) => format!("({})", part.start),
            (None, 1) => part.start.to_string(),
            (None, _) => format!("{}-{}", part.start, part.end - 1),
        };
        let mut lines = all.chunks(FIELD_BYTES).map(hex_text);
        let hex = left(&lines.next().unwrap_or_default(), FIELD_BYTES * 3 - 1);
        let path = left(&part.path, paths);
        let start = format!("  {}  {hex}  ", right(&places, 7));
        let value = self.value(part);
        let note = match part.note.is_empty() {
            true => String::new(),
            // Other notes are names of values in the declaration.
            false => self.ink.dim(&format!("  {}", part.note.spoken())),
        };
        let mut out = format!("{start}{}  {value}{note}\n", self.ink.bold(&path));
        let most = if self.how.full { usize::MAX } else { FIELD_LINES_MAX - 1 };
        for line in lines.by_ref().take(most) {
            let _ = writeln!(out, "{}{line}", " ".repeat(11));
        }
        let shown = (most.saturating_add(1)).saturating_mul(FIELD_BYTES);
        if all.len() > shown {
            let more = tell!("… {} more bytes", all.len() - shown);
            let _ = writeln!(out, "{}{more}", " ".repeat(11));
        }
        out
    }

    fn value(&self, part: &PacketPart) -> String {
        let text = match &part.value {
            Value::Null => String::new(),
            // The bytes are beside it.
            Value::Bytes(bytes) => bytes_text(bytes.len()).spoken(),
            Value::Text(text) => format!("\"{}\"", text.escape_debug()),
            Value::Int(value) if *value >= 256 && part.type_word.starts_with('u') => {
                format!("{value} ({value:#x})")
            }
            Value::UInt(value) => format!("{value} ({value:#x})"),
            other => other.to_text().to_string(),
        };
        match self.how.full {
            true => text,
            false => cut(&text, VALUE_CHARS_MAX),
        }
    }

    fn broken(
        &self,
        place: PacketPlace,
        bytes: &[u8],
        broken: &Broken,
        decoded: Option<&Decoded>,
    ) -> String {
        let name =
            decoded.and_then(Decoded::message).map(|it| self.protocol.info(it).name.as_str());
        let head = match name {
            Some(name) => tell!("broken packet, `{name}`"),
            None => tell!("broken packet"),
        };
        let at = tell!("from byte {}", place.position);
        let number = self.ink.dim(&format!("#{}", self.packets));
        let start = self.start(place);
        let mut out = format!("{number} {start}{}  {}\n", self.ink.bad(&head), self.ink.dim(&at));
        if let Some(decoded) = decoded {
            out += &self.fields(bytes, &self.protocol.describe(bytes, decoded));
        }
        let _ = writeln!(out, "  {}", self.ink.bad(&broken.said().spoken()));
        out + &self.excerpt(bytes, Some(broken.position))
    }

    /// The bytes around a position, with a mark below it; or the first ones.
    fn excerpt(&self, bytes: &[u8], position: Option<usize>) -> String {
        let line = position.unwrap_or(0).min(bytes.len()) / EXCERPT_BYTES;
        let first = line.saturating_sub(EXCERPT_LINES - 2);
        let lines = bytes.chunks(EXCERPT_BYTES).enumerate().skip(first).take(EXCERPT_LINES);
        let mut out = String::new();
        let mut marked = false;
        for (at, part) in lines {
            let _ = writeln!(out, "  {:>7}  {}", at * EXCERPT_BYTES, hex_text(part));
            if let Some(position) = position.filter(|it| it / EXCERPT_BYTES == at) {
                out += &self.mark(position % EXCERPT_BYTES);
                marked = true;
            }
        }
        // The position may be directly after the last byte.
        if let (Some(position), false) = (position, marked)
            && position == bytes.len()
        {
            let _ = writeln!(out, "  {position:>7}");
            out += &self.mark(0);
        }
        let shown = (first + EXCERPT_LINES) * EXCERPT_BYTES;
        if bytes.len() > shown {
            let more = tell!("… {} more bytes", bytes.len() - shown);
            let _ = writeln!(out, "           {more}");
        }
        out
    }

    fn mark(&self, column: usize) -> String {
        format!("{}{}\n", " ".repeat(11 + column * 3), self.ink.bad("^^"))
    }

    fn remark(&self, place: PacketPlace, text: &Said) -> String {
        let at = tell!("from byte {}", place.position);
        format!("   {}{} · {at}\n", self.start(place), self.ink.warn(&text.spoken()))
    }

    /// The totals.
    pub fn summary(&self, tally: &Tally, passed: Option<&Passed>, repeated: u64) -> String {
        if self.how.json {
            return format!("{}\n", self.summary_json(tally, passed, repeated));
        }
        let mut rows: Vec<(String, u64)> = Vec::new();
        for (id, info) in self.protocol.messages() {
            let packets = tally.packets.get(usize::from(id.0)).copied().unwrap_or(0);
            if packets > 0 {
                rows.push((info.name.clone(), packets));
            }
        }
        let all: u64 = tally.packets.iter().sum();
        rows.sort_by_key(|(_, packets)| u64::MAX - packets);
        rows.insert(0, (tell!("packets"), all));
        let mut out = format!("{}\n", self.ink.bold(&tell!("summary")));
        let names = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
        for (name, packets) in rows {
            let _ = writeln!(out, "  {}  {}", left(&name, names), right(&format_count(packets), 9));
        }
        for text in remarks(tally, passed, repeated) {
            let _ = writeln!(out, "  {}", text.spoken());
        }
        let verdict = match tally.fits() {
            true => self.ink.good(&tell!("all bytes match the declaration")),
            false => self.ink.bad(&tell!("the bytes do not match the declaration")),
        };
        let _ = writeln!(out, "{verdict}");
        out
    }

    fn machine(&self, place: PacketPlace, found: &Found<'_>) -> serde_json::Value {
        let mut line = json!({"position": place.position});
        if let Some(now) = place.time_ns {
            line["time_ns"] = now.into();
        }
        if let Some((ends, direction)) = place.stream {
            line["connection"] = ends.number.into();
            line["client"] = ends.client.to_string().into();
            line["server"] = ends.server.to_string().into();
            line["from"] = if direction == Direction::Up { "client" } else { "server" }.into();
        }
        let mut put = |entries: serde_json::Value| {
            for (key, value) in entries.as_object().into_iter().flatten() {
                line[key] = value.clone();
            }
        };
        match found {
            Found::Packet { bytes, decoded, packet, exchange } => {
                let (answers, took_ns) = match exchange {
                    Exchange::Reply { to, took_ns, .. } => {
                        (Some(&self.protocol.info(*to).name), *took_ns)
                    }
                    _ => (None, None),
                };
                put(json!({
                    "message": self.protocol.info(packet.message).name,
                    "bytes": bytes.len(),
                    "correlation": packet.correlation,
                    "answers": answers,
                    "took_ns": took_ns,
                    "goes_on": packet.goes_on,
                    "unasked_reply": *exchange == Exchange::Orphan,
                    "fields": parts_json(bytes, &self.protocol.describe(bytes, decoded)),
                }));
            }
            Found::Broken { bytes, broken, decoded } => {
                let parts = decoded.map(|decoded| self.protocol.describe(bytes, decoded));
                let shown = &bytes[..bytes.len().min(EXCERPT_BYTES * EXCERPT_LINES)];
                put(json!({
                    "broken": {
                        "at": broken.position,
                        "field": broken.field,
                        "reason": broken.reason,
                        "bytes": hex_text(shown),
                    },
                    "fields": parts_json(bytes, &parts.unwrap_or_default()),
                }));
            }
            Found::Skipped { bytes } => put(json!({"skipped_bytes": bytes})),
            Found::Gap { bytes } => put(json!({"gap_bytes": bytes})),
            Found::Left { bytes, is_cut_off } => {
                put(json!({"left_bytes": bytes.len(), "ended": is_cut_off}));
            }
            Found::Web { reason } => put(json!({"websocket": reason.english()})),
        }
        line
    }

    fn summary_json(
        &self,
        tally: &Tally,
        passed: Option<&Passed>,
        repeated: u64,
    ) -> serde_json::Value {
        let mut packets = serde_json::Map::new();
        for (id, info) in self.protocol.messages() {
            let count = tally.packets.get(usize::from(id.0)).copied().unwrap_or(0);
            packets.insert(info.name.clone(), count.into());
        }
        json!({"summary": {
            "fits": tally.fits(),
            "packets": packets,
            "broken": tally.broken,
            "skipped_bytes": tally.skipped_bytes,
            "gap_bytes": tally.gap_bytes,
            "left_bytes": tally.left_bytes,
            "cut_off": tally.cut_off,
            "replies": tally.replies,
            "replies_without_request": tally.orphans,
            "requests_without_reply": tally.unanswered,
            "frames": passed.map(|passed| passed.frames),
            "repeated_segments": passed.map(|_| repeated),
        }})
    }
}

/// Further remarks, one sentence each.
fn remarks(tally: &Tally, passed: Option<&Passed>, repeated: u64) -> Vec<Said> {
    let mut out = Vec::new();
    let mut add = |number: u64, text: &dyn Fn(String) -> Said| {
        if number > 0 {
            out.push(text(format_count(number)));
        }
    };
    add(tally.broken, &|n| say!("packets that do not match the declaration: {n}"));
    add(tally.skipped_bytes, &|n| say!("bytes skipped before the next packet: {n}"));
    add(tally.left_bytes, &|n| say!("bytes left in incomplete packets: {n}"));
    add(tally.gap_bytes, &|n| say!("bytes missing in the capture: {n}"));
    add(tally.replies, &|n| say!("replies matched to a request: {n}"));
    add(tally.orphans, &|n| say!("replies without a request: {n}"));
    add(tally.unanswered, &|n| say!("requests without a reply: {n}"));
    if let Some(passed) = passed {
        add(repeated, &|n| say!("retransmitted segments: {n}"));
        add(passed.others, &|n| say!("frames that are neither TCP nor UDP: {n}"));
        add(passed.fragments, &|n| say!("skipped frames with IP fragments: {n}"));
        let link = passed.link_type;
        add(passed.foreign, &|n| say!("frames with the unsupported link type {link}: {n}"));
        if passed.torn {
            out.push(say!("the capture ends in the middle of a frame"));
        }
    }
    out
}

fn parts_json(packet: &[u8], parts: &[PacketPart]) -> Vec<serde_json::Value> {
    let part = |part: &PacketPart| {
        json!({
            "path": part.path,
            "start": part.start,
            "end": part.end,
            "type": part.type_word,
            "hex": hex_text(packet.get(part.start..part.end).unwrap_or_default()),
            "value": part.value.to_json(),
            "note": part.note.english(),
        })
    };
    parts.iter().map(part).collect()
}

fn bytes_text(bytes: usize) -> Said {
    match bytes {
        1 => say!("1 byte"),
        _ => say!("{bytes} bytes"),
    }
}
