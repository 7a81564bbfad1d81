//! Headers that a session gives to all its requests. One with a saved value, such as a token, is
//! sent from the first step on behind the one that saves it.

use throng_expression::Expression;
use throng_program::{Instruction, Segment, Text};

use crate::headers::{self, Headers};
use crate::read::Context;
use crate::syntax::Node;

/// What a session says for all its steps.
pub(super) struct Shared {
    headers: Headers,
    /// The defaults that it overrides, put back when it is over.
    outer: Headers,
}

impl Shared {
    /// Reads the headers of a session whose names are known.
    pub(super) fn read(cx: &mut Context<'_>, node: Option<&Node>) -> Shared {
        let read = |node| cx.in_time(|cx| headers::read_headers(cx, node));
        let headers = node.map(read).unwrap_or_default();
        let outer = cx.defaults.headers.clone();
        cx.defaults.headers.retain(|(name, _)| !headers::has(&headers, name));
        Shared { headers, outer }
    }

    /// Adds the headers to every request that does not set them itself.
    pub(super) fn finish(self, cx: &mut Context<'_>, code: &mut [Instruction]) {
        cx.defaults.headers = self.outer;
        let mut saved: Vec<u16> = Vec::new();
        for instruction in code.iter_mut().filter(|_| !self.headers.is_empty()) {
            let own = match &mut *instruction {
                Instruction::Http(http) => Some(&mut http.headers),
                Instruction::Connect(connect) => Some(&mut connect.headers),
                _ => None,
            };
            if let Some(own) = own {
                for (name, value) in &self.headers {
                    if !headers::has(own, name) && is_known(value, &saved) {
                        own.push((name.clone(), value.clone()));
                    }
                }
            }
            saved.extend(instruction.keeps());
        }
    }
}

/// Whether all saved values that a text needs are there.
fn is_known(text: &Text, saved: &[u16]) -> bool {
    let needs = |value: &Expression| value.slots().needed;
    text.segments.iter().all(|segment| match segment {
        Segment::Literal(_) => true,
        Segment::Value { value, .. } => needs(value).iter().all(|slot| saved.contains(slot)),
    })
}
