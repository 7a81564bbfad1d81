//! Loops, branches and groups: `repeat`, `during`, `while`, `for_each`, `choose`, `if`,
//! `transaction`, `use`.

use std::sync::Arc;
use std::time::Duration;

use throng_base::{Said, units};
use throng_expression::{Expression, Value};
use throng_program::{Block, Statement, StepKind, Way};

use crate::ast::{self, Field, Steps};
use crate::parts::{PART_STEPS_MAX, PARTS_DEPTH_MAX, read_given};
use crate::read::Context;
use crate::read::template::read_condition;
use crate::steps::rest::{Ending, Flow, How, Rest, check_loop};
use crate::steps::{Coder, read_list};
use crate::syntax::{Node, Place};
use crate::words::shorten;

impl<'n> Coder<'_, 'n> {
    /// Nested steps, which are required.
    fn inner(&mut self, cx: &mut Context<'_>, steps: Option<&Steps<'n>>) -> (Block, Flow) {
        match steps {
            Some(steps) => self.inside(cx, steps),
            None => (Block::new(), Flow::UNKNOWN),
        }
    }

    /// Nested steps.
    fn inside(&mut self, cx: &mut Context<'_>, steps: &Steps<'n>) -> (Block, Flow) {
        let outer = std::mem::take(&mut self.block);
        let flow = self.steps(cx, steps);
        (std::mem::replace(&mut self.block, outer), flow)
    }

    pub(super) fn repeat(&mut self, cx: &mut Context<'_>, fields: &ast::Repeat<'n>) -> Flow {
        const HELP: Said = say!("write `- {{repeat: 3, steps: [{{http: GET /}}]}}`");
        let times = fields.repeat.node().and_then(|node| read_times(cx, node));
        let steps = fields.need(cx, *fields.steps, HELP).and(fields.steps.content.as_ref());
        let (steps, body) = self.inner(cx, steps);
        match times {
            Some(Times::Forever) => {
                check_loop(cx, fields.place, body, Rest::Waits);
                self.block.push(Statement::Forever(steps));
                let ending = Ending { how: How::Repeats, place: fields.place };
                Flow { ends: Some(ending), least: Rest::Waits, ..body }
            }
            Some(Times::Between(low, high)) => {
                self.block.push(Statement::Repeat { low, high, steps });
                again(body, low)
            }
            None => Flow::UNKNOWN,
        }
    }

    pub(super) fn during(&mut self, cx: &mut Context<'_>, fields: &ast::During<'n>) -> Flow {
        let time = fields.during.node().and_then(|node| cx.time_limit(node));
        let time = time.unwrap_or(Duration::from_secs(1));
        let help = say!("write `- {{during: 5m, steps: [{{http: GET /}}]}}`");
        let steps = fields.need(cx, *fields.steps, help).and(fields.steps.content.as_ref());
        let (steps, body) = self.inner(cx, steps);
        check_loop(cx, fields.place, body, Rest::Sends);
        self.block.push(Statement::During { time, steps });
        let pause = body.pause.max(time);
        Flow { least: Rest::Waits, most: Rest::Waits, pause, ..body }
    }

    pub(super) fn r#while(&mut self, cx: &mut Context<'_>, fields: &ast::While<'n>) -> Flow {
        let condition = fields.r#while.node().and_then(|node| read_condition(cx, node));
        let help = say!("write `- {{while: \"${{saved.more}}\", steps: [{{http: GET /}}]}}`");
        let steps = fields.need(cx, *fields.steps, help).and(fields.steps.content.as_ref());
        let (steps, body) = cx.behind(condition.as_ref(), |cx| self.inner(cx, steps));
        // A loop whose steps change a value may end by its condition.
        if !body.sets {
            check_loop(cx, fields.place, body, Rest::Sends);
        }
        if let Some(condition) = condition.map(Arc::new) {
            self.block.push(Statement::While { condition, steps });
        }
        body.perhaps()
    }

    pub(super) fn for_each(&mut self, cx: &mut Context<'_>, fields: &ast::ForEach<'n>) -> Flow {
        const HELP: Said =
            say!("write `- {{for_each: \"${{saved.ids}}\", as: id, steps: [{{http: GET /}}]}}`");
        let node = fields.for_each.node();
        let values = node.and_then(|node| read_list(cx, node));
        let constant = values.as_ref().and_then(Expression::as_constant);
        let count = constant.and_then(Value::as_list).map_or(0, |items| items.len() as u32);
        let (name, place) = match fields.r#as.node() {
            Some(node) => (cx.text(node, say!("the name of the item")), node.place),
            None => (Some("item".to_string()), fields.place),
        };
        let list = cx.hidden_slot("the list of a for_each", fields.place);
        let item = name.and_then(|name| cx.enter_item(&name, place));
        let steps = fields.need(cx, *fields.steps, HELP).and(fields.steps.content.as_ref());
        let (steps, body) = self.inner(cx, steps);
        if item.is_some() {
            cx.session.leave_item();
        }
        if let (Some(values), Some(list), Some(item)) = (values.map(Arc::new), list, item) {
            self.block.push(Statement::ForEach { values, list, item, steps });
        }
        again(body, count)
    }

    pub(super) fn choose(&mut self, cx: &mut Context<'_>, fields: &ast::Choose<'n>) -> Flow {
        const HELP: Said =
            say!("write `- choose: [{{weight: 70, steps: […]}}, {{weight: 30, steps: […]}}]`");
        let Some(node) = fields.choose.node() else { return Flow::UNKNOWN };
        let Some(items) = &fields.choose.content else { return Flow::UNKNOWN };
        if node.is_empty() {
            cx.empty(node.place, say!("`choose` has no branches"), HELP);
            return Flow::UNKNOWN;
        }
        let mut weights = Weights::default();
        let mut ways = Vec::with_capacity(items.list.len());
        let mut whole: Option<Flow> = None;
        for way in &items.list {
            let weight = weights.read(cx, way);
            let outer = std::mem::take(&mut self.block);
            let flow = self.way(cx, way);
            let steps = std::mem::replace(&mut self.block, outer);
            if weight == Some(0) {
                let message = say!("this branch has a weight of 0");
                let help = say!("give it a weight of 1 or more, or remove it");
                cx.warn("never-runs", way.place, message, say!("no user ever takes it"), help);
            } else {
                whole = Some(whole.map_or(flow, |whole| whole.by_chance(flow, fields.place)));
            }
            ways.push(Way { weight: weight.unwrap_or(1), steps });
        }
        weights.check(cx, node, &ways);
        match ways.len() {
            // A single way needs no choice.
            1 => self.block.extend(ways.into_iter().flat_map(|way| way.steps)),
            _ => self.block.push(Statement::Choose(ways)),
        }
        whole.unwrap_or(Flow::UNKNOWN)
    }

    /// The steps of one way of a choice.
    fn way(&mut self, cx: &mut Context<'_>, fields: &ast::Way<'n>) -> Flow {
        match ast::one_of(cx, &[*fields.steps, *fields.r#use]) {
            Some((key, _)) if fields.r#use.is(key) => self.part(cx, *fields.r#use, fields.with),
            Some(_) => self.steps_or_none(cx, fields.steps.content.as_ref()),
            None => {
                fields.need(
                    cx,
                    *fields.steps,
                    say!("write `{{weight: 70, steps: [{{http: GET /}}]}}`"),
                );
                Flow::UNKNOWN
            }
        }
    }

    pub(super) fn r#if(&mut self, cx: &mut Context<'_>, fields: &ast::If<'n>) -> Flow {
        let condition = fields.r#if.node().and_then(|node| read_condition(cx, node));
        cx.behind(condition.clone().as_ref(), |cx| self.branches(cx, fields, condition))
    }

    fn branches(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::If<'n>,
        condition: Option<Expression>,
    ) -> Flow {
        const HELP: Said =
            say!("write `- {{if: \"${{saved.code == 0}}\", then: [{{http: GET /}}]}}`");
        let (then, done) = match ast::one_of(cx, &[*fields.then, *fields.steps]) {
            Some((key, _)) => {
                let field = if fields.then.is(key) { &fields.then } else { &fields.steps };
                let outer = std::mem::take(&mut self.block);
                let flow = self.steps_or_none(cx, field.content.as_ref());
                (std::mem::replace(&mut self.block, outer), flow)
            }
            None => {
                fields.need(cx, *fields.then, HELP);
                (Block::new(), Flow::UNKNOWN)
            }
        };
        let (otherwise, other) = match &fields.r#else.content {
            Some(steps) if !steps.list.is_empty() => self.inside(cx, steps),
            None if fields.r#else.is_there() => (Block::new(), Flow::UNKNOWN),
            _ => (Block::new(), Flow::NOTHING),
        };
        if let Some(condition) = condition.map(Arc::new) {
            self.block.push(Statement::If { condition, then, otherwise });
        }
        done.either(other, fields.place)
    }

    pub(super) fn transaction(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Transaction<'n>,
    ) -> Flow {
        let node = fields.transaction.node();
        let name = node.and_then(|node| cx.text(node, say!("the name of the transaction")));
        let kind = StepKind::Transaction;
        let step = name.and_then(|name| self.rows.labelled(cx, kind, &name, fields));
        let help = say!("write `- {{transaction: login, steps: [{{http: POST /login}}]}}`");
        let steps = fields.need(cx, *fields.steps, help).and(fields.steps.content.as_ref());
        let (steps, flow) = self.inner(cx, steps);
        self.block.extend(step.map(|step| Statement::Transaction { step, steps }));
        flow
    }

    /// Inserts the steps of a part.
    pub(super) fn part(&mut self, cx: &mut Context<'_>, name: Field<'n>, with: Field<'n>) -> Flow {
        let Some(node) = name.node() else { return Flow::UNKNOWN };
        let Some(number) = self.parts.find(cx, node) else { return Flow::UNKNOWN };
        if self.open_parts.contains(&number) {
            let name = shorten(self.parts.name(number));
            let message = say!("the part `{name}` uses itself");
            let help = say!("to run its steps several times, put them in a `repeat` step");
            cx.report("part-circle", node.place, message, say!("already inside this part"), help);
            return Flow::UNKNOWN;
        }
        if self.open_parts.len() >= PARTS_DEPTH_MAX {
            let message = say!("parts are nested more than {PARTS_DEPTH_MAX} levels deep");
            let help = say!("write the steps of small parts directly where they are used");
            cx.too_many(node.place, message, help);
            return Flow::UNKNOWN;
        }
        let Some(steps) = self.parts.steps(number) else { return Flow::UNKNOWN };
        let given = with.node().map(|node| read_given(cx, node));
        let has_given = given.is_some();
        if let Some(given) = given {
            cx.vars.enter(given);
            cx.session.forget_expressions();
        }
        self.open_parts.push(number);
        let flow = self.steps(cx, steps);
        self.open_parts.pop();
        if has_given {
            cx.vars.leave();
            cx.session.forget_expressions();
        }
        flow
    }

    /// Counts a step against the limit of steps from parts.
    pub(super) fn count_part_step(&mut self, cx: &mut Context<'_>, place: Place) -> bool {
        if self.open_parts.is_empty() {
            return true;
        }
        *self.part_steps += 1;
        if *self.part_steps == PART_STEPS_MAX + 1 {
            let help = say!("nested parts multiply the number of steps: use fewer of them");
            cx.too_many(place, say!("parts add more than 200,000 steps"), help);
        }
        *self.part_steps <= PART_STEPS_MAX
    }
}

/// The flow of steps that run at least `times` times.
fn again(body: Flow, times: u32) -> Flow {
    let pause = body.pause.saturating_mul(times);
    if times == 0 { body.perhaps() } else { Flow { pause, ..body } }
}

#[derive(Clone, Copy)]
enum Times {
    Between(u32, u32),
    Forever,
}

fn read_times(cx: &mut Context<'_>, node: &Node) -> Option<Times> {
    const HELP: Said = say!("write `repeat: 3`, `repeat: 3..10` or `repeat: forever`");
    let text = cx.text(node, say!("a number of repetitions"))?;
    if text == "forever" {
        return Some(Times::Forever);
    }
    let (low, high) = text.split_once("..").unwrap_or((&text, &text));
    let count = |text| units::parse_count(text).ok().map(u32::try_from);
    match (count(low), count(high)) {
        (Some(Ok(_)), Some(Ok(0))) => cx.bad_value(node, say!("this loop never runs"), HELP),
        (Some(Ok(low)), Some(Ok(high))) if low <= high => Some(Times::Between(low, high)),
        (Some(Ok(_)), Some(Ok(_))) => cx.bad_value(
            node,
            say!("the start of the range is greater than its end"),
            say!("write `repeat: 3..10`"),
        ),
        _ => {
            let message = say!("`{}` is not a valid number of repetitions", shorten(&text));
            cx.refuse("bad-value", node.place, message, say!("not a number or range"), HELP)
        }
    }
}

/// The weights of a choice: all numbers, or all shares that add up to 100 %.
#[derive(Default)]
struct Weights {
    numbers: usize,
    shares: usize,
    mixed: bool,
}

/// 100 % as a weight: shares are exact to one millionth.
const WHOLE: u32 = 1_000_000;

impl Weights {
    fn read(&mut self, cx: &mut Context<'_>, way: &ast::Way<'_>) -> Option<u32> {
        let Some(node) = way.weight.node() else {
            self.numbers += 1;
            return Some(1);
        };
        let text = cx.text(node, say!("a weight"))?;
        let is_share = text.trim_end().ends_with('%');
        match is_share {
            true => self.shares += 1,
            false => self.numbers += 1,
        }
        if self.shares > 0 && self.numbers > 0 && !std::mem::replace(&mut self.mixed, true) {
            let message = say!("the branches mix shares and numbers");
            let help = say!("write shares (`70%`) or numbers (`70`) for all branches");
            cx.report("bad-value", node.place, message, say!("different from the others"), help);
        }
        match is_share {
            true => match cx.share(node)? {
                share if share > 1.0 => {
                    cx.bad_value(node, say!("more than 100%"), say!("write `70%`"))
                }
                share => Some((share * f64::from(WHOLE)).round() as u32),
            },
            false => cx.small_count(node),
        }
    }

    fn check(&self, cx: &mut Context<'_>, node: &Node, ways: &[Way]) {
        let sum: u64 = ways.iter().map(|way| u64::from(way.weight)).sum();
        if self.mixed || cx.mistakes.has_errors() {
            return;
        }
        if sum == 0 {
            let message = say!("all branches have a weight of 0");
            let help = say!("give at least one of them a weight of 1 or more");
            cx.report("never-runs", node.place, message, say!("no user ever takes a branch"), help);
        }
        // A third is written as 33.3%.
        if self.shares > 0 && sum.abs_diff(u64::from(WHOLE)) > u64::from(WHOLE) / 100 {
            let percent = sum as f64 * 100.0 / f64::from(WHOLE);
            let message = say!("the shares of the branches add up to {percent}%, not 100%");
            let help = say!(
                "change the shares, or add a branch that does nothing: `{{weight: 10%, steps: []}}`"
            );
            cx.report("bad-value", node.place, message, say!("the sum must be 100%"), help);
        }
    }
}
