//! Acknowledgements that are sent immediately for received messages: prepared like messages of a
//! scenario.

use throng_base::Said;

use super::declaration::{Copied, Message, Mistake, PlaceId, Placed, value_of};
use super::path::suggestion;
use super::{Acknowledging, Given, MessageId, Protocol};

/// Prepares the messages that are sent immediately for received ones.
pub(super) fn acknowledgements(protocol: &mut Protocol, mistakes: &mut Vec<Mistake>) {
    let mut all = Vec::new();
    for (index, message) in protocol.declaration.messages.iter().enumerate() {
        let made = match &message.acknowledged_by {
            None => None,
            Some(_) => match acknowledgement(protocol, index, message) {
                Ok(made) => made,
                Err(mistake) => {
                    mistakes.push(*mistake);
                    None
                }
            },
        };
        all.push(made);
    }
    protocol.acknowledgements = all.into();
}

#[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
fn mistake(code: &'static str, place: PlaceId, message: Said, label: Said, help: Said) -> Mistake {
    Mistake { code, message, label: label.to_owned(), help, place, other: None }
}

fn acknowledgement(
    protocol: &Protocol,
    index: usize,
    message: &Message,
) -> Result<Option<Acknowledging>, Box<Mistake>> {
    let Some(acknowledgement) = &message.acknowledged_by else { return Ok(None) };
    let wanted = &acknowledgement.message;
    let wrong = |place: PlaceId, message: Said, label: Said, help: Said| {
        Box::new(mistake("protocol-bad-acknowledgement", place, message, label, help))
    };
    let Some(reply) = protocol.message(&wanted.value) else {
        let names: Vec<&str> = protocol.messages().map(|(_, info)| &*info.name).collect();
        let name = &message.name.value;
        let text = say!("`{name}` is acknowledged with `{}`, which is not a message", wanted.value);
        return Err(wrong(wanted.place, text, say!("unknown"), suggestion(&wanted.value, &names)));
    };
    let (mut given, mut leaves) = (Vec::new(), Vec::new());
    for (name, copied) in &acknowledgement.fields {
        let value = match &copied.value {
            Copied::Literal(literal) => Given::Literal(value_of(literal)),
            Copied::Field(path) => {
                let field = protocol.field(MessageId(index as u16), path).map_err(|found| {
                    wrong(copied.place, found.message, say!("no field"), found.help)
                })?;
                leaves.push(field);
                Given::Leaf(leaves.len() as u16 - 1)
            }
        };
        given.push((name.value.clone(), value));
    }
    // It answers the received message, with the same correlation as a reply.
    let came = MessageId(index as u16);
    if let (Some(name), Some(copied)) = (protocol.correlator(reply), protocol.correlator(came))
        && given.iter().all(|(given, _)| given != name)
        && let Ok(field) = protocol.field(came, copied)
    {
        leaves.push(field);
        given.push((name.to_owned(), Given::Leaf(leaves.len() as u16 - 1)));
    }
    let template = protocol.prepare(reply, &Given::Fields(given)).map_err(|found| {
        let first = found.path.first();
        let named = |(name, _): &&(Placed<String>, Placed<Copied>)| Some(&name.value) == first;
        let at = acknowledgement.fields.iter().find(named);
        let place = at.map_or(wanted.place, |(name, _)| name.place);
        wrong(place, found.message, say!("does not fit"), found.help)
    })?;
    Ok(Some(Acknowledging { template, leaves: leaves.into() }))
}
