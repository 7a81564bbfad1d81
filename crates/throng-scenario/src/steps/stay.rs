//! `stay`: a user on its connection, and what goes on meanwhile.

use throng_program::{Instruction, Stay, StepKind};

use crate::read::{Context, Fields};
use crate::steps::Coder;
use crate::steps::failing::read_loss;
use crate::steps::heartbeat::{Said, read_heartbeat};
use crate::steps::pause::{Wait, WaitKind};
use crate::syntax::Kind;

/// What only a connection that stays can have.
pub(super) const OF_CONNECTION: [&str; 3] = ["heartbeat", "on", "every"];

impl<'n> Coder<'_, 'n> {
    pub(super) fn stay(
        &mut self,
        cx: &mut Context<'_>,
        fields: &Fields<'n>,
    ) -> Option<Instruction> {
        let node = fields.get("stay")?;
        let forever = matches!(&node.kind, Kind::Scalar { text, .. } if text == "forever");
        let time = match forever {
            true => None,
            false => Some(cx.duration(node)?),
        };
        if let Some(time) = time {
            self.waits.push(Wait { kind: WaitKind::Stay, time, place: node.place });
        }
        let step = self.rows.row(cx, fields, StepKind::Stay, None)?;
        let failing = read_loss(cx, fields);
        let (mut heartbeat, mut handlers, mut every) = (None, Vec::new(), Vec::new());
        if !self.has_no_connection(cx, fields) {
            if let Some(node) = fields.get("heartbeat") {
                heartbeat = match read_heartbeat(cx, node, self.reach, self.rows)? {
                    Said::Own(heartbeat) => Some(*heartbeat),
                    // That of the session, of which none is sent.
                    Said::None => self.heartbeat.clone().map(|mut heartbeat| {
                        heartbeat.fault.stop_after = Some(0);
                        heartbeat
                    }),
                };
            }
            if let Some(node) = fields.get("on") {
                handlers = self.handlers(cx, node);
            }
            if let Some(node) = fields.get("every") {
                every = self.every(cx, node);
            }
        }
        let stay = Stay { step, link: 0, time, heartbeat, handlers, every, failing };
        Some(Instruction::Stay(Box::new(stay)))
    }

    /// Users of HTTP have no connection on which something could be said; this says so.
    pub(super) fn has_no_connection(&self, cx: &mut Context<'_>, fields: &Fields<'_>) -> bool {
        let Some(scheme) = self.reach.scheme.filter(|_| self.reach.is_http()) else {
            return false;
        };
        for name in OF_CONNECTION {
            let Some(key) = fields.key(name) else { continue };
            let message = format!("`{name}` does not go with a `{}` target", scheme.word());
            let error = cx.error("step-scheme", message, key.place);
            let error = error.label(format!("the target is `{}://`", scheme.word()));
            cx.note(error.help("it needs a target with `ws://`, `wss://`, `tcp://` or `tls://`"));
        }
        true
    }
}
