//! Compiles a declaration to tables: every field becomes a node. Errors in a field are found here;
//! contradictions between messages in `contradictions`.

use throng_base::Said;

use super::Protocol;
use super::acknowledge::acknowledgements;
use super::checksum::checksum_width;
use super::constant::{constant_of, content_fits};
use super::contradictions;
use super::declaration::{
    BYTES_ALLOWED_MAX, BYTES_MAX, Coding, Condition, Declaration, Endian, Extent, Field, Format,
    Literal, Mistake, More, PlaceId, Placed, Prefix, Repeat, Role, Type, value_of,
};
use super::encode::raw_of;
use super::members::member;
use super::path::suggestion;
use super::table::{
    Bits, By, Document, Extents, GoesOn, Job, List, MARKS_MAX, Member, NONE, Node, Repeats,
    Selector, Shape, Table, Test,
};
use crate::fields::coerce;

/// Most fields of a declaration, with structures counted at each use.
const FIELDS_MAX: usize = 16_384;

/// Most nested structures.
const STRUCTURES_MAX: usize = 16;

/// Most messages of a declaration.
const MESSAGES_MAX: usize = 4_096;

pub(super) fn compile(declaration: Declaration) -> Result<Protocol, Vec<Mistake>> {
    let mut builder = Builder::new(&declaration);
    builder.build();
    let Builder { mut table, mut mistakes, .. } = builder;
    contradictions::find(&declaration, &mut table, &mut mistakes);
    if mistakes.is_empty() {
        place_records(&mut table);
        let infos = contradictions::infos(&declaration);
        let mut protocol = Protocol { declaration, table, infos, acknowledgements: Box::default() };
        acknowledgements(&mut protocol, &mut mistakes);
        if mistakes.is_empty() {
            return Ok(protocol);
        }
    }
    let mut said: Vec<Mistake> = Vec::new();
    for mistake in mistakes {
        // A structure that is used twice was checked twice.
        if !said.contains(&mistake) {
            said.push(mistake);
        }
    }
    Err(said)
}

/// Notes how many records precede those of a node, if that is always the same.
fn place_records(table: &mut Table) {
    let count = |table: &mut Table, list: u32, first: u32| {
        let mut next = first;
        for id in table.list(list).nodes.clone() {
            let node = &mut table.nodes[id as usize];
            node.record = next;
            let is_single = node.condition.is_none() && node.repeat == Repeats::Once;
            let has_others = matches!(node.shape, Shape::List(_) | Shape::Body);
            next = match next {
                NONE => NONE,
                at if is_single && !has_others => at + 1,
                _ => NONE,
            };
        }
    };
    count(table, 0, 0);
    let body = table.body.map_or(NONE, |body| table.node(body).record);
    let lists: Vec<u32> = table.messages.iter().map(|message| message.list).collect();
    for list in lists.into_iter().filter(|_| body != NONE) {
        count(table, list, body + 1);
    }
}

/// The list of fields that is being built.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Packet,
    Message,
    Structure,
}

pub(super) struct Builder<'d> {
    declaration: &'d Declaration,
    table: Table,
    pub(super) mistakes: Vec<Mistake>,
    /// The structures that enclose the current one.
    open: Vec<usize>,
    depth: usize,
    is_full: bool,
}

impl<'d> Builder<'d> {
    fn new(declaration: &'d Declaration) -> Builder<'d> {
        Builder {
            declaration,
            table: Table::default(),
            mistakes: Vec::new(),
            open: Vec::new(),
            depth: 0,
            is_full: false,
        }
    }

    fn build(&mut self) {
        let declaration = self.declaration;
        self.table.schema = declaration.schema.clone();
        self.table.document = declaration.format.map(Document::of);
        self.list(&declaration.packet, NONE, Within::Packet);
        if declaration.messages.len() > MESSAGES_MAX {
            let count = declaration.messages.len();
            self.mistake(
                "protocol-too-large",
                declaration.place,
                say!("there are {count} messages; the maximum is {MESSAGES_MAX}"),
                say!("too many messages"),
                say!("split the protocol into several files"),
            );
        }
        for message in declaration.messages.iter().take(MESSAGES_MAX) {
            let list = self.list(&message.body, NONE, Within::Message);
            let comes_from_target = declaration.comes_from_target(message);
            let more = match &message.more {
                None => GoesOn::Never,
                Some(More::Always) => GoesOn::Always,
                Some(More::If(test)) => {
                    self.condition(test, list).map_or(GoesOn::Always, GoesOn::If)
                }
            };
            let kind =
                super::table::MessageLayout { list, comes_from_target, more, ..Default::default() };
            let packets = self.table.members(list).next().filter(|_| message.holds_packets);
            let packets = packets.map(|(id, _)| id);
            let correlates =
                |(_, node): &(u32, &Node)| node.job == Job::Correlation || node.carries.is_some();
            let correlator = self.table.members(list).find(correlates).map(|(id, _)| id);
            let kind = super::table::MessageLayout { packets, correlator, ..kind };
            self.table.messages.push(kind);
        }
        // Unused structures are checked, too.
        for (index, structure) in declaration.types.iter().enumerate() {
            self.open.push(index);
            self.list(&structure.fields, NONE, Within::Structure);
            self.open.pop();
        }
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(super) fn mistake(
        &mut self,
        code: &'static str,
        place: PlaceId,
        message: Said,
        label: Said,
        help: Said,
    ) -> &mut Mistake {
        let label = label.to_owned();
        self.mistakes.push(Mistake { code, message, label, help, place, other: None });
        let last = self.mistakes.len() - 1;
        &mut self.mistakes[last]
    }

    fn list(&mut self, fields: &'d [Field], parent: u32, within: Within) -> u32 {
        let first = self.table.nodes.len() as u32;
        let list = self.table.lists.len() as u32;
        self.table.lists.push(List::default());
        if self.table.nodes.len() + fields.len() > FIELDS_MAX {
            if !self.is_full {
                let place = self.declaration.place;
                let message = say!("the messages have more than {FIELDS_MAX} fields in total");
                let help = say!("nest the structures less deeply");
                self.mistake("protocol-too-large", place, message, say!("too many fields"), help);
            }
            self.is_full = true;
            self.table.lists[list as usize].nodes = first..first;
            return list;
        }
        self.table.nodes.extend(fields.iter().map(|field| placeholder(field, parent)));
        self.table.lists[list as usize].nodes = first..first;
        for (index, field) in fields.iter().enumerate() {
            let id = first + index as u32;
            self.names(fields, index, within);
            self.node(field, id, list, within);
            self.table.lists[list as usize].nodes.end = id + 1;
        }
        self.bits(fields, first);
        self.measure(fields, list, within);
        list
    }

    /// Names must be unique within a list, and names of messages must differ from those of the
    /// packet.
    fn names(&mut self, fields: &[Field], index: usize, within: Within) {
        let id = &fields[index].id;
        let twin = fields[..index].iter().find(|other| other.id.value == id.value);
        let declaration = self.declaration;
        let packet = match within {
            Within::Message => declaration.packet.iter().find(|other| other.id.value == id.value),
            _ => None,
        };
        if let Some(other) = twin.or(packet) {
            let name = &id.value;
            let message = match twin {
                Some(_) => say!("two fields have the id `{name}`"),
                None => say!("`{name}` is already a field of the packet"),
            };
            let help = say!("give one of them another `id`");
            let mistake = self.mistake(
                "protocol-name-twice",
                id.place,
                message,
                say!("second occurrence"),
                help,
            );
            mistake.other = Some((other.id.place, say!("first occurrence")));
        }
    }

    fn node(&mut self, field: &'d Field, id: u32, list: u32, within: Within) {
        let shape = self.shape(field, id, list);
        let endian = field.endian.unwrap_or(self.declaration.endian);
        self.table.nodes[id as usize].is_little = endian == Endian::Little;
        self.table.nodes[id as usize].shape = shape;
        let bound = field.bound.as_ref().map(|extent| self.extent(field, extent, id, list));
        self.table.nodes[id as usize].bound = bound;
        self.table.nodes[id as usize].is_optional = field.is_optional;
        if let Some(Repeat::Until(bytes)) = &field.repeat {
            self.table.nodes[id as usize].until = bytes.as_slice().into();
        }
        self.labels(field, id);
        let repeat = self.repeat(field, id, list);
        self.table.nodes[id as usize].repeat = repeat;
        let condition = field.condition.as_ref().and_then(|test| self.condition(test, list));
        self.table.nodes[id as usize].condition = condition.map(Box::new);
        let job = self.job(field, id, list, within);
        self.table.nodes[id as usize].job = job;
        if let (Some(format), true) = (self.declaration.format, field.role != Role::Body) {
            let member = member(field, format).unwrap_or_else(|mistake| {
                self.mistakes.push(*mistake);
                Member::default()
            });
            self.table.nodes[id as usize].member = Some(Box::new(member));
        }
        if let Some(constant) = &field.constant {
            self.constant(field, id, constant);
        }
        self.table.nodes[id as usize].by = field.by.as_ref().and_then(|by| self.by(by, id));
        self.carries(field, id);
        let node = &self.table.nodes[id as usize];
        if let Some(layer) = field.layer
            && (node.shape.extent().is_none() || node.constant.is_some() || node.job != Job::Value)
        {
            let word = layer.word();
            let message = say!("`{}` cannot have the layer {word}", field.id.value);
            let help = say!("only text, bytes, JSON and protobuf without `const` can have a layer");
            self.mistake("protocol-bad-type", field.place, message, say!("no layer here"), help);
        }
        if let Some(default) = &field.default {
            self.default(id, default);
        }
    }

    fn shape(&mut self, field: &'d Field, id: u32, list: u32) -> Shape {
        let place = field.place;
        match &field.ty {
            _ if field.role == Role::Body => Shape::Body,
            Type::Unsigned(bits) | Type::Signed(bits) => {
                if *bits == 0 || *bits > 64 || bits % 8 != 0 {
                    let message = say!("integers cannot have {bits} bits");
                    let help = say!("integers have 8, 16, 24, 32, 40, 48, 56 or 64 bits");
                    self.mistake("protocol-bad-type", place, message, say!("no such type"), help);
                    return Shape::Unsigned(1);
                }
                match field.ty {
                    Type::Signed(_) => Shape::Signed(bits / 8),
                    _ => Shape::Unsigned(bits / 8),
                }
            }
            Type::Float32 => Shape::Float32,
            Type::Float64 => Shape::Float64,
            Type::Bool => Shape::Bool,
            Type::Varint => Shape::Coded(Coding::Varint),
            Type::ZigZag => Shape::Coded(Coding::ZigZag),
            Type::Coded(coding) => Shape::Coded(coding.clone()),
            Type::Bits(bits) => {
                let may_be_missing = field.condition.is_some() || field.is_optional;
                if *bits == 0 || *bits > 64 || field.repeat.is_some() || may_be_missing {
                    let message = match *bits {
                        1..=64 => say!("a bit field cannot be conditional or repeated"),
                        _ => say!("a bit field must have 1 to 64 bits, not {bits}"),
                    };
                    let help = match *bits {
                        1..=64 => {
                            say!("put the bits into a structure, and write `if` and `repeat` there")
                        }
                        _ => say!("use several bit fields, or an integer such as `u32`"),
                    };
                    self.mistake("protocol-bad-bits", place, message, say!("this bit field"), help);
                }
                let bits = u32::from((*bits).clamp(1, 64));
                Shape::Bits(Bits { bits, ..Bits::default() })
            }
            Type::Text(extent) => Shape::Text(self.extent(field, extent, id, list)),
            Type::Bytes(extent) => Shape::Bytes(self.extent(field, extent, id, list)),
            Type::Json(extent) | Type::Binary(_, extent) => {
                Shape::Json(self.extent(field, extent, id, list))
            }
            Type::Proto { message, extent } => {
                Shape::Proto(*message, self.extent(field, extent, id, list))
            }
            Type::Struct(index) => self.structure(field, *index, id),
            Type::Fields(fields) => self.inner(field, fields, id),
        }
    }

    fn structure(&mut self, field: &'d Field, index: usize, id: u32) -> Shape {
        let declaration = self.declaration;
        let Some(structure) = declaration.types.get(index) else { return Shape::List(0) };
        if self.open.contains(&index) {
            let name = &structure.name.value;
            let message = say!("the structure `{name}` contains itself");
            let help = say!("a structure cannot contain itself, directly or indirectly");
            let place = field.place;
            let mistake = self.mistake(
                "protocol-recursive",
                place,
                message,
                say!("contained again here"),
                help,
            );
            mistake.other = Some((structure.name.place, say!("the structure starts here")));
            let list = self.table.lists.len() as u32;
            self.table.lists.push(List::default());
            return Shape::List(list);
        }
        self.open.push(index);
        let shape = self.inner(field, &structure.fields, id);
        self.open.pop();
        shape
    }

    fn inner(&mut self, field: &Field, fields: &'d [Field], id: u32) -> Shape {
        if self.depth >= STRUCTURES_MAX {
            let message = say!("structures are nested more than {STRUCTURES_MAX} levels deep");
            let help = say!("inline the fields of some of these structures");
            self.mistake("protocol-too-large", field.place, message, say!("too deep"), help);
            return Shape::Bool;
        }
        self.depth += 1;
        let list = self.list(fields, id, Within::Structure);
        self.depth -= 1;
        Shape::List(list)
    }

    fn extent(&mut self, field: &Field, extent: &Extent, id: u32, list: u32) -> Extents {
        let place = field.place;
        match extent {
            Extent::Fixed(bytes) => Extents::Fixed(*bytes),
            Extent::Prefixed { prefix, bytes_max } => {
                let most = self.prefix(*prefix, place);
                let name = &field.id.value;
                match *bytes_max {
                    // 64 KiB is the usual way to say what 16 bits hold.
                    Some(bytes) if bytes > most.saturating_add(1) => {
                        let word = prefix.word();
                        let message = say!(
                            "the length of `{name}` is a {word}, which is too small for the \
                             limit of {bytes} bytes"
                        );
                        let help = say!("lower the limit to {most}, or use a longer prefix");
                        self.mistake(
                            "protocol-bad-length",
                            place,
                            message,
                            say!("too small"),
                            help,
                        );
                    }
                    Some(bytes) if bytes > BYTES_ALLOWED_MAX => self.too_much(place, bytes),
                    _ => {}
                }
                let bytes_max = bytes_max.unwrap_or(BYTES_MAX).min(most);
                Extents::Prefixed { prefix: *prefix, bytes_max }
            }
            Extent::Delimited(bytes) | Extent::RestBefore(bytes) => {
                if bytes.is_empty() {
                    let name = &field.id.value;
                    let message = say!("the delimiter of `{name}` is empty");
                    let help = say!("give at least one byte, as in `terminator: 0`");
                    self.mistake("protocol-bad-delimiter", place, message, say!("empty"), help);
                }
                match extent {
                    Extent::RestBefore(_) => Extents::RestBefore(bytes.as_slice().into()),
                    _ => Extents::Delimited(bytes.as_slice().into()),
                }
            }
            Extent::Field(name) => match self.counter(name, id, list) {
                Some(node) => Extents::Field(node),
                // With a fixed size, there are no further errors.
                None => Extents::Fixed(1),
            },
            Extent::Rest => Extents::Rest,
        }
    }

    fn too_much(&mut self, place: PlaceId, bytes: u64) {
        let message = say!("the limit of {bytes} bytes exceeds the maximum of {BYTES_ALLOWED_MAX}");
        let help = say!("packets cannot be larger: lower the limit");
        self.mistake("protocol-bad-length", place, message, say!("above the maximum"), help);
    }

    /// The greatest number that a prefix holds.
    fn prefix(&mut self, prefix: Prefix, place: PlaceId) -> u64 {
        if let Prefix::Unsigned(bits) = prefix
            && (bits == 0 || bits > 64 || bits % 8 != 0)
        {
            let message = say!("integers cannot have {bits} bits");
            let help = say!(
                "a prefix must be `u8`, `u16`, `u24`, `u32`, `u64`, `varint`, `ber` or `lenenc`"
            );
            self.mistake("protocol-bad-type", place, message, say!("no such type"), help);
            return u64::MAX;
        }
        prefix.max()
    }

    /// An earlier field of the list that contains the count or size.
    fn counter(&mut self, name: &Placed<String>, id: u32, list: u32) -> Option<u32> {
        let found = self.earlier(name, list)?;
        let wanted = &name.value;
        let node = &self.table.nodes[found as usize];
        if !node.is_whole_number() || node.repeat != Repeats::Once {
            let message =
                say!("`{wanted}` is not a whole number, so it cannot serve as a length or a count");
            let help = say!("use an earlier integer field that is not repeated");
            self.mistake("protocol-bad-reference", name.place, message, say!("not a number"), help);
            return None;
        }
        if !matches!(node.job, Job::Value | Job::Computed) {
            let message =
                say!("`{wanted}` has another purpose, so it cannot serve as a length or a count");
            let help = say!("use a separate field for the length or the count");
            self.mistake("protocol-bad-reference", name.place, message, say!("in use"), help);
            return None;
        }
        if node.constant.is_none() {
            self.table.nodes[found as usize].job = Job::Computed;
        }
        self.mark(found, list, name.place);
        self.mark(id, list, name.place);
        if self.table.nodes[found as usize].constant.is_none() {
            self.table.lists[list as usize].computed.push((found, id));
        }
        Some(found)
    }

    fn earlier(&mut self, name: &Placed<String>, list: u32) -> Option<u32> {
        let wanted = &name.value;
        if let Some(found) = self.table.find(list, wanted) {
            return Some(found);
        }
        let names: Vec<&str> = self.table.members(list).map(|(_, node)| &*node.name).collect();
        let help = match names.is_empty() {
            true => say!("this list has no earlier field"),
            false => suggestion(wanted, &names),
        };
        let message = say!("no earlier field in the same list is named `{wanted}`");
        self.mistake(
            "protocol-bad-reference",
            name.place,
            message,
            say!("there is no such field before this one"),
            help,
        );
        None
    }

    fn mark(&mut self, id: u32, list: u32, place: PlaceId) {
        if self.table.nodes[id as usize].mark.is_some() {
            return;
        }
        let marks = self.table.lists[list as usize].marks;
        if usize::from(marks) >= MARKS_MAX {
            let message = say!(
                "more than {MARKS_MAX} fields of one list are used for counts, checksums or \
                     conditions"
            );
            let help = say!("put some of them into a separate structure");
            self.mistake(
                "protocol-too-large",
                place,
                message,
                say!("this exceeds the limit"),
                help,
            );
            return;
        }
        self.table.nodes[id as usize].mark = Some(marks);
        self.table.lists[list as usize].marks = marks + 1;
    }

    fn labels(&mut self, field: &Field, id: u32) {
        let (low, high) = self.table.nodes[id as usize].range();
        let is_whole = self.table.nodes[id as usize].is_whole_number();
        for (index, (name, value)) in field.labels.iter().enumerate() {
            let earlier = &field.labels[..index];
            let twin =
                earlier.iter().find(|(other, number)| other.value == name.value || number == value);
            let label = &name.value;
            if let Some((other, _)) = twin {
                let message = match other.value == name.value {
                    true => say!("two values are named `{label}`"),
                    false => say!("{value} is named both `{}` and `{label}`", other.value),
                };
                let help = say!("give each value one name, and each name one value");
                let mistake = self.mistake(
                    "protocol-bad-label",
                    name.place,
                    message,
                    say!("second occurrence"),
                    help,
                );
                mistake.other = Some((other.place, say!("first occurrence")));
            }
            if !is_whole || !(low..=high).contains(&i128::from(*value)) {
                let message = match is_whole {
                    true => say!("`{label}` is {value}, which does not fit into the field"),
                    false => {
                        say!(
                            "`{}` is not a whole number, so its values cannot have names",
                            field.id.value
                        )
                    }
                };
                let help = say!("name only values that fit the type of the field");
                self.mistake("protocol-bad-label", name.place, message, say!("does not fit"), help);
            }
        }
        let labels = field.labels.iter().map(|(name, value)| (name.value.as_str().into(), *value));
        self.table.nodes[id as usize].labels = labels.collect();
    }

    fn repeat(&mut self, field: &Field, id: u32, list: u32) -> Repeats {
        let Some(repeat) = &field.repeat else { return Repeats::Once };
        if field.constant.is_some() || field.role != Role::Value {
            let message = say!("`{}` cannot be repeated", field.id.value);
            let help = say!("fields with `const` or a special purpose cannot be repeated");
            self.mistake("protocol-bad-repeat", field.place, message, say!("repeated"), help);
            return Repeats::Once;
        }
        match repeat {
            Repeat::Times(times) => Repeats::Times(*times),
            Repeat::Prefixed(prefix) => {
                self.prefix(*prefix, field.place);
                Repeats::Prefixed(*prefix)
            }
            Repeat::Field(name) => {
                if let Some(node) = self.table.find(list, &name.value)
                    && self.table.lists[list as usize].computed.contains(&(node, id))
                {
                    let message =
                        say!("`{}` cannot serve as both a length and a count", name.value);
                    let help = say!("use a second field for one of them");
                    self.mistake(
                        "protocol-bad-reference",
                        name.place,
                        message,
                        say!("second occurrence"),
                        help,
                    );
                }
                self.counter(name, id, list).map_or(Repeats::Times(1), Repeats::Field)
            }
            Repeat::Rest => Repeats::Rest,
            Repeat::Until(_) => Repeats::Until,
        }
    }

    fn condition(&mut self, condition: &Condition, list: u32) -> Option<Test> {
        let name = &condition.field;
        let wanted = &name.value;
        let own = self.table.find(list, wanted);
        // The packet's fields after the body are unknown when a message's fields are read.
        let body = self.table.members(0).find(|(_, node)| node.shape == Shape::Body);
        let body = body.map_or(NONE, |(id, _)| id);
        let of_packet = self.table.find(0, wanted).filter(|id| list != 0 && *id < body);
        let found = match own.or(of_packet) {
            Some(found) => found,
            None => self.earlier(name, list)?,
        };
        let node = &self.table.nodes[found as usize];
        let is_known = match &node.job {
            Job::Value | Job::Kind(_) | Job::Correlation | Job::Computed => true,
            Job::Length | Job::Body | Job::Checksum { .. } => false,
        };
        let is_number = node.is_whole_number() || node.shape == Shape::Bool;
        if !is_number || !is_known || node.repeat != Repeats::Once {
            let message = say!("`{wanted}` cannot be used in a condition");
            let help = say!("use an earlier integer or bool field that is not repeated");
            self.mistake("protocol-bad-reference", name.place, message, say!("not a number"), help);
            return None;
        }
        let Condition { comparison, value, .. } = condition;
        let is_of_packet = own.is_none();
        let test = Test { node: found, is_of_packet, comparison: *comparison, value: *value };
        if !test.may_hold(node) {
            let message = match &node.constant {
                Some(constant) => {
                    let constant = node.whole(constant.raw);
                    say!("this condition is never true: `{wanted}` is always {constant}")
                }
                None => {
                    let (low, high) = node.range();
                    say!("this condition is never true: `{wanted}` is between {low} and {high}")
                }
            };
            let help = say!("compare it with a possible value, or remove the field");
            self.mistake("protocol-bad-reference", name.place, message, say!("never true"), help);
        }
        self.mark(found, if is_of_packet { 0 } else { list }, name.place);
        self.table.nodes[found as usize].is_asked = true;
        Some(test)
    }

    fn job(&mut self, field: &Field, id: u32, list: u32, within: Within) -> Job {
        let job = match &field.role {
            Role::Value => return Job::Value,
            Role::Length { .. } => Job::Length,
            Role::Selects => Job::Kind(self.table.selectors.len() as u8),
            Role::Correlates => Job::Correlation,
            Role::Body => Job::Body,
            Role::Checksum { algorithm, over } => {
                return self.checksum(field, *algorithm, over, id, list);
            }
        };
        let is_own = within == Within::Message && job == Job::Correlation;
        if within != Within::Packet && !is_own {
            let message = say!("`{}` is not a field of `packet`", field.id.value);
            let help = say!("fields for length, kind and body belong in `packet`");
            self.mistake("protocol-bad-role", field.place, message, say!("not allowed here"), help);
            return Job::Value;
        }
        let node = &self.table.nodes[id as usize];
        let is_kind = matches!(job, Job::Kind(_));
        // A field that selects the message may be conditional only on the value of another.
        let is_there = (field.condition.is_none() || is_kind) && field.constant.is_none();
        let fits = match job {
            Job::Body => true,
            Job::Kind(_) => node.is_whole_number() || node.is_text_of_own_size(),
            Job::Correlation if matches!(node.shape, Shape::Text(_) | Shape::Bytes(_)) => true,
            _ => match &node.shape {
                Shape::Coded(coding) => *coding != Coding::ZigZag,
                shape => matches!(shape, Shape::Unsigned(_) | Shape::Bits(_)),
            },
        };
        if !fits || !is_there || field.default.is_some() {
            let name = &field.id.value;
            let message = match fits {
                true => say!(
                    "`{name}` has a special purpose, so it cannot have `if`, `const` or `default`"
                ),
                false => say!("the type of `{name}` is not suitable for this purpose"),
            };
            let help = match fits {
                true => say!("remove `if`, `const` and `default`: throng sets its value"),
                false => say!(
                    "a length must be an unsigned integer; a correlation can also be text or bytes, \
                     and a kind any integer, or text that ends with a `terminator`"
                ),
            };
            self.mistake("protocol-bad-role", field.place, message, say!("does not fit"), help);
        }
        if is_kind {
            self.selector(id);
        }
        self.mark(id, list, field.place);
        job
    }

    fn selector(&mut self, id: u32) {
        let bits = |selector: &Selector| self.table.node(selector.node).bits();
        let shift = self.table.selectors.iter().map(bits).sum();
        self.table.selectors.push(Selector { node: id, shift });
    }

    fn checksum(
        &mut self,
        field: &Field,
        algorithm: super::declaration::Checksum,
        over: &[Placed<String>],
        id: u32,
        list: u32,
    ) -> Job {
        let shape = &self.table.nodes[id as usize].shape;
        let word = algorithm.word();
        let wanted = checksum_width(algorithm);
        let fits = match shape {
            Shape::Unsigned(width) => wanted.is_none_or(|wanted| wanted == *width),
            _ => false,
        };
        if !fits || field.constant.is_some() || field.default.is_some() {
            let message = say!("`{}` cannot hold a {word}", field.id.value);
            let help = match wanted {
                Some(width) => say!("a {word} requires a `u{}` field", 8 * u32::from(width)),
                None => say!("a {word} requires an unsigned integer"),
            };
            self.mistake("protocol-bad-checksum", field.place, message, say!("does not fit"), help);
        }
        let mut nodes = Vec::new();
        for name in over {
            match self.earlier(name, list) {
                Some(node) => {
                    self.mark(node, list, name.place);
                    nodes.push(node);
                }
                None => {
                    // The general message about references is replaced by one about checksums.
                    if let Some(mistake) = self.mistakes.last_mut() {
                        mistake.code = "protocol-bad-checksum";
                    }
                }
            }
        }
        self.mark(id, list, field.place);
        self.table.lists[list as usize].checksums.push(id);
        Job::Checksum { algorithm, over: nodes.into() }
    }

    fn constant(&mut self, field: &Field, id: u32, constant: &Placed<Literal>) {
        let node = &self.table.nodes[id as usize];
        match constant_of(node, self.table.format(node), &constant.value) {
            Ok(made) => self.table.nodes[id as usize].constant = Some(Box::new(made)),
            Err(reason) => {
                let name = &field.id.value;
                let message = say!("the constant of `{name}` is not valid: {reason}");
                let help = say!("give a value of the field's type");
                let place = constant.place;
                self.mistake("protocol-bad-constant", place, message, say!("does not fit"), help);
            }
        }
    }

    fn default(&mut self, id: u32, default: &Placed<Literal>) {
        let node = &self.table.nodes[id as usize];
        let value = value_of(&default.value);
        let result = match &node.shape {
            _ if node.repeat != Repeats::Once => Err(say!("a list cannot have a default")),
            Shape::List(_) | Shape::Body => Err(say!("only its fields can have defaults")),
            Shape::Proto(..) => Err(say!("protobuf fields cannot have a default")),
            Shape::Text(_) => {
                let mut text = Vec::new();
                coerce::text(&value, &mut text).and_then(|()| content_fits(node, &text))
            }
            Shape::Bytes(_) => {
                let mut bytes = Vec::new();
                coerce::bytes(&value, &mut bytes).and_then(|()| content_fits(node, &bytes))
            }
            Shape::Json(_) => Ok(()),
            _ => raw_of(node, &value).map(|_| ()),
        };
        match result {
            Ok(()) => self.table.nodes[id as usize].default = Some(value),
            Err(reason) => {
                let name = &node.name;
                let message = say!("the default of `{name}` is not valid: {reason}");
                let help = say!("give a value of the field's type");
                let place = default.place;
                self.mistake("protocol-bad-default", place, message, say!("does not fit"), help);
            }
        }
    }

    /// Groups neighbouring bit fields into whole bytes.
    fn bits(&mut self, fields: &[Field], first: u32) {
        let is_bits = |field: &Field| matches!(field.ty, Type::Bits(_)) && field.role != Role::Body;
        let mut begin = 0;
        while begin < fields.len() {
            let length = fields[begin..].iter().take_while(|field| is_bits(field)).count();
            let mut total = 0;
            for index in begin..begin + length {
                if let Shape::Bits(bits) = &mut self.table.nodes[first as usize + index].shape {
                    bits.first = total;
                    total += bits.bits;
                }
            }
            if total % 8 != 0 {
                let missing = 8 - total % 8;
                let message = say!(
                    "these adjacent fields have {total} bits in total, which is not a whole \
                     number of bytes"
                );
                let help = say!("add a {missing}-bit field to fill the last byte");
                let place = fields[begin].place;
                self.mistake(
                    "protocol-bad-bits",
                    place,
                    message,
                    say!("the first of these fields"),
                    help,
                );
            }
            for index in begin..begin + length {
                if let Shape::Bits(bits) = &mut self.table.nodes[first as usize + index].shape {
                    bits.group_bytes = total.div_ceil(8);
                    bits.is_last = index + 1 == begin + length;
                }
            }
            begin += length.max(1);
        }
    }

    /// Sums up a list, and checks that a field that takes the rest is the last.
    fn measure(&mut self, fields: &[Field], list: u32, within: Within) {
        let lists = &self.table.lists;
        let nodes = self.table.members(list);
        let (mut bytes, mut least) = (Some(0u64), 0u64);
        let mut wrong = Vec::new();
        for ((_, node), (index, field)) in nodes.zip(fields.iter().enumerate()) {
            least = least.saturating_add(node.bytes_min(lists));
            bytes = bytes.and_then(|all| all.checked_add(node.bytes(lists)?));
            let is_open = node.is_open(lists);
            let item_is_open = match &node.shape {
                Shape::List(list) => node.bound.is_none() && lists[*list as usize].is_open,
                shape => shape.extent().is_some_and(Extents::is_open),
            };
            let is_alone = matches!(node.job, Job::Kind(_)) || node.member.is_some();
            let item_is_open = item_is_open && !is_alone;
            // If several fields exclude each other by their conditions, each may take the rest.
            let are_alternatives = fields[index..].iter().all(|field| field.condition.is_some());
            let is_followed = index + 1 < fields.len() && !are_alternatives;
            if is_open && is_followed || item_is_open && node.repeat != Repeats::Once {
                wrong.push((field, fields.get(index + 1)));
            }
        }
        let is_open = self.table.members(list).last().is_some_and(|(_, node)| node.is_open(lists));
        self.optional(fields, within);
        for (field, next) in wrong {
            let name = &field.id.value;
            let message = say!("`{name}` takes all remaining bytes, so nothing can follow it");
            // After an item that takes the rest, not even the next item can follow.
            let help = match next {
                Some(_) => say!("move it to the end, or give it a length"),
                None => say!("give each item a length"),
            };
            let mistake = self.mistake(
                "protocol-rest-not-last",
                field.place,
                message,
                say!("takes all remaining bytes"),
                help,
            );
            mistake.other = next.map(|next| (next.place, say!("this follows")));
        }
        let made = &mut self.table.lists[list as usize];
        (made.bytes, made.bytes_min, made.is_open) = (bytes, least, is_open);
        if within == Within::Packet {
            made.bytes = None;
        }
    }
}

impl Builder<'_> {
    /// The name and the value in the items of a list.
    fn by(&mut self, by: &Placed<String>, id: u32) -> Option<By> {
        let node = &self.table.nodes[id as usize];
        let members: Vec<(u32, &Node)> = match &node.shape {
            Shape::List(list) if node.repeat != Repeats::Once => {
                self.table.members(*list).filter(|(_, node)| !node.is_automatic()).collect()
            }
            _ => Vec::new(),
        };
        let is_it = |(_, node): &(u32, &Node)| {
            *node.name == *by.value && matches!(node.shape, Shape::Text(_))
        };
        match (members.iter().position(is_it), &members[..]) {
            (Some(at), [_, _]) => Some(By { name: members[at].0, value: members[1 - at].0 }),
            _ => {
                let message = say!("`{}` does not name the items of `{}`", by.value, node.name);
                let help = say!(
                    "`by` requires a list of structures with two fields, of which it names the one \
                     with the name as text"
                );
                self.mistake(
                    "protocol-bad-reference",
                    by.place,
                    message,
                    say!("does not fit"),
                    help,
                );
                None
            }
        }
    }

    /// The item that correlates is one of a list of names and texts.
    fn carries(&mut self, field: &Field, id: u32) {
        let Some(name) = &field.carries else { return };
        let node = &self.table.nodes[id as usize];
        let value = node.by.map(|by| &self.table.node(by.value).shape);
        // Of a list that is not right it was said already.
        if value.is_some_and(|shape| !matches!(shape, Shape::Text(_))) {
            let message =
                say!("the items of `{}` cannot correlate: their values are not text", node.name);
            let help = say!("give the values the type `str`, or remove `correlates`");
            let place = name.place;
            self.mistake("protocol-bad-role", place, message, say!("does not fit"), help);
        }
        self.table.nodes[id as usize].carries = Some(name.value.as_str().into());
    }

    /// An optional field may be followed only by optional fields.
    fn optional(&mut self, fields: &[Field], within: Within) {
        if self.table.document.is_some() {
            return;
        }
        let Some(index) = fields.iter().position(|field| field.is_optional) else { return };
        let first = &fields[index];
        let name = &first.id.value;
        if within == Within::Packet {
            let message = say!("`{name}` is a field of `packet`, so it cannot be optional");
            let help = say!("move it into the messages that contain it");
            let place = first.place;
            self.mistake("protocol-bad-optional", place, message, say!("not allowed here"), help);
        } else if let Some(next) = fields[index..].iter().find(|field| !field.is_optional) {
            let after = &next.id.value;
            let message = say!("`{name}` is optional, but `{after}` after it is not");
            let help = say!("add `optional: true` to `{after}`, or move it before `{name}`");
            let mistake = self.mistake(
                "protocol-bad-optional",
                first.place,
                message,
                say!("only the last fields can be optional"),
                help,
            );
            mistake.other = Some((next.place, say!("this follows")));
        }
    }
}

fn placeholder(field: &Field, parent: u32) -> Node {
    Node {
        name: field.id.value.as_str().into(),
        parent,
        shape: Shape::Bool,
        is_little: false,
        repeat: Repeats::Once,
        until: Box::default(),
        bound: None,
        is_optional: false,
        layer: field.layer,
        format: match field.ty {
            Type::Binary(format, _) => format,
            _ => Format::Json,
        },
        condition: None,
        job: Job::Value,
        constant: None,
        default: None,
        labels: Box::default(),
        mark: None,
        record: NONE,
        is_asked: false,
        by: None,
        carries: None,
        member: None,
    }
}
