//! An event as one message: its fields, an empty line, its data. In this form it is kept and passed
//! on like messages of other protocols.

use memchr::memmem;

use crate::field::Field;

const EVENT: &[u8] = b"event: ";
const ID: &[u8] = b"id: ";

/// The name of events without a name.
const USUAL_NAME: &[u8] = b"message";

/// An event as an `EventSource` dispatches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMessage<'a> {
    /// `message` if the event does not set it.
    pub name: &'a [u8],
    /// The last ID of the stream; empty before the first.
    pub id: &'a [u8],
    pub data: &'a [u8],
}

impl<'a> EventMessage<'a> {
    /// Replaces the contents of `out`; neither the name nor the ID contains a line end.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.clear();
        for (field, value) in [(EVENT, self.name), (ID, self.id)] {
            if !value.is_empty() {
                out.extend_from_slice(field);
                out.extend_from_slice(value);
                out.push(b'\n');
            }
        }
        out.push(b'\n');
        out.extend_from_slice(self.data);
    }

    /// The event in a message that a parser has returned.
    pub fn of(message: &'a [u8]) -> EventMessage<'a> {
        let (fields, data) = match memmem::find(message, b"\n\n") {
            _ if message.starts_with(b"\n") => (&[][..], &message[1..]),
            Some(end) => (&message[..end], &message[end + 2..]),
            None => (&[][..], message),
        };
        let (mut name, mut id) = (USUAL_NAME, &[][..]);
        for line in fields.split(|byte| *byte == b'\n') {
            if let Some(value) = line.strip_prefix(EVENT) {
                name = value;
            } else if let Some(value) = line.strip_prefix(ID) {
                id = value;
            }
        }
        EventMessage { name, id, data }
    }

    /// Its fields besides the data, by name.
    pub fn fields(self) -> [(&'static str, Field<'a>); 2] {
        [("event", Field::Bytes(self.name)), ("id", Field::Bytes(self.id))]
    }
}
