//! Values that are read with their map: lists and maps of maps, above all steps.

use std::ops::Deref;

use throng_base::Said;

use super::{Connect, Every, Field, Handler, Map, Once, Session, Verb, Way, verb};
use crate::read::Context;
use crate::syntax::{Key, Kind, Node, Place};

/// Facts about a session that are collected before its steps are compiled, in order.
#[derive(Clone, Copy)]
pub(crate) enum SessionFact<'t, 'n> {
    /// A value is saved under this name.
    Saved(&'n Key),
    /// The part with this name is executed.
    Part(&'n str),
    Connect(&'t Connect<'n>),
}

pub(crate) type See<'s, 't, 'n> = &'s mut dyn FnMut(SessionFact<'t, 'n>);

/// The value of a key in the struct of a map.
pub(crate) trait Value<'n>: From<Field<'n>> {
    fn field(&self) -> Field<'n>;

    fn field_mut(&mut self) -> &mut Field<'n>;

    fn fill(&mut self, _: &mut Context<'_>) {}

    fn show<'t>(&'t self, _: See<'_, 't, 'n>) {}
}

impl<'n> Value<'n> for Field<'n> {
    fn field(&self) -> Field<'n> {
        *self
    }

    fn field_mut(&mut self) -> &mut Field<'n> {
        self
    }
}

/// A key, and its value as read.
pub(crate) struct Deep<'n, C> {
    field: Field<'n>,
    pub(crate) content: C,
}

/// A value that is read with its map.
pub(crate) trait Content<'n>: Default {
    fn read(_: &mut Context<'_>, _: Field<'n>, _: &'n Node) -> Self {
        Self::default()
    }

    fn show<'t>(&'t self, field: Field<'n>, see: See<'_, 't, 'n>);
}

impl<'n, C> Deref for Deep<'n, C> {
    type Target = Field<'n>;

    fn deref(&self) -> &Field<'n> {
        &self.field
    }
}

impl<'n, C: Default> From<Field<'n>> for Deep<'n, C> {
    fn from(field: Field<'n>) -> Deep<'n, C> {
        Deep { field, content: C::default() }
    }
}

impl<'n, C: Content<'n>> Value<'n> for Deep<'n, C> {
    fn field(&self) -> Field<'n> {
        self.field
    }

    fn field_mut(&mut self) -> &mut Field<'n> {
        &mut self.field
    }

    fn fill(&mut self, cx: &mut Context<'_>) {
        if let Some(node) = self.field.node() {
            self.content = C::read(cx, self.field, node);
        }
    }

    fn show<'t>(&'t self, see: See<'_, 't, 'n>) {
        self.content.show(self.field, see);
    }
}

/// A key whose value is a list.
pub(crate) type List<'n, T> = Deep<'n, Option<Items<T>>>;

/// The valid items of a list.
pub(crate) struct Items<T> {
    pub(crate) place: Place,
    pub(crate) list: Vec<T>,
}

pub(crate) type Steps<'n> = Items<Step<'n>>;

/// An item of a list or of a map of names.
pub(crate) trait Item<'n>: Sized {
    /// The descriptions of a list of them (or a map of names), and of one of them.
    fn wanted(named: bool) -> (Said, Said);

    fn read(cx: &mut Context<'_>, node: &'n Node) -> Option<Self>;

    fn show<'t>(&'t self, see: See<'_, 't, 'n>);
}

impl<'n, T: Item<'n>> Content<'n> for Option<Items<T>> {
    fn read(cx: &mut Context<'_>, _: Field<'n>, node: &'n Node) -> Option<Items<T>> {
        Items::read(cx, node)
    }

    fn show<'t>(&'t self, _: Field<'n>, see: See<'_, 't, 'n>) {
        self.iter().flat_map(|items| &items.list).for_each(|item| item.show(see));
    }
}

impl<T> Items<T> {
    fn read<'n>(cx: &mut Context<'_>, node: &'n Node) -> Option<Items<T>>
    where
        T: Item<'n>,
    {
        let (want, help) = T::wanted(false);
        let items = cx.items(node, want, help)?;
        let mut list = Vec::with_capacity(items.len());
        list.extend(items.iter().filter_map(|item| T::read(cx, item)));
        Some(Items { place: node.place, list })
    }
}

/// A step; without a verb if it is invalid.
pub(crate) struct Step<'n> {
    pub(crate) place: Place,
    pub(crate) verb: Option<Verb<'n>>,
}

impl<'n> Item<'n> for Step<'n> {
    fn wanted(_: bool) -> (Said, Said) {
        let help = say!("write a list: `steps: [{{http: GET /}}, {{think: 2s}}]`");
        (say!("a list of steps"), help)
    }

    fn read(cx: &mut Context<'_>, node: &'n Node) -> Option<Step<'n>> {
        let verb = match &node.kind {
            Kind::Scalar { text, .. } => verb::bare_verb(cx, node, text),
            Kind::Map(entries) => {
                verb::find_verb(cx, node, entries).and_then(|word| Verb::read(cx, word, node))
            }
            Kind::List(_) => {
                let help = say!("a step must be a map with one verb: `- http: GET /`");
                cx.wrong_type(node, say!("a step"), help)
            }
        };
        Some(Step { place: node.place, verb })
    }

    fn show<'t>(&'t self, see: See<'_, 't, 'n>) {
        if let Some(Verb::Connect(map)) = &self.verb {
            see(SessionFact::Connect(map));
        }
        self.verb.iter().for_each(|verb| verb.show(see));
    }
}

/// Steps in a list or in a map of names: branches and parts.
impl<'n> Item<'n> for Steps<'n> {
    fn wanted(named: bool) -> (Said, Said) {
        if named {
            let help = say!("write `parts: {{login: [{{http: POST /login}}]}}`");
            return (say!("a map of parts"), help);
        }
        let help =
            say!("write `- parallel: [[{{http: GET /a}}], [{{http: GET /b}}, {{http: GET /c}}]]`");
        (say!("a list of branches"), help)
    }

    fn read(cx: &mut Context<'_>, node: &'n Node) -> Option<Steps<'n>> {
        Items::read(cx, node)
    }

    fn show<'t>(&'t self, see: See<'_, 't, 'n>) {
        self.list.iter().for_each(|step| step.show(see));
    }
}

macro_rules! items {
    ($($type:ident: $want:literal, $help:literal;)*) => {$(
        impl<'n> Item<'n> for $type<'n> {
            fn wanted(_: bool) -> (Said, Said) {
                (say!($want), say!($help))
            }

            fn read(cx: &mut Context<'_>, node: &'n Node) -> Option<$type<'n>> {
                $type::read(cx, node)
            }

            fn show<'t>(&'t self, see: See<'_, 't, 'n>) {
                Map::show(self, see);
            }
        }
    )*};
}

items! {
    Handler: "a list of messages",
        "write `on: [{{message: {{json: {{cmd: msg}}}}, name: broadcast}}]`";
    Every: "a list of background tasks",
        "write `every: [{{time: 5m, do: [{{send: {{text: report}}}}]}}]`";
    Session: "a map of sessions",
        "write `sessions: {{reader: {{steps: [{{http: GET /}}]}}}}`, with a name for each session";
    Way: "a list of branches",
        "write `- choose: [{{weight: 70, steps: […]}}, {{weight: 30, steps: […]}}]`";
}

/// A key whose value is a map of names. Invalid entries have no value.
pub(crate) type Named<'n, T> = Deep<'n, Vec<(&'n Key, Option<T>)>>;

impl<'n, T: Item<'n>> Content<'n> for Vec<(&'n Key, Option<T>)> {
    fn read(cx: &mut Context<'_>, _: Field<'n>, node: &'n Node) -> Self {
        let (want, help) = T::wanted(true);
        let entries = cx.entries(node, want, help).unwrap_or_default();
        entries.into_iter().map(|(key, node)| (key, T::read(cx, node))).collect()
    }

    fn show<'t>(&'t self, _: Field<'n>, see: See<'_, 't, 'n>) {
        self.iter().filter_map(|(_, one)| one.as_ref()).for_each(|one| one.show(see));
    }
}

/// `setup` and `teardown`: a session with only steps, and its timeout.
pub(crate) type Aside<'n> = Deep<'n, Option<(Box<Session<'n>>, Option<&'n Node>)>>;

impl<'n> Content<'n> for Option<(Box<Session<'n>>, Option<&'n Node>)> {
    fn read(cx: &mut Context<'_>, field: Field<'n>, node: &'n Node) -> Self {
        let (steps, timeout) = match &node.kind {
            Kind::Map(_) => {
                let once = Once::read(cx, node)?;
                (once.steps, once.timeout.node())
            }
            _ => {
                let mut steps = List::from(field);
                steps.fill(cx);
                (steps, None)
            }
        };
        Some((Box::new(Session { steps, ..Session::at(node.place) }), timeout))
    }

    fn show<'t>(&'t self, _: Field<'n>, see: See<'_, 't, 'n>) {
        self.iter().for_each(|(session, _)| Map::show(&**session, see));
    }
}

/// A key whose value saves values under names.
pub(crate) type Saves<'n> = Deep<'n, SavedNames>;

#[derive(Default)]
pub(crate) struct SavedNames;

impl<'n> Content<'n> for SavedNames {
    fn show<'t>(&'t self, field: Field<'n>, see: See<'_, 't, 'n>) {
        let (Field::There((_, node)) | Field::Meant(node)) = field else { return };
        if let Kind::Map(entries) = &node.kind {
            entries.iter().for_each(|(key, _)| see(SessionFact::Saved(key)));
        }
    }
}

/// A key that names a part to execute.
pub(crate) type PartName<'n> = Deep<'n, NameOfPart>;

#[derive(Default)]
pub(crate) struct NameOfPart;

impl<'n> Content<'n> for NameOfPart {
    fn show<'t>(&'t self, field: Field<'n>, see: See<'_, 't, 'n>) {
        if let Some(Node { kind: Kind::Scalar { text, .. }, .. }) = field.node() {
            see(SessionFact::Part(text));
        }
    }
}
