//! k6 scripts: requests, checks, pauses, groups, stages and thresholds. Scripts are code; what has
//! no equivalent becomes a comment at its place.

mod checks;
mod load;

use std::sync::Arc;
use std::time::Duration;

use throng_base::{Diagnostic, Source};

use crate::Options;
use crate::json::Json;
use crate::model::{Exchange, Item, LeftOut, Recording, Save, Session, Think};
use crate::script::walk::Walk;
use crate::script::world::{Known, World, joined};
use crate::script::{Argument, Expr, ScriptKind, Statement, argument, javascript};

pub(crate) fn read(source: &Arc<Source>, options: &Options) -> Result<Recording, Vec<Diagnostic>> {
    let statements = javascript(&source.text);
    let mut reader = K6Reader { world: World::new(), options: None };
    reader.world.recording.name = options.stem.clone();
    reader.declare(&statements);
    let mut sessions = Vec::new();
    let default = statements.iter().find_map(|statement| match &statement.kind {
        ScriptKind::Function(function) if function.is_default => Some(function.clone()),
        _ => None,
    });
    let scenarios = load::scenarios(&reader.options.clone().unwrap_or_default());
    for (name, exec) in &scenarios {
        let Some(Known::Function(function)) = reader.world.get(exec).cloned() else { continue };
        sessions.push((name.clone(), function));
    }
    if sessions.is_empty() {
        sessions.extend(default.map(|function| ("user".to_string(), function)));
    }
    for (name, function) in sessions {
        let steps = reader.function(&function);
        let session = Session { name, steps, ..Session::default() };
        reader.world.recording.sessions.push(session);
    }
    reader.world.recording.setup = reader.named("setup");
    reader.world.recording.teardown = reader.named("teardown");
    if let Some(options) = reader.options.clone() {
        load::read(&options, &mut reader.world.recording);
    }
    reader.world.finish(source, "k6")
}

struct K6Reader {
    world: World,
    /// `export const options`.
    options: Option<Json>,
}

impl Walk for K6Reader {
    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    fn keyword(&mut self, word: &str, line: usize, items: &mut Vec<Item>) {
        if !matches!(word, "break" | "continue" | "throw") {
            items.push(Item::left_out(line, say!("`{word}` of the script")));
        }
    }

    /// Of a map that a response has, by their names.
    fn set_several(&mut self, names: &[String], known: &Known) {
        let Known::Field(id, Save::Json(path), _) = known else { return };
        for name in names {
            let path = joined(path, name);
            self.world.set(name, Known::Field(*id, Save::Json(path), name.clone()));
        }
    }

    fn evaluated(&mut self, value: &Expr, line: usize, items: &mut Vec<Item>) -> Known {
        if let Expr::Binary(sign, left, right) = value
            && matches!(sign.as_str(), "||" | "&&")
        {
            let left = self.evaluated(left, line, items);
            let right = self.evaluated(right, line, items);
            return if matches!(left, Known::Unknown) { right } else { left };
        }
        let Some((path, arguments)) = value.call() else { return self.member(value, line, items) };
        let arguments = arguments.to_vec();
        if let Some(known) = self.http(&path, &arguments, line, items) {
            return known;
        }
        match path.as_str() {
            "sleep" => self.sleep(&arguments, items),
            "check" => {
                let id = self.response_of(arguments.first().map(|one| &one.value), line, items);
                checks::read(
                    &mut self.world,
                    id,
                    arguments.get(1).map(|one| &one.value),
                    line,
                    items,
                );
                return id.map_or(Known::Unknown, Known::Response);
            }
            "group" => {
                let name = argument(&arguments, "", 0).and_then(|name| self.world.text(name));
                let name = name.map_or("group".into(), |name| name.to_string());
                if let Some(Expr::Function(function)) = argument(&arguments, "", 1) {
                    let steps = self.function(function);
                    items.push(Item::Group(name, steps));
                }
            }
            "http.batch" => self.batch(&arguments, line, items),
            _ => return self.other(&path, value, &arguments, line, items),
        }
        Known::Unknown
    }
}

impl K6Reader {
    /// Functions and constants of the script, whatever their order.
    fn declare(&mut self, statements: &[Statement]) {
        for statement in statements {
            if let ScriptKind::Function(function) = &statement.kind
                && !function.name.is_empty()
            {
                self.world.set_global(&function.name, Known::Function(function.clone()));
            }
        }
        for statement in statements {
            match &statement.kind {
                ScriptKind::Let(names, value) => {
                    let Some(name) = names.first() else { continue };
                    if name == "options" {
                        self.options = self.world.json(value);
                    } else if names.len() == 1 {
                        let known = self.constant(value, statement.line);
                        self.world.set_global(name, known);
                    }
                }
                ScriptKind::Function(_) | ScriptKind::Nothing => {}
                ScriptKind::Other(what) => self
                    .world
                    .recording
                    .left_out
                    .push(LeftOut::at_line(statement.line, say!("`{what}` of the script"))),
                _ => self.world.recording.left_out.push(LeftOut::at_line(
                    statement.line,
                    say!("a statement outside the functions"),
                )),
            }
        }
    }

    fn constant(&mut self, value: &Expr, line: usize) -> Known {
        if let Some((path, _)) = value.call()
            && matches!(path.as_str(), "SharedArray" | "open" | "papaparse.parse")
        {
            let what = say!("data from a file (`{path}`); use `data` in the scenario");
            self.world.recording.left_out.push(LeftOut::at_line(line, what));
            return Known::Unknown;
        }
        self.world.value(value)
    }

    /// `http.get(url).json('id')`: the request is inside.
    fn member(&mut self, value: &Expr, line: usize, items: &mut Vec<Item>) -> Known {
        let (Expr::Call(inner, _) | Expr::Member(inner, _)) = value else {
            return self.world.value(value);
        };
        let mut innermost = &**inner;
        while let Expr::Member(next, _) | Expr::Call(next, _) = innermost
            && self.world.value(innermost).is_unknown()
        {
            if let Some((path, arguments)) = innermost.call()
                && let Some(known) = self.http(&path, arguments, line, items)
            {
                let name = format!("__response{}", self.world.exchanges.len());
                self.world.set(&name, known);
                let replaced = replace(value, innermost, &Expr::Name(name));
                return self.world.value(&replaced);
            }
            innermost = &**next;
        }
        self.world.value(value)
    }

    /// Functions of the script are read at each call; others are left out.
    fn other(
        &mut self,
        path: &str,
        value: &Expr,
        arguments: &[Argument],
        line: usize,
        items: &mut Vec<Item>,
    ) -> Known {
        if let Some(Known::Function(function)) = self.world.get(path).cloned() {
            return self.called(&function, arguments, line, items);
        }
        let known = self.member(value, line, items);
        const SILENT: [&str; 4] = ["console.log", "console.error", "console.warn", "console.info"];
        if known.is_unknown() && !SILENT.contains(&path) && !path.is_empty() {
            let path: String = path.chars().take(60).collect();
            items.push(Item::left_out(line, say!("the call `{path}`")));
        }
        known
    }

    fn response_of(
        &mut self,
        value: Option<&Expr>,
        line: usize,
        items: &mut Vec<Item>,
    ) -> Option<usize> {
        match self.evaluated(value?, line, items) {
            Known::Response(id) | Known::Field(id, ..) => Some(id),
            _ => None,
        }
    }

    fn sleep(&mut self, arguments: &[Argument], items: &mut Vec<Item>) {
        let Some(time) = argument(arguments, "", 0) else { return };
        let seconds = |number: f64| Duration::from_secs_f64(number.clamp(0.001, 86_400.0));
        let think = match self.world.number(time) {
            Some(number) => Think::Fixed(seconds(number)),
            None => match self.range(time) {
                Some((low, high)) => Think::Range(seconds(low), seconds(high)),
                None => {
                    match self.world.text(time).and_then(|text| text.as_value().map(str::to_string))
                    {
                        Some(value) => Think::Value(value),
                        None => Think::Fixed(Duration::from_secs(1)),
                    }
                }
            },
        };
        items.push(Item::Think(think));
    }

    /// `Math.random() * 2 + 1` and `randomIntBetween(1, 3)`.
    fn range(&mut self, expr: &Expr) -> Option<(f64, f64)> {
        if let Some((path, arguments)) = expr.call() {
            if self.world.is_random(expr) {
                return Some((0.0, 1.0));
            }
            let of = arguments.to_vec();
            return match path.as_str() {
                "randomIntBetween" => {
                    let low = self.world.number(argument(&of, "", 0)?)?;
                    Some((low, self.world.number(argument(&of, "", 1)?)?))
                }
                "Math.floor" | "Math.ceil" | "Math.round" => self.range(argument(&of, "", 0)?),
                _ => None,
            };
        }
        let Expr::Binary(sign, left, right) = expr else { return None };
        let (one, other) = (self.range(left), self.range(right));
        let (range, number) = match (one, other) {
            (Some(range), None) => (range, self.world.number(right)?),
            (None, Some(range)) => (range, self.world.number(left)?),
            _ => return None,
        };
        match sign.as_str() {
            "*" => Some((range.0 * number, range.1 * number)),
            "+" => Some((range.0 + number, range.1 + number)),
            _ => None,
        }
    }

    fn batch(&mut self, arguments: &[Argument], line: usize, items: &mut Vec<Item>) {
        let list = match argument(arguments, "", 0) {
            Some(Expr::List(list)) => list.clone(),
            Some(Expr::Map(entries)) => entries.iter().map(|(_, value)| value.clone()).collect(),
            _ => {
                let what = say!("requests in `http.batch` that are not listed in the call");
                return items.push(Item::left_out(line, what));
            }
        };
        let mut branches = Vec::new();
        for one in list.iter().take(200) {
            let mut branch = Vec::new();
            let parts = match one {
                Expr::List(parts) => parts.clone(),
                Expr::Map(entries) => {
                    let of = |name: &str| {
                        let entry = entries.iter().find(|(key, _)| *key == Expr::text(name));
                        entry.map_or(Expr::Null, |(_, value)| value.clone())
                    };
                    vec![of("method"), of("url"), of("body"), of("params")]
                }
                url => vec![Expr::text("GET"), url.clone()],
            };
            let plain = |value| Argument { name: None, value };
            let parts: Vec<Argument> = parts.into_iter().map(plain).collect();
            self.http("http.request", &parts, line, &mut branch);
            branches.push(branch);
        }
        items.push(Item::Parallel(branches));
    }

    fn http(
        &mut self,
        path: &str,
        arguments: &[Argument],
        line: usize,
        items: &mut Vec<Item>,
    ) -> Option<Known> {
        let method = match path.strip_prefix("http.")? {
            "del" => "DELETE",
            "get" => "GET",
            "post" => "POST",
            "put" => "PUT",
            "patch" => "PATCH",
            "head" => "HEAD",
            "options" => "OPTIONS",
            "request" | "asyncRequest" => "",
            _ => return None,
        };
        let mut exchange = Exchange { method: method.into(), ..Exchange::default() };
        let at = usize::from(method.is_empty());
        if method.is_empty() {
            let method = argument(arguments, "", 0).and_then(|method| self.world.text(method));
            let method = method.and_then(|method| method.as_literal().map(str::to_ascii_uppercase));
            exchange.method = method.filter(|method| !method.is_empty()).unwrap_or("GET".into());
        }
        let url = argument(arguments, "", at)?.clone();
        let url = match &url {
            // `http.url` only sets the name of the row.
            Expr::Call(_, inner) if inner.len() == 1 => inner[0].value.clone(),
            url => url.clone(),
        };
        exchange.url = self.world.text_or_variable(&url, "url");
        let has_body = !matches!(exchange.method.as_str(), "GET" | "HEAD") || at == 1;
        let params = argument(arguments, "", at + if has_body { 2 } else { 1 });
        let params = params.and_then(|params| self.world.json(params)).unwrap_or_default();
        exchange.headers = params.get("headers").map_or_else(Vec::new, Json::pairs);
        exchange.cookies = params.get("cookies").map_or_else(Vec::new, Json::pairs);
        let name = params.get("tags").and_then(|tags| tags.str("name"));
        exchange.name = name.map(str::to_string);
        let timeout = params.get("timeout").and_then(load::duration);
        exchange.timeout = timeout;
        // k6 follows redirects by default.
        exchange.follow_redirects = params.str("redirects") != Some("0");
        if has_body && let Some(body) = argument(arguments, "", at + 1) {
            self.world.body(body, &mut exchange, line);
        }
        Some(Known::Response(self.world.add(exchange, items)))
    }
}

/// The expression with a part of it replaced.
fn replace(whole: &Expr, part: &Expr, by: &Expr) -> Expr {
    if whole == part {
        return by.clone();
    }
    match whole {
        Expr::Member(inner, name) => Expr::Member(Box::new(replace(inner, part, by)), name.clone()),
        Expr::Call(inner, arguments) => {
            Expr::Call(Box::new(replace(inner, part, by)), arguments.clone())
        }
        Expr::Index(inner, key) => Expr::Index(Box::new(replace(inner, part, by)), key.clone()),
        other => other.clone(),
    }
}

impl Known {
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Known::Unknown)
    }
}
