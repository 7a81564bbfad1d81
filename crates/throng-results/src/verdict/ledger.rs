//! Diagnostics about messages that the ledger could not track: without an ID, without tracked
//! receivers, or without any receivers.

use throng_base::units::format_count;
use throng_base::{Diagnostic, Said, clean};
use throng_metrics::DeliveryCounter::{ReceivedWithoutId, SentWithoutId};
use throng_metrics::DeliveryInterval;

use super::{InvalidReason, has_threshold};
use crate::summary::{DeliveryRow, Summary};

/// Why nothing is known of messages that the ledger should track.
pub(super) fn reasons(summary: &Summary) -> impl Iterator<Item = InvalidReason> {
    let blind = summary.messages.deliveries.iter().filter(|row| is_blind(&row.counts));
    let blind = blind.map(|row| InvalidReason::DeliveriesBlind {
        name: row.name.clone(),
        sent: row.counts.sent_without_id,
        received: match saw_nothing(&row.counts) {
            true => row.counts.received_without_id,
            false => row.counts.received_joined,
        },
        lost: if saw_nothing(&row.counts) { 0 } else { row.counts.lost },
    });
    let unwatched = unwatched(summary).filter(|row| has_threshold(summary, row));
    blind.chain(unwatched.map(|row| InvalidReason::DeliveriesUnwatched {
        name: row.name.clone(),
        unwatched: row.counts.unwatched,
        sent: row.counts.sent,
    }))
}

/// Messages counted as lost may have arrived unreadable.
fn is_blind(counts: &DeliveryInterval) -> bool {
    saw_nothing(counts) || counts.lost > 0 && counts.received_joined > 0
}

/// On one side, the ledger examined messages and found no ID.
fn saw_nothing(counts: &DeliveryInterval) -> bool {
    let c = counts;
    let received = c.delivered + c.twice + c.after_lost + c.stray + c.foreign + c.out_of_order;
    let sent_blindly = c.sent == 0 && c.sent_without_id > 0;
    sent_blindly || (received == 0 && c.received_without_id > 0 && c.expected > 0)
}

/// Rows with messages whose receivers are unknown.
fn unwatched(summary: &Summary) -> impl Iterator<Item = &DeliveryRow> {
    summary.messages.deliveries.iter().filter(|row| row.counts.unwatched > 0)
}

/// All diagnostics of the ledger.
pub(super) fn diagnostics(summary: &Summary) -> impl Iterator<Item = Diagnostic> {
    let blind = summary.messages.deliveries.iter().filter(|row| is_blind(&row.counts)).map(blind);
    let alone = summary.messages.deliveries.iter().filter(|row| {
        let c = &row.counts;
        c.sent > 0 && c.expected + c.unwatched == 0 && !is_blind(c)
    });
    blind
        .chain(alone.map(alone_text))
        .chain(unwatched(summary).map(|row| not_watched(summary, row)))
}

pub(super) fn blind_text(name: &str, sent: u64, received: u64, lost: u64) -> Said {
    if lost > 0 {
        return say!(
            "{} messages of `{}` contained several records that could not be separated; {} \
             deliveries are missing",
            format_count(received),
            clean(name),
            format_count(lost)
        );
    }
    say!(
        "no ID was found in {} sent and {} received messages of `{}`",
        format_count(sent),
        format_count(received),
        clean(name)
    )
}

pub(super) fn unwatched_text(name: &str, unwatched: u64, sent: u64) -> Said {
    say!(
        "{} of {} messages of `{}` were not tracked for all of their receivers",
        format_count(unwatched),
        format_count(sent.max(unwatched)),
        clean(name)
    )
}

fn blind(row: &DeliveryRow) -> Diagnostic {
    let c = &row.counts;
    let (message, lost) = match saw_nothing(c) {
        true => (say!("the delivery ledger found no ID in any message"), 0),
        false => (say!("the delivery ledger could not read all messages"), c.lost),
    };
    let received = if lost > 0 { c.received_joined } else { c.received_without_id };
    let text = blind_text(&row.name, c.sent_without_id, received, lost);
    let mut told = Diagnostic::error("deliveries-blind", message).note(text);
    let shown = |counter| row.examples.iter().find(|(one, _)| *one == counter);
    let example = shown(SentWithoutId).filter(|_| c.sent == 0).or(shown(ReceivedWithoutId));
    if let Some((_, example)) = example {
        told = told.note(example.detail.clone().cleaned());
    }
    told.help(match lost {
        0 => say!(
            "set `match` to the position of the ID: `json.id`, `{{prefix: '42', json: '[1].id'}}`, \
             `{{regex: …}}`"
        ),
        _ => say!(
            "if the server combines several records into one message, write `protocol: \
             {{delimiter: \"\\n\"}}`"
        ),
    })
}

fn alone_text(row: &DeliveryRow) -> Diagnostic {
    let (name, sent) = (clean(&row.name), format_count(row.counts.sent));
    let message = say!("no receiver was online for any message in the delivery ledger");
    Diagnostic::warning("deliveries-blind", message)
        .note(say!(
            "{sent} messages of `{name}` were sent, but no user was expected to receive them"
        ))
        .help(say!(
            "check that `audience` selects the users that receive the messages, and that these \
             users are online"
        ))
}

/// An error if a threshold requires these messages.
fn not_watched(summary: &Summary, row: &DeliveryRow) -> Diagnostic {
    let message = say!("the delivery ledger did not track some messages");
    let told = match has_threshold(summary, row) {
        true => Diagnostic::error("deliveries-unwatched", message),
        false => Diagnostic::warning("deliveries-unwatched", message),
    };
    told.note(unwatched_text(&row.name, row.counts.unwatched, row.counts.sent))
        .note(say!("cause: the ledger's memory was full, or a message ID was reused"))
        .help(say!("give each message a unique ID, shorten `lost_after`, or send fewer messages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unreadable messages can explain missing ones; without a loss, they do not.
    #[test]
    fn losses_beside_unreadable_messages_are_not_blamed_on_the_target() {
        let counts = |lost, received_joined| DeliveryInterval {
            sent: 100,
            expected: 100,
            delivered: 100 - lost,
            lost,
            received_joined,
            received_without_id: 50,
            ..DeliveryInterval::default()
        };
        assert!(is_blind(&counts(7, 3)) && !saw_nothing(&counts(7, 3)));
        assert!(!is_blind(&counts(7, 0)), "a loss");
        assert!(!is_blind(&counts(0, 3)), "all has come");
        assert!(saw_nothing(&counts(100, 3)));
        let told = blind_text("talk", 0, 3, 7).english();
        let expected = "3 messages of `talk` contained several records that could not be separated; 7 \
             deliveries are missing";
        assert_eq!(told, expected);
    }
}
