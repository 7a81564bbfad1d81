//! `churn`: users that disconnect and reconnect during a phase.

use throng_base::Said;
use throng_program::{Amount, Churn, CloseMode, Coming, Drive, Scheme, Users};

use crate::ast;
use crate::load::no_users;
use crate::load::rate::positive_rate;
use crate::read::Context;
use crate::syntax::{Kind, Node, Place};

const HELP: Said = say!("write `churn: {{share: 20%, every: 10s, how: [fin, reset, vanish]}}`");

/// The close mode of a connection.
pub(crate) fn read_close_mode(cx: &mut Context<'_>, node: &Node) -> Option<CloseMode> {
    cx.word(node, &CloseMode::ALL.map(|close_mode| (close_mode.word(), close_mode)))
}

/// Reads `churn`, and the place of its rate; `before` is the number of users when the phase begins.
pub(super) fn read_churn(
    cx: &mut Context<'_>,
    fields: &ast::Phase<'_>,
    node: &Node,
    scheme: Option<Scheme>,
    drive: &Drive,
    before: u64,
) -> Option<(Churn, Place)> {
    let place = fields.churn.place_or(node.place);
    let churn = read_amount(cx, node);
    if let Some(scheme) = scheme {
        let message = say!("`churn` is not supported with `{}` targets", scheme.word());
        let label = say!("no user keeps a connection open");
        let help = say!(
            "`churn` requires a target with `ws://`, `wss://`, `tcp://` or `tls://`, and users \
             that stay connected"
        );
        return cx.refuse("step-scheme", place, message, label, help);
    }
    match drive {
        Drive::Arrivals(_) => {
            let message = say!("`arrivals` and `churn` cannot be used together");
            let label = say!("no user stays connected");
            let help = say!(
                "users from `arrivals` leave after one session; use `users` for users \
                 that stay"
            );
            return cx.refuse("conflicting-keys", place, message, label, help);
        }
        Drive::Hold if before == 0 => {
            return no_users(cx, place, say!("there are no users yet to disconnect"));
        }
        Drive::Users(Users { to: 0, .. }) if before == 0 => return None,
        Drive::Hold | Drive::Users(Users { coming: Coming::AtOnce, .. }) => {
            fields.need(
                cx,
                fields.r#for,
                say!("write the duration: `{{churn: 500/s, for: 10m}}`"),
            )?;
        }
        _ => {}
    }
    churn.map(|churn| (churn, place_of_time(node)))
}

/// The place of `every` or of the rate.
fn place_of_time(node: &Node) -> Place {
    node.get("every").or_else(|| node.get("rate")).unwrap_or(node).place
}

fn read_amount(cx: &mut Context<'_>, node: &Node) -> Option<Churn> {
    if !matches!(node.kind, Kind::Map(_)) {
        if cx.text(node, say!("a rate"))?.trim().ends_with('%') {
            return cx.bad_value(
                node,
                say!("a share also requires `every`, the interval between disconnects"),
                HELP,
            );
        }
        let amount = Amount::Rate(positive_rate(cx, node)?);
        return Some(Churn { amount, ways: vec![CloseMode::Fin] });
    }
    let fields = ast::Churn::read(cx, node)?;
    let ways = fields.how.node().map_or(Some(vec![CloseMode::Fin]), |node| read_ways(cx, node));
    let amount = match ast::one_of(cx, &[fields.share, fields.rate]) {
        Some((key, node)) if fields.share.is(key) => {
            let share = read_share(cx, node);
            let every = fields.need(cx, fields.every, HELP).and_then(|node| cx.time_limit(node));
            share.zip(every).map(|(share, every)| Amount::Share { share, every })
        }
        Some((_, node)) => {
            if let Some(every) = fields.every.key().filter(|_| fields.share.node().is_none()) {
                let message = say!("`rate` and `every` cannot be used together");
                let label = say!("`every` requires `share`");
                cx.report("conflicting-keys", every.place, message, label, HELP);
            }
            positive_rate(cx, node).map(Amount::Rate)
        }
        None => fields.need(cx, fields.share, HELP).and(None),
    };
    Some(Churn { amount: amount?, ways: ways? })
}

fn read_share(cx: &mut Context<'_>, node: &Node) -> Option<f64> {
    let share = cx.share(node)?;
    match share {
        share if share <= 0.0 => {
            cx.bad_value(node, say!("with a share of zero, no users disconnect"), HELP)
        }
        share if share > 1.0 => {
            cx.bad_value(node, say!("more than 100%"), say!("write at most `100%`"))
        }
        share => Some(share),
    }
}

/// One close mode, or several in turn.
fn read_ways(cx: &mut Context<'_>, node: &Node) -> Option<Vec<CloseMode>> {
    let items = cx.some_items(node, say!("the list of close modes is empty"), HELP)?;
    let ways: Vec<Option<CloseMode>> = items.iter().map(|item| read_close_mode(cx, item)).collect();
    ways.into_iter().collect()
}
