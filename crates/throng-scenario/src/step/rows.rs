//! The rows of the report: steps with the same name, kind and labels share one.

use std::collections::{HashMap, HashSet};

use throng_base::StepId;
use throng_program::{StepInfo, StepKind};
use throng_protocol::framed::MessageId;

use crate::ast::{Field, Map};
use crate::labels::{Labels, read_labels, selector};
use crate::read::Context;
use crate::syntax::Place;

/// Maximum length of the name of a row; longer names are shortened.
const NAME_CHARS_MAX: usize = 80;

/// A message that steps of a row send in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Speech {
    pub(crate) session: u16,
    /// The link of the session that it is sent on.
    pub(crate) link: u8,
    pub(crate) step: StepId,
    /// None for raw bytes or the body of an HTTP request.
    pub(crate) message: Option<MessageId>,
}

#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) steps: Vec<StepInfo>,
    ids: HashMap<(StepKind, String, Labels), StepId>,
    /// By row: the place of its first step.
    places: Vec<Place>,
    /// The messages that steps of a row send, by session.
    pub(crate) spoken: Vec<Speech>,
    known: HashSet<Speech>,
    /// The number of the session that is being compiled.
    pub(crate) session: u16,
    full: bool,
}

impl Rows {
    /// The row of a step: its `name`, or its text as written, with its labels.
    pub(crate) fn row<'n>(
        &mut self,
        cx: &mut Context<'_>,
        map: &impl Map<'n>,
        kind: StepKind,
        written: Option<&str>,
    ) -> Option<StepId> {
        match map.get("name").and_then(Field::node) {
            Some(node) => {
                let name = cx.text(node, say!("the name of a step"))?;
                self.labelled(cx, kind, &name, map)
            }
            None => self.labelled(cx, kind, written.unwrap_or(kind.word()), map),
        }
    }

    /// The row with this name and the labels of the step.
    pub(crate) fn labelled<'n>(
        &mut self,
        cx: &mut Context<'_>,
        kind: StepKind,
        name: &str,
        map: &impl Map<'n>,
    ) -> Option<StepId> {
        let labels = map.get("label").and_then(Field::node).map(|node| read_labels(cx, node));
        self.add(cx, kind, name, labels.unwrap_or_default(), map.place())
    }

    /// The row of this name, without labels.
    pub(crate) fn named(
        &mut self,
        cx: &mut Context<'_>,
        kind: StepKind,
        name: &str,
        place: Place,
    ) -> Option<StepId> {
        self.add(cx, kind, name, Labels::new(), place)
    }

    fn add(
        &mut self,
        cx: &mut Context<'_>,
        kind: StepKind,
        name: &str,
        labels: Labels,
        place: Place,
    ) -> Option<StepId> {
        let id = self.id(kind, name, labels);
        if id.is_some_and(|id| id.index() == self.places.len()) {
            self.places.push(place);
        }
        if id.is_none() && !std::mem::replace(&mut self.full, true) {
            let help = say!("give related steps the same `name`");
            cx.too_many(place, say!("the scenario has more than 65,535 different steps"), help);
        }
        id
    }

    /// Notes that a step of the row sends this message.
    pub(crate) fn speak(&mut self, step: StepId, link: u8, message: Option<MessageId>) {
        let speech = Speech { session: self.session, link, step, message };
        if self.known.insert(speech) {
            self.spoken.push(speech);
        }
    }

    /// All rows, and the places of their first steps. Rows with the same name and kind are
    /// distinguished by labels.
    pub(crate) fn finish(mut self) -> (Vec<StepInfo>, Vec<Place>) {
        let mut alike: HashMap<(StepKind, &str), usize> = HashMap::new();
        for step in &self.steps {
            *alike.entry((step.kind, step.name.as_str())).or_default() += 1;
        }
        let is_one = |step: &StepInfo| alike[&(step.kind, step.name.as_str())] == 1;
        let unique: Vec<bool> = self.steps.iter().map(is_one).collect();
        for (step, _) in self.steps.iter_mut().zip(unique).filter(|(_, unique)| !unique) {
            if !step.labels.is_empty() {
                step.name = format!("{} {}", step.name, selector(&step.labels));
            }
        }
        (self.steps, self.places)
    }

    fn id(&mut self, kind: StepKind, name: &str, labels: Labels) -> Option<StepId> {
        let mut words = name.split_whitespace();
        let mut name = words.next().unwrap_or_default().to_string();
        for word in words {
            name.push(' ');
            name.push_str(word);
        }
        if name.len() > NAME_CHARS_MAX && name.chars().count() > NAME_CHARS_MAX {
            name = name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect();
        }
        let key = (kind, name, labels);
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        let id = StepId(u16::try_from(self.steps.len()).ok().filter(|id| *id < u16::MAX)?);
        self.steps.push(StepInfo { name: key.1.clone(), kind, labels: key.2.clone(), unit: None });
        self.ids.insert(key, id);
        Some(id)
    }
}
