//! Replies and pushes of several packets: a message that continues must be one of them, and have an
//! end.

use super::Finder;
use crate::framed::declaration::{Field, Framing, Message, More, Role};
impl Finder<'_> {
    /// Whether it is a push of several packets.
    pub(super) fn is_long_push(&self, name: &str) -> bool {
        let mut messages = self.declaration.messages.iter();
        messages.any(|one| one.name.value == name && one.push && one.more.is_some())
    }

    /// A message that continues must be a reply or a push, and have an end.
    pub(super) fn parts(&mut self, message: &Message) {
        let declaration = self.declaration;
        let (name, place) = (&message.name.value, message.name.place);
        let answers = |one: &&Message| one.answers.iter().any(|answered| answered.value == *name);
        let is_long_push = message.push && declaration.messages.iter().any(|one| answers(&one));
        if message.more.is_some() && message.answers.is_empty() && !is_long_push {
            let text = say!("`{name}` has `more`, but it is not a reply");
            let help = say!(
                "add `answers`, or remove `more`; the other packets of a push have its name in \
                 `answers`"
            );
            self.say("protocol-bad-reply", place, text, say!("not a reply"), help);
        }
        let is_length = |field: &Field| matches!(field.role, Role::Length { .. });
        let is_whole = matches!(declaration.framing, Framing::Length)
            && !declaration.packet.iter().any(is_length);
        if message.more.is_some() && is_long_push && is_whole {
            let text = say!("the packets of `{name}` do not say where they end");
            let help = say!("add a length field, a delimiter, or `frame: fields`");
            self.say("protocol-bad-reply", place, text, say!("a push of several packets"), help);
        }
        let mut replies = declaration.messages.iter().filter(answers);
        let mut others = replies.clone();
        let ends = |one: &Message| one.more != Some(More::Always);
        if let (Some(part), false) = (replies.next(), others.any(ends)) {
            let text = say!("a reply to `{name}` never ends");
            let help = say!("declare a message without `more` that answers `{name}`");
            let label = say!("every message that answers this one has `more: true`");
            let other = (part.name.place, say!("one of these messages"));
            self.say("protocol-bad-reply", place, text, label, help).other = Some(other);
        }
    }
}
