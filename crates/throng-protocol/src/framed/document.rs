//! Reads packets that are documents: one pass finds all parts that fields name; then the message is
//! chosen, and its fields become records.

use throng_base::Said;

use super::declaration::Format;
use super::encode::raw_of;
use super::kinds::{number_of_integer, number_of_text};
use super::notation::{Form, PartKind};
use super::table::{Document, GoesOn, Job, NONE, Node, Record, Shape, Table};
use super::wanted::ABSENT;
use super::{Broken, Decoded, EXCERPT_BYTES_MAX, MessageId, Packet};

type Read<T = ()> = Result<T, Box<Broken>>;

/// Reads `packet`, sent by one side; it is the message `assumed` if given and no field selects one.
pub(super) fn decode(
    table: &Table,
    document: &Document,
    (from_target, assumed): (bool, Option<MessageId>),
    packet: &[u8],
    decoded: &mut Decoded,
) -> Result<Packet, Broken> {
    decoded.records.clear();
    decoded.unpacked.clear();
    decoded.found.clear();
    decoded.found.resize(document.slots, ABSENT);
    (decoded.message, decoded.correlation) = (None, None);
    let mut reader = DocumentReader { table, document, packet, decoded };
    let assumed = assumed.filter(|_| table.selectors.is_empty());
    let read = reader.packet(usize::from(from_target), assumed.map(|message| message.0));
    let message = read.map_err(|broken| broken.showing(packet))?;
    let goes_on = reader.goes_on(message);
    let correlation = reader.decoded.correlation;
    Ok(Packet { message: MessageId(message), correlation, goes_on })
}

struct DocumentReader<'a> {
    table: &'a Table,
    document: &'a Document,
    packet: &'a [u8],
    decoded: &'a mut Decoded,
}

impl DocumentReader<'_> {
    fn packet(&mut self, side: usize, assumed: Option<u16>) -> Read<u16> {
        let (packet, most) = (self.packet, self.table.packet_bytes_max);
        if packet.len() > most {
            let bytes = packet.len();
            let reason = say!("the packet has {bytes} bytes; the maximum is {most}");
            return Err(self.broken(NONE, 0, reason));
        }
        if packet.is_empty() {
            return Err(self.broken(NONE, 0, say!("the packet is empty")));
        }
        let format = self.document.format;
        if !format.is_binary()
            && let Err(error) = std::str::from_utf8(packet)
        {
            let at = error.valid_up_to();
            let reason = say!("the text is not UTF-8: byte {:#04x}", packet[at]);
            return Err(self.broken(NONE, at, reason));
        }
        let root = self.table.root();
        let scanned = format.scan(root, packet, &self.document.wanted, &mut self.decoded.found);
        scanned.map_err(|at| self.broken(NONE, at, format.wrong(packet, at)))?;
        let message = match assumed {
            Some(message) => message,
            None => self.choose(side)?,
        };
        self.decoded.message = Some(MessageId(message));
        let table = self.table;
        for id in table.list(0).nodes.clone() {
            let node = table.node(id);
            match node.shape {
                Shape::Body => {
                    let index = self.decoded.records.len();
                    self.push(id, (0, 0), 0);
                    for id in table.list(table.messages[usize::from(message)].list).nodes.clone() {
                        self.member(id, table.node(id))?;
                    }
                    self.decoded.records[index].next = self.decoded.records.len() as u32;
                }
                _ => self.member(id, node)?,
            }
        }
        Ok(message)
    }

    /// The position of a field, if it is present.
    fn span(&self, node: &Node) -> Option<(usize, usize)> {
        let slot = usize::from(node.member.as_ref()?.slot);
        let span = *self.decoded.found.get(slot).filter(|span| **span != ABSENT)?;
        Some((span.0 as usize, span.1 as usize))
    }

    /// The first message whose kind matches and whose required fields are all present.
    fn choose(&mut self, side: usize) -> Read<u16> {
        let candidates = &self.document.candidates[side];
        let selector = self.table.selectors.first().map(|selector| selector.node);
        let span = selector.and_then(|selector| self.span(self.table.node(selector)));
        let of_kind = match (selector, span) {
            (Some(selector), Some((start, end))) => {
                self.of_kind(side, self.table.node(selector), &self.packet[start..end])
            }
            _ => &[],
        };
        // A declared kind of this side cannot belong to a message for all other kinds.
        let is_own = of_kind.first().is_some_and(|first| {
            self.table.messages[usize::from(*first)].comes_from_target == (side == 1)
        });
        let others = if is_own { &[][..] } else { &candidates.others };
        let mut nearest = None;
        for message in of_kind.iter().chain(others) {
            match self.lacks(*message) {
                None => return Ok(*message),
                Some(node) => nearest = nearest.or(Some((*message, node))),
            }
        }
        // If a message nearly matches, its error is reported.
        if let Some((message, node)) = nearest
            && (!of_kind.is_empty() || candidates.others.len() == 1)
        {
            self.decoded.message = Some(MessageId(message));
            return Err(self.lacking(node));
        }
        let reason = match span {
            Some((start, end)) => {
                say!("no message has the kind {}", self.shown(&self.packet[start..end]))
            }
            None => say!("no message has these fields"),
        };
        let at = span.map_or(0, |span| span.0);
        Err(self.broken(selector.unwrap_or(NONE), at, reason))
    }

    /// The messages whose kind is this text or number.
    fn of_kind(&self, side: usize, node: &Node, span: &[u8]) -> &[u16] {
        let (candidates, format) = (&self.document.candidates[side], self.document.format);
        match node.shape {
            Shape::Text(_) | Shape::Bytes(_) => match format.plain(span) {
                Some(text) => candidates.of(text),
                None => {
                    let value = format.value(span).unwrap_or_default();
                    value.as_octets().map_or(&[], |text| candidates.of(text))
                }
            },
            _ => match format.kind(span) {
                PartKind::Whole(number) => candidates.of(&(number as u64).to_be_bytes()),
                _ => &[],
            },
        }
    }

    /// A field that rules out this message: it is missing, or differs from its constant.
    fn lacks(&self, message: u16) -> Option<u32> {
        let needed = self.table.messages[usize::from(message)].needed.iter();
        needed.copied().find(|id| {
            let node = self.table.node(*id);
            match (self.span(node), &node.constant) {
                (None, _) => true,
                (Some((start, end)), Some(constant)) => {
                    let format = self.document.format;
                    let span = &self.packet[start..end];
                    !is_same(format, node.form(format), span, &constant.written)
                }
                (Some(_), None) => false,
            }
        })
    }

    fn lacking(&self, id: u32) -> Box<Broken> {
        let node = self.table.node(id);
        match (self.span(node), &node.constant) {
            (Some((start, _)), Some(constant)) => {
                let expected = self.shown(&constant.written);
                self.broken(id, start, say!("the protocol requires {expected} here"))
            }
            _ => self.broken(id, 0, say!("the field is missing")),
        }
    }

    /// The record of a field.
    fn member(&mut self, id: u32, node: &Node) -> Read {
        let Some((start, end)) = self.span(node) else { return Ok(()) };
        let (span, format) = (&self.packet[start..end], self.document.format);
        let content = (start as u64) << 32 | end as u64;
        let raw = match (&node.shape, format.kind(span)) {
            (Shape::Json(_), PartKind::Foreign(..)) => None,
            (Shape::Json(_), _)
            | (Shape::Text(_), PartKind::Text)
            | (Shape::Bytes(_), PartKind::Bytes) => Some(content),
            (_, PartKind::Null) => return Ok(()),
            (Shape::Text(_) | Shape::Bytes(_), _) => None,
            _ if !format.has_types() => {
                format.value(span).and_then(|text| raw_of(node, &text).ok())
            }
            (Shape::Bool, PartKind::Bool(value)) => Some(u64::from(value)),
            (Shape::Bool, _) => None,
            (Shape::Float64, kind) => kind.float().map(f64::to_bits),
            (Shape::Float32, kind) => {
                kind.float().map(|number| u64::from((number as f32).to_bits()))
            }
            (_, PartKind::Whole(number)) => {
                let (low, high) = node.range();
                (low..=high).contains(&number).then_some(number as u64)
            }
            _ => None,
        };
        let Some(raw) = raw else {
            let (word, shown) = (self.table.word(id), self.shown(span));
            return Err(self.broken(id, start, say!("its type is `{word}`, but it is {shown}")));
        };
        if node.job == Job::Correlation {
            self.decoded.correlation = Some(match node.shape {
                Shape::Text(_) => match format.plain(span) {
                    Some(text) => number_of_text(text),
                    None => {
                        let value = format.value(span).unwrap_or_default();
                        number_of_text(value.as_octets().unwrap_or(span))
                    }
                },
                Shape::Bytes(_) => number_of_integer(format.plain(span).unwrap_or(span)),
                _ => raw,
            });
        }
        self.push(id, (start, end), raw);
        Ok(())
    }

    fn push(&mut self, node: u32, (start, end): (usize, usize), raw: u64) {
        let records = &mut self.decoded.records;
        let next = records.len() as u32 + 1;
        records.push(Record { node, next, start: start as u32, end: end as u32, raw });
    }

    /// Whether the reply has more packets after this one.
    fn goes_on(&self, message: u16) -> bool {
        match &self.table.messages[usize::from(message)].more {
            GoesOn::Never => false,
            GoesOn::Always => true,
            GoesOn::If(test) => {
                let record = self.decoded.records.iter().find(|record| record.node == test.node);
                let node = self.table.node(test.node);
                record.is_some_and(|record| test.holds(node.whole(record.raw)))
            }
        }
    }

    fn shown(&self, part: &[u8]) -> String {
        self.document.format.shown(part, EXCERPT_BYTES_MAX)
    }

    #[cold]
    fn broken(&self, id: u32, position: usize, reason: Said) -> Box<Broken> {
        let field = self.table.path(id);
        Box::new(Broken { position, field, reason, is_lost: false, excerpt: Box::default() })
    }
}

fn is_same(format: Format, form: Form, span: &[u8], constant: &[u8]) -> bool {
    span == constant
        || match (format.content(form, span), format.content(form, constant)) {
            (Some(one), Some(other)) => one.equals(&other),
            _ => false,
        }
}
