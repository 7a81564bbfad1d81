//! `setup` and `teardown`: steps that a single user runs once per run, compiled like those of
//! sessions, with their own rows. All users see the values that the setup saves as `setup.NAME`.

use std::time::Duration;

use throng_base::Said;
use throng_program::{Failing, OnError, Once, Session};

use crate::ast;
use crate::keys;
use crate::load::Facts;
use crate::parts::Parts;
use crate::reach::Reaches;
use crate::read::{Context, Defaults, Scope};
use crate::scope::SetupNames;
use crate::steps::Compiler;
use crate::syntax::{Key, Place};
use crate::{broken_row, expressions_row};

/// The default time limit for all steps.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Reads the setup, and the values that it offers to others.
pub(crate) fn read_setup<'n>(
    cx: &mut Context<'_>,
    fields: &'n ast::Scenario<'n>,
    reaches: &Reaches,
    parts: &'n Parts<'n>,
) -> (Option<Box<Once>>, SetupNames) {
    let Some(key) = fields.setup.key() else { return (None, SetupNames::None) };
    let scope = Scope { setup: &SetupNames::Open, ..cx.scope };
    match read_once(&mut cx.scoped(scope), key, &fields.setup, reaches, parts) {
        Some(once) => {
            let names = SetupNames::Known(once.session.slots.to_vec());
            (Some(Box::new(once)), names)
        }
        None => (None, SetupNames::Broken),
    }
}

pub(crate) fn read_teardown<'n>(
    cx: &mut Context<'_>,
    fields: &'n ast::Scenario<'n>,
    reaches: &Reaches,
    parts: &'n Parts<'n>,
) -> Option<Box<Once>> {
    let key = fields.teardown.key()?;
    read_once(cx, key, &fields.teardown, reaches, parts).map(Box::new)
}

fn read_once<'n>(
    cx: &mut Context<'_>,
    key: &'n Key,
    aside: &'n ast::Aside<'n>,
    reaches: &Reaches,
    parts: &'n Parts<'n>,
) -> Option<Once> {
    let (session, timeout) = aside.content.as_ref()?;
    let time_max = match timeout {
        Some(node) => cx.time_limit(node)?,
        None => TIME_MAX,
    };
    ast::need(cx, (&keys::ONCE, session.place), *session.steps, HELP)?;
    let facts = Facts::of_one();
    let mut compiler = Compiler::new(reaches, parts, &facts);
    // A failed step ends it unless the step overrides that.
    let failing = Failing { then: OnError::Leave, ..Failing::default() };
    let defaults = Defaults { failing, ..cx.scope.defaults.clone() };
    let cx = &mut cx.scoped(Scope { defaults: &defaults, ..cx.scope });
    let read = compiler.read_all(cx, &[(key, Some(session))]);
    let expressions = expressions_row(cx, &mut compiler, &read, key.place);
    let broken = broken_row(cx, &mut compiler, reaches, key.place);
    let session: Session = read.into_iter().next()?;
    let (steps, places) = compiler.rows.finish();
    let places = places.iter().map(|place| written(cx, *place)).collect();
    Some(Once { session, steps, places, broken, expressions, time_max })
}

const HELP: Said = say!("write `setup: [{{http: POST /items, save: {{item: json.id}}}}]`");

/// `shop.yaml:7:9`
fn written(cx: &Context<'_>, place: Place) -> String {
    let source = cx.source(place);
    let (line, column) = source.line_column(place.start());
    format!("{}:{line}:{column}", source.name)
}
