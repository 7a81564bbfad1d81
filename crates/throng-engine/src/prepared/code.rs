//! The code of a session: its tree, flattened into a list with jumps, so that a task needs only a
//! program counter and its registers. Only this module knows where jumps lead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;
use throng_program::{Check, Every, Failing, Handler, Save, Session, Statement, TaskBody, Way};

/// The next instruction of a task.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    /// A statement without nested steps of the same task.
    Do(Statement),
    /// Starts a loop: jumps past its `RepeatEnd` at `end` if it does not run at all.
    RepeatBegin {
        register: u16,
        low: u32,
        high: u32,
        end: u32,
    },
    /// Decrements the register; jumps back to the instruction after `begin` while it is not zero.
    RepeatEnd {
        register: u16,
        begin: u32,
    },
    /// Starts a loop with a duration: the register holds its end.
    DuringBegin {
        register: u16,
        time: Duration,
    },
    /// Jumps back to the instruction after `begin` until the time is over.
    DuringEnd {
        register: u16,
        begin: u32,
    },
    /// Starts a loop over the items of a list, kept in the slot `list`; jumps past its `ForEachEnd`
    /// at `end` if it is empty. The current item is in the slot `item`.
    ForEachBegin {
        register: u16,
        values: Arc<Expression>,
        list: u16,
        item: u16,
        end: u32,
    },
    /// Takes the next item and jumps back to the instruction after `begin`, if there is one.
    ForEachEnd {
        register: u16,
        list: u16,
        item: u16,
        begin: u32,
    },
    /// Continues at `to` if the condition is false.
    Unless {
        condition: Arc<Expression>,
        to: u32,
    },
    /// Continues at one of these instructions, chosen at random by weight.
    Choose(Box<[Branch]>),
    TransactionBegin {
        step: StepId,
    },
    TransactionEnd {
        step: StepId,
    },
    /// Continues at this instruction.
    Jump(u32),
    /// Runs the bodies that start here concurrently, and continues when all have ended.
    Parallel(Box<[u32]>),
    /// Ends a body.
    Return,
}

impl Instruction {
    fn statement(&self) -> Option<&Statement> {
        match self {
            Instruction::Do(statement) => Some(statement),
            _ => None,
        }
    }

    /// Its row in the report.
    pub(crate) fn step(&self) -> Option<StepId> {
        match self {
            Instruction::Do(statement) => statement.step(),
            Instruction::TransactionBegin { step } | Instruction::TransactionEnd { step } => {
                Some(*step)
            }
            _ => None,
        }
    }

    /// Whether it takes no time and touches no connection, wherever it stands between two steps.
    pub(crate) fn is_instant(&self) -> bool {
        use Statement::{Log, Set, Tally};
        match self {
            Instruction::Do(one) => matches!(one, Set { .. } | Tally { .. } | Log(_)),
            Instruction::TransactionBegin { .. } | Instruction::TransactionEnd { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn link(&self) -> Option<u8> {
        self.statement().and_then(Statement::link)
    }

    pub(crate) fn failing(&self) -> Failing {
        self.statement().map(Statement::failing).unwrap_or_default()
    }

    pub(crate) fn checks(&self) -> &[Check] {
        self.statement().map_or(&[], Statement::checks)
    }

    pub(crate) fn saves(&self) -> &[Save] {
        self.statement().map_or(&[], Statement::saves)
    }
}

/// One branch of a choice, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) weight: u32,
    pub(crate) to: u32,
}

/// `all[..begin]` runs once when the user starts, `all[begin..end]` once per iteration,
/// `all[end..last]` once when the user leaves gracefully. After `last` are the bodies of other
/// tasks; each ends with [`Instruction::Return`].
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) all: Box<[Instruction]>,
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) last: u32,
    /// Registers of loops; one holds a count, an index or a time.
    pub(crate) registers: u16,
    /// Where bodies start, by their numbers.
    bodies: Box<[u32]>,
}

impl Code {
    pub(crate) fn new(session: &Session) -> Code {
        let mut writer = Writer::default();
        writer.block(&session.before);
        let begin = writer.here();
        writer.block(&session.steps);
        let end = writer.here();
        writer.block(&session.after);
        let last = writer.here();
        session.links.iter().for_each(|link| writer.later(&link.handlers, &link.every));
        while let Some((place, steps)) = writer.open.pop_front() {
            // Tasks run concurrently: each has registers of its own.
            (writer.first, writer.depth) = (writer.registers, 0);
            let begin = writer.here();
            match place {
                Place::Body(number) => writer.begins(number, begin),
                Place::Branch(at, number) => {
                    if let Instruction::Parallel(begins) = &mut writer.all[at] {
                        begins[number] = begin;
                    }
                }
            }
            writer.block(steps);
            writer.all.push(Instruction::Return);
        }
        let Writer { all, registers, bodies, .. } = writer;
        Code { all: all.into(), begin, end, last, registers, bodies: bodies.into() }
    }

    /// Where a body starts.
    pub(crate) fn begin_of(&self, body: &TaskBody) -> u32 {
        self.bodies.get(body.number as usize).copied().unwrap_or(self.last)
    }

    /// The instructions of the session itself.
    pub(crate) fn own(&self) -> &[Instruction] {
        &self.all[..self.last as usize]
    }

    /// The instructions of other tasks.
    pub(crate) fn background(&self) -> &[Instruction] {
        &self.all[self.last as usize..]
    }
}

/// How the start of a body is identified.
enum Place {
    Body(u32),
    /// A branch of the `parallel` there, by its index.
    Branch(usize, usize),
}

#[derive(Default)]
struct Writer<'s> {
    all: Vec<Instruction>,
    bodies: Vec<u32>,
    /// Bodies that are not written yet.
    open: VecDeque<(Place, &'s [Statement])>,
    /// The first register of the current task, and the depth of loops around the step.
    first: u16,
    depth: u16,
    registers: u16,
}

impl<'s> Writer<'s> {
    fn here(&self) -> u32 {
        self.all.len() as u32
    }

    fn begins(&mut self, body: u32, begin: u32) {
        let number = body as usize;
        self.bodies.resize(self.bodies.len().max(number + 1), 0);
        self.bodies[number] = begin;
    }

    /// Writes these bodies after everything else.
    fn later(&mut self, handlers: &'s [Handler], every: &'s [Every]) {
        let of_handlers = handlers.iter().filter_map(|handler| handler.body.as_ref());
        let all = of_handlers.chain(every.iter().map(|every| &every.body));
        self.open.extend(all.map(|body| (Place::Body(body.number), &*body.steps)));
    }

    fn block(&mut self, steps: &'s [Statement]) {
        steps.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &'s Statement) {
        let instruction = match statement {
            Statement::Stay(stay) => {
                self.later(&stay.handlers, &stay.every);
                Instruction::Do(statement.clone())
            }
            Statement::Parallel(branches) => {
                let at = self.all.len();
                let places = (0..).map(|number| Place::Branch(at, number));
                self.open.extend(places.zip(branches.iter().map(|steps| &**steps)));
                Instruction::Parallel(vec![0; branches.len()].into())
            }
            Statement::Transaction { step, steps } => {
                self.all.push(Instruction::TransactionBegin { step: *step });
                self.block(steps);
                Instruction::TransactionEnd { step: *step }
            }
            Statement::Repeat { .. }
            | Statement::Forever(_)
            | Statement::During { .. }
            | Statement::ForEach { .. }
            | Statement::While { .. }
            | Statement::If { .. }
            | Statement::Choose(_) => return self.turn(statement),
            simple => Instruction::Do(simple.clone()),
        };
        self.all.push(instruction);
    }

    /// Loops and branches.
    fn turn(&mut self, statement: &'s Statement) {
        let begin = self.here();
        match statement {
            Statement::Repeat { low, high, steps } => {
                let (low, high) = (*low, *high);
                self.in_loop(|writer, register| {
                    writer.all.push(Instruction::RepeatBegin { register, low, high, end: 0 });
                    writer.block(steps);
                    writer.all.push(Instruction::RepeatEnd { register, begin });
                });
            }
            Statement::During { time, steps } => self.in_loop(|writer, register| {
                writer.all.push(Instruction::DuringBegin { register, time: *time });
                writer.block(steps);
                writer.all.push(Instruction::DuringEnd { register, begin });
            }),
            Statement::ForEach { values, list, item, steps } => {
                let (values, list, item) = (Arc::clone(values), *list, *item);
                self.in_loop(|writer, register| {
                    let each = Instruction::ForEachBegin { register, values, list, item, end: 0 };
                    writer.all.push(each);
                    writer.block(steps);
                    writer.all.push(Instruction::ForEachEnd { register, list, item, begin });
                });
            }
            Statement::Forever(steps) => {
                self.block(steps);
                return self.all.push(Instruction::Jump(begin));
            }
            Statement::While { condition, steps } => {
                self.unless(condition);
                self.block(steps);
                self.all.push(Instruction::Jump(begin));
            }
            Statement::If { condition, then, otherwise } => {
                self.unless(condition);
                self.block(then);
                if !otherwise.is_empty() {
                    let jump = self.all.len();
                    self.all.push(Instruction::Jump(0));
                    self.leads_here(begin as usize);
                    self.block(otherwise);
                    return self.leads_here(jump);
                }
            }
            Statement::Choose(ways) => return self.choose(ways),
            _ => return,
        }
        self.leads_here(begin as usize);
    }

    fn choose(&mut self, ways: &'s [Way]) {
        let at = self.all.len();
        self.all.push(Instruction::Choose(Box::default()));
        let mut branches = Vec::with_capacity(ways.len());
        let mut jumps = Vec::with_capacity(ways.len());
        for way in ways {
            branches.push(Branch { weight: way.weight, to: self.here() });
            self.block(&way.steps);
            jumps.push(self.all.len());
            self.all.push(Instruction::Jump(0));
        }
        // The last branch needs no jump.
        if let Some(last) = jumps.pop() {
            self.all.truncate(last);
        }
        jumps.into_iter().for_each(|jump| self.leads_here(jump));
        self.all[at] = Instruction::Choose(branches.into());
    }

    fn unless(&mut self, condition: &Arc<Expression>) {
        self.all.push(Instruction::Unless { condition: Arc::clone(condition), to: 0 });
    }

    /// Consecutive loops share a register.
    fn in_loop(&mut self, write: impl FnOnce(&mut Self, u16)) {
        let register = self.first + self.depth;
        self.depth += 1;
        self.registers = self.registers.max(register + 1);
        write(self, register);
        self.depth -= 1;
    }

    /// Makes the jump there lead to what is written next; for a loop, to its end just before.
    fn leads_here(&mut self, at: usize) {
        let here = self.here();
        match &mut self.all[at] {
            Instruction::Unless { to, .. } | Instruction::Jump(to) => *to = here,
            Instruction::RepeatBegin { end, .. } | Instruction::ForEachBegin { end, .. } => {
                *end = here - 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;
    use throng_program::{Block, Link, Stay, Text, Which};

    use super::*;

    /// A step that is identified by this number.
    fn step(number: u16) -> Statement {
        Statement::Set { slot: number, value: Arc::new(Text::default()) }
    }

    fn repeat(steps: Block) -> Statement {
        Statement::Repeat { low: 1, high: 2, steps }
    }

    fn during(steps: Block) -> Statement {
        Statement::During { time: Duration::from_secs(1), steps }
    }

    fn condition() -> Arc<Expression> {
        Arc::new(Expression::constant(true.into()))
    }

    fn each(steps: Block) -> Statement {
        Statement::ForEach { values: condition(), list: 0, item: 1, steps }
    }

    fn repeat_while(steps: Block) -> Statement {
        Statement::While { condition: condition(), steps }
    }

    fn either(then: Block, otherwise: Block) -> Statement {
        Statement::If { condition: condition(), then, otherwise }
    }

    fn choose(ways: Vec<Block>) -> Statement {
        let way = |(weight, steps)| Way { weight, steps };
        Statement::Choose((1..).zip(ways).map(way).collect())
    }

    fn transaction(step: u16, steps: Block) -> Statement {
        Statement::Transaction { step: StepId(step), steps }
    }

    fn handler(number: u32, steps: Block) -> Handler {
        Handler {
            step: StepId(0),
            message: Which::default(),
            checks: Vec::new(),
            saves: Vec::new(),
            body: Some(TaskBody { number, steps }),
            failing: Failing::default(),
        }
    }

    fn every(number: u32, steps: Block) -> Every {
        Every { time: Duration::from_secs(1), body: TaskBody { number, steps } }
    }

    fn stay(handlers: Vec<Handler>, every: Vec<Every>) -> Statement {
        let (step, failing) = (StepId(0), Failing::default());
        let (link, time, heartbeat, ends, awaits_end) = (0, None, None, None, false);
        let stay = Stay { step, link, time, ends, awaits_end, heartbeat, handlers, every, failing };
        Statement::Stay(Arc::new(stay))
    }

    fn link(handlers: Vec<Handler>, every: Vec<Every>) -> Link {
        Link { handlers, every, ..Link::default() }
    }

    fn code(steps: Block) -> Code {
        Code::new(&Session { steps, ..Session::default() })
    }

    /// In short form: the number of a step; the register of a loop, and where it leads; branches
    /// with their weights.
    fn word(instruction: &Instruction) -> String {
        match instruction {
            Instruction::Do(Statement::Set { slot, .. }) => slot.to_string(),
            Instruction::Do(_) => "stay".into(),
            Instruction::RepeatBegin { register, end, .. } => format!("repeat r{register} {end}"),
            Instruction::RepeatEnd { register, begin } => format!("/repeat r{register} {begin}"),
            Instruction::DuringBegin { register, .. } => format!("during r{register}"),
            Instruction::DuringEnd { register, begin } => format!("/during r{register} {begin}"),
            Instruction::ForEachBegin { register, end, .. } => format!("each r{register} {end}"),
            Instruction::ForEachEnd { register, begin, .. } => format!("/each r{register} {begin}"),
            Instruction::Unless { to, .. } => format!("unless {to}"),
            Instruction::Choose(ways) => {
                let ways = ways.iter().map(|way| format!(" {}:{}", way.weight, way.to));
                format!("choose{}", ways.collect::<String>())
            }
            Instruction::TransactionBegin { step } => format!("transaction {}", step.0),
            Instruction::TransactionEnd { step } => format!("/transaction {}", step.0),
            Instruction::Jump(to) => format!("jump {to}"),
            Instruction::Parallel(begins) => format!("parallel {begins:?}"),
            Instruction::Return => "return".into(),
        }
    }

    fn layout(code: &Code) -> String {
        code.all.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn loops_jump_back_and_past_their_end() {
        for (steps, want) in [
            (vec![repeat(vec![step(1)])], "repeat r0 2, 1, /repeat r0 0"),
            (vec![step(1), repeat(vec![]), step(2)], "1, repeat r0 2, /repeat r0 1, 2"),
            (vec![during(vec![step(1)])], "during r0, 1, /during r0 0"),
            (vec![step(1), during(vec![])], "1, during r0, /during r0 1"),
            (vec![each(vec![step(1)]), step(2)], "each r0 2, 1, /each r0 0, 2"),
            (vec![step(1), each(vec![])], "1, each r0 2, /each r0 1"),
            (vec![repeat_while(vec![step(1)]), step(2)], "unless 3, 1, jump 0, 2"),
            (vec![step(1), repeat_while(vec![])], "1, unless 3, jump 1"),
            (vec![step(1), Statement::Forever(vec![step(2)])], "1, 2, jump 1"),
            (vec![Statement::Forever(vec![])], "jump 0"),
            // An instruction that a loop without a start instruction starts with keeps its jump
            // target.
            (
                vec![Statement::Forever(vec![either(vec![step(1)], vec![]), step(2)])],
                "unless 2, 1, 2, jump 0",
            ),
            (vec![Statement::Forever(vec![repeat(vec![])])], "repeat r0 1, /repeat r0 0, jump 0"),
            (vec![Statement::Forever(vec![Statement::Forever(vec![])])], "jump 0, jump 0"),
            (vec![transaction(7, vec![step(1)])], "transaction 7, 1, /transaction 7"),
            (
                vec![repeat(vec![transaction(7, vec![repeat_while(vec![each(vec![])])])])],
                "repeat r0 7, transaction 7, unless 6, each r1 4, /each r1 3, jump 2, \
                 /transaction 7, /repeat r0 0",
            ),
        ] {
            assert_eq!(layout(&code(steps)), want);
        }
    }

    #[test]
    fn branches_continue_after_the_choice() {
        let nested = || either(vec![step(1)], vec![step(2)]);
        let last = || either(vec![step(3)], vec![]);
        for (steps, want) in [
            (vec![either(vec![step(1)], vec![])], "unless 2, 1"),
            (vec![either(vec![step(1)], vec![step(2)])], "unless 3, 1, jump 4, 2"),
            (vec![either(vec![], vec![step(1)]), step(2)], "unless 2, jump 3, 1, 2"),
            (vec![either(vec![], vec![]), step(1)], "unless 1, 1"),
            (
                vec![either(vec![nested()], vec![last()])],
                "unless 6, unless 4, 1, jump 5, 2, jump 8, unless 8, 3",
            ),
            (
                vec![choose(vec![vec![step(1)], vec![], vec![step(2)]]), step(3)],
                "choose 1:1 2:3 3:4, 1, jump 5, jump 5, 2, 3",
            ),
            (vec![choose(vec![vec![step(1)], vec![]])], "choose 1:1 2:3, 1, jump 3"),
            (vec![choose(vec![vec![]]), step(1)], "choose 1:1, 1"),
            (
                vec![choose(vec![vec![nested()], vec![last()]])],
                "choose 1:1 2:6, unless 4, 1, jump 5, 2, jump 8, unless 8, 3",
            ),
            (
                vec![choose(vec![vec![], vec![choose(vec![vec![], vec![step(1)]])]])],
                "choose 1:1 2:2, jump 5, choose 1:3 2:4, jump 5, 1",
            ),
        ] {
            assert_eq!(layout(&code(steps)), want);
        }
    }

    #[test]
    fn one_time_steps_enclose_the_iteration() {
        let code = Code::new(&Session {
            before: vec![repeat(vec![])],
            steps: vec![repeat_while(vec![step(1)])],
            after: vec![either(vec![step(2)], vec![])],
            ..Session::default()
        });
        let want = "repeat r0 1, /repeat r0 0, unless 5, 1, jump 2, unless 7, 2";
        assert_eq!((layout(&code).as_str(), code.begin, code.end, code.last), (want, 2, 5, 7));
        assert_eq!((code.own().len(), code.background().len()), (7, 0));
    }

    #[test]
    fn nested_loops_have_their_own_registers() {
        let inner = vec![during(vec![each(vec![])]), repeat(vec![])];
        let all = code(vec![repeat(inner), repeat_while(vec![during(vec![])])]);
        let want = "repeat r0 7, during r1, each r2 3, /each r2 2, /during r1 1, repeat r1 6, \
                    /repeat r1 5, /repeat r0 0, unless 12, during r0, /during r0 9, jump 8";
        assert_eq!((layout(&all).as_str(), all.registers), (want, 3));
        // Concurrent tasks do not share registers.
        let branches = vec![vec![repeat(vec![])], vec![during(vec![repeat(vec![])])], vec![]];
        let all = code(vec![repeat(vec![Statement::Parallel(branches)])]);
        let want = "repeat r0 2, parallel [3, 6, 11], /repeat r0 0, repeat r1 4, /repeat r1 3, \
                    return, during r2, repeat r3 8, /repeat r3 7, /during r2 6, return, return";
        assert_eq!((layout(&all).as_str(), all.registers, all.last), (want, 4, 3));
        assert_eq!(code(vec![repeat_while(vec![step(1)])]).registers, 0);
    }

    #[test]
    fn bodies_follow_everything_else_and_are_found_by_number() {
        let within = stay(vec![handler(2, vec![step(5)])], Vec::new());
        let there = stay(vec![handler(1, vec![step(3), within])], vec![every(0, vec![step(4)])]);
        let code = Code::new(&Session {
            steps: vec![there, step(1)],
            after: vec![step(2)],
            links: [link(vec![handler(4, vec![step(7)])], vec![every(3, vec![])])].into(),
            ..Session::default()
        });
        let want = "stay, 1, 2, 3, stay, return, 4, return, 7, return, return, 5, return";
        assert_eq!((layout(&code).as_str(), code.end, code.last), (want, 2, 3));
        let begin_of = |number| code.begin_of(&TaskBody { number, steps: Vec::new() });
        assert_eq!([0, 1, 2, 3, 4].map(begin_of), [6, 3, 11, 10, 8]);
    }

    /// Generates random blocks, and counts the bodies in them.
    struct Draw {
        random: Random,
        bodies: u32,
        branches: usize,
    }

    impl Draw {
        fn block(&mut self, depth: u32) -> Block {
            (0..self.random.below(4)).map(|_| self.statement(depth)).collect()
        }

        fn statement(&mut self, depth: u32) -> Statement {
            let number = self.random.below(100) as u16;
            let Some(deeper) = depth.checked_sub(1) else { return step(number) };
            match self.random.below(12) {
                0 => repeat(self.block(deeper)),
                1 => during(self.block(deeper)),
                2 => each(self.block(deeper)),
                3 => repeat_while(self.block(deeper)),
                // It contains a step, so that a walk ends.
                4 => Statement::Forever([self.block(deeper), vec![step(number)]].concat()),
                5 => either(self.block(deeper), vec![]),
                6 => either(self.block(deeper), self.block(deeper)),
                7 => choose((0..=self.random.below(3)).map(|_| self.block(deeper)).collect()),
                8 => transaction(number, self.block(deeper)),
                9 => {
                    let count = self.random.below(3) as usize;
                    self.branches += count;
                    Statement::Parallel((0..count).map(|_| self.block(deeper)).collect())
                }
                10 => {
                    let (handlers, every) = self.background(deeper);
                    stay(handlers, every)
                }
                _ => step(number),
            }
        }

        fn background(&mut self, depth: u32) -> (Vec<Handler>, Vec<Every>) {
            self.bodies += 2;
            let number = self.bodies - 2;
            let handlers = vec![handler(number, self.block(depth))];
            (handlers, vec![every(number + 1, self.block(depth))])
        }
    }

    /// Where an instruction may lead besides the next one.
    fn targets(instruction: &Instruction) -> Vec<u32> {
        match instruction {
            Instruction::RepeatBegin { end, .. } | Instruction::ForEachBegin { end, .. } => {
                vec![end + 1]
            }
            Instruction::RepeatEnd { begin, .. }
            | Instruction::DuringEnd { begin, .. }
            | Instruction::ForEachEnd { begin, .. } => vec![begin + 1],
            Instruction::Unless { to, .. } | Instruction::Jump(to) => vec![*to],
            Instruction::Choose(ways) => ways.iter().map(|way| way.to).collect(),
            _ => Vec::new(),
        }
    }

    fn register(instruction: &Instruction) -> Option<u16> {
        match instruction {
            Instruction::RepeatBegin { register, .. }
            | Instruction::RepeatEnd { register, .. }
            | Instruction::DuringBegin { register, .. }
            | Instruction::DuringEnd { register, .. }
            | Instruction::ForEachBegin { register, .. }
            | Instruction::ForEachEnd { register, .. } => Some(*register),
            _ => None,
        }
    }

    /// Executes the tree and the code with random decisions.
    struct Walk {
        random: Random,
        done: Vec<u16>,
    }

    impl Walk {
        /// `None` when it is long enough.
        fn does(&mut self, number: u16) -> Option<()> {
            self.done.push(number);
            (self.done.len() < 300).then_some(())
        }

        fn tree(&mut self, steps: &[Statement]) -> Option<()> {
            for statement in steps {
                match statement {
                    Statement::Set { slot, .. } => self.does(*slot)?,
                    Statement::Repeat { steps, .. } | Statement::ForEach { steps, .. } => {
                        (0..self.random.below(3)).try_for_each(|_| self.tree(steps))?;
                    }
                    Statement::During { steps, .. } => {
                        (0..=self.random.below(2)).try_for_each(|_| self.tree(steps))?;
                    }
                    Statement::While { steps, .. } => {
                        while self.random.chance(0.5) {
                            self.tree(steps)?;
                        }
                    }
                    Statement::Forever(steps) => loop {
                        self.tree(steps)?;
                    },
                    Statement::If { then, otherwise, .. } => {
                        let holds = self.random.chance(0.5);
                        self.tree(if holds { then } else { otherwise })?;
                    }
                    Statement::Choose(ways) => {
                        let way = self.random.below(ways.len() as u64);
                        self.tree(&ways[way as usize].steps)?;
                    }
                    Statement::Transaction { step, steps } => {
                        self.does(1000 + step.0)?;
                        self.tree(steps)?;
                        self.does(2000 + step.0)?;
                    }
                    _ => {
                        statement
                            .background()
                            .into_iter()
                            .try_for_each(|steps| self.tree(steps))?;
                    }
                }
            }
            Some(())
        }

        /// From there to `end`, or to the end of a body.
        fn code(&mut self, code: &Code, kept: &mut [u64], from: u32, end: u32) -> Option<()> {
            let mut next = from;
            while next != end {
                let pc = next;
                next += 1;
                let instruction = &code.all[pc as usize];
                let leads = targets(instruction);
                let kept_at = register(instruction).map_or(0, usize::from);
                match instruction {
                    Instruction::Do(Statement::Set { slot, .. }) => self.does(*slot)?,
                    Instruction::Do(statement) => {
                        let Statement::Stay(stay) = statement else { unreachable!() };
                        let bodies = stay.handlers.iter().filter_map(|one| one.body.as_ref());
                        for body in bodies.chain(stay.every.iter().map(|one| &one.body)) {
                            self.code(code, kept, code.begin_of(body), u32::MAX)?;
                        }
                    }
                    Instruction::RepeatBegin { .. } | Instruction::ForEachBegin { .. } => {
                        kept[kept_at] = self.random.below(3);
                        next = if kept[kept_at] == 0 { leads[0] } else { next };
                    }
                    Instruction::DuringBegin { .. } => kept[kept_at] = 1 + self.random.below(2),
                    Instruction::RepeatEnd { .. }
                    | Instruction::DuringEnd { .. }
                    | Instruction::ForEachEnd { .. } => {
                        kept[kept_at] -= 1;
                        next = if kept[kept_at] > 0 { leads[0] } else { next };
                    }
                    Instruction::Unless { to, .. } => {
                        next = if self.random.chance(0.5) { next } else { *to };
                    }
                    Instruction::Choose(_) => {
                        next = leads[self.random.below(leads.len() as u64) as usize];
                    }
                    Instruction::TransactionBegin { step } => self.does(1000 + step.0)?,
                    Instruction::TransactionEnd { step } => self.does(2000 + step.0)?,
                    Instruction::Jump(to) => next = *to,
                    Instruction::Parallel(begins) => {
                        for begin in begins {
                            self.code(code, kept, *begin, u32::MAX)?;
                        }
                    }
                    Instruction::Return => return Some(()),
                }
            }
            Some(())
        }
    }

    #[test]
    fn every_tree_is_flattened_soundly_and_behaves_the_same() {
        for seed in 0..2_000 {
            let mut draw = Draw { random: Random::new(seed), bodies: 0, branches: 0 };
            let (handlers, every) = draw.background(2);
            let session = Session {
                before: draw.block(3),
                steps: draw.block(5),
                after: draw.block(3),
                links: [link(handlers, every)].into(),
                ..Session::default()
            };
            let code = Code::new(&session);
            is_sound(&code, &draw, seed);
            let parts = [
                (&session.before, 0, code.begin),
                (&session.steps, code.begin, code.end),
                (&session.after, code.end, code.last),
            ];
            for (steps, from, end) in parts {
                let walk = || Walk { random: Random::new(seed), done: Vec::new() };
                let (mut tree, mut flat) = (walk(), walk());
                let whole = tree.tree(steps);
                let mut kept = vec![0; usize::from(code.registers)];
                assert_eq!(flat.code(&code, &mut kept, from, end), whole, "seed {seed}");
                assert_eq!(flat.done, tree.done, "seed {seed}: {}", layout(&code));
            }
        }
    }

    /// Each part only jumps within itself or right after itself, and each task has its own
    /// registers.
    fn is_sound(code: &Code, drawn: &Draw, seed: u64) {
        let is_return = |one: &Instruction| matches!(one, Instruction::Return);
        let (mut from, mut begins, mut first) = (code.last, Vec::new(), 0);
        let own = [(0, code.begin), (code.begin, code.end), (code.end, code.last)];
        let mut parts: Vec<(u32, u32)> = own.into();
        for body in code.background().split_inclusive(is_return) {
            assert!(body.last().is_some_and(is_return), "seed {seed}");
            begins.push(from);
            // The steps of a body are followed by its `Return`.
            parts.push((from, from + body.len() as u32 - 1));
            from += body.len() as u32;
        }
        assert!(!code.own().iter().any(is_return), "seed {seed}");
        assert_eq!(begins.len(), drawn.bodies as usize + drawn.branches, "seed {seed}");
        let mut known: Vec<u32> = (0..drawn.bodies)
            .map(|number| code.begin_of(&TaskBody { number, steps: Vec::new() }))
            .collect();
        for (part, (from, to)) in parts.into_iter().enumerate() {
            let all = &code.all[from as usize..to as usize];
            let mut leads = all.iter().flat_map(targets);
            assert!(leads.all(|to_there| (from..=to).contains(&to_there)), "seed {seed}");
            let used = || all.iter().filter_map(register);
            assert!(used().all(|register| register < code.registers), "seed {seed}");
            // Those of a body come after those of all earlier parts.
            assert!(part < 3 || used().all(|register| register >= first), "seed {seed}");
            first = used().map(|register| register + 1).fold(first, u16::max);
            known.extend(all.iter().flat_map(|one| match one {
                Instruction::Parallel(begins) => begins.to_vec(),
                _ => Vec::new(),
            }));
        }
        known.sort_unstable();
        assert_eq!(known, begins, "seed {seed}: each body is known once");
    }
}
