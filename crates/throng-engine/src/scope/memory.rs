//! What a user keeps across steps: saved values, loop registers, data rows. Not allocated for users
//! of sessions that keep nothing.

use std::time::Duration;

use throng_data::{Row, Take};
use throng_expression::Value;
use throng_program::Program;
use throng_protocol::events::Resume;
use throng_protocol::http1::digest::Answerer;
use throng_protocol::machine::Machine;

use crate::prepared::Prepared;

pub(crate) struct Memory {
    /// By slot.
    values: Box<[Value]>,
    /// Values that audiences depend on have changed: the user must be moved.
    pub(crate) has_moved: bool,
    pub(crate) registers: Box<[u64]>,
    /// By data source: the row that was taken for this iteration, or for good.
    rows: Box<[Option<Row>]>,
    /// For saved values that paths start with: the request that each came from.
    origins: Vec<(u16, Origin)>,
    /// By target: credentials for its challenges.
    answerers: Vec<(u16, Answerer)>,
    /// By line: where its event stream resumes, from the loss until it is open again.
    resumes: ByLine<Resume>,
    /// By line: the machine that continues on the next connection.
    machines: ByLine<Machine>,
}

/// State that few users have, on few of their lines.
#[allow(clippy::box_collection)]
type ByLine<T> = Option<Box<Vec<(u8, T)>>>;

/// The origin of a value: target and path of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) target: u16,
    pub(crate) path: Box<str>,
}

impl Memory {
    pub(crate) fn new(prepared: &Prepared, session: u16) -> Memory {
        let (program, session) = (&prepared.program, usize::from(session));
        let registers = prepared.sessions[session].code.registers;
        Memory {
            values: vec![Value::Null; program.sessions[session].slots.len()].into(),
            has_moved: false,
            registers: vec![0; usize::from(registers)].into(),
            rows: (0..program.data.len()).map(|_| None).collect(),
            origins: Vec::new(),
            answerers: Vec::new(),
            resumes: None,
            machines: None,
        }
    }

    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Saves a value.
    pub(crate) fn save(&mut self, slot: u16, value: Value, prepared: &Prepared) {
        if let Some(place) = self.values.get_mut(usize::from(slot)) {
            self.has_moved |= slot < prepared.audience_slots;
            *place = value;
        }
    }

    pub(crate) fn origin(&self, slot: u16) -> Option<&Origin> {
        self.origins.iter().find(|(known, _)| *known == slot).map(|(_, origin)| origin)
    }

    pub(crate) fn came_from(&mut self, slot: u16, origin: Origin) {
        match self.origins.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, known)) => *known = origin,
            None => self.origins.push((slot, origin)),
        }
    }

    /// The state that answers the challenges of a target.
    pub(crate) fn answerer(&mut self, target: u16) -> Option<&mut Answerer> {
        let mut answerers = self.answerers.iter_mut();
        answerers.find(|(known, _)| *known == target).map(|(_, answerer)| answerer)
    }

    pub(crate) fn keep_answerer(&mut self, target: u16, answerer: Answerer) {
        match self.answerer(target) {
            Some(known) => *known = answerer,
            None => self.answerers.push((target, answerer)),
        }
    }

    /// An event stream was lost or closed, or is open again.
    pub(crate) fn keep_resume(&mut self, line: u8, resume: Option<Resume>) {
        if self.resumes.is_none() && resume.is_none() {
            return;
        }
        let resumes = self.resumes.get_or_insert_default();
        resumes.retain(|(known, _)| *known != line);
        resumes.extend(resume.map(|resume| (line, resume)));
        if resumes.is_empty() {
            self.resumes = None;
        }
    }

    pub(crate) fn resume(&self, line: u8) -> Option<&Resume> {
        let resumes = self.resumes.as_ref()?;
        resumes.iter().find(|(known, _)| *known == line).map(|(_, resume)| resume)
    }

    /// Keeps a machine whose connection was lost or did not open.
    pub(crate) fn keep_machine(&mut self, line: u8, machine: Machine) {
        self.machines.get_or_insert_default().push((line, machine));
    }

    pub(crate) fn take_machine(&mut self, line: u8) -> Option<Machine> {
        let machines = self.machines.as_mut()?;
        let place = machines.iter().position(|(known, _)| *known == line)?;
        let (_, machine) = machines.swap_remove(place);
        if machines.is_empty() {
            self.machines = None;
        }
        Some(machine)
    }

    /// The longest reconnection time of the lost streams.
    pub(crate) fn left_alone(&self) -> Option<Duration> {
        self.resumes.as_ref()?.iter().filter_map(|(_, resume)| resume.after).max()
    }

    pub(crate) fn row(&self, source: u16) -> Option<&Row> {
        self.rows.get(usize::from(source))?.as_ref()
    }

    pub(crate) fn keep_row(&mut self, source: u16, row: Row) {
        if let Some(place) = self.rows.get_mut(usize::from(source)) {
            *place = Some(row);
        }
    }

    /// An iteration starts: drops rows, except those that a user keeps for good.
    pub(crate) fn forget_rows(&mut self, program: &Program) {
        for (row, source) in self.rows.iter_mut().zip(&program.data) {
            if source.take != Take::PerUser {
                *row = None;
            }
        }
    }
}
