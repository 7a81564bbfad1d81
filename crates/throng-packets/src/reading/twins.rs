//! Matches replies with requests if the declaration has no correlation field: fields with the same
//! name in both, such as a packet ID.

use throng_protocol::framed::declaration::{Message, Type};
use throng_protocol::framed::{Decoded, FieldPath, Packet, Protocol};

/// A field of both messages: the number of its name, and its value in one packet.
pub(super) type Value = (u16, throng_expression::Value);

/// By message: the fields that also occur in one of its replies, or in the message it answers.
pub(super) struct Twins {
    fields: Vec<Vec<(u16, FieldPath)>>,
}

impl Twins {
    pub(super) fn of(protocol: &Protocol) -> Twins {
        let messages = &protocol.declaration().messages;
        let mut names: Vec<&str> = Vec::new();
        let mut fields = Vec::with_capacity(messages.len());
        for (id, info) in protocol.messages() {
            let mut own = Vec::new();
            // For a message that answers its own kind, every field would match.
            let others = info.answers.iter().chain(&info.answered_by).filter(|other| **other != id);
            let others: Vec<&Message> = match protocol.correlates() {
                true => Vec::new(),
                false => others.map(|other| &messages[usize::from(other.0)]).collect(),
            };
            for name in scalars(&messages[usize::from(id.0)]) {
                let is_shared = others.iter().any(|other| scalars(other).any(|one| one == name));
                let Some(path) = protocol.field(id, name).ok().filter(|_| is_shared) else {
                    continue;
                };
                let number = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                own.push((number as u16, path));
            }
            fields.push(own);
        }
        Twins { fields }
    }

    pub(super) fn values(
        &self,
        protocol: &Protocol,
        bytes: &[u8],
        decoded: &Decoded,
        packet: Packet,
    ) -> Box<[Value]> {
        let fields = self.fields.get(usize::from(packet.message.0)).map_or(&[][..], |all| all);
        let value = |(number, path): &(u16, FieldPath)| {
            Some((*number, protocol.value(bytes, decoded, path)?))
        };
        fields.iter().filter_map(value).collect()
    }
}

/// The number of equal values.
pub(super) fn repeated(request: &[Value], reply: &[Value]) -> usize {
    reply.iter().filter(|value| request.contains(value)).count()
}

/// The fields of a message that may identify it: single integers.
fn scalars(message: &Message) -> impl Iterator<Item = &str> {
    let is_scalar =
        |ty: &Type| matches!(ty, Type::Unsigned(_) | Type::Signed(_) | Type::Varint | Type::ZigZag);
    let own = message.body.iter().filter(move |field| {
        is_scalar(&field.ty) && field.repeat.is_none() && field.constant.is_none()
    });
    own.map(|field| field.id.value.as_str())
}
