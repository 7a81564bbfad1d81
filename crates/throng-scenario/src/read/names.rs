//! Names in expressions: variables, data, saved values, loop items, the response. Each session has
//! its own names, with a slot for each user's value.
//!
//! How a session is compiled:
//! 1. [`SessionNames::of_session`],
//! 2. [`Context::declare_all`] for the whole session, so that a step can use a value that a later
//!    step saves (it exists from the next iteration on),
//! 3. its steps: [`Context::slot`] for saved values, [`Context::enter_item`] and
//!    [`SessionNames::leave_item`] around the steps of a `for_each`, [`Context::with_answer`]
//!    around expressions on a response,
//! 4. [`check_names`] reports names that are unused, or used too early.

use std::cell::Cell;

use throng_expression::{Answer as Part, Expression, Name, Names, UnknownName, Value};
use throng_extract::JsonPath;
use throng_program::{Extractor, Save};
use throng_protocol::framed::FieldPath;

use throng_base::Said;

use super::{AnswerKind, Context, ReadVariable, Scope};
use crate::scope::{Data, Heard, Kinds, Known, SLOTS_MAX, Saved, SessionNames, SetupNames, Vars};
use crate::synonyms::did_you_mean;
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::{self, is_name, shorten};

/// Reports unused and premature names once a session is compiled.
pub(crate) fn check_names(cx: &mut Context<'_>) {
    if !cx.mistakes.has_errors() {
        // Other sessions use what the setup saves.
        if !matches!(cx.scope.setup, SetupNames::Open) {
            warn_unused_saves(cx);
        }
        warn_early(cx);
    }
}

/// An unused value costs memory for each user.
fn warn_unused_saves(cx: &mut Context<'_>) {
    let session = &cx.session;
    let unused = session.slots.iter().filter_map(|name| {
        let saved = session.saved.get(name).filter(|saved| !saved.used.get())?;
        saved.place.map(|place| (name.clone(), place))
    });
    for (name, place) in unused.collect::<Vec<_>>() {
        let message = say!("no step in this session uses the saved value `{name}`");
        let help = say!("write `${{saved.{name}}}` where it is needed, or remove it");
        cx.warn("unused-save", place, message, say!("never used"), help);
    }
}

fn warn_early(cx: &mut Context<'_>) {
    for (slot, place) in std::mem::take(&mut cx.session.early) {
        let Some(name) = cx.session.slots.get(usize::from(slot)).cloned() else { continue };
        let message = say!("`saved.{name}` is used before a step saves it");
        let label = say!("it has no value in the first iteration");
        let help = say!(
            "save it in an earlier step or in `before`; to check whether it exists, write \
             `${{has(saved.{name})}}`"
        );
        cx.warn("not-saved-yet", place, message, label, help);
    }
}

impl Context<'_> {
    /// Reads steps that run under a condition; a condition on the iteration number determines when
    /// values exist.
    pub(crate) fn behind<T>(
        &mut self,
        condition: Option<&Expression>,
        read: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        match condition.is_some_and(|condition| condition.text().contains("iteration")) {
            true => self.in_time(read),
            false => read(self),
        }
    }

    /// Reads something that is evaluated only when its values exist.
    pub(crate) fn in_time<T>(&mut self, read: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let scope = Scope { in_time: true, ..self.scope };
        read(&mut self.scoped(scope))
    }

    /// Declares the values that a session saves, by their keys; true if the session itself saves
    /// them, not a part.
    pub(crate) fn declare_all(&mut self, saved: &[(&Key, bool)]) {
        saved.iter().for_each(|(key, own)| self.declare(key, *own));
    }

    /// Declares a saved value; an invalid name is reported where it is saved.
    fn declare(&mut self, key: &Key, own: bool) {
        if is_name(&key.text) && !self.session.saved.contains_key(&key.text) {
            self.add_slot(&key.text, key.place, |names, slot| {
                let place = own.then_some(key.place);
                let saved = Saved { slot, used: Cell::new(false), place };
                names.saved.insert(key.text.clone(), saved);
            });
        }
    }

    fn add_slot(
        &mut self,
        name: &str,
        place: Place,
        then: impl FnOnce(&mut SessionNames, u16),
    ) -> Option<u16> {
        match self.session.add(name) {
            Some(slot) => {
                then(self.session, slot);
                Some(slot)
            }
            None => {
                if !std::mem::replace(&mut self.session.full, true) {
                    let message = say!("a session saves more than {SLOTS_MAX} values");
                    let help = say!("save a whole map and use its fields: `saved.user.id`");
                    self.too_many(place, message, help);
                }
                None
            }
        }
    }

    /// The slot of a saved value, by the key that names it in `save:` or `set:`.
    pub(crate) fn slot(&mut self, key: &Key) -> Option<u16> {
        if !is_name(&key.text) {
            let message = say!("`{}` is not a valid name for a value", shorten(&key.text));
            let help = say!(
                "a name consists of letters, digits and `_`: \
                                              `user_id`"
            );
            return self.refuse("bad-value", key.place, message, say!("not a valid name"), help);
        }
        self.declare(key, false);
        self.session.slot_of(&key.text)
    }

    /// A slot without a name in expressions, such as the list of a `for_each`.
    pub(crate) fn hidden_slot(&mut self, name: &str, place: Place) -> Option<u16> {
        self.add_slot(name, place, |_, _| {})
    }

    /// Binds `name` to the current item until [`SessionNames::leave_item`]; returns its slot.
    /// Expressions use the name alone: `${item}`, `${item.id}`.
    pub(crate) fn enter_item(&mut self, name: &str, place: Place) -> Option<u16> {
        const TAKEN: &[&str] = &[
            "vars",
            "data",
            "saved",
            "setup",
            "user",
            "iteration",
            "response",
            "message",
            "env",
            "random",
            "now",
            "json",
            "true",
            "false",
            "null",
            "in",
            "page",
        ];
        if !is_name(name) || name.contains('-') || TAKEN.contains(&name) {
            let message = say!("`{}` is not a valid name for an item", shorten(name));
            let label = say!("this name is not available");
            let help = say!(
                "a name consists of letters, digits and `_`: `as: \
                                       product`"
            );
            return self.refuse("bad-value", place, message, label, help);
        }
        self.session.forget_expressions();
        let item = name.to_string();
        self.add_slot(name, place, |names, slot| {
            names.set_written(slot);
            names.items.push((item, slot));
        })
    }

    /// Reads the steps of a handler, in which `message` is the received message. Returns the parts
    /// of it that must be kept.
    pub(crate) fn with_heard<T>(
        &mut self,
        heard: Heard,
        read: impl FnOnce(&mut Self) -> T,
    ) -> (T, Vec<Save>) {
        self.session.forget_expressions();
        let before = self.session.heard.replace(heard);
        let result = read(self);
        let heard = std::mem::replace(&mut self.session.heard, before);
        self.session.forget_expressions();
        (result, heard.map_or_else(Vec::new, |heard| heard.saves))
    }

    /// A field of the received message in a handler, as an expression.
    pub(crate) fn heard_field(&mut self, path: &FieldPath, place: Place) -> Option<Expression> {
        let is_simple = path.written.split('.').all(is_name);
        let name = match is_simple {
            true => path.written.to_string(),
            // Expressions find it by a name that no field can have.
            false => {
                let number = self.session.heard.as_ref().map_or(0, |heard| heard.slots.len());
                format!("field__{number}")
            }
        };
        let is_known =
            self.session.heard.as_ref().is_some_and(|heard| heard.slots.contains_key(&name));
        if !is_known {
            let extractor = Extractor::Field([path.clone()].into());
            self.session.keep_heard(name.clone(), extractor)?;
        }
        self.expression_of(&format!("message.{name}"), place)
    }

    /// The same for an expression on a response, or on something unspecified.
    pub(crate) fn with_answer<T>(&mut self, read: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let answer = self.scope.answer.or(Some(AnswerKind::Parts));
        let scope = Scope { answer, ..self.scope };
        read(&mut self.scoped(scope))
    }
}

/// Maximum number of cached expressions.
const REMEMBERED_MAX: usize = 10_000;

impl Context<'_> {
    /// Compiles `inner`, at position `at` in the text of `node`.
    pub(crate) fn compile_expression(
        &mut self,
        node: &Node,
        inner: &str,
        at: usize,
    ) -> Option<Expression> {
        let in_time = self.scope.in_time;
        if let Some((known, early)) = self.session.known(inner, in_time) {
            if let Some(early) = early {
                self.add_early(early, node, inner, at);
            }
            return Some(known);
        }
        let quiet = self.mistakes.is_full();
        let Context { found, session, scope, env, .. } = self;
        let mut names = KnownNames {
            vars: &found.vars,
            data: &mut found.data,
            session,
            setup: scope.setup,
            has_answer: scope.answer.is_some(),
            has_fields: scope.answer == Some(AnswerKind::Fields),
            env: *env,
            run_id: &found.run_id,
            quiet,
            code: None,
        };
        let compiled = Expression::compile(inner, &mut names);
        let code = names.code;
        match compiled {
            Ok(expression) => {
                let slots = expression.slots();
                if let Some(early) = self.session.look(&slots, in_time) {
                    self.add_early(early, node, inner, at);
                }
                // An expression on the response is invalid elsewhere, so it is not cached.
                let remembered = &mut self.session.expressions;
                if !expression.uses_answer() && remembered.len() < REMEMBERED_MAX {
                    remembered.insert(inner.into(), (expression.clone(), slots));
                }
                Some(expression)
            }
            // The mistake of this name is already reported.
            Err(reason) if reason.message.is_empty() => None,
            Err(reason) if quiet => {
                let error = self.error(reason.code, Said::default(), node.place);
                self.fail(error)
            }
            Err(reason) => {
                let length = reason.end.saturating_sub(reason.start).max(1);
                let place = self.place_in(node, at + reason.start, length);
                // A string literal can contain line ends, but a message is one line.
                let mut message = reason.message;
                message.change_texts(&|text| text.replace(|c: char| c.is_control(), " "));
                let code = code.unwrap_or(reason.code);
                let written = inner.get(reason.start..reason.end).unwrap_or("");
                let owner: String = written.split('.').take(2).collect();
                let unknown =
                    (code == "unknown-name").then(|| format!("{} {owner}", message.english()));
                let told = unknown.as_ref().and_then(|key| self.session.unknown.get(key).copied());
                if let Some(first) = told {
                    let span = self.span(place);
                    self.mistakes.repeat(first, place.file, &span);
                    return None;
                }
                let mut error = self.error(code, message, place);
                if !reason.label.is_empty() {
                    error = error.label(reason.label);
                }
                let help = Some(reason.help).filter(|help| !help.is_empty());
                let number = self.mistakes.add(error.help(help.unwrap_or(EXPRESSION_HELP)));
                if let (Some(key), Some(number)) = (unknown, number) {
                    self.session.unknown.insert(key, number);
                }
                None
            }
        }
    }

    /// A generated expression for something at this place.
    pub(crate) fn expression_of(&mut self, text: &str, place: Place) -> Option<Expression> {
        let node = Node { place, kind: Kind::Scalar { text: text.to_string(), plain: true } };
        self.compile_expression(&node, text, 0)
    }

    fn add_early(&mut self, slot: u16, node: &Node, inner: &str, at: usize) {
        let name = self.session.slots.get(usize::from(slot));
        let name = name.map(|name| format!("saved.{name}")).unwrap_or_default();
        let place = match inner.find(&name) {
            Some(begin) => self.place_in(node, at + begin, name.len()),
            None => node.place,
        };
        self.session.early.push((slot, place));
    }
}

const EXPRESSION_HELP: Said = say!(
    "write a name such as `${{vars.name}}`, or an expression such as `${{user.id % 100}}`; for a \
     literal `${{`, write `$${{`"
);

/// The roots of names.
pub(crate) const ROOTS: [&str; 10] =
    ["vars", "env", "data", "saved", "setup", "user", "iteration", "run", "response", "message"];

/// Resolves names in an expression.
struct KnownNames<'k, 'a> {
    vars: &'k Vars,
    data: &'k mut Data,
    session: &'k mut SessionNames,
    setup: &'k SetupNames,
    has_answer: bool,
    has_fields: bool,
    env: ReadVariable<'a>,
    run_id: &'k str,
    /// No more mistakes are shown, so suggestions are not needed.
    quiet: bool,
    /// The code of the mistake, if it has a special one.
    code: Option<&'static str>,
}

type Resolved = Result<(Name, usize), UnknownName>;

/// The mistake of this name is already reported.
fn answered() -> Resolved {
    Err(UnknownName::default())
}

impl Names for KnownNames<'_, '_> {
    fn resolve(&mut self, path: &[&str]) -> Resolved {
        let second = path.get(1).copied();
        if let Some(slot) = self.session.item(path[0]) {
            return Ok((Name::Slot(slot), 1));
        }
        match path[0] {
            "vars" => self.variable(second),
            "env" => self.environment(second),
            "data" => self.row(second, path.get(2).copied()),
            "saved" => self.saved(second),
            "setup" => self.setup(second),
            "user" if second == Some("id") => Ok((Name::UserId, 2)),
            "user" => {
                let message = say!("only `user.id` is available");
                self.unknown(
                    message,
                    second.unwrap_or(""),
                    ["id"].into_iter(),
                    "user.",
                    Said::default(),
                )
            }
            "iteration" => Ok((Name::Iteration, 1)),
            "run" if second == Some("id") => {
                Ok((Name::Constant(Value::Text(self.run_id.into())), 2))
            }
            "run" => {
                let message = say!("only `run.id` is available");
                self.unknown(
                    message,
                    second.unwrap_or(""),
                    ["id"].into_iter(),
                    "run.",
                    Said::default(),
                )
            }
            "response" | "message" if !self.has_answer && self.session.heard.is_some() => {
                self.heard(path)
            }
            "response" | "message" => self.answer(path[0], second),
            _ => self.nothing(path),
        }
    }
}

impl KnownNames<'_, '_> {
    /// Reports an unknown name, with a suggestion.
    fn unknown<'w>(
        &self,
        message: Said,
        word: &str,
        words: impl Iterator<Item = &'w str> + Clone,
        prefix: &str,
        empty: Said,
    ) -> Resolved {
        if self.quiet {
            return Err(UnknownName { message, ..UnknownName::default() });
        }
        let near = did_you_mean(word, words.clone());
        let label = near.map(|near| say!("did you mean `{prefix}{near}`?"));
        let list = words::names(words.map(|word| format!("{prefix}{word}")));
        let help = if list.is_empty() { empty } else { say!("available: {list}") };
        Err(UnknownName { message, label: Some(label.unwrap_or_else(|| say!("unknown"))), help })
    }

    fn variable(&self, name: Option<&str>) -> Resolved {
        let Some(name) = name else { return Ok((Name::Constant(self.vars.all()), 1)) };
        if let Some(value) = self.vars.get(name) {
            return Ok((Name::Constant(value.clone()), 2));
        }
        if self.vars.is_broken(name) {
            return answered();
        }
        let message = say!("there is no variable `{}`", shorten(name));
        let help = say!("declare it: `vars: {{{}: value}}`", shorten(name));
        self.unknown(message, name, self.vars.names(), "vars.", help)
    }

    fn environment(&mut self, name: Option<&str>) -> Resolved {
        let Some(name) = name else {
            let help = say!("write `${{env.NAME}}`");
            let message = say!("the expression does not name an environment variable");
            return Err(UnknownName { message, label: None, help });
        };
        match (self.env)(name) {
            Some(value) => Ok((Name::Constant(Value::Text(value.into())), 2)),
            None => {
                self.code = Some("unset-variable");
                let message = say!("the environment variable `{}` is not set", shorten(name));
                let help = say!(
                    "run `{name}=value throng …`, or write `vars: {{name: {{env: {name}, \
                     default: value}}}}`"
                );
                Err(UnknownName { message, label: Some(say!("not set")), help })
            }
        }
    }

    fn row(&mut self, source: Option<&str>, column: Option<&str>) -> Resolved {
        let known = source.map_or(Known::No, |source| self.data.find(source));
        let number = match known {
            Known::Source(number) => number,
            Known::Broken => return answered(),
            Known::No => {
                let word = source.unwrap_or("");
                let message = match source {
                    Some(source) => say!("there is no data source `{}`", shorten(source)),
                    None => say!("the expression does not name a data source"),
                };
                let help = say!("declare it: `data: {{accounts: {{csv: accounts.csv}}}}`");
                return self.unknown(message, word, self.data.names(), "data.", help);
            }
        };
        let Some(column) = column else {
            self.data.use_whole(number);
            return Ok((Name::Row(number), 2));
        };
        if let Some(columns) = self.data.columns(number)
            && !columns.iter().any(|known| known == column)
        {
            let source = source.unwrap_or("");
            let message = say!("`data.{source}` has no column `{}`", shorten(column));
            let columns = columns.iter().map(String::as_str);
            let help = say!("its rows are single values: write `${{data.NAME}}`");
            let unknown = self.unknown(message, column, columns, "", help);
            let doubt = self.data.header_doubt(number);
            return unknown.map_err(|unknown| match doubt {
                Some(help) => UnknownName { help, ..unknown },
                None => unknown,
            });
        }
        match self.data.column(number, column) {
            Ok(column) => Ok((Name::Field { source: number, column }, 3)),
            Err(reason) => Err(UnknownName {
                message: reason.message,
                label: None,
                help: reason.help.unwrap_or_default(),
            }),
        }
    }

    fn saved(&self, name: Option<&str>) -> Resolved {
        if !self.session.open {
            return Err(UnknownName {
                message: say!("saved values are not available here"),
                label: Some(say!("only the steps of a session save values")),
                help: say!(
                    "use saved values only in the steps of a session, or use `vars` instead"
                ),
            });
        }
        let Some(name) = name else {
            let message = say!("the expression does not name a saved value");
            return self.unknown(message, "", self.session.saved_names(), "saved.", SAVED_HELP);
        };
        match self.session.used(name) {
            Some(slot) => Ok((Name::Slot(slot), 2)),
            None => {
                let message = say!("no step in this session saves `{}`", shorten(name));
                if let SetupNames::Known(names) = self.setup
                    && names.iter().any(|known| known == name)
                {
                    let label = Some(say!("did you mean `setup.{name}`?"));
                    return Err(UnknownName { message, label, help: SAVED_HELP });
                }
                self.unknown(message, name, self.session.saved_names(), "saved.", SAVED_HELP)
            }
        }
    }

    /// A value that the setup saved.
    fn setup(&self, name: Option<&str>) -> Resolved {
        let names = match self.setup {
            SetupNames::Known(names) => names,
            SetupNames::Broken => return answered(),
            SetupNames::None => {
                return Err(UnknownName {
                    message: say!("the scenario has no `setup`"),
                    label: Some(say!("no values are saved before the load")),
                    help: SETUP_HELP,
                });
            }
            SetupNames::Open => {
                return Err(UnknownName {
                    message: say!("values such as `setup.NAME` are not available inside `setup`"),
                    label: Some(say!("available only after the setup")),
                    help: say!("write `${{saved.NAME}}` for a value saved by an earlier step"),
                });
            }
        };
        let all = names.iter().map(String::as_str);
        let word = name.unwrap_or("");
        match all.clone().position(|known| known == word) {
            Some(slot) => Ok((Name::Setup(slot as u16), 2)),
            None => {
                let message = match name {
                    Some(name) => say!("no step of `setup` saves `{}`", shorten(name)),
                    None => say!("the name of the `setup` value is missing"),
                };
                self.unknown(message, word, all, "setup.", SETUP_HELP)
            }
        }
    }

    fn answer(&self, root: &str, part: Option<&str>) -> Resolved {
        const PARTS: [(&str, Part); 6] = [
            ("status", Part::Status),
            ("body", Part::Body),
            ("json", Part::Json),
            ("headers", Part::Headers),
            ("size", Part::Size),
            ("time", Part::Time),
        ];
        if !self.has_answer {
            return Err(UnknownName {
                message: say!("`{root}` is not available here"),
                label: Some(say!("only `check` and `save` can read the response")),
                help: say!(
                    "save the value: `save: {{name: json.data.name}}`, then write \
                     `${{saved.name}}`"
                ),
            });
        }
        let word = part.unwrap_or("");
        let of_all = |part: Part| matches!(part, Part::Body | Part::Size | Part::Time);
        match PARTS.iter().find(|(name, _)| *name == word) {
            Some((_, part)) if self.has_fields && !of_all(*part) => self.no_part(word),
            None if self.has_fields && part.is_some() => self.no_part(word),
            Some((_, part)) => Ok((Name::Answer(*part), 2)),
            None => {
                let message = match part {
                    Some(part) => say!("a response has no `{}`", shorten(part)),
                    None => say!("the expression does not name a part of the response"),
                };
                let words = PARTS.iter().map(|(name, _)| *name);
                self.unknown(message, word, words, &format!("{root}."), Said::default())
            }
        }
    }

    /// Fields of declared messages are used by name.
    fn no_part(&self, word: &str) -> Resolved {
        let word = shorten(word);
        Err(UnknownName {
            message: say!("an expression cannot read the field `{word}` of a message here"),
            label: Some(say!("a field of a declared message")),
            help: say!("write `check: {{{word}: …}}`, or save it and use `${{saved.{word}}}`"),
        })
    }

    /// A part of the received message in a handler, which is kept in a slot.
    fn heard(&mut self, path: &[&str]) -> Resolved {
        let Some(heard) = &mut self.session.heard else { return self.nothing(path) };
        if let Some(slot) = heard.slots.get(&path[1..].join(".")) {
            return Ok((Name::Slot(*slot), path.len()));
        }
        let root = path[0];
        let (extractor, used) = match &heard.kinds {
            Some(kinds) => match extractor_of(kinds, &path[1..]) {
                Ok((extractor, used)) => (extractor, used + 1),
                Err(mistake) if mistake.message.is_empty() => {
                    let message = say!("the name of a message field is missing");
                    let help = say!("write `${{{root}.id}}`");
                    return Err(UnknownName { message, label: None, help });
                }
                Err(mistake) => return Err(mistake),
            },
            None => match path.get(1).copied() {
                Some("json") => match JsonPath::parse(&path[2..].join(".")) {
                    Ok(found) if path.len() > 2 => (Extractor::Json(found), path.len()),
                    _ => (Extractor::Json(JsonPath::default()), 2),
                },
                Some("body" | "text") => (Extractor::Body, 2),
                Some("size") => (Extractor::Size, 2),
                Some("header") if heard.has_headers && path.len() > 2 => {
                    (Extractor::Header(path[2].into()), 3)
                }
                Some("topic") if heard.has_headers => (Extractor::Header("topic".into()), 2),
                word => {
                    let message = match word {
                        Some(word) => say!("a message has no `{}` here", shorten(word)),
                        None => say!("the name of a message part is missing"),
                    };
                    let words = ["json", "body", "size"].into_iter();
                    return self.unknown(
                        message,
                        word.unwrap_or(""),
                        words,
                        &format!("{root}."),
                        Said::default(),
                    );
                }
            },
        };
        let written = path[1..used].join(".");
        if let Some(slot) = heard.slots.get(&written) {
            return Ok((Name::Slot(*slot), used));
        }
        let Some(slot) = self.session.keep_heard(written, extractor) else {
            let message = say!("a session saves more than {SLOTS_MAX} values");
            return Err(UnknownName { message, label: None, help: SAVED_HELP });
        };
        Ok((Name::Slot(slot), used))
    }

    fn nothing(&self, path: &[&str]) -> Resolved {
        let name = path[0];
        let message = say!("`{}` is not defined here", shorten(name));
        let help = say!(
            "a name must start with one of these: {}",
            ROOTS.map(|root| format!("`{root}`")).join(", ")
        );
        let label = if self.session.slot_of(name).is_some() {
            Some(say!("did you mean `saved.{name}`?"))
        } else if self.vars.has(name) {
            Some(say!("did you mean `vars.{name}`?"))
        } else if !matches!(self.data.find(name), Known::No) {
            let column = path.get(1).map_or(String::new(), |column| format!(".{column}"));
            Some(say!("did you mean `data.{name}{column}`?"))
        } else if let Some(source) = self.data.with_column(name) {
            Some(say!("did you mean `data.{source}.{name}`?"))
        } else {
            let near = did_you_mean(name, ROOTS.into_iter().chain(self.session.item_names()));
            // A single word, such as `username`, is not a root.
            let is_whole = |near: &&str| path.len() > 1 || *near == "iteration";
            let is_item = |near: &&str| self.session.item_names().any(|item| item == *near);
            let near = near.filter(|near| is_whole(near) || is_item(near));
            if near.is_none() && path.len() == 1 {
                let name = shorten(name);
                let help =
                    say!("name its source: `vars.{name}`, `saved.{name}` or `data.SOURCE.{name}`");
                let label = Some(say!("unknown"));
                return Err(UnknownName { message, label, help });
            }
            near.map(|near| say!("did you mean `{near}`?"))
        };
        Err(UnknownName { message, label, help })
    }
}

/// The longest prefix of a path that is a field of a message, and its number of words.
fn extractor_of(kinds: &Kinds, path: &[&str]) -> Result<(Extractor, usize), UnknownName> {
    let mut mistake = UnknownName::default();
    for used in (1..=path.len()).rev() {
        match kinds.find(&path[..used].join(".")) {
            Ok(extractor) => return Ok((extractor, used)),
            Err(wrong) => {
                let label = Some(say!("unknown"));
                mistake = UnknownName { message: wrong.message, label, help: wrong.help };
            }
        }
    }
    Err(mistake)
}

const SETUP_HELP: Said =
    say!("save the value in `setup`: `setup: [{{http: GET /, save: {{NAME: json.id}}}}]`");

const SAVED_HELP: Said =
    say!("save it: `save: {{name: json.data.name}}`, or `- set: {{name: value}}`");
