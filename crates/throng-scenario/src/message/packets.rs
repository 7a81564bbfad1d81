//! The number of packets of a reply, which may have several.

use throng_program::{Check, Extractor};

use crate::message::matchers::{Meaning, read_matcher};
use crate::read::Context;
use crate::scope::{Kinds, Spoken};
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::{self, shorten};

/// The number of packets of a reply: `10`, or per message `{entry: 10}`; false if the check is not
/// about packets.
pub(crate) fn read_packets(
    cx: &mut Context<'_>,
    (key, value): (&Key, &Node),
    kinds: &Kinds,
    out: &mut Vec<Check>,
) -> bool {
    if !kinds.counts_packets(&key.text) {
        return false;
    }
    let mut read = |cx: &mut Context<'_>, word: &str, place: Place, value: &Node| {
        let extractor = packets_extractor(cx, kinds, word, place);
        let matcher = read_matcher(cx, value, Meaning::Json);
        out.extend(extractor.zip(matcher).map(|(extractor, matcher)| Check { extractor, matcher }));
    };
    match &value.kind {
        Kind::Map(_) if key.text == "packets" => {
            let help = say!("write `packets: 10` or `packets: {{row: \">= 1\"}}`");
            let entries = cx.entries(value, say!("a map of messages"), help).unwrap_or_default();
            for (name, value) in entries {
                read(cx, &format!("packets.{}", name.text), name.place, value);
            }
        }
        _ => read(cx, &key.text, key.place, value),
    }
    true
}

/// Only some messages of a declared protocol are replies of several packets.
pub(crate) fn no_packets(cx: &mut Context<'_>, place: Place) {
    if matches!(cx.scope.spoken, Spoken::Unknown) {
        return;
    }
    let message = say!("only replies of several packets have `packets`");
    let help = say!("remove `packets`, or declare a protocol whose replies have `more`");
    cx.report("wrong-check", place, message, say!("not available here"), help);
}

/// `packets`, or `packets.NAME` for the packets of one message.
pub(crate) fn packets_extractor(
    cx: &mut Context<'_>,
    kinds: &Kinds,
    word: &str,
    place: Place,
) -> Option<Extractor> {
    if let (Some((_, name)), Kinds::Declared { protocol, ids }) = (word.split_once('.'), kinds) {
        let names: Vec<&str> = ids.iter().map(|id| &*protocol.info(*id).name).collect();
        if !names.contains(&name) {
            let message = say!("`{}` is not a reply to this request", shorten(name));
            let near = did_you_mean(name, names.iter().copied());
            let label = near_label(near, say!("this message is never the reply"));
            let help = say!("the replies to this request are {}", words::names(names));
            return cx.refuse("no-reply", place, message, label, help);
        }
    }
    Some(Extractor::Result(word.into()))
}
