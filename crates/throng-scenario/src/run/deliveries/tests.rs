//! Deliveries that begin with a disconnect, and their mistakes.

use throng_base::Source;
use throng_program::Begins;

use crate::outline::outline;
use crate::tests::{compile_set, program, render};

fn scenario(delivery: &str) -> String {
    format!(
        "target: ws://a
sessions:
  member:
    steps: [connect, {{set: {{room: 1}}}}, {{stay: 1m}}]
  shopper:
    target: http://b
    steps: [{{http: GET /}}]
deliveries:
  gone: {{{delivery}}}
load: [{{users: 10, for: 1h}}]
"
    )
}

fn told(delivery: &str) -> String {
    match compile_set(&Source::new("test.yaml", scenario(delivery)), &[]) {
        Ok((_, told)) | Err(told) => render(&told),
    }
}

const GONE: &str =
    "begins: disconnect, id: \"${user.id}\", received: {json: {cmd: left}}, match: json.user";

#[test]
fn a_disconnect_begins_a_delivery() {
    let of_all = program(&scenario(&format!("{GONE}, audience: {{same: \"${{saved.room}}\"}}")));
    let Begins::Disconnect { session: None, .. } = of_all.deliveries[0].begins else {
        panic!("{:?}", of_all.deliveries)
    };
    assert!(of_all.deliveries[0].senders().is_empty());
    let text = format!("{GONE}, session: member, audience: {{same: \"${{saved.room}}\"}}");
    let of_one = program(&scenario(&text));
    let Begins::Disconnect { session: Some(0), .. } = of_one.deliveries[0].begins else {
        panic!("{:?}", of_one.deliveries)
    };
    let line = &outline(&of_one, usize::MAX).deliveries[0];
    assert!(line.text.starts_with("gone: disconnect of member → "), "{line:?}");
    assert!(line.notes.iter().any(|note| note == "id ${user.id}"), "{line:?}");
    let saved = GONE.replace("user.id", "saved.room");
    assert_eq!(program(&scenario(&saved)).deliveries.len(), 1, "an id may be a saved value");
}

#[test]
fn impossible_disconnects_are_refused() {
    for (delivery, text) in [
        (format!("{GONE}, sent: post"), "cannot be used together"),
        (format!("{GONE}, session: members"), "did you mean `member`?"),
        (format!("{GONE}, session: shopper"), "have no connection that stays open"),
        (format!("{GONE}, without_sender: true"), "a user that has disconnected receives nothing"),
        (GONE.replace("begins: disconnect", "begins: connect"), "write one of these: `disconnect`"),
        (GONE.replace("id: \"${user.id}\", ", ""), "begins: disconnect, id:"),
        (GONE.replace("begins: disconnect", "sent: post"), "`id` requires `begins`"),
        (GONE.replace("user.id", "saved.never"), "no session saves `never`"),
    ] {
        let told = told(&delivery);
        assert!(told.contains("error") && told.contains(text), "{delivery}\n{told}");
    }
}
