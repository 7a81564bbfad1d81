//! Checks a response, and saves values from it.
//!
//! - this module: the order of checks, and what is read only once;
//! - [`headers`]: checks that run when the head of an HTTP response arrives, because it is not
//!   kept;
//! - [`near`]: suggestions for a selector that finds nothing, for `throng try`;
//! - [`matcher`]: whether a value is as expected, and the message if not.

mod headers;
mod matcher;
mod near;

use throng_expression::{EvaluationError, Value};
use throng_extract::NotJson;
use throng_metrics::Cause;
use throng_program::{Check, Extractor, Matcher, Save, Which};
use throng_protocol::framed::Packet;
use throng_protocol::machine::Field;

use throng_base::Said;

use crate::failure::{Finding, shown};
use crate::looked::{Looked, not_json, number_of, text_of, value_of};
use crate::prepared::check_plan::CheckPlan;
use crate::scope::UserScope;
pub(crate) use headers::look_at_headers;
use matcher::{Wanted, explained};

impl CheckPlan {
    /// Runs all checks, and saves values if they hold.
    pub(crate) fn judge(
        &self,
        checks: &[Check],
        saves: &[Save],
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> Result<(), Finding> {
        // Without a check of the status, an error status of the protocol is a failure.
        if let Some(status @ 400..1_000) = looked.status
            && !checks.iter().any(|check| check.status().is_some())
        {
            let detail = say!("expected a status below 400, got {status}");
            return Err((Cause::StatusUnexpected, detail));
        }
        if checks.is_empty() && saves.is_empty() {
            return Ok(());
        }
        let shard = scope.shard;
        let mut found = shard.found.borrow_mut();
        let mut looking = Looking { check_plan: self, looked, found: &mut found, read: None };
        let judged = match looking.check(checks, scope) {
            Ok(()) => looking.save(saves, checks.len(), scope),
            failed => failed,
        };
        found.clear();
        judged
    }

    /// Whether a message is one of these: its kind is meant, and every check holds.
    pub(crate) fn takes(
        &self,
        which: &Which,
        looked: &Looked<'_>,
        packet: Option<Packet>,
        scope: &mut UserScope<'_>,
    ) -> bool {
        let kinds = &which.messages;
        let is_meant = |packet: Packet| kinds.contains(&packet.message);
        (kinds.is_empty() || packet.is_some_and(is_meant))
            && self.fits(&which.checks, looked, scope)
    }

    /// Whether a message is the one that is waited for: every check holds. A mismatch is not a
    /// failure, and is not reported.
    pub(crate) fn fits(
        &self,
        checks: &[Check],
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> bool {
        if checks.is_empty() {
            return true;
        }
        let shard = scope.shard;
        let mut found = shard.found.borrow_mut();
        let mut looking = Looking { check_plan: self, looked, found: &mut found, read: None };
        let fits = checks.iter().enumerate().all(|(index, check)| {
            let all = matches!(check.matcher, Matcher::Count(..));
            let holds = looking.see(index, &check.extractor, all, scope).and_then(|seen| {
                Ok(Wanted::of(&check.matcher, looked, scope)?.holds(&check.extractor, &seen))
            });
            holds.unwrap_or(false)
        });
        found.clear();
        fits
    }
}

/// The state of checking one response.
struct Looking<'a> {
    check_plan: &'a CheckPlan,
    looked: &'a Looked<'a>,
    /// The values at the paths of `check_plan`, once it is read.
    found: &'a mut Vec<Option<Value>>,
    read: Option<Result<(), NotJson>>,
}

/// The result of a selector.
#[derive(Debug)]
pub(crate) enum Extracted<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Value(Value),
    /// All that was found.
    Values(Vec<Value>),
    /// It could not be searched, for this reason.
    Unreadable(Said),
}

impl Extracted<'_> {
    fn is_nothing(&self) -> bool {
        match self {
            Extracted::Nothing => true,
            Extracted::Values(values) => values.is_empty(),
            Extracted::Bytes(_) | Extracted::Value(_) | Extracted::Unreadable(_) => false,
        }
    }
}

impl<'a> Looking<'a> {
    fn check(&mut self, checks: &[Check], scope: &mut UserScope<'_>) -> Result<(), Finding> {
        let mut failed: Option<Finding> = None;
        let before = self.looked.kept.map_or(&[][..], |kept| &kept.findings);
        for (index, check) in checks.iter().enumerate() {
            let finding = match &check.extractor {
                // Checked when the head arrived.
                Extractor::Header(_) if self.looked.whole.is_none() => {
                    let finding = before.iter().find(|(at, _)| usize::from(*at) == index);
                    finding.map(|(_, finding)| finding.clone())
                }
                _ => self.finding(index, check, scope),
            };
            let Some((cause, detail)) = finding else { continue };
            match &mut failed {
                None => failed = Some((cause, detail)),
                Some((_, details)) => *details = say!("{}; {detail}", &*details),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The failure of a check, if it does not hold.
    fn finding(
        &mut self,
        index: usize,
        check: &Check,
        scope: &mut UserScope<'_>,
    ) -> Option<Finding> {
        let all = matches!(check.matcher, Matcher::Count(..));
        let good = self.see(index, &check.extractor, all, scope).and_then(|seen| {
            let wanted = Wanted::of(&check.matcher, self.looked, scope)?;
            Ok(match wanted.holds(&check.extractor, &seen) {
                true => None,
                false => {
                    if seen.is_nothing() {
                        near::tell(&check.extractor, self.looked, scope);
                    }
                    Some(explained(check, &wanted, &seen, self.looked))
                }
            })
        });
        good.unwrap_or_else(|error| Some(scope.finding(error)))
    }

    fn see(
        &mut self,
        index: usize,
        extractor: &Extractor,
        all: bool,
        scope: &mut UserScope<'_>,
    ) -> Result<Extracted<'a>, EvaluationError> {
        let looked = self.looked;
        let document = &looked.document;
        let bytes = document.bytes();
        let one = |value: Option<Value>| value.map_or(Extracted::Nothing, Extracted::Value);
        Ok(match extractor {
            Extractor::Status => match looked.status {
                // Sets of statuses contain the numbers that record files use.
                Some(status) => Extracted::Value(Value::Int(i64::from(status))),
                None => Extracted::Nothing,
            },
            Extractor::Header(name) => match looked.said(name) {
                Some(Field::Bytes(bytes)) => Extracted::Bytes(bytes),
                Some(field) => Extracted::Value(value_of(field)),
                None => Extracted::Nothing,
            },
            Extractor::Cookie(name) => {
                let value = looked.cookies.as_ref().and_then(|cookies| cookies.value(name));
                value.map_or(Extracted::Nothing, Extracted::Bytes)
            }
            Extractor::Body => Extracted::Bytes(bytes),
            Extractor::Json(path) => match (self.check_plan.paths.is_some(), all) {
                (true, _) => self.see_field(index),
                (false, _) if document.json().is_none() => {
                    Extracted::Unreadable(not_json(document))
                }
                (false, true) => match path.parts() {
                    // A path to a single value: the items of a list are counted.
                    Some(_) => one(path.first_in(document)),
                    None => Extracted::Values(path.all_in(document)),
                },
                (false, false) => one(path.first_in(document)),
            },
            Extractor::XPath(path) if all => Extracted::Values(path.all(document.page())),
            Extractor::Css(selector) if all => Extracted::Values(selector.all(document.page())),
            Extractor::Pattern(pattern) if all => Extracted::Values(pattern.all(bytes)),
            Extractor::Size => {
                let size = looked.tally.map_or(bytes.len() as u64, |tally| tally.bytes);
                Extracted::Value(Value::Int(size as i64))
            }
            Extractor::Time => Extracted::Value(Value::Float(looked.elapsed.as_nanos() as f64)),
            Extractor::Digest(digest) => {
                let digits = looked.tally.and_then(|tally| tally.digits(*digest));
                let digits = digits.unwrap_or_else(|| digest.of(bytes));
                Extracted::Value(Value::Text(digits.into()))
            }
            Extractor::Expression(expression) => {
                Extracted::Value(scope.with(looked, |scope| expression.evaluate(scope))?)
            }
            simple => one(looked.simple(simple)),
        })
    }

    /// A JSON field; all are read in one pass when the first is needed.
    fn see_field(&mut self, index: usize) -> Extracted<'a> {
        let (Some(paths), Some(Some(place))) =
            (&self.check_plan.paths, self.check_plan.places.get(index))
        else {
            return Extracted::Nothing;
        };
        let read = self.read.get_or_insert_with(|| {
            self.found.resize(paths.paths().len(), None);
            paths.read(self.looked.document.bytes(), self.found)
        });
        match read {
            Ok(()) => {
                self.found[usize::from(*place)].clone().map_or(Extracted::Nothing, Extracted::Value)
            }
            Err(_) => Extracted::Unreadable(not_json(&self.looked.document)),
        }
    }

    /// Saves values for later steps; `first` is the number of the first save among checks and
    /// saves.
    fn save(
        &mut self,
        saves: &[Save],
        first: usize,
        scope: &mut UserScope<'_>,
    ) -> Result<(), Finding> {
        for (index, save) in saves.iter().enumerate() {
            let value = match &save.extractor {
                Extractor::Header(_) if self.looked.whole.is_none() => {
                    self.looked.kept.and_then(|kept| kept.picked(index))
                }
                // A status and a time are saved as expressions see them.
                Extractor::Status => self.looked.status.map(number_of),
                Extractor::Time => Some(Value::Float(self.looked.elapsed.as_secs_f64() * 1e3)),
                extractor => {
                    let seen = self.see(first + index, extractor, save.all, scope);
                    kept(seen.map_err(|error| scope.finding(error))?, save.all)
                }
            };
            let value = match (value, &save.default) {
                (Some(value), _) => value,
                (None, Some(default)) => scope
                    .with(self.looked, |scope| default.value(scope))
                    .map_err(|error| scope.finding(error))?,
                (None, None) => return Err(self.not_saved(save, scope)),
            };
            let shard = scope.shard;
            scope.memory().save(save.slot, value, &shard.prepared);
        }
        Ok(())
    }

    fn not_saved(&self, save: &Save, scope: &UserScope<'_>) -> Finding {
        near::tell(&save.extractor, self.looked, scope);
        let name = scope.slot_name(save.slot);
        let what = matcher::name_of(&save.extractor);
        let body = shown(self.looked.document.bytes());
        let detail = match &save.extractor {
            Extractor::Header(header) => {
                say!("`{name}` was not saved: the header `{header}` is missing")
            }
            Extractor::Cookie(cookie) => {
                say!("`{name}` was not saved: the user has no cookie `{cookie}` for this host")
            }
            _ => say!("`{name}` was not saved: {what} was not found in `{body}`"),
        };
        (Cause::SaveFailed, detail)
    }
}

/// The value that is saved.
fn kept(seen: Extracted<'_>, all: bool) -> Option<Value> {
    match seen {
        Extracted::Nothing | Extracted::Unreadable(_) => None,
        Extracted::Bytes(bytes) => Some(text_of(bytes)),
        Extracted::Value(value) if all => Some(Value::List([value].into())),
        Extracted::Value(value) => Some(value),
        Extracted::Values(values) if values.is_empty() => None,
        Extracted::Values(values) => Some(Value::List(values.into())),
    }
}
