//! Replies and pushes of several packets: a message that continues must be one of them, and have an
//! end.

use super::Finder;
use crate::framed::declaration::{
    Field, Format, Framing, Message, MessageKind, More, PlaceId, Placed, Role,
};

impl Finder<'_> {
    /// Documents that determine their own end are binary or XML; the element around all of them has
    /// a name.
    pub(super) fn documents(&mut self, root: Option<&Placed<String>>, place: PlaceId) {
        let format = self.declaration.format;
        if format.is_some_and(Format::is_binary) {
            return;
        }
        if format != Some(Format::Xml) {
            let text = say!("`frame: xml` requires `format: xml`");
            let help = say!("add `format: xml`, or use another framing");
            let label = say!("packets are not elements");
            self.say("protocol-no-length", place, text, label, help);
            return;
        }
        let Some(root) = root else { return };
        let name = &root.value;
        let messages = self.declaration.messages.iter();
        let mut kinds = messages.filter_map(|message| message.kind.as_ref());
        let is_it =
            |kind: &Placed<MessageKind>| kind.value == MessageKind::Text(name.as_bytes().to_vec());
        if !kinds.any(is_it) {
            let text = say!("no message has the kind `{name}`, which is the `stream`");
            let help = say!("write the name of an element that is the `kind` of a message");
            self.say("protocol-bad-kind", root.place, text, say!("no such element"), help);
        }
    }

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
