//! Replies and messages, cut anywhere, and servers that send something else.

use super::*;
use crate::field::Field;

const LIMIT: usize = 1024 * 1024;

/// Events in readable form.
fn shown(came: Came<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match came {
        Came::Message(bytes) => {
            let Message { pattern, channel, payload } = Message::of(bytes);
            format!("message {} {} {}", text(pattern), text(channel), text(payload))
        }
        Came::Refused(reason) => format!("refused {}", text(reason)),
        Came::Answer(answer) => {
            let error = answer.error_word().map(|word| format!(" ({})", text(word)));
            let (number, form) = (answer.number, answer.form.word());
            format!("{number} {form} {}{}", text(answer.content), error.unwrap_or_default())
        }
    }
}

/// All events of a server's bytes, and the violation that ends them.
fn hear(client: &mut Client, parts: &[&[u8]]) -> Vec<String> {
    let (mut all, mut room) = (Vec::new(), Vec::new());
    for part in parts {
        let mut rest = *part;
        loop {
            match client.next(&mut rest, LIMIT, &mut room) {
                Ok(Some(came)) => all.push(shown(came)),
                Ok(None) => break,
                Err(violation) => {
                    all.push(violation.said().english().to_string());
                    return all;
                }
            }
        }
    }
    assert_eq!(client.half(), 0, "{all:?}");
    all
}

#[test]
fn commands_are_lists_of_texts() {
    let mut out = Vec::new();
    write_command(&mut out, &[b"SADD", b"presence", b""]);
    assert_eq!(out, b"*3\r\n$4\r\nSADD\r\n$8\r\npresence\r\n$0\r\n\r\n");
}

#[test]
fn replies_match_their_commands_however_they_are_split() {
    let replies = b"+OK\r\n$3\r\na\nb\r\n:-7\r\n$-1\r\n$0\r\n\r\n-WRONGTYPE no\r\n\
        *2\r\n$1\r\n0\r\n*2\r\n:7\r\n$-1\r\n*0\r\n*-1\r\n\
        $1\r\na\r\n:1\r\n*1\r\n+b\r\n\
        +OK\r\n-OOM full\r\n-ERR other\r\n\
        *2\r\n+OK\r\n-ERR inside\r\n\
        +unread\r\n*1\r\n:1\r\n";
    throng_fuzz::splits(replies, |parts| {
        let mut client = Client::default();
        for _ in 0..9 {
            client.ask(1, true);
        }
        client.ask(3, true);
        client.ask(3, true);
        client.ask(1, true);
        client.ask(2, false);
        let heard = hear(&mut client, parts);
        assert_eq!(
            heard,
            [
                "1 text OK",
                "2 text a\nb",
                "3 number -7",
                "4 nil ",
                "5 text ",
                "6 error WRONGTYPE no (WRONGTYPE)",
                "7 list [\"0\",[7,null]]",
                "8 list []",
                "9 nil ",
                "10 list [\"a\",1,[\"b\"]]",
                "11 list [\"OK\",{\"error\":\"OOM full\"},{\"error\":\"ERR other\"}] (OOM)",
                "12 list [\"OK\",{\"error\":\"ERR inside\"}] (ERR)",
                "13 list ",
            ]
        );
    });
}

#[test]
fn only_subscribers_get_messages_between_replies() {
    let bytes = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n\
        *3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n\
        *3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:2\r\n\
        *4\r\n$8\r\npmessage\r\n$2\r\nb*\r\n$2\r\nbc\r\n$2\r\n{}\r\n\
        *2\r\n$4\r\npong\r\n$0\r\n\r\n\
        *3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$12\r\npunsubscribe\r\n$2\r\nb*\r\n:0\r\n\
        *3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n";
    throng_fuzz::splits(bytes, |parts| {
        let mut client = Client::default();
        client.ask(1, true);
        client.ask(2, true);
        client.ask(1, true);
        client.ask(2, false);
        client.ask(1, true);
        assert_eq!(
            hear(&mut client, parts),
            [
                "1 list [\"message\",\"a\",\"x\"]",
                "message  a hi",
                "2 list [[\"subscribe\",\"a\",1],[\"psubscribe\",\"b*\",2]]",
                "message b* bc {}",
                "3 list [\"pong\",\"\"]",
                "4 list ",
                "5 list [\"message\",\"a\",\"x\"]",
            ]
        );
    });
}

#[test]
fn fields_have_the_type_of_the_reply() {
    let mut client = Client::default();
    let mut room = Vec::new();
    let mut fields = |bytes: &[u8]| {
        client.ask(1, true);
        let came = client.next(&mut &*bytes, LIMIT, &mut room).unwrap();
        let Some(Came::Answer(answer)) = came else { panic!("{came:?}") };
        answer.fields().map(|(name, field)| format!("{name} {field:?}")).collect::<Vec<_>>()
    };
    let text = |text: &str| format!("{:?}", Field::Bytes(text.as_bytes()));
    assert_eq!(fields(b":7\r\n"), ["value Number(7)".into(), format!("type {}", text("number"))]);
    assert_eq!(fields(b"$-1\r\n"), ["value Null".into(), format!("type {}", text("nil"))]);
    let empty = [format!("value {}", text("")), format!("type {}", text("text"))];
    assert_eq!(fields(b"$0\r\n\r\n"), empty);
    let error = [format!("type {}", text("error")), format!("error {}", text("NOAUTH"))];
    assert_eq!(fields(b"-NOAUTH x y\r\n"), error);
}

#[test]
fn protocol_violations_end_the_connection() {
    let deep = b"*1\r\n".repeat(10_000);
    let long = [&b"+"[..], &[b'x'; 70_000]].concat();
    for (bytes, said) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "the server on this port uses HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "the server on this port uses TLS"),
        (b"SSH-2.0-x\r\n", "a Redis reply cannot start with `S` (0x53)"),
        (b"%1\r\n", "a Redis reply cannot start with `%`"),
        (b"+OK\n", "does not end in CR and LF"),
        (b"$x\r\n", "a number is missing after `$`"),
        (b"*-2\r\n", "a number is missing after `*`"),
        (b":\r\n", "a number is missing after `:`"),
        (b"$1\r\nabc", "CR and LF are missing after a string"),
        (b"$4294967296\r\n", "a Redis reply of at least 4.29 GB exceeds the limit of 1.05 MB"),
        (b"$9223372036854775807\r\n", "exceeds the limit"),
        (b"*400000\r\n", "exceeds the limit"),
        (b"*9223372036854775807\r\n", "exceeds the limit"),
        (&deep, "nested deeper than 64 levels"),
        (&long, "longer than 65536 bytes"),
        (b"+a\r\n+b\r\n", "no command was sent"),
    ] {
        throng_fuzz::splits(&bytes[..bytes.len().min(40)], |parts| {
            let mut client = Client::default();
            client.ask(1, true);
            let rest = &bytes[bytes.len().min(40)..];
            let heard = hear(&mut client, &[parts, &[rest]].concat());
            assert!(heard.last().is_some_and(|last| last.contains(said)), "{said}: {heard:?}");
        });
    }
    let mut client = Client::default();
    assert_eq!(
        hear(&mut client, &[b"-ERR max number of clients reached\r\n"]),
        ["refused ERR max number of clients reached"]
    );
}

#[test]
fn a_reply_as_a_tree_is_read_however_it_is_split() {
    let replies =
        b"+OK\r\n:-1\r\n-LOADING wait\r\n$-1\r\n$3\r\na\nb\r\n*2\r\n$1\r\n0\r\n*1\r\n:7\r\n";
    throng_fuzz::splits(replies, |parts| {
        let (mut kept, mut read) = (Vec::new(), Vec::new());
        for part in parts {
            kept.extend_from_slice(part);
            while let Some((reply, used)) = read_reply(&kept).unwrap() {
                read.push(reply);
                kept.drain(..used);
            }
        }
        let text = |text: &str| Reply::Text(text.as_bytes().to_vec());
        let list = Reply::List(vec![text("0"), Reply::List(vec![Reply::Number(7)])]);
        let error = Reply::Error("LOADING wait".into());
        let all =
            [text("OK"), Reply::Number(-1), error, Reply::Nothing, text("a\nb"), list].to_vec();
        assert_eq!((read, kept.len()), (all, 0));
    });
}

#[test]
fn fuzz_replies() {
    let corpus: [&[u8]; 4] = [
        b"+OK\r\n:1\r\n$3\r\nabc\r\n",
        b"-ERR no\r\n$-1\r\n$0\r\n\r\n*2\r\n*1\r\n+a\r\n$1\r\nb\r\n",
        b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n",
        b"*4\r\n$8\r\npmessage\r\n$2\r\nb*\r\n$2\r\nbc\r\n$2\r\n{}\r\n*0\r\n*-1\r\n",
    ];
    throng_fuzz::mutations(&corpus, |input, random| {
        let cut = random.below(input.len() as u64 + 1) as usize;
        let read = |parts: &[&[u8]]| {
            let (mut client, mut all, mut room) = (Client::default(), Vec::new(), Vec::new());
            for nth in 0..3 {
                client.ask(nth + 1, nth != 1);
            }
            for part in parts {
                let mut rest = *part;
                while let Some(came) = client.next(&mut rest, LIMIT, &mut room).map_err(drop)? {
                    all.push(shown(came));
                }
                assert!(rest.is_empty() && client.heap_bytes() < 2 * LIMIT);
            }
            Ok::<_, ()>(all)
        };
        assert_eq!(read(&[input]), read(&[&input[..cut], &input[cut..]]));
        let mut at = 0;
        while let Ok(Some((_, used))) = read_reply(&input[at..]) {
            assert!(used > 0 && used <= input.len() - at);
            at += used;
        }
    });
}
