//! Messages of `.proto` files for `protobuf(Message)`, found by name.

use std::collections::HashSet;
use std::sync::Arc;

use prost_reflect::{Kind, MessageDescriptor};
use throng_protocol::protobuf::{MessageType, Schema};

use crate::message::proto::{PROTO_HELP, ProtoFiles};
use crate::read::Context;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::Place;
use crate::words::shorten;

/// The messages of the files.
pub(super) struct Protos {
    files: ProtoFiles,
    pub(super) schema: Arc<Schema>,
    /// The names of the messages that were already checked.
    known: HashSet<String>,
}

impl Protos {
    pub(super) fn new(files: ProtoFiles) -> Protos {
        let schema = Arc::new(Schema::new(&files.pool));
        Protos { files, schema, known: HashSet::new() }
    }

    /// Finds a message, which can be named without its package.
    pub(super) fn message(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
        place: Place,
    ) -> Option<MessageType> {
        let plain = name.trim_start_matches('.');
        let ending = format!(".{plain}");
        let all = self.files.pool.all_messages().filter(|message| !message.is_map_entry());
        let mut found: Vec<MessageDescriptor> = all
            .filter(|one| one.full_name() == plain || one.full_name().ends_with(&ending))
            .collect();
        found.sort_unstable_by(|one, other| one.full_name().cmp(other.full_name()));
        // The full name wins over other names with the same ending.
        let exact = found.iter().position(|message| message.full_name() == plain);
        match (exact, &found[..]) {
            (None, []) => self.unknown(cx, name, place),
            (None, [first, second, ..]) => {
                let message = say!("several messages are named `{}`", shorten(name));
                let label = say!("`{}` and `{}`", first.full_name(), second.full_name());
                let help = say!("write the full name: `protobuf({})`", first.full_name());
                cx.refuse("bad-proto", place, message, label, help)
            }
            (at, _) => {
                let found = found.swap_remove(at.unwrap_or(0));
                let message = self.schema.message(found.full_name());
                self.refuse_groups(cx, found);
                message
            }
        }
    }

    fn unknown<T>(&self, cx: &mut Context<'_>, name: &str, place: Place) -> Option<T> {
        let message = say!("there is no message `{}` in the `.proto` files", shorten(name));
        let error = cx.error("unknown-type", message, place);
        let messages = self.files.pool.all_messages().filter(|message| !message.is_map_entry());
        let mut names: Vec<String> = messages.map(|one| one.full_name().to_owned()).collect();
        // Those of Protobuf itself are last.
        names.sort_unstable_by_key(|name| (name.starts_with("google."), name.clone()));
        let full = names.iter().map(String::as_str);
        let meant = did_you_mean(name, full.clone()).or_else(|| {
            did_you_mean(name, full.clone().filter_map(|name| name.rsplit('.').next()))
        });
        let error = error.label(near_label(meant, say!("unknown")));
        let first: Vec<&str> = full.take(8).collect();
        cx.fail(error.help(match first.is_empty() {
            true => PROTO_HELP,
            false => say!("the files declare `{}`", first.join("`, `")),
        }))
    }

    /// Reports groups in a message and in its fields.
    fn refuse_groups(&mut self, cx: &mut Context<'_>, message: MessageDescriptor) {
        let mut open = vec![message];
        while let Some(message) = open.pop() {
            if !self.known.insert(message.full_name().to_owned()) {
                continue;
            }
            for field in message.fields() {
                if field.is_group() {
                    let file = field.parent_file();
                    let place = self.files.place(file.file_descriptor_proto(), field.path());
                    let message = say!("protobuf groups are not supported");
                    let label = say!("the field `{}`", shorten(field.full_name()));
                    let help = say!("make it a separate message");
                    cx.report("proto-feature", place, message, label, help);
                } else if let Kind::Message(inner) = field.kind() {
                    open.push(inner);
                }
            }
        }
    }
}
