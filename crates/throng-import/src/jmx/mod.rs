//! JMeter test plans: thread groups become sessions, samplers become requests, and their headers,
//! timers, assertions and extractors apply by JMeter's scoping rules.

mod elements;
mod functions;
mod samplers;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use roxmltree::{Node, ParsingOptions};
use throng_base::{Diagnostic, Said, Source, Span};

use crate::model::{
    Item, LeftOut, Phase, Recording, Session, Table, Think, Variable, file_beside, name_of,
};
use crate::text::Text;
use crate::{Options, Refusal};
use elements::Element;

const ELEMENTS_MAX: u32 = 2_000_000;
const DEPTH_MAX: usize = 60;
/// The maximum number of requests per plan.
const REQUESTS_MAX: usize = 10_000;

pub(crate) fn read(source: &Arc<Source>, options: &Options) -> Result<Recording, Vec<Diagnostic>> {
    let refuse = |refusal: Refusal| vec![*refusal.of_format("jmx")];
    if elements::is_too_deep(&source.text) {
        return Err(refuse(Refusal::new(&source.name, say!("it is nested too deeply"))));
    }
    let parsing = ParsingOptions { nodes_limit: ELEMENTS_MAX, ..ParsingOptions::default() };
    let document =
        roxmltree::Document::parse_with_options(&source.text, parsing).map_err(|error| {
            let text = error.to_string();
            let at = elements::offset(&source.text, error.pos());
            let span = Span { source: source.clone(), start: at, end: at };
            refuse(Refusal::new(&source.name, say!("it is not valid XML: {text}")).at(span))
        })?;
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        let name: String = root.tag_name().name().chars().take(40).collect();
        let reason = say!("its root is `{name}`, not `jmeterTestPlan`");
        return Err(refuse(Refusal::new(&source.name, reason)));
    }
    let mut reader = JmxReader {
        recording: Recording { name: options.stem.clone(), ..Recording::default() },
        saved: elements::saved(root),
        columns: elements::columns(root),
        count: 0,
        has_load: false,
        options,
    };
    let Some(tree) = root.children().find(|node| node.has_tag_name("hashTree")) else {
        return Err(refuse(Refusal::new(&source.name, say!("it has no test plan"))));
    };
    reader.plan(tree, &Scope::default(), 0);
    if reader.count == 0 {
        return Err(refuse(Refusal::new(&source.name, say!("it has no HTTP requests"))));
    }
    reader.recording.sessions.retain(|session| !session.steps.is_empty());
    if reader.recording.sessions.is_empty() {
        return Err(refuse(Refusal::new(&source.name, say!("it has no HTTP requests"))));
    }
    Ok(reader.recording)
}

/// The settings for the samplers of a subtree.
#[derive(Clone, Default)]
struct Scope {
    defaults: samplers::Defaults,
    headers: Vec<(String, Text)>,
    timers: Vec<Think>,
    assertions: Vec<crate::model::Check>,
    saves: Vec<(String, crate::model::Save)>,
    auth: Option<crate::model::Auth>,
}

struct JmxReader<'o> {
    recording: Recording,
    /// Variables that an extractor sets, and columns of CSV files by table.
    saved: HashSet<String>,
    columns: Vec<(String, String)>,
    count: usize,
    has_load: bool,
    options: &'o Options,
}

/// Each element of a tree with its subtree.
fn pairs<'a, 'i>(tree: Node<'a, 'i>) -> Vec<(Element<'a, 'i>, Option<Node<'a, 'i>>)> {
    let children: Vec<Node<'a, 'i>> = tree.children().filter(Node::is_element).collect();
    let mut out = Vec::new();
    for (number, child) in children.iter().enumerate() {
        if child.has_tag_name("hashTree") {
            continue;
        }
        let next = children.get(number + 1).filter(|next| next.has_tag_name("hashTree"));
        out.push((Element(*child), next.copied()));
    }
    out
}

impl JmxReader<'_> {
    /// The plan and the settings of all its thread groups.
    fn plan(&mut self, tree: Node<'_, '_>, scope: &Scope, depth: usize) {
        let elements_here = pairs(tree);
        let scope = self.scope(&elements_here, scope);
        for (element, inner) in &elements_here {
            let class = element.class();
            if !element.is_enabled() {
                self.disabled(element);
                continue;
            }
            match (class, inner) {
                ("TestPlan", _) => {
                    self.arguments(element);
                    if let Some(inner) = inner.filter(|_| depth < DEPTH_MAX) {
                        self.plan(inner, &scope, depth + 1);
                    }
                }
                ("TestFragmentController" | "WorkBench" | "NonTestElement", _) => {}
                (_, Some(inner)) if elements::is_group(class) => {
                    self.group(element, *inner, &scope);
                }
                _ => self.rest(element, &mut Vec::new()),
            }
        }
    }

    fn group(&mut self, element: &Element<'_, '_>, inner: Node<'_, '_>, scope: &Scope) {
        let steps = self.steps(inner, scope, 0);
        match element.class() {
            "SetupThreadGroup" => self.recording.setup.extend(steps),
            "PostThreadGroup" => self.recording.teardown.extend(steps),
            class => {
                let known = matches!(class, "ThreadGroup" | "OpenModelThreadGroup");
                if !known
                    && !class.contains("UltimateThreadGroup")
                    && !class.contains("SteppingThreadGroup")
                {
                    let short = elements::short(class);
                    let what = say!(
                        "the load of the plug-in `{short}`, except for the number of its users"
                    );
                    self.recording.left_out.push(LeftOut::new(element.place(), what));
                }
                let users = self.load(element);
                let session = Session {
                    name: element.name(),
                    weight: users.filter(|users| *users > 0),
                    steps,
                    ..Session::default()
                };
                self.recording.sessions.push(session);
            }
        }
    }

    /// The load of a thread group; returns its number of users.
    fn load(&mut self, element: &Element<'_, '_>) -> Option<u64> {
        let number = |reader: &mut Self, names: &[&str]| {
            let text = names.iter().find_map(|name| element.prop(name))?;
            let text = reader.text(&text);
            reader.constant(&text)?.parse::<f64>().ok().filter(|number| number.is_finite())
        };
        let users = number(self, &["ThreadGroup.num_threads", "TargetLevel"]);
        let users = users.map(|users| users.clamp(0.0, 1e7) as u64);
        let ramp = number(self, &["ThreadGroup.ramp_time", "RampUp"]).unwrap_or(0.0);
        let is_timed = element.is_on("ThreadGroup.scheduler");
        let time = number(self, &["ThreadGroup.duration", "Hold"]);
        let time = time.filter(|time| *time > 0.0 && (is_timed || element.prop("Hold").is_some()));
        let loops = number(self, &["LoopController.loops"]).filter(|loops| *loops > 0.0);
        if std::mem::replace(&mut self.has_load, true) {
            return users;
        }
        let users_here = users.unwrap_or(1).max(1);
        let length = |seconds: f64| Duration::from_secs_f64(seconds.clamp(1.0, 1e7));
        let phases = &mut self.recording.load;
        match (time, loops) {
            (Some(time), _) => {
                if ramp >= 1.0 && users_here > 1 {
                    phases.push(Phase::Ramp { to: users_here, time: length(ramp) });
                }
                phases
                    .push(Phase::Users { users: users_here, time: length((time - ramp).max(1.0)) });
            }
            (None, Some(loops)) => {
                let total = (users_here as f64 * loops).min(1e12) as u64;
                phases.push(Phase::Iterations { total, users: users_here });
            }
            (None, None) => {
                phases.push(Phase::Users { users: users_here, time: Duration::from_secs(60) });
            }
        }
        users
    }

    /// The elements of a tree that apply to all its samplers.
    fn scope(&mut self, pairs: &[(Element<'_, '_>, Option<Node<'_, '_>>)], outer: &Scope) -> Scope {
        let mut scope = outer.clone();
        for (element, _) in pairs.iter().filter(|(element, _)| element.is_enabled()) {
            self.add_to_scope(element, &mut scope);
        }
        scope
    }

    fn add_to_scope(&mut self, element: &Element<'_, '_>, scope: &mut Scope) {
        match element.class() {
            "HeaderManager" => {
                for (name, value) in element.headers() {
                    let (name, value) = (name.trim().to_string(), self.text(&value));
                    scope.headers.retain(|(own, _)| !own.eq_ignore_ascii_case(&name));
                    scope.headers.push((name, value));
                }
            }
            "ConfigTestElement" if element.gui().contains("HttpDefaults") => {
                samplers::defaults(self, element, &mut scope.defaults);
            }
            "Arguments" => self.arguments(element),
            "CSVDataSet" => self.table(element),
            "AuthManager" => scope.auth = samplers::auth(self, element).or(scope.auth.take()),
            class if class.ends_with("Timer") => {
                if let Some(think) = samplers::timer(self, element) {
                    scope.timers.push(think);
                }
            }
            class if class.ends_with("Assertion") || class.ends_with("Assertions") => {
                samplers::assertion(self, element, &mut scope.assertions);
            }
            _ => {
                if let Some(save) = samplers::extractor(self, element) {
                    scope.saves.push(save);
                }
            }
        }
    }

    fn steps(&mut self, tree: Node<'_, '_>, scope: &Scope, depth: usize) -> Vec<Item> {
        let mut items = Vec::new();
        if depth > DEPTH_MAX {
            return items;
        }
        let elements_here = pairs(tree);
        let scope = self.scope(&elements_here, scope);
        for (element, inner) in &elements_here {
            match element.is_enabled() {
                true => self.step(element, *inner, &scope, depth, &mut items),
                false => self.disabled(element),
            }
        }
        items
    }

    fn step(
        &mut self,
        element: &Element<'_, '_>,
        inner: Option<Node<'_, '_>>,
        scope: &Scope,
        depth: usize,
        items: &mut Vec<Item>,
    ) {
        let class = element.class();
        if matches!(class, "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2") {
            self.count += 1;
            if self.count > REQUESTS_MAX {
                return;
            }
            // Elements below a sampler apply only to it.
            let own = inner.map(|inner| self.scope(&pairs(inner), scope));
            let scope = own.as_ref().unwrap_or(scope);
            for timer in &scope.timers {
                items.push(Item::Think(timer.clone()));
            }
            let exchange = samplers::exchange(self, element, scope);
            items.push(Item::Http(Box::new(exchange)));
            if let Some(inner) = inner {
                pairs(inner).iter().for_each(|(element, _)| self.rest(element, items));
            }
            return;
        }
        if class == "TestAction" && self.pause(element, inner, items) {
            return;
        }
        let Some(inner) = inner.filter(|_| elements::is_controller(class)) else {
            return self.rest(element, items);
        };
        let steps = self.steps(inner, scope, depth + 1);
        self.controller(element, steps, items);
    }

    /// A Flow Control Action that pauses, with or without timers below it.
    fn pause(
        &mut self,
        element: &Element<'_, '_>,
        inner: Option<Node<'_, '_>>,
        items: &mut Vec<Item>,
    ) -> bool {
        let before = items.len();
        let text = element.prop("ActionProcessor.duration").unwrap_or_default();
        let text = self.text(&text);
        let ms = self.constant(&text).and_then(|ms| ms.parse::<u64>().ok());
        let time = ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.min(86_400_000)));
        items.extend(time.map(|time| Item::Think(Think::Fixed(time))));
        for (timer, _) in inner.map(pairs).unwrap_or_default() {
            if timer.is_enabled() && timer.class().ends_with("Timer") {
                items.extend(samplers::timer(self, &timer).map(Item::Think));
            }
        }
        items.len() > before
    }

    fn controller(&mut self, element: &Element<'_, '_>, steps: Vec<Item>, items: &mut Vec<Item>) {
        let name = element.name();
        let condition = |items: &mut Vec<Item>, what: Said| {
            items.push(Item::LeftOut(LeftOut::new(element.place(), what)));
        };
        match element.class() {
            "TransactionController" => items.push(Item::Group(name, steps)),
            "LoopController" => {
                let loops = element.prop("LoopController.loops").unwrap_or_default();
                let loops = self.text(&loops);
                match self.constant(&loops).and_then(|loops| loops.parse::<u64>().ok()) {
                    Some(loops) if loops > 0 => items.push(Item::Repeat(loops.to_string(), steps)),
                    _ => {
                        condition(items, say!("the number of loops; its steps run once"));
                        items.extend(steps);
                    }
                }
            }
            "OnceOnlyController" => items.push(Item::If("iteration <= 1".into(), steps)),
            "RandomController" | "RandomOrderController" | "InterleaveControl" => {
                let branches: Vec<_> = split(steps).into_iter().map(|one| (1, one)).collect();
                items.extend((!branches.is_empty()).then_some(Item::Choose(branches)));
            }
            "ThroughputController" => {
                let share = element.prop("ThroughputController.percentThroughput");
                let share =
                    share.or_else(|| element.float("ThroughputController.percentThroughput"));
                let share = share.and_then(|share| share.parse::<f64>().ok()).unwrap_or(100.0);
                let percent = share.clamp(1.0, 100.0).round() as u64;
                match percent {
                    100 => items.extend(steps),
                    percent => items
                        .push(Item::Choose(vec![(percent, steps), (100 - percent, Vec::new())])),
                }
            }
            "GenericController" | "RecordingController" => {
                if steps.len() > 1 {
                    items.push(Item::Note(name));
                }
                items.extend(steps);
            }
            class if class.contains("ParallelController") || class.contains("ParallelSampler") => {
                items.push(Item::Parallel(split(steps)));
            }
            class => {
                let what = match class {
                    "IfController" => say!("the condition of an `if`; its steps always run"),
                    "WhileController" | "ForeachController" => {
                        say!("the condition of a loop; its steps run once")
                    }
                    class => {
                        let class = elements::short(class);
                        say!("the controller `{class}`; its steps run once")
                    }
                };
                condition(items, what);
                items.extend(steps);
            }
        }
    }

    /// Elements that are neither steps nor supported.
    fn rest(&mut self, element: &Element<'_, '_>, items: &mut Vec<Item>) {
        let class = element.class();
        if !element.is_enabled() || elements::is_understood(class, element.gui()) {
            return;
        }
        if elements::is_listener(class) {
            return;
        }
        let left_out = element.left_out();
        match items.is_empty() {
            true => self.recording.left_out.push(left_out),
            false => items.push(Item::LeftOut(left_out)),
        }
    }

    fn disabled(&mut self, element: &Element<'_, '_>) {
        if elements::is_listener(element.class()) {
            return;
        }
        let left_out = &mut self.recording.left_out;
        let what = say!("elements that are disabled in the plan");
        match left_out.iter_mut().find(|one| one.what == what) {
            Some(known) => known.count += 1,
            None => left_out.push(LeftOut::of_all(1, what)),
        }
    }

    /// User defined variables.
    fn arguments(&mut self, element: &Element<'_, '_>) {
        for (name, value) in element.arguments() {
            if self.saved.contains(&name) {
                continue;
            }
            let value = self.text(&value);
            let own = name_of(&name);
            // A variable that is defined by itself is set on the command line.
            let is_itself = value.as_value() == Some(&format!("vars.{own}"));
            if !is_itself {
                let is_constant = !value.pieces().iter().any(|piece| matches!(piece,
                    crate::text::Piece::Value(value) if !value.starts_with("vars.") && !value.starts_with("env.")));
                let variable = match is_constant && !value.is_empty() {
                    true => Variable::plain(&own, value),
                    false => Variable::unknown(&own),
                };
                self.recording.variables.retain(|known| known.name != own);
                self.recording.variables.push(variable);
            }
        }
    }

    fn table(&mut self, element: &Element<'_, '_>) {
        let Some((own, name)) = element.file() else { return };
        if self.recording.tables.iter().any(|table| table.name == name) {
            return;
        }
        let columns: Vec<String> =
            elements::names(element).iter().map(|name| name_of(name)).collect();
        if columns.is_empty() {
            let what = say!("the CSV file `{own}`: the plan does not name its columns");
            self.recording.left_out.push(LeftOut::new(element.place(), what));
            return;
        }
        let what = say!("the CSV file `{own}`; replaced by a row with placeholders");
        self.recording.left_out.push(LeftOut::new(element.place(), what));
        let row = columns.iter().map(|name| format!("replace-{name}")).collect();
        let file = file_beside(&self.options.stem, &own);
        self.recording.tables.push(Table { name, file, columns, row });
    }
}

/// Each step with the pauses before it.
fn split(items: Vec<Item>) -> Vec<Vec<Item>> {
    let mut out: Vec<Vec<Item>> = Vec::new();
    let mut waiting = Vec::new();
    for item in items {
        let is_step = !matches!(item, Item::Think(_) | Item::LeftOut(_) | Item::Note(_));
        waiting.push(item);
        if is_step {
            out.push(std::mem::take(&mut waiting));
        }
    }
    out
}
