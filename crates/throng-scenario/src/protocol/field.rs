//! One field of a packet, a message or a structure: its type, its end, and its role.

use throng_base::Said;
use throng_protocol::framed::declaration::{
    self, Checksum, Coding, Condition, Counts, Endian, Extent, Field, Format, Layer, Literal,
    Placed, Prefix, Repeat, Role, Type,
};

use crate::ast::{self, Map as _};
use crate::protocol::keys::FieldMap;
use crate::protocol::values::{self, parse_int};
use crate::protocol::words::{self, TypeWord};
use crate::protocol::{FIELDS_HELP, Labels, ProtocolReader, check_encoding, read_endian};
use crate::read::Context;
use crate::synonyms::near_label;
use crate::syntax::{Key, Kind, Node};
use crate::words::shorten;

/// The owner of a list of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    Packet,
    Body,
    Type,
}

const SIZE_HELP: Said = say!("write `size: 16`, or the name of an earlier field: `size: count`");
const REPEAT_HELP: Said = say!(
    "write a number such as `3`, `u8` if a count precedes the items, the name of an earlier \
         field, `rest`, or `until`"
);
const ENUM_HELP: Said = say!("write `{{0: ok, 1: full}}`, or the name of an entry in `enums`");

/// Maximum number of items of `repeat: 3`.
const TIMES_MAX: i128 = 1 << 24;

impl ProtocolReader<'_, '_> {
    /// The fields of a list without those that have mistakes.
    pub(super) fn fields(&mut self, node: &Node, within: Within) -> Vec<Field> {
        let Some(items) = self.cx.items(node, say!("a list of fields"), FIELDS_HELP) else {
            return Vec::new();
        };
        let mut out: Vec<Field> = Vec::with_capacity(items.len());
        for item in items {
            let Some(field) = self.field(item, within, &out) else { continue };
            if let Some(first) = out.iter().find(|other| other.id.value == field.id.value) {
                let line = self.cx.line(self.place(first.id.place));
                let message = say!("two fields are named `{}`", shorten(&field.id.value));
                let place = self.place(field.id.place);
                let label = say!("the first one is on line {line}");
                let help = say!("give one of them another name");
                self.cx.report("duplicate-name", place, message, label, help);
                continue;
            }
            out.push(field);
        }
        out
    }

    fn field(&mut self, node: &Node, within: Within, earlier: &[Field]) -> Option<Field> {
        let fields = FieldMap::read(self.cx, node)?;
        let id = fields.need(self.cx, fields.id, say!("write `{{id: room, type: u64}}`"))?;
        let id = self.name(id, say!("the name of a field"))?;
        let place = self.at(node.place);
        if within == Within::Packet && id.value == "body" {
            return self.body(&fields, id, place);
        }
        let role = self.role(&fields, within);
        let labels = fields.r#enum.node().map(|node| self.labels(node)).unwrap_or_default();
        let named: Vec<_> = labels.iter().map(|(name, n)| (name.value.clone(), *n)).collect();
        let chosen =
            ast::one_of(self.cx, &[fields.r#type, fields.bits, fields.fields, fields.contents]);
        let (ty, own_endian) = self.field_type(&fields, chosen, within)?;
        let bound = match ty {
            Type::Struct(_) | Type::Fields(_) => self.bound(&fields),
            _ => None,
        };
        check_labels(self.cx, &fields, &ty);
        let constant = match fields.contents.node() {
            Some(_) if fields.r#const.is_there() => {
                ast::one_of(self.cx, &[fields.contents, fields.r#const]);
                None
            }
            Some(node) => values::read_bytes(self.cx, node)
                .map(|bytes| Placed { value: Literal::Bytes(bytes), place: self.at(node.place) }),
            None => self.literal(fields.r#const, &ty, &named),
        };
        let default = self.literal(fields.default, &ty, &named);
        if constant.is_some() && fields.default.is_there() {
            ast::one_of(self.cx, &[fields.r#const, fields.contents, fields.default]);
        }
        let repeat = self.repeat(&fields);
        let condition = fields.r#if.node().and_then(|node| self.condition(node, earlier));
        let extent = extent(&ty).or(bound.as_ref());
        let endian = self.endian(&fields, own_endian, &ty, (extent, repeat.as_ref()));
        check_max(self.cx, &fields, &role, extent);
        check_plus(self.cx, &fields, &role);
        check_encoding(self.cx, fields.encoding);
        let is_optional = fields.optional.node().and_then(|node| self.cx.bool(node));
        Some(Field {
            id,
            endian,
            constant,
            condition,
            repeat,
            role,
            labels,
            default,
            bound,
            is_optional: is_optional.unwrap_or_default(),
            layer: fields.layer.node().and_then(|node| self.cx.word(node, &Layer::WORDS)),
            path: self.path(&fields),
            by: fields.by.node().and_then(|node| self.name(node, say!("the name of a field"))),
            carries: self.carries(&fields, within),
            place,
            ty,
        })
    }

    /// The path of the field in a document.
    fn path(&mut self, fields: &FieldMap<'_>) -> Option<Placed<String>> {
        let (Some(key), Some(node)) = (fields.path.key(), fields.path.node()) else { return None };
        if self.format.is_none() {
            let label = say!("packets are not documents");
            let help =
                say!("add `format: json` or another format to the protocol, or remove `path`");
            self.cx.report("missing-key", key.place, say!("`path` requires `format`"), label, help);
            return None;
        }
        let value = self.cx.text(node, say!("a path"))?;
        Some(Placed { value, place: self.at(node.place) })
    }

    /// `{id: body}` in `packet` is replaced by the fields of the message.
    fn body(
        &mut self,
        fields: &FieldMap<'_>,
        id: Placed<String>,
        place: declaration::PlaceId,
    ) -> Option<Field> {
        let known = |key: &Key| fields.id.is(key) || fields.doc.is(key);
        let others = fields.all().filter(|field| field.key().is_some_and(|key| !known(key)));
        if let Some((key, _)) = ast::first(others) {
            let message = say!("`body` represents the fields of the message");
            let label = say!("`body` cannot have the key `{}`", shorten(&key.text));
            let help = say!(
                "write `{{id: body}}` alone, or give the field another name: `{{id: data, …}}`"
            );
            return self.cx.refuse("conflicting-keys", key.place, message, label, help);
        }
        let body = Field::new(id, Type::Fields(Vec::new()), place);
        Some(Field { role: Role::Body, ..body })
    }

    /// The name of the item that correlates, in a list of names and values.
    fn carries(&mut self, fields: &FieldMap<'_>, within: Within) -> Option<Placed<String>> {
        let (Some(node), true) = (fields.correlates.node(), fields.by.is_there()) else {
            return None;
        };
        let key = fields.correlates.key().filter(|_| within != Within::Body);
        if let Some(key) = key {
            let message = say!("`{}` is allowed only in the body of a message here", key.text);
            let label = say!("this is not a field of a message");
            let help = say!("move the list into the messages that have it");
            self.cx.report("conflicting-keys", key.place, message, label, help);
            return None;
        }
        let value = self.cx.text(node, say!("the name of an item"))?;
        Some(Placed { value, place: self.at(node.place) })
    }

    /// The role of the field; only a checksum can be outside of the packet.
    fn role(&mut self, fields: &FieldMap<'_>, within: Within) -> Role {
        let roles = [fields.counts, fields.selects, fields.correlates, fields.checksum];
        let chosen = ast::one_of(self.cx, &roles);
        // Of a list, an item correlates.
        let is_item = |key: &Key| fields.correlates.is(key) && fields.by.is_there();
        let Some((key, node)) = chosen.filter(|(key, _)| !is_item(key)) else {
            if let Some(key) = fields.over.key() {
                let message = say!("`over` can only be used with a checksum");
                let label = say!("there is no checksum");
                let help = say!("write `checksum: crc32`, or remove `over`");
                self.cx.report("conflicting-keys", key.place, message, label, help);
            }
            return Role::Value;
        };
        let is_anywhere =
            key.text == "checksum" || key.text == "correlates" && within == Within::Body;
        if within != Within::Packet && !is_anywhere {
            let message = say!("`{}` is allowed only in `packet`", key.text);
            let label = say!("this is a field of a message");
            let help = say!("move the field into `packet`");
            self.cx.report("conflicting-keys", key.place, message, label, help);
            return Role::Value;
        }
        let at_odds = match key.text.as_str() {
            "checksum" => None,
            "selects" => ast::first([fields.repeat]),
            _ => ast::first([fields.r#if, fields.repeat]),
        };
        if let Some((other, _)) = at_odds {
            let message = say!("`{}` and `{}` cannot be used together", key.text, other.text);
            let label = say!("this field must occur exactly once in every packet");
            let help = say!("keep the one you need");
            self.cx.report("conflicting-keys", other.place, message, label, help);
        }
        match key.text.as_str() {
            "counts" => {
                let words = [
                    ("body", &Counts::Body),
                    ("after", &Counts::After),
                    ("packet", &Counts::Packet),
                ];
                let Some(counts) = self.cx.word(node, &words) else { return Role::Value };
                let plus = fields.plus.node();
                let plus =
                    plus.and_then(|node| values::read_int(self.cx, node, say!("a whole number")));
                let (counts, bytes_max) = (counts.clone(), self.max(fields));
                Role::Length { counts, plus: plus.unwrap_or_default(), bytes_max }
            }
            "selects" => {
                self.cx.word(node, &[("message", ())]).map_or(Role::Value, |()| Role::Selects)
            }
            "correlates" => {
                self.cx.word(node, &[("request", ())]).map_or(Role::Value, |()| Role::Correlates)
            }
            _ => self.checksum(fields, node),
        }
    }

    fn checksum(&mut self, fields: &FieldMap<'_>, node: &Node) -> Role {
        let algorithm = self.cx.word(node, &Checksum::WORDS);
        let over = fields.over.node().map(|node| self.names(node, say!("the name of a field")));
        match algorithm {
            Some(algorithm) => Role::Checksum { algorithm, over: over.unwrap_or_default() },
            None => Role::Value,
        }
    }

    fn max(&mut self, fields: &FieldMap<'_>) -> Option<Placed<u64>> {
        let node = fields.max.node()?;
        let value = self.cx.size(node)?;
        Some(Placed { value, place: self.at(node.place) })
    }

    /// The end of a structure, unless its last field determines it.
    fn bound(&mut self, fields: &FieldMap<'_>) -> Option<Extent> {
        let others = [fields.terminator, fields.rest, fields.size_eos];
        if let Some((key, _)) = ast::first(others) {
            let message = say!("a structure ends with its last field, or has a length");
            let label = say!("`{}` is only allowed for text and bytes", key.text);
            let help = say!("remove it, or write `length: u16` or `size: count`");
            self.cx.report("conflicting-keys", key.place, message, label, help);
            return None;
        }
        ast::first([fields.length, fields.size])?;
        self.extent(fields)
    }

    fn field_type(
        &mut self,
        fields: &FieldMap<'_>,
        chosen: Option<(&Key, &Node)>,
        within: Within,
    ) -> Option<(Type, Option<Endian>)> {
        let inner = if within == Within::Packet { Within::Type } else { within };
        let Some((key, node)) = chosen else {
            // As in Kaitai Struct, a field with a size and without a type is bytes.
            if ast::first(extents(fields)).is_some() {
                let extent = self.extent(fields)?;
                return Some((Type::Bytes(extent), None));
            }
            match self.format {
                Some(Format::Xml) => return Some((Type::Text(Extent::Rest), None)),
                Some(_) => return Some((Type::Json(Extent::Rest), None)),
                None => {}
            }
            let help = match within {
                Within::Packet => {
                    say!("write `{{id: length, type: u32}}`; only `{{id: body}}` has no type")
                }
                _ => say!("write `{{id: room, type: u64}}`"),
            };
            fields.need(self.cx, fields.r#type, help);
            return None;
        };
        match key.text.as_str() {
            "fields" => Some((Type::Fields(self.fields(node, inner)), None)),
            "bits" => {
                let number = values::read_int(self.cx, node, say!("a number of bits"))?;
                no_extent(self.cx, fields, say!("a bit field"));
                match u8::try_from(number).ok().filter(|bits| (1..=64).contains(bits)) {
                    Some(bits) => Some((Type::Bits(bits), None)),
                    None => self.cx.bad_value(
                        node,
                        say!("a bit field must have 1 to 64 bits"),
                        say!("write `bits: 3`"),
                    ),
                }
            }
            "contents" => {
                no_extent(self.cx, fields, say!("`contents`"));
                let bytes = values::read_bytes(self.cx, node)?;
                Some((Type::Bytes(Extent::Fixed(bytes.len() as u32)), None))
            }
            _ => self.type_word(fields, node),
        }
    }

    fn type_word(&mut self, fields: &FieldMap<'_>, node: &Node) -> Option<(Type, Option<Endian>)> {
        let text = self.cx.text(node, say!("a type"))?;
        let word = text.trim();
        let parsed = match self.types.iter().position(|name| name == word) {
            Some(number) => Ok(Some(TypeWord::Sized(Type::Struct(number), None))),
            None => words::parse(word),
        };
        match parsed {
            Ok(Some(TypeWord::Sized(ty @ Type::Struct(_), endian))) => Some((ty, endian)),
            Ok(Some(TypeWord::Sized(ty, endian))) => {
                no_extent(self.cx, fields, say!("`{word}`"));
                Some((ty, endian))
            }
            Ok(Some(TypeWord::Decimal)) => match self.extent(fields)? {
                Extent::Delimited(end) => Some((Type::Coded(Coding::Decimal(end.into())), None)),
                Extent::Rest if fields.correlates.is_there() && !fields.rest.is_there() => {
                    Some((Type::Coded(Coding::Digits), None))
                }
                _ => {
                    let message = say!("a decimal number must have a `terminator`");
                    let label = say!("the end of the number is not defined");
                    let help = say!("write `type: decimal, terminator: \"\\r\\n\"`");
                    self.cx.refuse("missing-key", node.place, message, label, help)
                }
            },
            Ok(Some(TypeWord::TextZero)) => {
                no_extent(self.cx, fields, say!("`strz`"));
                Some((Type::Text(Extent::Delimited(vec![0])), None))
            }
            Ok(Some(TypeWord::Text)) => Some((Type::Text(self.extent(fields)?), None)),
            Ok(Some(TypeWord::Bytes)) => Some((Type::Bytes(self.extent(fields)?), None)),
            Ok(Some(TypeWord::Json)) => Some((Type::Json(self.extent(fields)?), None)),
            Ok(Some(TypeWord::Binary(format))) => {
                Some((Type::Binary(format, self.extent(fields)?), None))
            }
            Ok(Some(TypeWord::Proto(name))) => {
                let extent = self.extent(fields);
                let place = self.cx.place_of(node, &name);
                let Some(protos) = &mut self.protos else {
                    let message = say!("no `.proto` file is given");
                    let label = say!("no `.proto` file declares this message");
                    let help = say!("write `proto: shop.proto` at the top");
                    return self.cx.refuse("missing-key", place, message, label, help);
                };
                let message = protos.as_mut()?.message(self.cx, &name, place)?;
                Some((Type::Proto { message, extent: extent? }, None))
            }
            Ok(None) => self.unknown_type(node, word),
            Err(wrong) => {
                let message = say!("`{}` is not a type", shorten(word));
                self.cx.refuse("unknown-type", node.place, message, wrong.label, wrong.help)
            }
        }
    }

    fn unknown_type<T>(&mut self, node: &Node, word: &str) -> Option<T> {
        let meant = words::meant(word, self.types.iter().map(String::as_str));
        let message = say!("`{}` is not a type", shorten(word));
        let label = near_label(meant, say!("unknown"));
        self.cx.refuse("unknown-type", node.place, message, label, words::TYPES_HELP)
    }

    /// Refuses keys that define an end, for a type with its own size.
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    /// The end of a text, bytes, JSON or a Protobuf message.
    fn extent(&mut self, fields: &FieldMap<'_>) -> Option<Extent> {
        if let (Some(last), Some(rest)) = (fields.terminator.node(), fields.rest.node())
            && ast::first([fields.length, fields.size, fields.size_eos]).is_none()
        {
            let last = values::read_bytes(self.cx, last)?;
            return Some(match self.cx.bool(rest)? {
                true => Extent::RestBefore(last),
                false => Extent::Delimited(last),
            });
        }
        let Some((key, node)) = ast::one_of(self.cx, &extents(fields)) else {
            return Some(Extent::Rest);
        };
        match key.text.as_str() {
            "length" => {
                let prefix = read_prefix(self.cx, node)?;
                let bytes_max = self.max(fields).map(|max| max.value);
                Some(Extent::Prefixed { prefix, bytes_max })
            }
            "size" => self.size(node),
            "terminator" => values::read_bytes(self.cx, node).map(Extent::Delimited),
            _ => match self.cx.bool(node)? {
                true => Some(Extent::Rest),
                false => {
                    let help =
                        say!("write `length: u16`, `size: 16` or `terminator: \"\\0\"` instead");
                    self.cx.bad_value(node, say!("the length of the field is unknown"), help)
                }
            },
        }
    }

    fn size(&mut self, node: &Node) -> Option<Extent> {
        let text = self.cx.text(node, say!("a size"))?;
        let text = text.trim();
        if values::is_name(text) {
            return Some(Extent::Field(Placed { value: text.into(), place: self.at(node.place) }));
        }
        let number =
            parse_int(text).or_else(|| throng_base::units::parse_size(text).ok().map(i128::from));
        match number.map(u32::try_from) {
            Some(Ok(0)) => self.cx.bad_value(
                node,
                say!("the size must be at least 1 byte"),
                say!("remove the field"),
            ),
            Some(Ok(bytes)) => Some(Extent::Fixed(bytes)),
            Some(Err(_)) => {
                let message = match number.is_some_and(|number| number < 0) {
                    true => say!("a size cannot be negative"),
                    false => say!("the number is too large"),
                };
                self.cx.bad_value(node, message, SIZE_HELP)
            }
            None => {
                let message = say!("`{}` is not a size", shorten(text));
                let label = say!("this is neither a number nor the name of a field");
                self.cx.refuse("bad-value", node.place, message, label, SIZE_HELP)
            }
        }
    }

    fn literal(
        &mut self,
        field: ast::Field<'_>,
        ty: &Type,
        labels: &[(String, i64)],
    ) -> Option<Placed<Literal>> {
        let node = field.node()?;
        let value = match ty {
            Type::Json(_) if self.format.is_some() => values::read_json(self.cx, node),
            _ => values::read_literal(self.cx, node, ty, labels),
        }?;
        Some(Placed { value, place: self.at(node.place) })
    }

    fn repeat(&mut self, fields: &FieldMap<'_>) -> Option<Repeat> {
        let repeat = self.repetitions(fields);
        if let (Some(key), false) =
            (fields.until.key(), matches!(repeat, Some(Repeat::Until(_)) | None))
        {
            let message = say!("`until` requires `repeat: until`");
            let label = say!("the end is given twice");
            let help = say!("write `repeat: until, until: \"\\n\"`");
            self.cx.report("conflicting-keys", key.place, message, label, help);
        }
        repeat
    }

    fn repetitions(&mut self, fields: &FieldMap<'_>) -> Option<Repeat> {
        let Some(node) = fields.repeat.node() else {
            if let Some(key) = fields.until.key() {
                let message = say!("`until` requires `repeat: until`");
                let label = say!("`repeat` is missing");
                let help = say!("write `repeat: until, until: \"\\n\"`");
                self.cx.report("missing-key", key.place, message, label, help);
            }
            if let Some(key) = fields.repeat_expr.key() {
                let message = say!("`repeat-expr` requires `repeat: expr`");
                let label = say!("`repeat` is missing");
                let help = say!("write `repeat: expr`, or only `repeat: 3`");
                self.cx.report("missing-key", key.place, message, label, help);
            }
            return None;
        };
        let text = self.cx.text(node, say!("a number of repetitions"))?;
        let text = text.trim().to_string();
        if let ("expr", Some(node)) = (text.as_str(), fields.repeat_expr.node()) {
            let text = self.cx.text(node, say!("a number of repetitions"))?;
            return self.times(node, text.trim());
        }
        if let Some(key) = fields.repeat_expr.key() {
            let message = say!("`repeat-expr` requires `repeat: expr`");
            let help = say!("write `repeat: expr`, or only `repeat: 3`");
            self.cx.report("conflicting-keys", key.place, message, say!("given twice"), help);
        }
        if let Some(prefix) = words::prefix(&text) {
            return Some(Repeat::Prefixed(prefix));
        }
        match text.as_str() {
            "rest" | "eos" => Some(Repeat::Rest),
            "expr" => {
                let message = say!("`repeat: expr` requires `repeat-expr`");
                let label = say!("the number of repetitions is missing");
                self.cx.refuse("missing-key", node.place, message, label, REPEAT_HELP)
            }
            "until" => {
                let help = say!("write `repeat: until, until: \"\\n\"`");
                let end = fields.need(self.cx, fields.until, help)?;
                values::read_bytes(self.cx, end).map(Repeat::Until)
            }
            text => self.times(node, text),
        }
    }

    fn times(&mut self, node: &Node, text: &str) -> Option<Repeat> {
        if values::is_name(text) {
            return Some(Repeat::Field(Placed { value: text.into(), place: self.at(node.place) }));
        }
        match parse_int(text) {
            Some(number) if (1..=TIMES_MAX).contains(&number) => Some(Repeat::Times(number as u32)),
            _ => {
                let message = say!("`{}` is not a valid number of repetitions", shorten(text));
                let label = say!("this is neither a number greater than 0 nor the name of a field");
                self.cx.refuse("bad-value", node.place, message, label, REPEAT_HELP)
            }
        }
    }

    pub(super) fn condition(&mut self, node: &Node, earlier: &[Field]) -> Option<Condition> {
        let text = self.cx.text(node, say!("a condition"))?;
        let compared = values::read_condition(self.cx, node, &text, earlier)?;
        let place = self.cx.place_of(node, compared.name);
        let field = Placed { value: compared.name.to_string(), place: self.at(place) };
        Some(Condition { field, comparison: compared.comparison, value: compared.value })
    }

    fn endian(
        &mut self,
        fields: &FieldMap<'_>,
        own: Option<Endian>,
        ty: &Type,
        (extent, repeat): (Option<&Extent>, Option<&Repeat>),
    ) -> Option<Endian> {
        let Some(key) = fields.endian.key() else { return own };
        let endian = read_endian(self.cx, fields.endian.node()?)?;
        let wide = |prefix: &Prefix| matches!(prefix, Prefix::Unsigned(9..));
        let has_order = match ty {
            Type::Unsigned(_) | Type::Signed(_) | Type::Float32 | Type::Float64 => true,
            _ => matches!(extent, Some(Extent::Prefixed { prefix, .. }) if wide(prefix)),
        } || matches!(repeat, Some(Repeat::Prefixed(prefix)) if wide(prefix));
        let wrong = match own {
            Some(own) if own != endian => Some((
                say!("the type already sets another byte order"),
                say!("keep only one of them: `type: u32, endian: little`"),
            )),
            None if !has_order => Some((
                say!("this type has no byte order"),
                say!("remove it; each field of a structure has its own `endian`"),
            )),
            _ => None,
        };
        if let Some((label, help)) = wrong {
            let message = say!("`endian` is not allowed here");
            self.cx.report("conflicting-keys", key.place, message, label, help);
        }
        Some(endian)
    }

    /// The names of values, of this field or from `enums`.
    fn labels(&mut self, node: &Node) -> Labels {
        if matches!(node.kind, Kind::Map(_)) {
            return self.enumeration(node);
        }
        let Some(name) = self.cx.text(node, say!("the name of an entry in `enums`")) else {
            return Vec::new();
        };
        if let Some((_, labels)) = self.enums.iter().find(|(known, _)| *known == name) {
            return labels.clone();
        }
        let message = say!("there is no `{}` in `enums`", shorten(&name));
        self.cx.report("unknown-type", node.place, message, say!("unknown"), ENUM_HELP);
        Vec::new()
    }

    /// `{0: ok, 1: full}`
    pub(super) fn enumeration(&mut self, node: &Node) -> Labels {
        let entries =
            self.cx.entries(node, say!("a map of values and names"), ENUM_HELP).unwrap_or_default();
        let mut labels: Labels = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let number = parse_int(&key.text).and_then(|number| i64::try_from(number).ok());
            let Some(number) = number else {
                let message = say!("`{}` is not a value", shorten(&key.text));
                let label = say!("write the number first, then its name");
                self.cx.report("bad-value", key.place, message, label, ENUM_HELP);
                continue;
            };
            let Some(name) = self.name(value, say!("the name of a value")) else { continue };
            let known = labels.iter().any(|(other, n)| other.value == name.value || *n == number);
            if known {
                let message =
                    say!("`{}: {}` reuses a number or a name", number, shorten(&name.value));
                let label = say!("the number or the name is already used");
                let help = say!("give every value its own name");
                self.cx.report("duplicate-name", key.place, message, label, help);
                continue;
            }
            labels.push((name, number));
        }
        labels
    }
}

/// `max` limits the value of a length, of the packet or of a following field.
fn check_max(cx: &mut Context<'_>, fields: &FieldMap<'_>, role: &Role, extent: Option<&Extent>) {
    let Some(key) = fields.max.key() else { return };
    let is_length = matches!(role, Role::Length { .. });
    if !is_length && !matches!(extent, Some(Extent::Prefixed { .. })) {
        let message = say!("`max` applies only to lengths");
        let label = say!("this field is not a length and has no length prefix");
        let help = say!("add `counts` or `length`, or remove `max`");
        cx.report("conflicting-keys", key.place, message, label, help);
    }
}

fn check_plus(cx: &mut Context<'_>, fields: &FieldMap<'_>, role: &Role) {
    if let (Some(key), false) = (fields.plus.key(), matches!(role, Role::Length { .. })) {
        let label = say!("this field does not count anything");
        let help = say!("write `counts: after, plus: 4`, or remove `plus`");
        cx.report("missing-key", key.place, say!("`plus` requires `counts`"), label, help);
    }
}

#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
fn no_extent(cx: &mut Context<'_>, fields: &FieldMap<'_>, what: Said) {
    let Some((key, _)) = ast::first(extents(fields)) else {
        return;
    };
    let label = say!("`{}` is only allowed for text and bytes", key.text);
    let help = say!("remove it, or write `type: bytes`");
    cx.report("conflicting-keys", key.place, say!("{what} determines its own size"), label, help);
}

fn check_labels(cx: &mut Context<'_>, fields: &FieldMap<'_>, ty: &Type) {
    let is_whole = matches!(
        ty,
        Type::Unsigned(_)
            | Type::Signed(_)
            | Type::Bits(_)
            | Type::Varint
            | Type::ZigZag
            | Type::Coded(_)
    );
    if let (Some(key), false) = (fields.r#enum.key(), is_whole) {
        let message = say!("only whole numbers can have named values");
        let help = say!("remove `enum`, or write `type: u8`");
        cx.report("conflicting-keys", key.place, message, say!("this is not a whole number"), help);
    }
}

fn read_prefix(cx: &mut Context<'_>, node: &Node) -> Option<Prefix> {
    let text = cx.text(node, say!("a type for a length"))?;
    if let Some(prefix) = words::prefix(text.trim()) {
        return Some(prefix);
    }
    let message = say!("`{}` is not a valid type for a length", shorten(&text));
    let error = cx.error("bad-value", message, node.place);
    let is_size = parse_int(text.trim()).is_some() || values::is_name(text.trim());
    let is_ordered = text.ends_with("le") || text.ends_with("be");
    let (label, help) = match () {
        () if is_ordered && words::prefix(&text[..text.len() - 2]).is_some() => {
            (say!("the length uses the byte order of the field"), say!("add `endian: little`"))
        }
        () if is_size => (
            say!("this is a size or a field name, not a type"),
            say!("write `size: {}`", shorten(&text)),
        ),
        () => (say!("not allowed"), words::PREFIX_HELP),
    };
    cx.fail(error.label(label).help(help))
}

/// The keys that define an end.
fn extents<'n>(fields: &FieldMap<'n>) -> [ast::Field<'n>; 5] {
    [fields.length, fields.size, fields.terminator, fields.rest, fields.size_eos]
}

fn extent(ty: &Type) -> Option<&Extent> {
    match ty {
        Type::Text(extent) | Type::Bytes(extent) | Type::Json(extent) => Some(extent),
        Type::Binary(_, extent) | Type::Proto { extent, .. } => Some(extent),
        _ => None,
    }
}
