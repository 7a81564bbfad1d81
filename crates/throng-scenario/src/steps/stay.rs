//! `stay`: a user keeps its connection open, with handlers and a heartbeat.

use std::sync::Arc;

use throng_program::{Heartbeat, Statement, Stay, StepKind};

use crate::ast;
use crate::read::Context;
use crate::step::failing::read_loss;
use crate::step::via::Via;
use crate::steps::Coder;
use crate::steps::ends::read_ends;
use crate::steps::heartbeat::{Setting, read_heartbeat};
use crate::steps::links::which_connection;
use crate::steps::pause::{Wait, WaitKind};
use crate::syntax::{Kind, Node, Place};

impl<'n> Coder<'_, 'n> {
    pub(super) fn stay(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Stay<'n>,
    ) -> Option<Statement> {
        let node = fields.stay.node()?;
        if self.inside.is_none() {
            self.links.stay_needs_open(cx, fields);
        }
        let forever = matches!(&node.kind, Kind::Scalar { text, .. } if text == "forever");
        let time = match forever {
            true => None,
            false => Some(cx.duration(node)?),
        };
        if let Some(time) = time {
            self.waits.push(Wait { kind: WaitKind::Stay, time, place: node.place });
        }
        let step = self.rows.row(cx, fields, StepKind::Stay, None)?;
        let failing = read_loss(cx, fields.on_error);
        let (mut heartbeat, mut handlers, mut every) = (None, Vec::new(), Vec::new());
        let link = self.links.only_lasting().or_else(|| self.links.first_named(&fields.on));
        if let Some(node) = self.links.of_connection(cx, fields.heartbeat) {
            let Some(link) = link else {
                let help = say!("write it in the `connect` step that opens the connection");
                return which_connection(cx, node.place, help);
            };
            heartbeat = self.heartbeat_of_stay(cx, node, self.links.via(usize::from(link)))?;
        }
        if let Some(node) = self.links.of_connection(cx, *fields.on)
            && let Some(items) = &fields.on.content
        {
            for (from, handler) in self.handlers(cx, items, self.links.only_lasting()) {
                one_only(cx, link, from, node.place);
                handlers.push(handler);
            }
        }
        if self.links.of_connection(cx, *fields.every).is_some()
            && let Some(items) = &fields.every.content
        {
            every = self.every(cx, items);
        }
        // Without its own keys it applies to no particular connection.
        let first = || self.links.lasting().next().map_or(0, |(number, _)| number);
        let link = link.unwrap_or_else(first);
        let ends = match self.links.of_connection(cx, fields.ends) {
            Some(node) => Some(read_ends(cx, node, self.links.via(usize::from(link)).reach)?),
            None => None,
        };
        let awaits_end = false;
        let stay = Stay { step, link, time, ends, awaits_end, heartbeat, handlers, every, failing };
        Some(Statement::Stay(Arc::new(stay)))
    }

    fn heartbeat_of_stay(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
        via: Via<'_>,
    ) -> Option<Option<Heartbeat>> {
        let rows = &mut *self.rows;
        let said =
            cx.speaking(&via.reach.spoken, |cx| read_heartbeat(cx, node, via.reach, rows))?;
        Some(match said {
            Setting::Own(heartbeat) => Some(*heartbeat),
            // The heartbeat of the connection, which is turned off.
            Setting::None => {
                let usual = self.links.opened(via.link).heartbeat.clone();
                usual.map(|mut heartbeat| {
                    heartbeat.fault.stop_after = Some(0);
                    heartbeat
                })
            }
        })
    }
}

/// All handlers of a `stay` use one connection.
fn one_only(cx: &mut Context<'_>, link: Option<u8>, from: u8, place: Place) {
    if link == Some(from) {
        return;
    }
    let message = say!("a `stay` step listens on only one connection");
    let label = say!("these messages arrive on several connections");
    let help = say!("write `on` in the session, or in the `connect` steps");
    cx.report("which-connection", place, message, label, help);
}
