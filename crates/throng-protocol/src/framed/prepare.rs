//! Turns what a scenario gives for a message into a template: names and shapes are checked, and
//! constant parts are written.

use std::convert::Infallible;
use std::sync::Arc;

use throng_expression::Value;

use throng_base::Said;

use super::declaration::Format;
use super::encode::{Encoder, Op, Piece, Plan};
use super::path::suggestion;
use super::table::{Job, Node, Repeats, Shape, Table};
use super::{EncodeError, Given, GivenMistake, MessageId, Template, Whole};

type Prepared<T> = Result<T, GivenMistake>;

/// A name and what is given for it.
type Entry<'a> = (&'a str, &'a Given);

pub(super) fn prepare(
    table: &Table,
    message: MessageId,
    name: &str,
    given: &Given,
) -> Prepared<Template> {
    let mut builder = Builder { table, message, bytes: Vec::new(), path: Vec::new() };
    let ops = builder.packet(name, given)?;
    let has_leaves = has_leaves(given);
    let gives_correlation = gives(table, message, given);
    let bytes: Arc<[u8]> = builder.bytes.into();
    let ops: Arc<[Op]> = ops.into();
    let whole = match has_leaves {
        true => None,
        false => whole(table, message, &ops, &bytes, gives_correlation)?,
    };
    Ok(Template { message, ops, bytes, whole, gives_correlation })
}

/// Whether the correlating field is given.
fn gives(table: &Table, message: MessageId, given: &Given) -> bool {
    let correlator = table.correlator_of(message.0);
    let Some(node) = correlator.map(|node| table.node(node)) else { return false };
    let Given::Fields(fields) = given else { return false };
    let own = fields.iter().find(|(name, _)| **name == *node.name);
    match (&node.carries, own) {
        (Some(name), Some((_, Given::Fields(items)))) => {
            items.iter().any(|(item, _)| item.eq_ignore_ascii_case(name))
        }
        (carries, own) => carries.is_none() && own.is_some(),
    }
}

fn has_leaves(given: &Given) -> bool {
    match given {
        Given::Leaf(_) => true,
        Given::Literal(_) => false,
        Given::Fields(fields) => fields.iter().any(|(_, given)| has_leaves(given)),
        Given::Items(items) => items.iter().any(has_leaves),
    }
}

/// The complete packet, if only its correlation varies.
fn whole(
    table: &Table,
    message: MessageId,
    ops: &[Op],
    bytes: &[u8],
    gives_correlation: bool,
) -> Prepared<Option<Arc<Whole>>> {
    let mut out = Vec::new();
    let mut none = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(None);
    let mut encoder = Encoder::new(table, bytes, message.0, 0, &mut none, &mut out);
    encoder.packet(ops).map_err(mistake_of)?;
    let at = encoder.correlation_at();
    let correlator = table.correlator_of(message.0).filter(|_| !gives_correlation);
    let Some(node) = correlator.map(|node| table.node(node)) else {
        let whole = Whole { bytes: out.into(), correlation: None, correlation_max: 0 };
        return Ok(Some(Arc::new(whole)));
    };
    let has_checksum = !table.list(0).checksums.is_empty();
    let is_of_packet = correlator == table.correlator && node.member.is_none();
    let width = match node.shape {
        Shape::Unsigned(width) if !node.is_asked && !has_checksum && is_of_packet => width,
        _ => return Ok(None),
    };
    let correlation = at.map(|at| (at, width, node.is_little));
    let correlation_max = node.range().1 as u64;
    Ok(Some(Arc::new(Whole { bytes: out.into(), correlation, correlation_max })))
}

fn mistake_of(error: EncodeError<Infallible>) -> GivenMistake {
    let EncodeError::Value { field, reason } = error;
    GivenMistake {
        path: field.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
        message: reason,
        help: say!("give it a value of its declared type"),
    }
}

struct Builder<'a> {
    table: &'a Table,
    message: MessageId,
    bytes: Vec<u8>,
    path: Vec<String>,
}

impl Builder<'_> {
    fn packet(&mut self, name: &str, given: &Given) -> Prepared<Vec<Op>> {
        let list = self.table.messages[usize::from(self.message.0)].list;
        let fields = match given {
            Given::Fields(fields) => fields,
            Given::Leaf(_) | Given::Literal(_) if self.table.document.is_some() => {
                let message = say!("`{name}` requires fields");
                return Err(self.mistake(message, say!("give its fields by name")));
            }
            Given::Items(_) => {
                let message = say!("`{name}` requires fields, not a list");
                return Err(self.mistake(message, say!("give its fields by name")));
            }
            Given::Leaf(_) | Given::Literal(_) => {
                let body = match given {
                    Given::Leaf(leaf) => Plan::Leaf(*leaf),
                    Given::Literal(value) => Plan::Literal(value.clone()),
                    _ => Plan::Missing,
                };
                return self.list(0, &[], Some(body));
            }
        };
        let (mut of_body, mut of_packet) = (Vec::new(), Vec::new());
        for (field, given) in fields {
            let is_of_packet =
                self.table.find(0, field).is_some_and(|id| self.table.node(id).job != Job::Body);
            match self.table.find(list, field) {
                Some(_) => of_body.push((field.as_str(), given)),
                None if is_of_packet => of_packet.push((field.as_str(), given)),
                None => {
                    let names: Vec<&str> = self.givable(list).chain(self.givable(0)).collect();
                    let message = say!("`{name}` has no field `{field}`");
                    let help = suggestion(field, &names);
                    return Err(GivenMistake { path: vec![field.clone()], message, help });
                }
            }
        }
        if self.table.document.is_some() {
            let mut plans = self.plans(0, &of_packet)?;
            plans.extend(self.plans(list, &of_body)?);
            return self.document(plans);
        }
        let body = match self.table.body {
            Some(_) => Some(Plan::Fields(self.list(list, &of_body, None)?.into())),
            None => None,
        };
        self.list(0, &of_packet, body)
    }

    fn givable(&self, list: u32) -> impl Iterator<Item = &str> {
        let members = self.table.members(list);
        members.filter(move |(_, node)| !self.is_automatic(node)).map(|(_, node)| &*node.name)
    }

    fn mistake(&self, message: Said, help: Said) -> GivenMistake {
        GivenMistake { path: self.path.clone(), message, help }
    }

    /// The operations of a list of fields; `body` is the message in the packet.
    fn list(
        &mut self,
        list: u32,
        given: &[Entry<'_>],
        mut body: Option<Plan>,
    ) -> Prepared<Vec<Op>> {
        self.names_are_right(list, given)?;
        let mut ops = Vec::new();
        for (id, node) in self.table.members(list) {
            self.path.push(node.name.to_string());
            let entry = given.iter().find(|(name, _)| *name == &*node.name);
            let plan = match (entry, &node.job) {
                (_, Job::Body) => body.take().unwrap_or(Plan::Missing),
                (Some((_, given)), _) => self.field(id, node, given)?,
                (None, _) => self.absent(node)?,
            };
            self.append(id, node, plan, &mut ops)?;
            self.path.pop();
        }
        Ok(ops)
    }

    /// The fields of a document that are sent.
    fn plans(&mut self, list: u32, given: &[Entry<'_>]) -> Prepared<Vec<(u32, Plan)>> {
        self.names_are_right(list, given)?;
        let mut plans = Vec::new();
        for (id, node) in self.table.members(list).filter(|(_, node)| is_value(self.table, node)) {
            self.path.push(node.name.to_string());
            let entry = given.iter().find(|(name, _)| *name == &*node.name);
            let plan = match entry {
                Some((_, given)) => self.field(id, node, given)?,
                None => self.absent(node)?,
            };
            if !matches!(plan, Plan::Missing) {
                plans.push((id, plan));
            }
            self.path.pop();
        }
        Ok(plans)
    }

    /// Writes a document: the text around its fields is constant.
    fn document(&mut self, plans: Vec<(u32, Plan)>) -> Prepared<Vec<Op>> {
        let table = self.table;
        let paths = plans.iter().filter_map(|(id, _)| table.node(*id).member.as_ref());
        let paths = paths.map(|member| &*member.path);
        let around = super::members::around(table, self.message, paths);
        let mut ops = Vec::new();
        for (before, (id, plan)) in around.pieces.iter().zip(plans_in(around.order, plans)) {
            self.run(before, &mut ops);
            let node = table.node(id);
            self.path.push(node.name.to_string());
            self.append(id, node, plan, &mut ops)?;
            self.path.pop();
        }
        self.run(&around.end, &mut ops);
        Ok(ops)
    }

    /// Constant bytes.
    fn run(&mut self, bytes: &[u8], ops: &mut Vec<Op>) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len() as u32;
        match ops.last_mut() {
            Some(Op::Bytes { until, .. }) if *until == from => *until = end,
            _ => ops.push(Op::Bytes { from, until: end }),
        }
    }

    /// Checks that the given names exist in the list, are unique, and can be given.
    fn names_are_right(&mut self, list: u32, given: &[Entry<'_>]) -> Prepared<()> {
        let table = self.table;
        for (index, (name, _)) in given.iter().enumerate() {
            self.path.push((*name).to_owned());
            let Some(id) = table.find(list, name) else {
                let names: Vec<&str> = self.givable(list).collect();
                let message = say!("there is no field `{name}`");
                return Err(self.mistake(message, suggestion(name, &names)));
            };
            let node = table.node(id);
            if self.is_automatic(node) && node.job != Job::Correlation {
                let message = say!("`{name}` is set automatically");
                let help = say!("omit it: its value follows from the declaration");
                return Err(self.mistake(message, help));
            }
            if given[..index].iter().any(|(other, _)| other == name) {
                let message = say!("`{name}` is given twice");
                return Err(self.mistake(message, say!("remove one of them")));
            }
            self.path.pop();
        }
        Ok(())
    }

    /// Whether its value is set automatically. In a message of any kind, the scenario gives the
    /// kind.
    fn is_automatic(&self, node: &Node) -> bool {
        let is_kind = matches!(node.job, Job::Kind(_));
        node.is_automatic() && !(is_kind && self.table.is_kind_open(self.message.0))
    }

    /// A field that is not given.
    fn absent(&mut self, node: &Node) -> Prepared<Plan> {
        match (&node.default, &node.shape) {
            _ if self.is_automatic(node) => Ok(Plan::Auto),
            (Some(default), _) => Ok(Plan::Literal(default.clone())),
            _ if node.carries.is_some() => Ok(Plan::Items(Box::default())),
            _ if node.condition.is_some() || node.is_optional => Ok(Plan::Missing),
            (None, Shape::List(list)) if node.repeat == Repeats::Once => {
                Ok(Plan::Fields(self.list(*list, &[], None)?.into()))
            }
            _ => {
                let name = &node.name;
                let message = say!("the field `{name}` is missing");
                let help = say!("give it a value, or a `default` in the declaration");
                Err(self.mistake(message, help))
            }
        }
    }

    /// Writes constant parts now; the rest becomes an operation.
    fn append(&mut self, id: u32, node: &Node, plan: Plan, ops: &mut Vec<Op>) -> Prepared<()> {
        let is_own = matches!(
            node.job,
            Job::Length | Job::Correlation | Job::Body | Job::Computed | Job::Checksum { .. }
        ) || node.carries.is_some();
        let is_fixed = !is_own && self.is_fixed(&plan);
        if is_fixed && !matches!(plan, Plan::Missing) {
            let mut written = Vec::new();
            let mut none = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(None);
            let message = self.message.0;
            let mut encoder =
                Encoder::new(self.table, &self.bytes, message, 0, &mut none, &mut written);
            encoder.alone(id, &plan).map_err(|error| match mistake_of(error) {
                mistake if mistake.path.len() < self.path.len() => {
                    GivenMistake { path: self.path.clone(), ..mistake }
                }
                mistake => mistake,
            })?;
            let is_run = node.mark.is_none() && node.condition.is_none() && !node.is_optional;
            if is_run && !matches!(node.shape, Shape::Bits(_)) || node.member.is_some() {
                self.run(&written, ops);
                return Ok(());
            }
        }
        ops.push(Op::Field(id, plan));
        Ok(())
    }

    /// Whether it is the same in every message.
    fn is_fixed(&self, plan: &Plan) -> bool {
        match plan {
            Plan::Auto | Plan::Missing | Plan::Literal(_) => true,
            Plan::Leaf(_) => false,
            Plan::Items(plans) => plans.iter().all(|plan| self.is_fixed(plan)),
            Plan::Json(pieces) => pieces.iter().all(|piece| matches!(piece, Piece::Bytes { .. })),
            Plan::Proto(template) => template.constant().is_some(),
            Plan::Fields(ops) => ops.iter().all(|op| match op {
                Op::Bytes { .. } => true,
                Op::Field(id, plan) => {
                    let test = self.table.node(*id).condition.as_ref();
                    test.is_none_or(|test| !test.is_of_packet) && self.is_fixed(plan)
                }
            }),
        }
    }

    fn field(&mut self, id: u32, node: &Node, given: &Given) -> Prepared<Plan> {
        match (node.repeat, given) {
            (Repeats::Once, _) => self.item(node, given),
            (_, Given::Leaf(leaf)) => Ok(Plan::Leaf(*leaf)),
            (_, Given::Literal(value)) => Ok(Plan::Literal(value.clone())),
            (_, Given::Items(items)) => {
                let mut plans = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    plans.push(self.item(node, item)?);
                    self.path.pop();
                }
                Ok(Plan::Items(plans.into()))
            }
            (_, Given::Fields(fields)) if node.by.is_some() => self.named(node, fields),
            (_, Given::Fields(_)) => {
                let path = self.table.path(id);
                let message = say!("`{path}` is a list, but fields were given");
                Err(self.mistake(message, say!("give its items in brackets: `[…, …]`")))
            }
        }
    }

    /// A list whose items have names, given as a map.
    fn named(&mut self, node: &Node, fields: &[(String, Given)]) -> Prepared<Plan> {
        let table = self.table;
        let mut plans = Vec::with_capacity(fields.len());
        for (key, given) in fields {
            self.path.push(key.clone());
            let named = node.by.iter().flat_map(|by| {
                let name = Given::Literal(Value::from(key.as_str()));
                [(by.name, name), (by.value, given.clone())]
            });
            let item = named.map(|(id, given)| (table.node(id).name.to_string(), given));
            plans.push(self.item(node, &Given::Fields(item.collect()))?);
            self.path.pop();
        }
        Ok(Plan::Items(plans.into()))
    }

    fn item(&mut self, node: &Node, given: &Given) -> Prepared<Plan> {
        match (given, &node.shape) {
            (given, Shape::Proto(message, _)) => {
                let template = self.table.schema.prepare(*message, given);
                template.map(|template| Plan::Proto(Box::new(template))).map_err(|mistake| {
                    let path = self.path.iter().cloned().chain(mistake.path).collect();
                    GivenMistake { path, ..mistake }
                })
            }
            (Given::Leaf(leaf), _) => Ok(Plan::Leaf(*leaf)),
            (Given::Literal(value), _) => Ok(Plan::Literal(value.clone())),
            (Given::Fields(fields), Shape::List(list)) => {
                Ok(Plan::Fields(self.list(*list, &entries(fields), None)?.into()))
            }
            (given, Shape::Json(_)) => {
                let mut pieces = Vec::new();
                let mut begin = self.bytes.len();
                self.any(given, self.table.format(node), &mut begin, &mut pieces);
                self.flush(&mut begin, &mut pieces);
                Ok(Plan::Json(pieces.into()))
            }
            (Given::Items(_), _) => {
                let name = &node.name;
                let message = say!("`{name}` is not a list, but a list was given");
                Err(self.mistake(message, say!("write a single value")))
            }
            (Given::Fields(_), _) => {
                let name = &node.name;
                let message = say!("`{name}` has no fields, but fields were given");
                Err(self.mistake(message, say!("write a single value")))
            }
        }
    }

    /// Writes any value to the constant bytes, split into pieces at leaves.
    fn any(&mut self, given: &Given, format: Format, begin: &mut usize, pieces: &mut Vec<Piece>) {
        match given {
            Given::Literal(value) => format.write(value, &mut self.bytes),
            Given::Leaf(leaf) => {
                self.flush(begin, pieces);
                pieces.push(Piece::Leaf(*leaf));
            }
            Given::Items(items) => {
                format.open(true, items.len(), &mut self.bytes);
                for (index, item) in items.iter().enumerate() {
                    format.separate(index, &mut self.bytes);
                    self.any(item, format, begin, pieces);
                }
                format.close(true, &mut self.bytes);
            }
            Given::Fields(fields) => {
                format.open(false, fields.len(), &mut self.bytes);
                for (index, (name, given)) in fields.iter().enumerate() {
                    format.separate(index, &mut self.bytes);
                    format.write_key(name, &mut self.bytes);
                    self.any(given, format, begin, pieces);
                }
                format.close(false, &mut self.bytes);
            }
        }
    }

    /// Ends a piece of constant text that started at `begin`.
    fn flush(&mut self, begin: &mut usize, pieces: &mut Vec<Piece>) {
        if *begin < self.bytes.len() {
            let (from, until) = (*begin as u32, self.bytes.len() as u32);
            pieces.push(Piece::Bytes { from, until });
            *begin = self.bytes.len();
        }
    }
}

/// A part of a document that has a value of its own: the name of an element has none.
fn is_value(table: &Table, node: &Node) -> bool {
    let is_name = matches!(node.job, Job::Kind(_)) && table.format(node) == Format::Xml;
    node.member.is_some() && !is_name
}

fn entries(fields: &[(String, Given)]) -> Vec<Entry<'_>> {
    fields.iter().map(|(name, given)| (name.as_str(), given)).collect()
}

/// The plans in another order.
fn plans_in(order: Vec<usize>, plans: Vec<(u32, Plan)>) -> impl Iterator<Item = (u32, Plan)> {
    let mut plans: Vec<Option<(u32, Plan)>> = plans.into_iter().map(Some).collect();
    order.into_iter().filter_map(move |index| plans[index].take())
}
