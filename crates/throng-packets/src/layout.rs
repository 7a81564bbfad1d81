//! The fields of a protocol's packets, as rows of a table: offset, bytes, name, type and purpose.

use throng_base::Said;
use throng_base::units::format_count;
use throng_protocol::framed::declaration::{
    Condition, Counts, Declaration, Endian, Extent, Field, Format, Framing, Literal, Message,
    Placed, Prefix, Repeat, Role, Transport, Type,
};

/// The maximum nesting of structures that are drawn.
const DEPTH_MAX: usize = 8;
/// The maximum number of rows per table; a larger declaration is drawn partially.
const ROWS_MAX: usize = 2_000;

/// A number of bytes, or its minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    pub least: u64,
    pub varies: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// From the first byte of the packet.
    pub at: Bytes,
    pub size: Bytes,
    /// For a bit field: the first bit from the left of its first byte, and the number of bits.
    pub bits: Option<(u32, u32)>,
    pub depth: usize,
    pub id: String,
    pub ty: String,
    /// Its purpose, as translated phrases.
    pub notes: Vec<Said>,
    pub is_body: bool,
}

impl Bytes {
    fn plus(self, more: Bytes) -> Bytes {
        let least = self.least.saturating_add(more.least);
        Bytes { least, varies: self.varies || more.varies }
    }

    fn exactly(bytes: u64) -> Bytes {
        Bytes { least: bytes, varies: false }
    }

    fn at_least(bytes: u64) -> Bytes {
        Bytes { least: bytes, varies: true }
    }
}

/// The rows of the packet that all messages share.
pub fn packet_rows(declaration: &Declaration) -> Vec<Row> {
    let mut laying = Laying::new(declaration);
    laying.fields(&declaration.packet, Bytes::default(), 0);
    laying.rows
}

/// The rows of a message's body, and the offset of the body.
pub fn body_rows(declaration: &Declaration, message: &Message) -> Vec<Row> {
    let mut laying = Laying::new(declaration);
    let is_body = |field: &&Field| field.role == Role::Body;
    let before = declaration.packet.iter().position(|field| is_body(&field));
    let header = &declaration.packet[..before.unwrap_or(declaration.packet.len())];
    let at = laying.fields(header, Bytes::default(), 0);
    laying.rows.clear();
    laying.fields(&message.body, at, 0);
    laying.rows
}

/// The transport, in one word.
pub fn transport_word(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
        Transport::Udp => "udp",
        Transport::WebSocket => "ws",
        Transport::WebSocketTls => "wss",
    }
}

/// The framing of packets.
pub fn framing_text(declaration: &Declaration) -> String {
    let text = match &declaration.framing {
        Framing::Delimiter { bytes, bytes_max } => {
            let (hex, most) = (hex_text(&bytes.value), size_text(u64::from(*bytes_max)));
            say!("each packet is followed by the delimiter {hex} and is at most {most} long")
        }
        Framing::Fixed(bytes) => say!("each packet has {} bytes", bytes.value),
        Framing::Fields { bytes_max, .. } => {
            let most = size_text(u64::from(*bytes_max));
            say!("each packet ends with its last field and is at most {most} long")
        }
        Framing::Document { bytes_max, .. } => {
            let most = size_text(u64::from(*bytes_max));
            match declaration.format {
                Some(Format::Xml) => {
                    say!("each packet ends with its element and is at most {most} long")
                }
                _ => say!("each packet is one document and is at most {most} long"),
            }
        }
        Framing::Length => match declaration.transport {
            Transport::Udp => say!("one datagram is one packet"),
            Transport::WebSocket | Transport::WebSocketTls if declaration.is_text => {
                say!("one text message is one packet")
            }
            Transport::WebSocket | Transport::WebSocketTls => {
                say!("one binary message is one packet")
            }
            Transport::Tcp | Transport::Tls => {
                let is_length = |field: &&Field| matches!(field.role, Role::Length { .. });
                let length = declaration.packet.iter().find(is_length);
                let id = length.map_or("", |field| field.id.value.as_str());
                say!("`{id}` contains the packet length")
            }
        },
    };
    text.spoken()
}

/// In the notation of a file if it is round: `64 KiB`.
fn size_text(bytes: u64) -> Said {
    match bytes {
        0 => say!("0"),
        n if n.is_multiple_of(1 << 20) => say!("{} MiB", format_count(n >> 20)),
        n if n.is_multiple_of(1 << 10) => say!("{} KiB", format_count(n >> 10)),
        n => say!("{} bytes", format_count(n)),
    }
}

/// `c4 a7`
pub fn hex_text(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

struct Laying<'d> {
    declaration: &'d Declaration,
    rows: Vec<Row>,
}

impl<'d> Laying<'d> {
    fn new(declaration: &'d Declaration) -> Laying<'d> {
        Laying { declaration, rows: Vec::new() }
    }

    /// Adds the rows of consecutive fields; returns the offset of the next one.
    fn fields(&mut self, fields: &[Field], mut at: Bytes, depth: usize) -> Bytes {
        // The bits that adjacent bit fields have used.
        let mut bits = 0;
        for field in fields {
            if let Type::Bits(width) = field.ty {
                let start = at.plus(Bytes::exactly(u64::from(bits / 8)));
                let first = bits % 8;
                let width = u32::from(width);
                let size = Bytes::exactly(u64::from((first + width).div_ceil(8)));
                bits += width;
                self.row(field, start, size, Some((first, width)), depth);
                continue;
            }
            at = at.plus(Bytes::exactly(u64::from(bits.div_ceil(8))));
            bits = 0;
            let size = self.size(field, depth);
            self.row(field, at, size, None, depth);
            let inner = match &field.ty {
                Type::Fields(inner) => Some(inner.as_slice()),
                Type::Struct(index) => {
                    self.declaration.types.get(*index).map(|one| one.fields.as_slice())
                }
                _ => None,
            };
            if let Some(inner) = inner.filter(|_| depth < DEPTH_MAX) {
                let prefix = match (&field.repeat, &field.bound) {
                    (Some(Repeat::Prefixed(prefix)), _)
                    | (_, Some(Extent::Prefixed { prefix, .. })) => prefix_size(*prefix),
                    _ => Bytes::default(),
                };
                self.fields(inner, at.plus(prefix), depth + 1);
            }
            at = at.plus(size);
        }
        at.plus(Bytes::exactly(u64::from(bits.div_ceil(8))))
    }

    fn row(
        &mut self,
        field: &Field,
        at: Bytes,
        size: Bytes,
        bits: Option<(u32, u32)>,
        depth: usize,
    ) {
        if self.rows.len() >= ROWS_MAX {
            return;
        }
        let is_body = field.role == Role::Body;
        let (id, ty) = (field.id.value.clone(), self.type_text(field));
        let notes = self.notes(field);
        self.rows.push(Row { at, size, bits, depth, id, ty, notes, is_body });
    }

    fn size(&self, field: &Field, depth: usize) -> Bytes {
        if field.role == Role::Body || self.declaration.format.is_some() {
            return Bytes::at_least(0);
        }
        let one = match &field.bound {
            Some(bound) => extent_size(bound),
            None => self.type_size(&field.ty, depth),
        };
        let all = match &field.repeat {
            None => one,
            Some(Repeat::Times(times)) => {
                let least = one.least.saturating_mul(u64::from(*times));
                Bytes { least, varies: one.varies }
            }
            Some(Repeat::Prefixed(prefix)) => prefix_size(*prefix).plus(Bytes::at_least(0)),
            Some(Repeat::Until(end)) => Bytes::at_least(end.len() as u64),
            Some(Repeat::Field(_) | Repeat::Rest) => Bytes::at_least(0),
        };
        match field.condition.is_some() || field.is_optional {
            true => Bytes::at_least(0),
            false => all,
        }
    }

    fn type_size(&self, ty: &Type, depth: usize) -> Bytes {
        match ty {
            Type::Unsigned(bits) | Type::Signed(bits) => Bytes::exactly(u64::from(bits / 8)),
            Type::Float32 => Bytes::exactly(4),
            Type::Float64 => Bytes::exactly(8),
            Type::Bool => Bytes::exactly(1),
            Type::Varint | Type::ZigZag => Bytes::at_least(1),
            Type::Coded(coding) => Bytes::at_least(coding.bytes_min() as u64),
            Type::Bits(bits) => Bytes::exactly(u64::from(bits.div_ceil(8))),
            Type::Text(extent) | Type::Bytes(extent) | Type::Json(extent) => extent_size(extent),
            Type::Binary(_, extent) | Type::Proto { extent, .. } => extent_size(extent),
            Type::Fields(inner) => self.inner_size(inner, depth),
            Type::Struct(index) => match self.declaration.types.get(*index) {
                Some(one) => self.inner_size(&one.fields, depth),
                None => Bytes::at_least(0),
            },
        }
    }

    fn inner_size(&self, fields: &[Field], depth: usize) -> Bytes {
        if depth >= DEPTH_MAX {
            return Bytes::at_least(0);
        }
        let (mut sum, mut bits) = (Bytes::default(), 0);
        for field in fields {
            match field.ty {
                Type::Bits(width) => bits += u64::from(width),
                _ => {
                    let whole = Bytes::exactly(bits.div_ceil(8));
                    sum = sum.plus(whole).plus(self.size(field, depth + 1));
                    bits = 0;
                }
            }
        }
        sum.plus(Bytes::exactly(bits.div_ceil(8)))
    }

    /// In the notation of a file: `u16le`, `str`, `item[3]`.
    fn type_text(&self, field: &Field) -> String {
        if field.role == Role::Body {
            return String::new();
        }
        let is_little = match (field.endian, self.declaration.endian) {
            (Some(Endian::Little), Endian::Big) => "le",
            (Some(Endian::Big), Endian::Little) => "be",
            _ => "",
        };
        let one = match &field.ty {
            Type::Unsigned(8) => "u8".to_string(),
            Type::Signed(8) => "i8".to_string(),
            Type::Unsigned(bits) => format!("u{bits}{is_little}"),
            Type::Signed(bits) => format!("i{bits}{is_little}"),
            Type::Float32 => format!("f32{is_little}"),
            Type::Float64 => format!("f64{is_little}"),
            Type::Bool => "bool".to_string(),
            Type::Varint => "varint".to_string(),
            Type::ZigZag => "zigzag".to_string(),
            Type::Coded(coding) => coding.word().to_string(),
            Type::Bits(bits) => format!("b{bits}"),
            Type::Text(_) => "str".to_string(),
            Type::Bytes(_) => "bytes".to_string(),
            Type::Json(_) => "json".to_string(),
            Type::Binary(format, _) => format.word().to_string(),
            Type::Proto { message, .. } => {
                format!("protobuf({})", self.declaration.schema.message_name(*message))
            }
            Type::Struct(index) => {
                let one = self.declaration.types.get(*index);
                one.map_or(String::new(), |one| one.name.value.clone())
            }
            Type::Fields(_) => "fields".to_string(),
        };
        match &field.repeat {
            None => one,
            Some(Repeat::Times(times)) => format!("{one}[{times}]"),
            Some(_) => format!("{one}[]"),
        }
    }

    fn notes(&self, field: &Field) -> Vec<Said> {
        let mut notes = Vec::new();
        let mut add = |note: Said| notes.push(note);
        if let Some(constant) = &field.constant {
            add(say!("always {}", literal_text(&constant.value, &field.ty)));
        }
        role_notes(field).into_iter().for_each(&mut add);
        let extent = extent_of(&field.ty).or(field.bound.as_ref());
        let is_document = self.declaration.format.is_some();
        let extent = extent.filter(|_| field.role != Role::Body && !is_document);
        if let Some(extent) = extent {
            extent_notes(extent).into_iter().for_each(&mut add);
        }
        match &field.repeat {
            Some(Repeat::Prefixed(prefix)) => {
                add(say!("prefixed with the count as {}", prefix.word()));
            }
            Some(Repeat::Field(id)) => add(say!("`{}` contains the count", id.value)),
            Some(Repeat::Rest) => add(say!("repeats until the end")),
            Some(Repeat::Until(end)) => add(say!("repeats until {}", hex_text(end))),
            Some(Repeat::Times(_)) | None => {}
        }
        if let Some(path) = &field.path {
            add(say!("path {}", path.value));
        }
        match field.is_optional {
            true if is_document => add(say!("optional")),
            true => add(say!("only if bytes are left")),
            false => {}
        }
        if let Some(layer) = field.layer {
            add(say!("packed with {}", layer.word()));
        }
        if let Some(condition) = &field.condition {
            add(say!("only if {}", condition_text(condition)));
        }
        if let Some(default) = &field.default {
            add(say!("{} by default", literal_text(&default.value, &field.ty)));
        }
        if !field.labels.is_empty() {
            let labels = field.labels.iter().take(LABELS_MAX);
            let mut names: Vec<String> = labels.map(label_text).collect();
            if field.labels.len() > LABELS_MAX {
                names.push("…".to_string());
            }
            notes.push(say!("{}", listed(&names)));
        }
        notes
    }
}

fn label_text((name, value): &(Placed<String>, i64)) -> String {
    format!("{value} = {}", name.value)
}

fn listed(names: &[String]) -> String {
    names.join(", ")
}

/// The maximum number of value names shown per field.
const LABELS_MAX: usize = 12;

fn role_notes(field: &Field) -> Vec<Said> {
    let mut notes = Vec::new();
    match &field.role {
        Role::Value => {}
        Role::Length { counts, plus, bytes_max } => {
            notes.push(match counts {
                Counts::Packet => say!("length of the whole packet in bytes"),
                Counts::After => say!("number of bytes that follow"),
                Counts::Body => say!("length of the body in bytes"),
            });
            if *plus != 0 {
                notes.push(say!("plus {plus}"));
            }
            if let Some(most) = bytes_max {
                notes.push(say!("at most {}", size_text(most.value)));
            }
        }
        Role::Selects => notes.push(say!("identifies the message")),
        Role::Correlates => {
            notes.push(say!("in replies, the request's value; otherwise 0"));
        }
        Role::Body => notes.push(say!("the fields of the message")),
        Role::Checksum { algorithm, over } => {
            let name = algorithm.word();
            notes.push(match over.is_empty() {
                true => say!("{name} over all preceding bytes"),
                false => {
                    let ids: Vec<String> =
                        over.iter().map(|id| format!("`{}`", id.value)).collect();
                    say!("{name} over {}", listed(&ids))
                }
            });
        }
    }
    notes
}

fn extent_notes(extent: &Extent) -> Vec<Said> {
    match extent {
        Extent::Fixed(_) => Vec::new(),
        Extent::Prefixed { prefix, bytes_max } => {
            let mut notes = vec![say!("prefixed with the length as {}", prefix.word())];
            if let Some(most) = bytes_max {
                notes.push(say!("at most {}", size_text(*most)));
            }
            notes
        }
        Extent::Delimited(bytes) => vec![say!("ends with {}", hex_text(bytes))],
        Extent::Field(id) => vec![say!("`{}` contains the length in bytes", id.value)],
        Extent::Rest => vec![say!("to the end of the body")],
        Extent::RestBefore(bytes) => {
            vec![say!("to the end of the body"), say!("ends with {}", hex_text(bytes))]
        }
    }
}

fn extent_of(ty: &Type) -> Option<&Extent> {
    match ty {
        Type::Text(extent) | Type::Bytes(extent) | Type::Json(extent) => Some(extent),
        Type::Binary(_, extent) | Type::Proto { extent, .. } => Some(extent),
        _ => None,
    }
}

fn extent_size(extent: &Extent) -> Bytes {
    match extent {
        Extent::Fixed(bytes) => Bytes::exactly(u64::from(*bytes)),
        Extent::Prefixed { prefix, .. } => prefix_size(*prefix).plus(Bytes::at_least(0)),
        Extent::Delimited(end) | Extent::RestBefore(end) => Bytes::at_least(end.len() as u64),
        Extent::Field(_) | Extent::Rest => Bytes::at_least(0),
    }
}

fn prefix_size(prefix: Prefix) -> Bytes {
    match prefix {
        Prefix::Unsigned(bits) => Bytes::exactly(u64::from(bits / 8)),
        Prefix::Varint | Prefix::Ber | Prefix::Lenenc => Bytes::at_least(1),
    }
}

/// A constant in its encoded form, if that helps to find it.
fn literal_text(literal: &Literal, ty: &Type) -> String {
    match (literal, ty) {
        (Literal::Int(value), Type::Unsigned(bits)) if *bits > 8 => {
            format!("{value:#0width$x}", width = usize::from(bits / 4) + 2)
        }
        (Literal::Int(value), _) => value.to_string(),
        (Literal::Float(value), _) => value.to_string(),
        (Literal::Bool(value), _) => value.to_string(),
        (Literal::Text(text), _) => format!("`{}`", text.escape_debug()),
        (Literal::Bytes(bytes), _) => hex_text(bytes),
    }
}

pub(crate) fn condition_text(condition: &Condition) -> String {
    let (field, value) = (&condition.field.value, condition.value);
    let sign = condition.comparison.sign();
    format!("`{field} {sign} {value}`")
}
