//! `parallel`: concurrent branches of a user, such as a page and its resources. Each branch is a
//! body, like a handler.

use throng_base::Said;
use throng_program::{Block, Statement, StepKind};

use crate::ast;
use crate::read::Context;
use crate::steps::Coder;
use crate::steps::background::Inside;
use crate::steps::rest::Flow;
use crate::syntax::Node;

const HELP: Said =
    say!("write `- parallel: [[{{http: GET /a}}], [{{http: GET /b}}, {{http: GET /c}}]]`");

/// Maximum number of branches of a step, and of connections of a user to one target.
const BRANCHES_MAX: usize = 100;
const WIDTH_MAX: u64 = 100;

impl<'n> Coder<'_, 'n> {
    pub(super) fn parallel(&mut self, cx: &mut Context<'_>, fields: &ast::Parallel<'n>) -> Flow {
        let Some(node) = fields.parallel.node() else { return Flow::UNKNOWN };
        let Some(branches) = &fields.parallel.content else { return Flow::UNKNOWN };
        if node.is_empty() {
            cx.empty(node.place, say!("there are no branches"), HELP);
            return Flow::UNKNOWN;
        }
        if let Some(branch) = branches.list.get(BRANCHES_MAX) {
            let help = say!("put steps that do not need to run at the same time into one branch");
            cx.too_many(branch.place, say!("more than {BRANCHES_MAX} branches"), help);
        }
        if let Some(max) = fields.max.node().and_then(|node| read_max(cx, node)) {
            self.links.width = self.links.width.max(Some(max));
        }
        let step = fields.name.node().and_then(|node| {
            let name = cx.text(node, say!("the name of the transaction"))?;
            self.rows.labelled(cx, StepKind::Transaction, &name, fields)
        });
        let (mut all, mut flow) = (Vec::new(), Flow::NOTHING);
        for branch in branches.list.iter().take(BRANCHES_MAX) {
            let (body, one) = self.body(cx, Some(branch), Block::new(), Inside::Parallel);
            all.push(body.steps);
            flow = flow.beside(one);
        }
        let parallel = Statement::Parallel(all);
        self.block.push(match step {
            Some(step) => Statement::Transaction { step, steps: vec![parallel] },
            None => parallel,
        });
        flow
    }
}

fn read_max(cx: &mut Context<'_>, node: &Node) -> Option<u8> {
    match cx.count(node)? {
        0 => {
            cx.bad_value(node, say!("at least one connection is required"), say!("write `max: 6`"))
        }
        count if count > WIDTH_MAX => {
            cx.bad_value(node, say!("too many connections for one user"), say!("write `max: 6`"))
        }
        count => Some(count as u8),
    }
}
