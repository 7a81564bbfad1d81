//! Fields of documents: their positions, and the messages that a document can be.

use throng_base::Said;
use throng_expression::Value;

use super::MessageId;
use super::declaration::{
    Declaration, Extent, Field, Format, Message, MessageKind, Mistake, PlaceId, Role, Type,
};
use super::notation::xml;
use super::path::json_step;
use super::table::{Candidates, Constant, Document, Job, Member, Table};
use super::wanted::{Around, Inner, ValueTree, Wanted};
use crate::fields::Parts;

/// Maximum index of an item; items before it that no field names are sent as `null`.
const INDEX_MAX: u32 = 255;

/// The path of a field in its document; fails if the field has features that documents lack.
pub(super) fn member(field: &Field, format: Format) -> Result<Member, Box<Mistake>> {
    let name = &field.id.value;
    let refused = [
        (field.condition.is_some(), "if"),
        (field.repeat.is_some(), "repeat"),
        (field.layer.is_some(), "layer"),
        (field.endian.is_some(), "endian"),
        (matches!(field.role, Role::Length { .. }), "counts"),
        (matches!(field.role, Role::Checksum { .. }), "checksum"),
    ];
    if let Some((_, word)) = refused.into_iter().find(|(is_there, _)| *is_there) {
        let message = say!("`{name}` is a part of a document, so it cannot have `{word}`");
        let help = say!("remove it: `path` says where the field is");
        return Err(mistake("protocol-bad-type", field.place, message, say!("not here"), help));
    }
    let is_right = matches!(
        field.ty,
        Type::Unsigned(_) | Type::Signed(_) | Type::Float64 | Type::Bool | Type::Text(Extent::Rest)
    );
    let is_any = matches!(field.ty, Type::Json(Extent::Rest)) && format.has_types();
    let is_binary = matches!(field.ty, Type::Float32 | Type::Bytes(Extent::Rest));
    if !(is_right || is_any || is_binary && format.is_binary()) {
        let notation = format.name();
        let message = say!("the type of `{name}` does not exist in {notation}");
        let help = match format {
            Format::Json => say!("use `json`, `str`, `bool`, `f64` or an integer such as `u32`"),
            Format::Cbor | Format::MessagePack => {
                say!("use `json`, `str`, `bytes`, `bool`, `f64` or an integer such as `u32`")
            }
            Format::Xml => say!("use `str`, `bool`, `f64` or an integer such as `u32`"),
        };
        let label = say!("this type is not possible");
        return Err(mistake("protocol-bad-type", field.place, message, label, help));
    }
    if format == Format::Xml {
        return element(field, format);
    }
    let Some(written) = &field.path else {
        let path = Box::new([Inner::Key(name.as_str().into())]);
        return Ok(Member { path, ..Member::default() });
    };
    let wrong = |message: Said, help: Said| {
        mistake("protocol-bad-path", written.place, message, say!("not a valid path"), help)
    };
    let mut path = Vec::new();
    let mut parts = Parts::new(&written.value).map_err(|found| wrong(found.message, found.help))?;
    while let Some(part) = parts.next().map_err(|found| wrong(found.message, found.help))? {
        path.push(json_step(part));
    }
    let is_far = |step: &Inner| matches!(step, Inner::Index(index) if *index > INDEX_MAX);
    if path.is_empty() || path.iter().any(is_far) {
        let message = say!("`{}` does not name a part of a document", written.value);
        let help = say!("write a key or an index from 0 to {INDEX_MAX}: `data.id`, `[0]`");
        return Err(wrong(message, help));
    }
    Ok(Member { path: path.into(), ..Member::default() })
}

/// The same in XML: the field that selects is the name of the element.
fn element(field: &Field, format: Format) -> Result<Member, Box<Mistake>> {
    let is_kind = field.role == Role::Selects;
    let own = if is_kind { "name()" } else { &field.id.value };
    let place = field.path.as_ref().map_or(field.id.place, |path| path.place);
    let written = field.path.as_ref().map_or(own, |path| &path.value);
    let found = xml::path(written).filter(|path| xml::is_name_path(path) == is_kind);
    let is_text = matches!(field.ty, Type::Text(_));
    match found.filter(|path| is_text || !(is_kind || format.is_markup(path))) {
        Some(path) => Ok(Member { path, slot: 0 }),
        None => {
            let message = match is_kind {
                true => {
                    say!("`{}` selects the message, so it is the element's name", field.id.value)
                }
                false => say!("`{written}` does not name a part of an element"),
            };
            let help = match is_kind {
                true => say!("write `type: str` and no `path`"),
                false => say!(
                    "write an element, an attribute or the markup in an element: `body`, `@id`, \
                     `error/@code`, `node()`"
                ),
            };
            Err(mistake("protocol-bad-path", place, message, say!("not a valid path"), help))
        }
    }
}

fn mistake(
    code: &'static str,
    place: PlaceId,
    message: Said,
    label: Said,
    help: Said,
) -> Box<Mistake> {
    Box::new(Mistake { code, message, label, help, place, other: None })
}

/// Completes the table of a declaration whose packets are documents.
pub(super) fn complete(declaration: &Declaration, table: &mut Table, mistakes: &mut Vec<Mistake>) {
    let mut wanted = Wanted::default();
    for member in table.nodes.iter().filter_map(|node| node.member.as_ref()) {
        wanted.add(&member.path);
    }
    let mut slots = 0;
    wanted.number(&mut slots);
    for member in table.nodes.iter_mut().filter_map(|node| node.member.as_mut()) {
        member.slot = wanted.find(&member.path).unwrap_or_default();
    }
    let slots = usize::from(slots);
    let format = declaration.format.unwrap_or_default();
    table.document = Some(Document { wanted, slots, ..Document::of(format) });
    let mut finder = Finder { declaration, table, mistakes };
    finder.selectors();
    for (index, message) in declaration.messages.iter().enumerate() {
        finder.kind(index, message);
        finder.needed(index);
        finder.paths(format, message);
        if format == Format::Xml {
            finder.element(message);
        }
    }
    finder.hidden();
    finder.candidates();
}

struct Finder<'a> {
    declaration: &'a Declaration,
    table: &'a mut Table,
    mistakes: &'a mut Vec<Mistake>,
}

impl Finder<'_> {
    fn selectors(&mut self) {
        if let Some(second) = self.table.selectors.get(1) {
            let field = &self.declaration.packet[second.node as usize];
            let name = &field.id.value;
            let message = say!("`{name}` is a second field that selects the message");
            let help = say!("give the messages a field with `const` instead");
            let found =
                mistake("protocol-bad-role", field.place, message, say!("one too many"), help);
            self.mistakes.push(*found);
        }
    }

    /// The value that selects the message, as written in a document.
    fn kind(&mut self, index: usize, message: &Message) {
        let selector = self.table.selectors.first().map(|selector| selector.node);
        let (Some(kind), Some(selector)) = (&message.kind, selector) else {
            if let Some(kind) = &message.kind {
                let name = &message.name.value;
                let text =
                    say!("`{name}` has a kind, but no field of the packet contains the kind");
                let help = say!("add `selects: message` to a field of the packet");
                let label = say!("no field contains this kind");
                let found = mistake("protocol-bad-kind", kind.place, text, label, help);
                self.mistakes.push(*found);
            }
            if let Some(made) = self.table.messages.get_mut(index) {
                made.is_of_any_kind = true;
            }
            return;
        };
        let (low, high) = self.table.node(selector).range();
        let format = self.declaration.format.unwrap_or_default();
        let form = self.table.node(selector).form(format);
        let made = self.table.messages.get_mut(index);
        match (&kind.value, made) {
            (_, None) => {}
            (MessageKind::Text(text), Some(made)) => {
                let mut written = Vec::new();
                written.extend_from_slice(text);
                format.put(form, 0, &mut written);
                let (content, written) = (text.as_slice().into(), written.into());
                made.text = Some(Constant { raw: 0, content, written });
            }
            (MessageKind::Numbers(numbers), Some(made)) => match numbers[..] {
                [number] if (low..=high).contains(&i128::from(number)) => {
                    made.raws = Box::new([number as u64]);
                }
                _ => {
                    let field = &self.declaration.packet[selector as usize];
                    let (id, value) = (&field.id.value, &kind.value);
                    let text = say!("`{id}` cannot encode the kind {value}");
                    let help = say!(
                        "its range is {low} to {high}; change the kind or the type of the field"
                    );
                    let label = say!("does not fit");
                    let mut found = mistake("protocol-bad-kind", kind.place, text, label, help);
                    found.other = Some((field.place, say!("the field")));
                    self.mistakes.push(*found);
                }
            },
        }
    }

    /// The fields without which a document is another message.
    fn needed(&mut self, index: usize) {
        let Some(made) = self.table.messages.get(index) else { return };
        let (list, is_of_any_kind) = (made.list, made.is_of_any_kind);
        let members = self.table.members(0).chain(self.table.members(list));
        let needed = members.filter(|(_, node)| {
            let is_kind = matches!(node.job, Job::Kind(_));
            node.member.is_some() && !node.is_optional && (!is_kind || is_of_any_kind)
        });
        let needed = needed.map(|(id, _)| id).collect();
        if let Some(made) = self.table.messages.get_mut(index) {
            made.needed = needed;
        }
    }

    /// Two fields of a message must not have the same path, nor one inside the other.
    fn paths(&mut self, format: Format, message: &Message) {
        let own = message.body.iter();
        let fields: Vec<&Field> = self.declaration.packet.iter().chain(own).collect();
        let members: Vec<(&Field, Member)> =
            fields.iter().filter_map(|field| Some((*field, member(field, format).ok()?))).collect();
        // What comes may be read in several ways.
        let comes = self.declaration.comes_from_target(message);
        let are_at_odds = |one: &Member, other: &Member| match format {
            Format::Xml if comes => one.path == other.path,
            Format::Xml => xml::are_at_odds(&one.path, &other.path),
            _ => are_at_odds(&one.path, &other.path),
        };
        for (index, (field, one)) in members.iter().enumerate() {
            let mut earlier = members[..index].iter();
            let twin = earlier.find(|(_, other)| are_at_odds(one, other));
            let Some((first, _)) = twin else { continue };
            let (a, b) = (&first.id.value, &field.id.value);
            let text = say!("`{a}` and `{b}` cannot be in one document");
            let help = say!("give each of them a `path` of its own, and not one inside the other");
            let place = field.path.as_ref().map_or(field.id.place, |path| path.place);
            let label = say!("the second field");
            let mut found = mistake("protocol-bad-path", place, text, label, help);
            found.other = Some((first.id.place, say!("the first field")));
            self.mistakes.push(*found);
        }
    }

    /// An element that throng sends has a name, which no field but `name()` gives.
    fn element(&mut self, message: &Message) {
        let name = &message.name.value;
        let text = match message.kind.as_ref().map(|kind| (kind, &kind.value)) {
            None if self.declaration.comes_from_target(message) => return,
            Some((_, MessageKind::Text(text))) => {
                let text = String::from_utf8_lossy(text).into_owned();
                if xml::is_name(text.strip_prefix('/').unwrap_or(&text)) {
                    return;
                }
                say!("`{text}` is not the name of an element")
            }
            _ => say!("`{name}` has no `kind`, so its element has no name"),
        };
        let place = message.kind.as_ref().map_or(message.name.place, |kind| kind.place);
        let help = say!(
            "give the packet `{{id: element, type: str, selects: message}}`, and the message the \
             name of its element as `kind`"
        );
        let label = say!("no element");
        self.mistakes.push(*mistake("protocol-bad-kind", place, text, label, help));
    }

    /// A message is never chosen if an earlier one requires no more than it does.
    fn hidden(&mut self) {
        let declaration = self.declaration;
        for (index, message) in declaration.messages.iter().enumerate() {
            let from = declaration.comes_from_target(message);
            let kind = |message: &Message| message.kind.as_ref().map(|kind| kind.value.clone());
            let earlier = declaration.messages[..index].iter().enumerate();
            let mut earlier = earlier.filter(|(_, other)| {
                declaration.comes_from_target(other) == from && kind(other) == kind(message)
            });
            let Some((_, first)) = earlier.find(|(at, _)| self.covers(*at, index)) else {
                continue;
            };
            let (a, b) = (&first.name.value, &message.name.value);
            let text = say!("`{a}` and `{b}` cannot be told apart");
            let help = say!(
                "give them different kinds, or declare first the message with a field that the \
                 other one lacks"
            );
            let place = message.kind.as_ref().map_or(message.name.place, |kind| kind.place);
            let label = say!("every such packet is the first message");
            let mut found = mistake("protocol-kind-twice", place, text, label, help);
            found.other = Some((first.name.place, say!("the first message")));
            self.mistakes.push(*found);
        }
    }

    /// Whether every document that has what one message requires also has what the other requires.
    fn covers(&self, one: usize, other: usize) -> bool {
        let table: &Table = self.table;
        let needed = |index: usize| {
            let made = table.messages.get(index);
            let needed = made.map_or(&[][..], |made| &made.needed[..]);
            needed.iter().map(move |id| table.node(*id))
        };
        needed(one).all(|node| {
            needed(other).any(|other| {
                let paths = [node, other].map(|node| node.member.as_ref().map(|one| &one.path));
                let fits = match (&node.constant, &other.constant) {
                    (Some(one), Some(other)) => one.written == other.written,
                    (Some(_), None) => false,
                    (None, _) => true,
                };
                paths[0] == paths[1] && fits
            })
        })
    }

    /// For each side, its own messages are tried first.
    fn candidates(&mut self) {
        let declaration = self.declaration;
        let messages = declaration.messages.iter().zip(&self.table.messages).enumerate();
        let mut made = [Candidates::default(), Candidates::default()];
        for (side, candidates) in made.iter_mut().enumerate() {
            let own =
                |message: &Message| usize::from(declaration.comes_from_target(message)) == side;
            let (ours, others): (Vec<_>, Vec<_>) =
                messages.clone().partition(|(_, (message, _))| own(message));
            for (index, (_, message)) in ours.into_iter().chain(others) {
                let kind: Box<[u8]> = match (&message.text, &message.raws[..]) {
                    (Some(text), _) => text.content.clone(),
                    (None, [raw]) => Box::new(raw.to_be_bytes()),
                    _ => {
                        candidates.others.push(index as u16);
                        continue;
                    }
                };
                match candidates.kinds.binary_search_by(|(other, _)| other.cmp(&kind)) {
                    Ok(at) => candidates.kinds[at].1.push(index as u16),
                    Err(at) => candidates.kinds.insert(at, (kind, vec![index as u16])),
                }
            }
        }
        if let Some(document) = &mut self.table.document {
            document.candidates = made;
        }
    }
}

/// Whether no document can have both parts: one is inside the other, or one is a key where the
/// other is an index.
fn are_at_odds(one: &[Inner], other: &[Inner]) -> bool {
    let mut pairs = one.iter().zip(other);
    match pairs.find(|(a, b)| a != b) {
        None => true,
        Some((Inner::Key(_), Inner::Index(_)) | (Inner::Index(_), Inner::Key(_))) => true,
        Some(_) => false,
    }
}

/// The document of a message with values at these paths: keys in the order in which they are first
/// named, list items in order, with `null` for those not named.
pub(super) fn around<'p>(
    table: &Table,
    message: MessageId,
    paths: impl Iterator<Item = &'p [Inner]>,
) -> Around {
    let format = table.document.as_ref().map(|document| document.format).unwrap_or_default();
    let mut root = ValueTree::default();
    for (index, path) in paths.enumerate() {
        root.add(path, index);
    }
    let mut around = Around::default();
    if format == Format::Xml {
        let name = table.messages[usize::from(message.0)].text.as_ref();
        let name = name.map_or(&[][..], |name| &name.content);
        xml::write(&root, &String::from_utf8_lossy(name), table.root(), &mut around);
    } else {
        write(&root, format, &mut around);
    }
    around
}

/// Writes an object or a list.
fn write(part: &ValueTree<'_>, format: Format, around: &mut Around) {
    if let Some(index) = part.value {
        around.value(index);
        return;
    }
    let is_list = matches!(part.children.first(), Some((Inner::Index(_), _)));
    let count = match part.children.last() {
        Some((Inner::Index(last), _)) => *last as usize + 1,
        _ => part.children.len(),
    };
    format.open(is_list, count, &mut around.end);
    let mut written = 0;
    for (step, child) in &part.children {
        match step {
            Inner::Key(key) => {
                format.separate(written, &mut around.end);
                format.write_path_key(key, &mut around.end);
                written += 1;
            }
            Inner::Index(index) => {
                for item in written..=*index as usize {
                    format.separate(item, &mut around.end);
                    if item < *index as usize {
                        format.write(&Value::Null, &mut around.end);
                    }
                }
                written = *index as usize + 1;
            }
        }
        write(child, format, around);
    }
    format.close(is_list, &mut around.end);
}
