//! The values of names while a script is read: constants, texts with embedded values, requests, and
//! parts of responses.

use std::collections::HashMap;

use throng_base::{Diagnostic, Source};

use super::{Argument, Counted, Expr, Function, TextPart, argument};
use crate::Refusal;
use crate::json::Json;
use crate::model::{
    Body, Check, Exchange, Item, LeftOut, Recording, Save, Variable, exchanges_mut, name_of, unique,
};
use crate::text::Text;

/// The maximum call depth of functions.
const CALLS_MAX: usize = 12;
/// The maximum number of requests per script; repeated calls of functions count.
pub(crate) const REQUESTS_MAX: usize = 2_000;

/// The maximum number of unrolled loop iterations.
const LOOP_ITEMS_MAX: u64 = 100;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Json(Json),
    /// The response of the request with that number.
    Response(usize),
    /// A part of a response that is not saved yet.
    Field(usize, Save, String),
    Function(Function),
    Unknown,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) recording: Recording,
    scopes: Vec<HashMap<String, Known>>,
    /// All requests, by number; until the end, items contain only these numbers.
    pub(crate) exchanges: Vec<Exchange>,
    calls: usize,
    is_full: bool,
    /// The variables of open loops, and whether they are used.
    loops: Vec<(String, bool)>,
}

impl World {
    pub(crate) fn new() -> World {
        World { scopes: vec![HashMap::new()], ..World::default() }
    }

    pub(crate) fn set(&mut self, name: &str, known: Known) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), known);
        }
    }

    /// For names of the whole script, such as `self.token`.
    pub(crate) fn set_global(&mut self, name: &str, known: Known) {
        if let Some(scope) = self.scopes.first_mut() {
            scope.insert(name.to_string(), known);
        }
    }

    /// Forgets global names with this prefix.
    pub(crate) fn forget(&mut self, begin: &str) {
        if let Some(scope) = self.scopes.first_mut() {
            scope.retain(|name, _| !name.starts_with(begin));
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Known> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Enters a function; false if the call depth or size limit is reached.
    pub(crate) fn enter(&mut self) -> bool {
        if self.calls >= CALLS_MAX || self.exchanges.len() >= REQUESTS_MAX {
            return false;
        }
        self.calls += 1;
        self.scopes.push(HashMap::new());
        true
    }

    pub(crate) fn leave(&mut self) {
        self.calls -= 1;
        self.scopes.pop();
    }

    /// Enters a loop over numbers.
    pub(crate) fn begin_loop(&mut self, counted: &Counted) {
        let name = name_of(&counted.name);
        self.set(&counted.name, Known::Json(Json::Text(Text::value(name))));
        self.loops.push((counted.name.clone(), false));
    }

    /// The steps of a loop, as one item; it has the numbers if the variable is used.
    pub(crate) fn end_loop(&mut self, counted: &Counted, steps: Vec<Item>) -> Item {
        let is_used = self.loops.pop().is_some_and(|(_, is_used)| is_used);
        // The number is known only inside the loop.
        self.set(&counted.name, Known::Unknown);
        match is_used {
            true => {
                let last = counted.from + counted.times.min(LOOP_ITEMS_MAX);
                let items = (counted.from..last).map(|number| number.to_string()).collect();
                Item::ForEach(name_of(&counted.name), items, steps)
            }
            false => Item::Repeat(counted.times.to_string(), steps),
        }
    }

    /// Adds a request; returns its number.
    pub(crate) fn add(&mut self, exchange: Exchange, items: &mut Vec<Item>) -> usize {
        let id = self.exchanges.len();
        if id >= REQUESTS_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                let what = say!("requests after the first {REQUESTS_MAX}");
                items.push(Item::LeftOut(LeftOut::of_all(1, what)));
            }
            return id.saturating_sub(1);
        }
        self.exchanges.push(exchange);
        items.push(Item::Http(Box::new(Exchange { id, ..Exchange::default() })));
        id
    }

    /// Replaces the numbers in items by the requests. A script without requests is refused.
    pub(crate) fn finish(
        mut self,
        source: &Source,
        format: &str,
    ) -> Result<Recording, Vec<Diagnostic>> {
        if self.exchanges.is_empty() || self.recording.sessions.is_empty() {
            let reason = say!("it has no requests that throng can convert");
            return Err(vec![*Refusal::new(&source.name, reason).of_format(format)]);
        }
        let exchanges = std::mem::take(&mut self.exchanges);
        self.recording.lists_mut().for_each(|items| {
            exchanges_mut(items, &mut |exchange| {
                if let Some(found) = exchanges.get(exchange.id) {
                    *exchange = found.clone();
                }
            });
        });
        Ok(self.recording)
    }

    pub(crate) fn check(&mut self, id: usize, check: Check) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let is_known = exchange.checks.contains(&check);
        let known = exchange.checks.iter_mut().find(|one| matches!(one, Check::Status(_)));
        match (check, known) {
            (Check::Status(new), Some(Check::Status(list))) => {
                let new: Vec<String> = new.into_iter().filter(|one| !list.contains(one)).collect();
                list.extend(new);
            }
            (check, _) if !is_known => exchange.checks.push(check),
            _ => {}
        }
    }

    /// Saves a value of a response under a unique name.
    fn saved(&mut self, id: usize, save: Save, name: &str) -> Text {
        let own = self.exchanges.get(id).map_or(&[][..], |exchange| &exchange.saves);
        if let Some((name, _)) = own.iter().find(|(_, known)| *known == save) {
            return Text::value(format!("saved.{name}"));
        }
        let saves = || self.exchanges.iter().flat_map(|one| &one.saves);
        let name = unique(&name_of(name), "_", |name| saves().any(|(known, _)| known == name));
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.saves.push((name.clone(), save));
        }
        Text::value(format!("saved.{name}"))
    }

    /// A text with embedded values; an unknown part becomes a variable that the user can set.
    pub(crate) fn text(&mut self, expr: &Expr) -> Option<Text> {
        match self.value(expr) {
            Known::Json(json) => Some(json.as_text()),
            Known::Field(id, save, name) => Some(self.saved(id, save, &name)),
            Known::Response(_) | Known::Function(_) | Known::Unknown => None,
        }
    }

    /// The same, but a variable with that name replaces an unknown value.
    pub(crate) fn text_or_variable(&mut self, expr: &Expr, name: &str) -> Text {
        if let Some(text) = self.text(expr) {
            return text;
        }
        let name = match expr {
            Expr::Name(own) | Expr::Member(_, own) => name_of(own),
            _ => name_of(name),
        };
        self.recording.declare(Variable::unknown(&name));
        Text::value(format!("vars.{name}"))
    }

    pub(crate) fn json(&mut self, expr: &Expr) -> Option<Json> {
        match self.value(expr) {
            Known::Json(json) => Some(json),
            Known::Field(id, save, name) => Some(Json::Text(self.saved(id, save, &name))),
            _ => None,
        }
    }

    /// The body of a request: a map, or a list of pairs, is sent as a form.
    pub(crate) fn body(&mut self, body: &Expr, exchange: &mut Exchange, line: usize) {
        exchange.body = match self.json(body) {
            None => return self.computed_body(body, exchange, line),
            Some(Json::Null) => return,
            Some(Json::Text(text)) => match Json::of_body(&text) {
                Some(json) => Body::Json(json),
                None => {
                    let mime = exchange.header("content-type").map(Text::to_string);
                    Body::of_text(&mime.unwrap_or_default(), text)
                }
            },
            Some(map @ Json::Map(_)) => Body::Form(map.pairs()),
            Some(Json::List(items)) if items.iter().all(is_pair) => {
                let pair = |pair: &Json| {
                    (pair.items()[0].as_text().to_string(), pair.items()[1].as_text())
                };
                Body::Form(items.iter().map(pair).collect())
            }
            Some(other) => Body::Json(other),
        };
    }

    /// A body that is not known: a variable stands for it.
    pub(crate) fn computed_body(&mut self, body: &Expr, exchange: &mut Exchange, line: usize) {
        let text = self.text_or_variable(body, "body");
        exchange.left_out.push(LeftOut::at_line(line, say!("a body that the script computes")));
        exchange.body = Body::Text(text);
    }

    pub(crate) fn number(&mut self, expr: &Expr) -> Option<f64> {
        match self.value(expr) {
            Known::Json(Json::Number(number)) => number.parse().ok(),
            Known::Json(Json::Text(text)) => text.as_literal()?.trim().parse().ok(),
            _ => None,
        }
        .filter(|number: &f64| number.is_finite())
    }

    pub(crate) fn value(&mut self, expr: &Expr) -> Known {
        match expr {
            Expr::Text(parts) => {
                let mut out = Text::default();
                for part in parts {
                    match part {
                        TextPart::Literal(text) => out.push(text),
                        TextPart::Value(inner) => {
                            out.append(&self.text_or_variable(inner, "value"));
                        }
                    }
                }
                Known::Json(Json::Text(out))
            }
            Expr::Number(number) => Known::Json(number_of(number)),
            Expr::Bool(value) => Known::Json(Json::Bool(*value)),
            Expr::Null => Known::Json(Json::Null),
            Expr::Name(name) => self.name(name),
            Expr::Member(..) => self.member(expr),
            Expr::Index(inner, key) => {
                let inner = self.value(inner);
                self.index(inner, key)
            }
            Expr::List(items) => {
                let items = items.iter().map(|item| self.known_json(item, "item")).collect();
                Known::Json(Json::List(items))
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Binary(sign, left, right) => self.binary(sign, left, right),
            Expr::Minus(inner) => match self.number(inner) {
                Some(number) => Known::Json(number_of(&(-number).to_string())),
                None => Known::Unknown,
            },
            // The first branch is the usual one.
            Expr::Choice(_, one, _) => self.value(one),
            Expr::Function(function) => Known::Function((**function).clone()),
            Expr::Call(callee, arguments) => self.call(callee, arguments),
            Expr::Not(_) | Expr::Other => Known::Unknown,
        }
    }

    fn known_json(&mut self, expr: &Expr, name: &str) -> Json {
        match self.json(expr) {
            Some(json) => json,
            None => Json::Text(self.text_or_variable(expr, name)),
        }
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> Known {
        let mut out: Vec<(String, Json)> = Vec::new();
        for (key, value) in entries {
            if *key == Expr::Null {
                if let Some(Json::Map(more)) = self.json(value) {
                    out.extend(more);
                }
                continue;
            }
            let Some(key) = self.text(key) else { continue };
            let key = key.to_string();
            let value = self.known_json(value, &key);
            out.retain(|(known, _)| *known != key);
            out.push((key, value));
        }
        Known::Json(Json::Map(out))
    }

    fn name(&mut self, name: &str) -> Known {
        if let Some(known) = self.get(name).cloned() {
            if let Some(open) = self.loops.iter_mut().rev().find(|(own, _)| own == name) {
                open.1 = true;
            }
            return known;
        }
        match name {
            "__VU" => Known::Json(Json::Text(Text::value("user.id"))),
            "__ITER" => Known::Json(Json::Text(Text::value("iteration"))),
            _ => Known::Unknown,
        }
    }

    /// `__ENV.NAME`, `res.body`, `object.field`, `self.token`.
    fn member(&mut self, expr: &Expr) -> Known {
        if let Some(known) = expr.path().and_then(|path| self.get(&path).cloned()) {
            return known;
        }
        let Expr::Member(inner, name) = expr else { return Known::Unknown };
        if matches!(&**inner, Expr::Name(env) if env == "__ENV") {
            return self.environment(name, None);
        }
        match self.value(inner) {
            Known::Response(id) => match name.as_str() {
                "body" | "text" | "content" => Known::Field(id, Save::Body, "body".into()),
                "status" | "status_code" => Known::Field(id, Save::Status, "status".into()),
                _ => Known::Unknown,
            },
            Known::Field(id, Save::Json(path), _) => {
                Known::Field(id, Save::Json(joined(&path, name)), name.clone())
            }
            Known::Json(json) => json.get(name).cloned().map_or(Known::Unknown, Known::Json),
            _ => Known::Unknown,
        }
    }

    /// An environment variable, with the script's default.
    pub(crate) fn environment(&mut self, name: &str, default: Option<Text>) -> Known {
        let own = name_of(name);
        let is_secret = throng_base::secret::is_secret_name(name);
        let value = default.filter(|_| !is_secret);
        self.recording.declare(Variable {
            name: own.clone(),
            value,
            env: Some(name.into()),
            is_secret,
        });
        Known::Json(Json::Text(Text::value(format!("vars.{own}"))))
    }

    fn index(&mut self, inner: Known, key: &Expr) -> Known {
        let word = self.text(key).and_then(|text| text.as_literal().map(str::to_string));
        let Some(word) = word else { return Known::Unknown };
        let number = matches!(key, Expr::Number(_));
        match inner {
            Known::Field(id, Save::Json(path), name) => match number {
                true => Known::Field(id, Save::Json(format!("{path}[{word}]")), name),
                false => Known::Field(id, Save::Json(joined(&path, &word)), word),
            },
            Known::Json(Json::List(items)) => {
                let item = word.parse::<usize>().ok().and_then(|at| items.get(at).cloned());
                item.map_or(Known::Unknown, Known::Json)
            }
            Known::Json(json) => json.get(&word).cloned().map_or(Known::Unknown, Known::Json),
            _ => Known::Unknown,
        }
    }

    fn binary(&mut self, sign: &str, left: &Expr, right: &Expr) -> Known {
        if matches!(sign, "||" | "??" | "or") {
            // `__ENV.HOST || 'localhost'`: the right side is the default.
            if let Expr::Member(inner, name) = left
                && matches!(&**inner, Expr::Name(env) if env == "__ENV")
            {
                let default = self.text(right);
                return self.environment(name, default);
            }
            return match self.value(left) {
                Known::Unknown => self.value(right),
                known => known,
            };
        }
        let numbers = (self.number(left), self.number(right));
        if let (Some(a), Some(b)) = numbers
            && !(sign == "+" && [left, right].iter().any(|one| matches!(one, Expr::Text(_))))
        {
            let result = match sign {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "/" if b != 0.0 => a / b,
                "%" if b != 0.0 => a % b,
                _ => return Known::Unknown,
            };
            return Known::Json(number_of(&result.to_string()));
        }
        if let Some(computed) = self.computed(sign, left, right) {
            return computed;
        }
        if sign != "+" {
            return Known::Unknown;
        }
        let mut out = self.text_or_variable(left, "value");
        let right = self.text_or_variable(right, "value");
        out.append(&right);
        Known::Json(Json::Text(out))
    }

    /// A number and an expression: `${random.int(0, 9) + 1}`.
    fn computed(&mut self, sign: &str, left: &Expr, right: &Expr) -> Option<Known> {
        if !matches!(sign, "+" | "-" | "*") {
            return None;
        }
        let (one, other) = (self.operand(left)?, self.operand(right)?);
        Some(Known::Json(Json::Text(Text::value(format!("{one} {sign} {other}")))))
    }

    /// A number, or an expression whose value is one.
    fn operand(&mut self, expr: &Expr) -> Option<String> {
        const NUMBERS: [&str; 5] = ["random.int(", "random.float(", "now.", "user.id", "iteration"];
        match self.value(expr) {
            Known::Json(Json::Number(number)) => Some(number),
            Known::Json(Json::Text(text)) => {
                let value = text.as_value()?;
                let is_loop = self.loops.iter().any(|(name, _)| name_of(name) == value);
                let is_number = is_loop || NUMBERS.iter().any(|begin| value.starts_with(begin));
                let is_whole = value == "iteration" || value == "user.id" || value.ends_with(')');
                match is_whole || is_loop {
                    true => is_number.then(|| value.to_string()),
                    false => is_number.then(|| format!("({value})")),
                }
            }
            _ => None,
        }
    }

    fn call(&mut self, callee: &Expr, arguments: &[Argument]) -> Known {
        let path = callee.path().unwrap_or_default();
        if let Some(known) = self.function(&path, arguments) {
            return known;
        }
        let Expr::Member(inner, method) = callee else { return Known::Unknown };
        match (self.value(inner), method.as_str()) {
            (Known::Response(id), "json") => {
                let path = argument(arguments, "", 0).and_then(|path| self.text(path));
                let path = path.map(|path| json_path(&path.to_string())).unwrap_or_default();
                let name = path.rsplit(['.', '[']).next().unwrap_or_default().to_string();
                Known::Field(id, Save::Json(path), name)
            }
            (Known::Response(id), "html") => Known::Field(id, Save::Body, "html".into()),
            (Known::Field(id, Save::Json(path), _), "get") => {
                match argument(arguments, "", 0).and_then(|key| self.text(key)) {
                    Some(key) => {
                        let key = key.to_string();
                        Known::Field(id, Save::Json(joined(&path, &key)), key)
                    }
                    None => Known::Unknown,
                }
            }
            (
                Known::Json(Json::Text(text)),
                "toString" | "trim" | "strip" | "encode" | "format",
            ) => Known::Json(Json::Text(text)),
            _ => Known::Unknown,
        }
    }

    /// Functions of the languages and their libraries that have an equivalent.
    fn function(&mut self, path: &str, arguments: &[Argument]) -> Option<Known> {
        let value = |text: &str| Some(Known::Json(Json::Text(Text::value(text))));
        let first = argument(arguments, "", 0);
        let second = argument(arguments, "", 1);
        match path {
            "JSON.stringify" | "json.dumps" | "String" | "str" | "Number" | "int" | "parseInt"
            | "encodeURIComponent" | "urllib.parse.quote" => {
                let json = self.json(first?)?;
                Some(Known::Json(match path {
                    "JSON.stringify" | "json.dumps" => Json::Text(json.compact()),
                    _ => json,
                }))
            }
            "JSON.parse" | "json.loads" => match self.value(first?) {
                Known::Field(id, Save::Body, _) => {
                    Some(Known::Field(id, Save::Json(String::new()), "value".into()))
                }
                other => Some(other),
            },
            "randomIntBetween" | "random.randint" | "randint" => {
                let (low, high) = (self.number(first?)?, self.number(second?)?);
                value(&format!("random.int({}, {})", low.round() as i64, high.round() as i64))
            }
            "random.randrange" => {
                let (low, high) = match second {
                    Some(second) => (self.number(first?)?, self.number(second)?),
                    None => (0.0, self.number(first?)?),
                };
                value(&format!(
                    "random.int({}, {})",
                    low.round() as i64,
                    (high - 1.0).max(low) as i64
                ))
            }
            "random.random" | "Math.random" => value("random.float()"),
            "Math.floor" | "Math.round" | "Math.ceil" => self.random_number(first?),
            "random.choice" | "randomItem" => {
                let Some(Json::List(items)) = self.json(first?) else { return None };
                let literal = |item: &Json| match item {
                    Json::Number(number) => Some(number.clone()),
                    Json::Text(text) => {
                        let text = text.as_literal()?;
                        let is_plain = !text.contains(['\'', '\\', '\n', '$']);
                        is_plain.then(|| format!("'{text}'"))
                    }
                    _ => None,
                };
                let items: Option<Vec<String>> = items.iter().take(100).map(literal).collect();
                value(&format!(
                    "random.choice([{}])",
                    items.filter(|items| !items.is_empty())?.join(", ")
                ))
            }
            "randomString" => {
                value(&format!("random.string({})", self.number(first?)?.clamp(1.0, 1000.0) as u64))
            }
            "uuidv4" | "uuid.uuid4" | "uuid4" | "crypto.randomUUID" => value("random.uuid()"),
            "Date.now" => value("now.ms()"),
            "time.time" => value("now.s()"),
            "os.getenv" | "os.environ.get" => {
                let name = self.text(first?)?.to_string();
                let default = second.and_then(|second| self.text(second));
                Some(self.environment(&name, default))
            }
            _ => None,
        }
    }

    /// `Math.floor(Math.random() * 10) + 1`: the part in parentheses.
    fn random_number(&mut self, expr: &Expr) -> Option<Known> {
        if let Some(number) = self.number(expr) {
            return Some(Known::Json(number_of(&number.round().to_string())));
        }
        let Expr::Binary(sign, left, right) = expr else { return None };
        let factor = match (self.is_random(left), self.is_random(right)) {
            (true, false) if sign == "*" => self.number(right)?,
            (false, true) if sign == "*" => self.number(left)?,
            _ => return None,
        };
        let high = (factor - 1.0).max(0.0) as i64;
        Some(Known::Json(Json::Text(Text::value(format!("random.int(0, {high})")))))
    }

    pub(crate) fn is_random(&self, expr: &Expr) -> bool {
        expr.call()
            .is_some_and(|(path, _)| matches!(path.as_str(), "Math.random" | "random.random"))
    }
}

fn is_pair(json: &Json) -> bool {
    matches!(json.items(), [_, _])
}

fn number_of(text: &str) -> Json {
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Json::Number(format!("{number:.0}"))
        }
        Ok(number) => serde_json::Number::from_f64(number)
            .map_or(Json::Null, |number| Json::Number(number.to_string())),
        Err(_) => Json::Null,
    }
}

pub(crate) fn joined(path: &str, key: &str) -> String {
    match path.is_empty() {
        true => key.to_string(),
        false => format!("{path}.{key}"),
    }
}

/// k6 uses gjson paths: `data.0.id` is `data[0].id`.
fn json_path(path: &str) -> String {
    let mut out = String::new();
    for step in path.split('.').filter(|step| !step.is_empty()) {
        match step.bytes().all(|b| b.is_ascii_digit()) {
            true => out.push_str(&format!("[{step}]")),
            false => out = joined(&out, step),
        }
    }
    out
}
