//! Replies of several packets: which packet is the last one.

use super::*;

fn more(message: Message, more: More) -> Message {
    Message { more: Some(more), ..message }
}

fn is(field: &str, comparison: Comparison, value: i64) -> More {
    More::If(Condition { field: name(field), comparison, value })
}

fn goes_on(protocol: &Protocol, packet: &[u8]) -> (String, bool) {
    let mut decoded = Decoded::default();
    let read = protocol.decode(packet, &mut decoded).unwrap();
    (protocol.info(read.message).name.clone(), read.goes_on)
}

/// The lines of SMTP: the byte after the code shows whether another line follows.
fn smtp() -> Declaration {
    let code = field("code", Type::Text(Extent::Fixed(3)));
    let rest = || field("text", Type::Text(Extent::Rest));
    let line = |message: Message| Message { kind: None, ..message };
    let reply = answer("reply", 0, &["command"], vec![code, uint("mark", 8), rest()]);
    Declaration {
        framing: Framing::Delimiter { bytes: placed(b"\r\n".to_vec()), bytes_max: 512 },
        packet: vec![body()],
        messages: vec![
            line(message("command", 0, vec![rest()])),
            more(line(reply), is("mark", Comparison::Equal, i64::from(b'-'))),
        ],
        ..Declaration::default()
    }
}

#[test]
fn a_message_can_declare_that_the_reply_continues() {
    let chat = |from: More| {
        let mut chat = chat_declaration();
        let joined = chat.messages.iter().position(|one| one.name.value == "joined").unwrap();
        chat.messages[joined] = more(chat.messages[joined].clone(), from);
        chat.messages.push(answer("over", 99, &["join"], vec![]));
        compiled(chat)
    };
    let given = [("code", Value::Int(7)), ("online", Value::Int(1))];
    let always = chat(More::Always);
    assert_eq!(goes_on(&always, &write(&always, "joined", &given, 5)), ("joined".into(), true));
    assert_eq!(goes_on(&always, &write(&always, "over", &[], 5)), ("over".into(), false));
    assert!(always.goes_on(always.message("joined").unwrap()));
    // A field of the body, and one of the packet.
    for (condition, is_true) in [
        (is("code", Comparison::HasBits, 4), true),
        (is("code", Comparison::HasBits, 8), false),
        (is("seq", Comparison::Greater, 4), true),
        (is("seq", Comparison::Greater, 5), false),
    ] {
        let protocol = chat(condition.clone());
        let packet = write(&protocol, "joined", &given, 5);
        assert_eq!(goes_on(&protocol, &packet), ("joined".into(), is_true), "{condition:?}");
        assert!(!protocol.goes_on(protocol.message("joined").unwrap()), "it depends");
    }
    let smtp = compiled(smtp());
    assert_eq!(goes_on(&smtp, b"250-STARTTLS"), ("reply".into(), true));
    assert_eq!(goes_on(&smtp, b"250 OK"), ("reply".into(), false));
}

#[test]
fn a_message_that_continues_is_a_reply_with_an_end() {
    let told = |declaration: Declaration| {
        let mistakes = Protocol::compile(declaration).unwrap_err();
        let told = mistakes.iter().map(|it| format!("{}: {}", it.code, it.message.english()));
        told.collect::<Vec<_>>()
    };
    let rows = |end: Message| {
        let row = more(answer("row", 2, &["ask"], vec![]), More::Always);
        let mut chat = chat_declaration();
        (chat.messages, chat.heartbeat) = (vec![message("ask", 1, vec![]), row, end], None);
        chat
    };
    assert!(Protocol::compile(rows(answer("done", 3, &["ask"], vec![]))).is_ok());
    assert_eq!(
        told(rows(more(answer("done", 3, &["ask"], vec![]), More::Always))),
        ["protocol-bad-reply: a reply to `ask` never ends"]
    );
    assert!(
        Protocol::compile(rows(more(
            answer("done", 3, &["ask"], vec![]),
            is("seq", Comparison::Greater, 5)
        )))
        .is_ok()
    );
    let push = more(push("late", 4, vec![]), More::Always);
    assert!(
        told(rows(push))
            .contains(&"protocol-bad-reply: `late` has `more`, but it is not a reply".to_owned())
    );
    // Messages during a reply and at other times, like untagged lines of IMAP.
    let mut both = rows(answer("done", 3, &["ask"], vec![]));
    both.messages[1].push = true;
    let both = compiled(both);
    assert!(!both.comes_unasked(both.message("row").unwrap()));
    let unknown = rows(more(answer("done", 3, &["ask"], vec![]), is("left", Comparison::Equal, 1)));
    assert!(told(unknown)[0].starts_with("protocol-bad-reference"));
}
