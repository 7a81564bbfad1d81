//! Checks a response, and saves values from it.
//!
//! - this module: the order of checks, and what is read only once;
//! - [`headers`]: checks that run when the head of an HTTP response arrives, because it is not
//!   kept;
//! - [`near`]: suggestions for a selector that finds nothing, for `throng try`;
//! - [`want`]: whether a value is as expected, and the message if not.

mod headers;
mod near;
mod want;

use throng_expression::{Fault, Value};
use throng_extract::NotJson;
use throng_metrics::Cause;
use throng_program::{Check, Pick, Save, Want};
use throng_protocol::machine::Field;

use throng_base::Said;

use crate::failure::{Finding, shown};
use crate::looked::{Looked, not_json, number_of, text_of, value_of};
use crate::prepared::look::Look;
use crate::scope::UserScope;
pub(crate) use headers::look_at_headers;
use want::{Wanted, explained};

impl Look {
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
        let mut looking = Looking { look: self, looked, found: &mut found, read: None };
        let judged = match looking.check(checks, scope) {
            Ok(()) => looking.save(saves, checks.len(), scope),
            failed => failed,
        };
        found.clear();
        judged
    }
}

impl Look {
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
        let mut looking = Looking { look: self, looked, found: &mut found, read: None };
        let fits = checks.iter().enumerate().all(|(index, check)| {
            let all = matches!(check.want, Want::Count(..));
            let holds = looking.see(index, &check.pick, all, scope).and_then(|seen| {
                Ok(Wanted::of(&check.want, looked, scope)?.holds(&check.pick, &seen))
            });
            holds.unwrap_or(false)
        });
        found.clear();
        fits
    }
}

/// The state of checking one response.
struct Looking<'a> {
    look: &'a Look,
    looked: &'a Looked<'a>,
    /// The values at the paths of `look`, once it is read.
    found: &'a mut Vec<Option<Value>>,
    read: Option<Result<(), NotJson>>,
}

/// The result of a selector.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Value(Value),
    /// All that was found.
    Values(Vec<Value>),
    /// It could not be searched, for this reason.
    Unreadable(Said),
}

impl Seen<'_> {
    fn is_nothing(&self) -> bool {
        match self {
            Seen::Nothing => true,
            Seen::Values(values) => values.is_empty(),
            Seen::Bytes(_) | Seen::Value(_) | Seen::Unreadable(_) => false,
        }
    }
}

impl<'a> Looking<'a> {
    fn check(&mut self, checks: &[Check], scope: &mut UserScope<'_>) -> Result<(), Finding> {
        let mut failed: Option<Finding> = None;
        let before = self.looked.kept.map_or(&[][..], |kept| &kept.findings);
        for (index, check) in checks.iter().enumerate() {
            let finding = match &check.pick {
                // Checked when the head arrived.
                Pick::Header(_) if self.looked.whole.is_none() => {
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
        let all = matches!(check.want, Want::Count(..));
        let good = self.see(index, &check.pick, all, scope).and_then(|seen| {
            let wanted = Wanted::of(&check.want, self.looked, scope)?;
            Ok(match wanted.holds(&check.pick, &seen) {
                true => None,
                false => {
                    if seen.is_nothing() {
                        near::tell(&check.pick, self.looked, scope);
                    }
                    Some(explained(check, &wanted, &seen, self.looked))
                }
            })
        });
        good.unwrap_or_else(|fault| Some(scope.finding(fault)))
    }

    fn see(
        &mut self,
        index: usize,
        pick: &Pick,
        all: bool,
        scope: &mut UserScope<'_>,
    ) -> Result<Seen<'a>, Fault> {
        let looked = self.looked;
        let document = &looked.document;
        let bytes = document.bytes();
        let one = |value: Option<Value>| value.map_or(Seen::Nothing, Seen::Value);
        Ok(match pick {
            Pick::Status => match looked.status {
                // Sets of statuses contain the numbers that record files use.
                Some(status) => Seen::Value(Value::Int(i64::from(status))),
                None => Seen::Nothing,
            },
            Pick::Header(name) => match looked.said(name) {
                Some(Field::Bytes(bytes)) => Seen::Bytes(bytes),
                Some(field) => Seen::Value(value_of(field)),
                None => Seen::Nothing,
            },
            Pick::Result(name) => one(looked.said(name).map(value_of)),
            Pick::Cookie(name) => {
                let value = looked.cookies.as_ref().and_then(|cookies| cookies.value(name));
                value.map_or(Seen::Nothing, Seen::Bytes)
            }
            Pick::Body => Seen::Bytes(bytes),
            Pick::Json(path) => match (self.look.paths.is_some(), all) {
                (true, _) => self.see_field(index),
                (false, _) if document.json().is_none() => Seen::Unreadable(not_json(document)),
                (false, true) => match path.parts() {
                    // A path to a single value: the items of a list are counted.
                    Some(_) => one(path.first_in(document)),
                    None => Seen::Values(path.all_in(document)),
                },
                (false, false) => one(path.first_in(document)),
            },
            Pick::Field(paths) => one(looked.field(paths)),
            Pick::Kind(kinds, _) => one(looked.kind(kinds)),
            Pick::Proto(path) => one(looked.proto_field(path)),
            Pick::XPath(path) if all => Seen::Values(path.all(document.page())),
            Pick::XPath(path) => one(path.first(document.page())),
            Pick::Css(selector) if all => Seen::Values(selector.all(document.page())),
            Pick::Css(selector) => one(selector.first(document.page())),
            Pick::Pattern(pattern) if all => Seen::Values(pattern.all(bytes)),
            Pick::Pattern(pattern) => one(pattern.first(bytes)),
            Pick::Size => {
                let size = looked.tally.map_or(bytes.len() as u64, |tally| tally.bytes);
                Seen::Value(Value::Int(size as i64))
            }
            Pick::Time => Seen::Value(Value::Float(looked.elapsed.as_nanos() as f64)),
            Pick::Digest(digest) => {
                let digits = looked.tally.and_then(|tally| tally.digits(*digest));
                let digits = digits.unwrap_or_else(|| digest.of(bytes));
                Seen::Value(Value::Text(digits.into()))
            }
            Pick::Expression(expression) => {
                Seen::Value(scope.with(looked, |scope| expression.evaluate(scope))?)
            }
        })
    }

    /// A JSON field; all are read in one pass when the first is needed.
    fn see_field(&mut self, index: usize) -> Seen<'a> {
        let (Some(paths), Some(Some(place))) = (&self.look.paths, self.look.places.get(index))
        else {
            return Seen::Nothing;
        };
        let read = self.read.get_or_insert_with(|| {
            self.found.resize(paths.paths().len(), None);
            paths.read(self.looked.document.bytes(), self.found)
        });
        match read {
            Ok(()) => self.found[usize::from(*place)].clone().map_or(Seen::Nothing, Seen::Value),
            Err(_) => Seen::Unreadable(not_json(&self.looked.document)),
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
            let value = match &save.pick {
                Pick::Header(_) if self.looked.whole.is_none() => {
                    self.looked.kept.and_then(|kept| kept.picked(index))
                }
                // A status and a time are saved as expressions see them.
                Pick::Status => self.looked.status.map(number_of),
                Pick::Time => Some(Value::Float(self.looked.elapsed.as_secs_f64() * 1e3)),
                pick => {
                    let seen = self.see(first + index, pick, save.all, scope);
                    kept(seen.map_err(|fault| scope.finding(fault))?, save.all)
                }
            };
            let value = match (value, &save.default) {
                (Some(value), _) => value,
                (None, Some(default)) => scope
                    .with(self.looked, |scope| default.value(scope))
                    .map_err(|fault| scope.finding(fault))?,
                (None, None) => return Err(self.not_saved(save, scope)),
            };
            let shard = scope.shard;
            scope.memory().save(save.slot, value, &shard.prepared);
        }
        Ok(())
    }

    fn not_saved(&self, save: &Save, scope: &UserScope<'_>) -> Finding {
        near::tell(&save.pick, self.looked, scope);
        let name = scope.slot_name(save.slot);
        let what = want::name_of(&save.pick);
        let body = shown(self.looked.document.bytes());
        let detail = match &save.pick {
            Pick::Header(header) => {
                say!("`{name}` was not saved: the header `{header}` is missing")
            }
            Pick::Cookie(cookie) => {
                say!("`{name}` was not saved: the user has no cookie `{cookie}` for this host")
            }
            _ => say!("`{name}` was not saved: {what} was not found in `{body}`"),
        };
        (Cause::SaveFailed, detail)
    }
}

/// The value that is saved.
fn kept(seen: Seen<'_>, all: bool) -> Option<Value> {
    match seen {
        Seen::Nothing | Seen::Unreadable(_) => None,
        Seen::Bytes(bytes) => Some(text_of(bytes)),
        Seen::Value(value) if all => Some(Value::List([value].into())),
        Seen::Value(value) => Some(value),
        Seen::Values(values) if values.is_empty() => None,
        Seen::Values(values) => Some(Value::List(values.into())),
    }
}
