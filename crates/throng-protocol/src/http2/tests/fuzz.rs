//! Mutated connections: nothing panics, no cut makes a difference, each exchange ends once.

use throng_base::Random;
use throng_fuzz::mutations;

use super::*;

fn corpus() -> Vec<Vec<u8>> {
    let ok: &[(&str, &str)] = &[(":status", "200"), ("content-length", "5")];
    vec![
        [
            settings(&[(1, 0), (3, 100), (4, 70_000), (5, 20_000)]),
            window_update(0, 100_000),
            headers(1, 0, ok),
            data(1, 0, b"he"),
            headers(3, END_STREAM, ok),
            data(1, END_STREAM, b"llo"),
            headers(5, 0, &[(":status", "200")]),
            data(5, PADDED, b"\x02abc\0\0"),
            headers(5, END_STREAM, &[("grpc-status", "0")]),
        ]
        .concat(),
        [
            settings(&[]),
            headers(1, 0, &[(":status", "103"), ("link", "</x>")]),
            frame(1, 0, 1, b"\x88\x40\x01a"),
            frame(9, 0, 1, b"\x01b\x3f"),
            frame(9, END_HEADERS, 1, b""),
            frame(6, 0, 0, b"12345678"),
            reset(3, ErrorCode::REFUSED_STREAM),
            window_update(5, 10),
            goaway(1, ErrorCode::NO_ERROR, b"bye"),
            data(1, END_STREAM, b"last"),
        ]
        .concat(),
        [settings(&[]), frame(1, END_HEADERS | END_STREAM, 1, b"\x3f\xe1\x0f\x88\x40\x01a\x01b")]
            .concat(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    ]
}

fn some_limits(random: &mut Random) -> Limits {
    match random.below(3) {
        0 => Limits {
            head_bytes_max: random.below(300) as usize,
            informational_max: random.below(3) as u16,
            continuations_max: random.below(4) as u16,
            control_frames_max: random.below(10) as u16,
            unread_bytes_max: u32::MAX,
            header_table_bytes: random.below(5_000) as u16,
            stream_window_bytes: random.below(30) as u32,
            connection_window_bytes: 65_535,
        },
        _ => Limits { unread_bytes_max: u32::MAX, ..Limits::default() },
    }
}

/// Three exchanges, one of them with a body that waits for windows.
fn play(parts: &[&[u8]], limits: &Limits) -> Shown {
    let mut client = asked(&[RequestKind::Normal, RequestKind::Head], limits);
    let body = [b'x'; 70_000];
    let post = Ask { body: Body::Bytes(&body), body_bytes_max: 1_000, ..get(SLASH) };
    client.ask(&post, &mut Vec::new()).unwrap();
    let mut shown = Shown::default();
    for part in parts {
        receive(&mut client, limits, part, &mut shown);
        assert!(client.heap_bytes() <= 300_000);
    }
    let open = client.open_streams();
    let mut failed = 0;
    client.close(&mut |_: Event<'_>| failed += 1);
    assert_eq!(failed, open);
    shown
}

/// Events after the end of an exchange, or before its head, do not belong to it.
fn check_order(shown: &Shown) {
    for id in ["1 ", "3 ", "5 "] {
        let lines: Vec<&str> =
            shown.events.iter().filter_map(|line| line.strip_prefix(id)).collect();
        let is_end =
            |line: &&str| *line == "end" || line.starts_with("reset") || line.starts_with("failed");
        let ends = lines.iter().filter(|line| is_end(line)).count();
        assert!(ends <= 1, "{shown:?}");
        assert!(ends == 0 || lines.last().is_some_and(is_end), "{shown:?}");
        let heads = lines.iter().filter(|line| {
            line.starts_with(|first: char| first.is_ascii_digit() && !line.starts_with("1xx"))
        });
        assert!(heads.count() <= 1, "{shown:?}");
        if let Some(at) = lines.iter().position(|line| line.starts_with("data")) {
            assert!(lines[..at].iter().any(|line| line.contains("00 ") || line.len() > 3));
        }
    }
}

#[test]
fn fuzz_connections_do_not_depend_on_the_split() {
    let corpus = corpus();
    let corpus: Vec<&[u8]> = corpus.iter().map(|bytes| &bytes[..]).collect();
    mutations(&corpus, |input, random| {
        let limits = some_limits(random);
        let whole = play(&[input], &limits);
        check_order(&whole);
        let at = random.below(input.len() as u64 + 1) as usize;
        let (first, second) = input.split_at(at);
        assert_eq!(whole, play(&[first, second], &limits));
        let single: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(whole, play(&single, &limits));
    });
}
