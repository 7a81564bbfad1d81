//! Locustfiles: user classes with their tasks, requests, pauses and checks.

use std::sync::Arc;
use std::time::Duration;

use throng_base::{Diagnostic, Source};

use crate::Options;
use crate::json::Json;
use crate::model::{Auth, Body, Check, Exchange, Item, LeftOut, Recording, Save, Session, Think};
use crate::script::walk::Walk;
use crate::script::world::{Known, World};
use crate::script::{Argument, Class, Expr, ScriptKind, Statement, argument, python};
use crate::text::Text;

/// The base classes of users.
const USERS: [&str; 4] = ["HttpUser", "FastHttpUser", "HttpLocust", "FastHttpLocust"];

pub(crate) fn read(source: &Arc<Source>, options: &Options) -> Result<Recording, Vec<Diagnostic>> {
    let statements = python(&source.text);
    let mut reader = LocustReader { world: World::new(), classes: Vec::new() };
    reader.world.recording.name = options.stem.clone();
    reader.declare(&statements);
    let classes = reader.classes.clone();
    let users: Vec<&Class> = classes.iter().filter(|class| reader.is_user(class, 0)).collect();
    // A base of other classes is not a user itself.
    let is_base = |class: &&Class| {
        let name = Some(class.name.clone());
        users.iter().any(|other| other.bases.iter().any(|base| base.path() == name))
    };
    let leaves: Vec<&Class> = users.iter().copied().filter(|class| !is_base(class)).collect();
    for class in leaves {
        let session = reader.session(class);
        reader.world.recording.sessions.push(session);
    }
    let has_steps = |session: &Session| {
        !(session.steps.is_empty() && session.before.is_empty() && session.after.is_empty())
    };
    reader.world.recording.sessions.retain(has_steps);
    reader.world.finish(source, "locust")
}

struct LocustReader {
    world: World,
    classes: Vec<Class>,
}

impl Walk for LocustReader {
    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    fn keyword(&mut self, word: &str, line: usize, items: &mut Vec<Item>) {
        if word == "assert" {
            items.push(Item::left_out(line, say!("a check")));
        }
    }

    /// `self.token = …`, `self.client.headers["X"] = …`.
    fn assign(&mut self, target: &Expr, known: Known) {
        match target {
            Expr::Index(inner, key)
                if inner.path().is_some_and(|path| path.ends_with("client.headers")) =>
            {
                let name = self.world.text(key).map(|name| name.to_string());
                self.world.set_global("__value", known);
                let value = self.world.text(&Expr::Name("__value".into()));
                if let Some((name, value)) = name.zip(value) {
                    self.add_header(name, value);
                }
            }
            target => {
                if let Some(path) = target.path() {
                    self.world.set_global(&path, known);
                }
            }
        }
    }

    /// `if response.status_code != 200: response.failure(…)` is a check.
    fn condition(
        &mut self,
        condition: &Expr,
        (then, otherwise): (&[Statement], &[Statement]),
        line: usize,
        items: &mut Vec<Item>,
    ) {
        let fails = |body: &[Statement]| {
            body.iter().any(|one| {
                matches!(&one.kind, ScriptKind::Expr(value)
                if value.call().is_some_and(|(path, _)| path.ends_with(".failure")))
            })
        };
        let is_failure = fails(then) || fails(otherwise);
        if is_failure && self.is_check(condition, fails(then)) {
            return;
        }
        let before = items.len();
        self.branches(then, otherwise, line, items);
        if is_failure && items.len() == before {
            items.push(Item::left_out(line, say!("a check")));
        }
    }

    fn evaluated(&mut self, value: &Expr, line: usize, items: &mut Vec<Item>) -> Known {
        // `self.client.get(…).json()`: the request is inside.
        if let Expr::Call(callee, arguments) = value
            && let Expr::Member(inner, method) = &**callee
        {
            let client =
                inner.path().is_some_and(|path| path == "client" || path.ends_with(".client"));
            if client {
                return self.request(method, arguments, line, items);
            }
            if matches!(&**inner, Expr::Call(..)) {
                let inner = self.evaluated(inner, line, items);
                self.world.set("__inner", inner);
                let callee = Expr::Member(Box::new(Expr::Name("__inner".into())), method.clone());
                return self.world.value(&Expr::Call(Box::new(callee), arguments.clone()));
            }
        }
        if let Expr::Index(inner, key) = value
            && matches!(&**inner, Expr::Call(..) | Expr::Index(..))
        {
            let inner = self.evaluated(inner, line, items);
            self.world.set("__inner", inner);
            let value = Expr::Index(Box::new(Expr::Name("__inner".into())), key.clone());
            return self.world.value(&value);
        }
        let Some((path, arguments)) = value.call() else { return self.world.value(value) };
        let arguments = arguments.to_vec();
        self.other(&path, value, &arguments, line, items)
    }
}

impl LocustReader {
    fn declare(&mut self, statements: &[Statement]) {
        for statement in statements {
            match &statement.kind {
                ScriptKind::Class(class) => {
                    if class
                        .bases
                        .iter()
                        .any(|base| base.path().is_some_and(|it| it.ends_with("LoadTestShape")))
                    {
                        let what =
                            say!("the load shape `{}`; write its phases in `load`", &class.name);
                        self.left_out(statement.line, what);
                    }
                    self.classes.push(class.clone());
                }
                ScriptKind::Function(function) if function.decorators.is_empty() => {
                    self.world.set_global(&function.name, Known::Function(function.clone()));
                }
                ScriptKind::Function(function) => {
                    self.left_out(statement.line, say!("the function `{}`", &function.name));
                }
                ScriptKind::Let(names, value) => {
                    let known = self.world.value(value);
                    if let [name] = names.as_slice() {
                        self.world.set_global(name, known);
                    }
                }
                ScriptKind::If(Expr::Bool(true), body, _) => self.declare(&body.clone()),
                _ => {}
            }
        }
    }

    fn left_out(&mut self, line: usize, what: throng_base::Said) {
        self.world.recording.left_out.push(LeftOut::at_line(line, what));
    }

    fn class(&self, name: &str) -> Option<Class> {
        let name = name.rsplit('.').next().unwrap_or(name);
        self.classes.iter().find(|class| class.name == name).cloned()
    }

    fn is_user(&self, class: &Class, depth: usize) -> bool {
        depth < 10
            && class.bases.iter().filter_map(Expr::path).any(|base| {
                let base = base.rsplit('.').next().unwrap_or_default().to_string();
                USERS.contains(&base.as_str())
                    || self.class(&base).is_some_and(|class| self.is_user(&class, depth + 1))
            })
    }

    /// The statements of a class, preceded by those of its bases.
    fn members(&self, class: &Class, depth: usize) -> Vec<Statement> {
        let mut out: Vec<Statement> = Vec::new();
        if depth < 10 {
            for base in
                class.bases.iter().filter_map(Expr::path).filter_map(|base| self.class(&base))
            {
                out.extend(self.members(&base, depth + 1));
            }
        }
        for statement in &class.body {
            // Members of a class override inherited ones.
            if let ScriptKind::Function(function) = &statement.kind {
                out.retain(|known| !known.is_function(&function.name));
            }
            out.push(statement.clone());
        }
        out
    }

    fn session(&mut self, class: &Class) -> Session {
        let members = self.members(class, 0);
        // The members of another class are not known here.
        self.world.forget("self.");
        self.world.forget("__");
        let mut session = Session { name: class.name.clone(), ..Session::default() };
        let mut think = None;
        self.declare_methods(&members);
        for statement in &members {
            let ScriptKind::Let(names, value) = &statement.kind else { continue };
            match names.first().map(String::as_str) {
                Some("host") => {
                    let host = self.world.text(value);
                    self.world.recording.base = self.world.recording.base.take().or(host);
                }
                Some("weight") => session.weight = self.world.number(value).map(|it| it as u64),
                Some("fixed_count") => session.users = self.world.number(value).map(|it| it as u64),
                Some(name @ ("min_wait" | "max_wait")) => {
                    // Locust before 1.0 used milliseconds.
                    let ms = self.world.number(value).unwrap_or_default();
                    let time = Duration::from_millis(ms.clamp(0.0, 86_400_000.0) as u64);
                    let known = match think {
                        Some(Think::Range(low, high)) => (low, high),
                        _ => (time, time),
                    };
                    think = Some(match name {
                        "min_wait" => Think::Range(time, known.1.max(time)),
                        _ => Think::Range(known.0.min(time), time),
                    });
                }
                Some("wait_time") => think = self.wait_time(value, statement.line),
                Some(name) => {
                    let known = self.world.value(value);
                    self.world.set_global(&format!("self.{name}"), known);
                }
                None => {}
            }
        }
        (session.before, session.after) = (self.named("self.on_start"), self.named("self.on_stop"));
        session.steps = self.tasks(&members, 0);
        session.steps.extend(think.filter(|_| !session.steps.is_empty()).map(Item::Think));
        session
    }

    fn declare_methods(&mut self, members: &[Statement]) {
        for statement in members {
            if let ScriptKind::Function(function) = &statement.kind {
                let known = Known::Function(function.clone());
                self.world.set_global(&format!("self.{}", function.name), known);
            }
        }
    }

    /// The tasks of a class: one is a sequence of steps, several are a weighted choice.
    fn tasks(&mut self, members: &[Statement], depth: usize) -> Vec<Item> {
        if depth > 10 {
            return Vec::new();
        }
        let mut tasks: Vec<(u64, Vec<Item>)> = Vec::new();
        for statement in members {
            match &statement.kind {
                ScriptKind::Function(function) => {
                    if let Some(weight) = self.weight(&function.decorators) {
                        let steps = self.function(function);
                        tasks.push((weight, steps));
                    }
                }
                ScriptKind::Class(class) => {
                    let weight = self.weight(&class.decorators).unwrap_or(1);
                    let steps = self.task_set(class, depth);
                    tasks.push((weight, steps));
                }
                ScriptKind::Let(names, value)
                    if names.first().is_some_and(|name| name == "tasks" || name == "task_set") =>
                {
                    self.listed(value, depth, &mut tasks);
                }
                _ => {}
            }
        }
        tasks.retain(|(_, steps)| !steps.is_empty());
        match tasks.len() {
            0 => Vec::new(),
            1 => tasks.remove(0).1,
            _ => vec![Item::Choose(tasks)],
        }
    }

    /// `tasks = [A, B]` and `tasks = {A: 3, B: 1}`.
    fn listed(&mut self, value: &Expr, depth: usize, tasks: &mut Vec<(u64, Vec<Item>)>) {
        let listed: Vec<(Expr, u64)> = match value {
            Expr::List(items) => items.iter().map(|item| (item.clone(), 1)).collect(),
            Expr::Map(entries) => entries
                .iter()
                .map(|(key, weight)| (key.clone(), self.world.number(weight).unwrap_or(1.0) as u64))
                .collect(),
            one => vec![(one.clone(), 1)],
        };
        for (task, weight) in listed.into_iter().take(200) {
            let Some(path) = task.path() else { continue };
            let steps = match (self.class(&path), self.world.get(&path).cloned()) {
                (Some(class), _) => self.task_set(&class, depth),
                (None, Some(Known::Function(function))) => self.function(&function),
                _ => continue,
            };
            tasks.push((weight, steps));
        }
    }

    /// A task set; a sequential one is a list of steps.
    fn task_set(&mut self, class: &Class, depth: usize) -> Vec<Item> {
        let members = self.members(class, 0);
        self.declare_methods(&members);
        let mut is_sequential =
            class.bases.iter().filter_map(Expr::path).any(|base| base.contains("Sequential"));
        is_sequential |= members.iter().any(|one| {
            matches!(&one.kind, ScriptKind::Function(function)
            if function.decorators.iter().any(is_sequence_step))
        });
        if !is_sequential {
            return self.tasks(&members, depth + 1);
        }
        let mut steps = Vec::new();
        for statement in &members {
            if let ScriptKind::Function(function) = &statement.kind
                && let Some(times) = self.weight(&function.decorators)
            {
                let inner = self.function(function);
                match times {
                    1 => steps.extend(inner),
                    times => steps.push(Item::Repeat(times.to_string(), inner)),
                }
            }
        }
        steps
    }

    /// `@task` and `@task(3)`; None: no task.
    fn weight(&mut self, decorators: &[Expr]) -> Option<u64> {
        decorators.iter().find_map(|one| match one {
            Expr::Name(name) if name == "task" => Some(1),
            Expr::Call(..) => {
                let (path, arguments) = one.call()?;
                let arguments = arguments.to_vec();
                match path.as_str() {
                    "task" => {
                        let weight = argument(&arguments, "weight", 0);
                        Some(weight.and_then(|one| self.world.number(one)).unwrap_or(1.0) as u64)
                    }
                    "seq_task" => Some(1),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    fn wait_time(&mut self, value: &Expr, line: usize) -> Option<Think> {
        let (path, arguments) = value.call()?;
        let arguments = arguments.to_vec();
        let seconds = |number: f64| Duration::from_secs_f64(number.clamp(0.0, 86_400.0));
        let first = argument(&arguments, "", 0).and_then(|one| self.world.number(one));
        let second = argument(&arguments, "", 1).and_then(|one| self.world.number(one));
        match (path.rsplit('.').next().unwrap_or_default(), first, second) {
            ("between", Some(low), Some(high)) => Some(Think::Range(seconds(low), seconds(high))),
            ("constant", Some(time), _) if time > 0.0 => Some(Think::Fixed(seconds(time))),
            ("constant", ..) => None,
            (other, ..) => {
                let what = say!("the wait time `{other}`; see `iterations` of the scenario");
                self.left_out(line, what);
                None
            }
        }
    }

    fn is_check(&mut self, condition: &Expr, negated: bool) -> bool {
        let Expr::Binary(sign, left, right) = condition else { return false };
        let is_wanted = match negated {
            true => sign == "!=",
            false => sign == "==",
        };
        match (self.world.value(left), sign.as_str()) {
            (Known::Field(id, Save::Status, _), _) if is_wanted => {
                let Some(code) = self.world.number(right) else { return false };
                self.world.check(id, Check::Status(vec![format!("{code:.0}")]));
                true
            }
            (Known::Field(id, Save::Json(path), _), _) if is_wanted && !path.is_empty() => {
                let Some(want) = self.world.json(right) else { return false };
                self.world.check(id, Check::Json(path, Some(want)));
                true
            }
            (Known::Json(Json::Text(text)), "in") if !negated => match self.world.value(right) {
                Known::Field(id, Save::Body, _) => {
                    self.world.check(id, Check::Contains(text));
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Headers of the client apply to all its later requests.
    fn add_header(&mut self, name: String, value: Text) {
        let known = self.world.get("__headers").cloned();
        let mut headers = match known {
            Some(Known::Json(Json::Map(headers))) => headers,
            _ => Vec::new(),
        };
        headers.retain(|(own, _)| *own != name);
        headers.push((name, Json::Text(value)));
        self.world.set_global("__headers", Known::Json(Json::Map(headers)));
    }

    fn other(
        &mut self,
        path: &str,
        value: &Expr,
        arguments: &[Argument],
        line: usize,
        items: &mut Vec<Item>,
    ) -> Known {
        if path == "time.sleep" || path == "sleep" || path == "gevent.sleep" {
            let seconds = argument(arguments, "", 0).and_then(|one| self.world.number(one));
            let time = Duration::from_secs_f64(seconds.unwrap_or(1.0).clamp(0.001, 86_400.0));
            items.push(Item::Think(Think::Fixed(time)));
            return Known::Unknown;
        }
        if path.ends_with("client.headers.update") {
            let headers = argument(arguments, "", 0).and_then(|one| self.world.json(one));
            for (name, value) in headers.unwrap_or_default().pairs() {
                self.add_header(name, value);
            }
            return Known::Unknown;
        }
        if let Some(Known::Function(function)) = self.world.get(path).cloned() {
            return self.called(&function, arguments, line, items);
        }
        let known = self.world.value(value);
        const BEGINS: [&str; 9] = [
            "print",
            "logging.",
            "logger.",
            "log.",
            "super",
            "self.interrupt",
            "int",
            "str",
            "len",
        ];
        const ENDS: [&str; 4] = [".success", ".failure", ".append", ".raise_for_status"];
        let is_silent = BEGINS.iter().any(|word| path.starts_with(word))
            || ENDS.iter().any(|word| path.ends_with(word))
            || path.is_empty();
        if known.is_unknown() && !is_silent {
            let path: String = path.chars().take(60).collect();
            items.push(Item::left_out(line, say!("the call `{path}`")));
        }
        known
    }

    fn request(
        &mut self,
        method: &str,
        arguments: &[Argument],
        line: usize,
        items: &mut Vec<Item>,
    ) -> Known {
        let mut exchange = Exchange { method: method.to_ascii_uppercase(), ..Exchange::default() };
        const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
        let at = usize::from(method == "request");
        if at == 1 {
            let given = argument(arguments, "method", 0).and_then(|one| self.world.text(one));
            exchange.method =
                given.map_or("GET".into(), |method| method.to_string().to_ascii_uppercase());
        }
        if !METHODS.contains(&exchange.method.as_str()) {
            let method: String = method.chars().take(40).collect();
            items.push(Item::left_out(line, say!("the call `{method}`")));
            return Known::Unknown;
        }
        let Some(url) = argument(arguments, "url", at).or_else(|| argument(arguments, "path", at))
        else {
            items.push(Item::left_out(line, say!("a request without a URL")));
            return Known::Unknown;
        };
        exchange.url = self.world.text_or_variable(url, "path");
        let named = |name: &str| {
            arguments.iter().find(|one| one.name.as_deref() == Some(name)).map(|one| &one.value)
        };
        let map = |world: &mut World, name: &str| {
            named(name).and_then(|one| world.json(one)).unwrap_or_default().pairs()
        };
        exchange.query = map(&mut self.world, "params");
        exchange.headers = map(&mut self.world, "headers");
        exchange.cookies = map(&mut self.world, "cookies");
        if let Some(Known::Json(shared)) = self.world.get("__headers") {
            let mut missing = shared.pairs();
            missing.retain(|(name, _)| exchange.header(name).is_none());
            exchange.headers.extend(missing);
        }
        exchange.name =
            named("name").and_then(|one| self.world.text(one)).map(|name| name.to_string());
        let timeout = named("timeout").and_then(|one| self.world.number(one));
        exchange.timeout = timeout.map(|it| Duration::from_secs_f64(it.clamp(0.001, 86_400.0)));
        // requests follows redirects by default.
        exchange.follow_redirects = named("allow_redirects") != Some(&Expr::Bool(false));
        if let Some(Expr::List(pair)) = named("auth")
            && let [user, password] = pair.as_slice()
        {
            let user = self.world.text_or_variable(user, "user");
            let password = self.world.text_or_variable(password, "password");
            exchange.auth = Some(Auth { user, password, is_digest: false });
        }
        let data = named("data").or_else(|| match method {
            "post" | "put" | "patch" => argument(arguments, "", 1),
            _ => None,
        });
        match (named("json"), data) {
            (Some(json), _) => match self.world.json(json) {
                Some(json) => exchange.body = Body::Json(json),
                None => self.world.computed_body(json, &mut exchange, line),
            },
            (None, Some(data)) => self.world.body(data, &mut exchange, line),
            (None, None) => {}
        }
        if named("files").is_some() {
            exchange.left_out.push(LeftOut::at_line(line, say!("files that are uploaded")));
        }
        Known::Response(self.world.add(exchange, items))
    }
}

/// Locust before 1.0: `@seq_task(1)`.
fn is_sequence_step(decorator: &Expr) -> bool {
    decorator.call().is_some_and(|(path, _)| path == "seq_task")
}
