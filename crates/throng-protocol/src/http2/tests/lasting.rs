//! The only exchange of a connection: its events, its answers, and what it sends.

use throng_base::Random;
use throng_fuzz::mutations;

use super::*;

/// All its events and answers, in a form that does not depend on how bytes were split.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    pieces: Vec<String>,
    out: Vec<u8>,
    end: String,
}

impl Trace {
    fn add(&mut self, event: Event<'_>) {
        let line = match event {
            Event::Reply { part, .. } => match part {
                Part::Informational(_) => return,
                Part::Head(head) => head_text(&head),
                Part::Body(bytes) => {
                    let data = bytes.escape_ascii().to_string();
                    match self.pieces.last_mut().filter(|last| last.starts_with("data ")) {
                        Some(last) => return last.push_str(&data),
                        None => format!("data {data}"),
                    }
                }
                Part::Trailers(headers) => format!("trailers {}", headers_text(headers)),
                Part::End => "end".into(),
            },
            Event::Reset { code, unprocessed, .. } => format!("reset {code} {unprocessed}"),
            Event::Failed { violation, .. } => format!("failed {}", name_of(&violation)),
            Event::GoAway { .. } | Event::Settings { .. } | Event::Pong { .. } => return,
        };
        self.pieces.push(line);
    }

    fn receive(&mut self, lasting: &mut Lasting, mut bytes: &[u8], limits: &Limits) {
        let mut out = std::mem::take(&mut self.out);
        loop {
            match lasting.next(Time::ZERO, &mut bytes, limits, &mut Vec::new(), &mut out) {
                Ok(Some(event)) => self.add(event),
                Ok(None) => break,
                Err(violation) => {
                    self.end = name_of(&violation);
                    break;
                }
            }
        }
        self.out = out;
    }
}

fn opened(body: Body<'_>, limits: &Limits) -> Lasting {
    let ask = Ask { body, ..get(SLASH) };
    Lasting::open(&ask, limits, &mut Vec::new()).unwrap()
}

fn told_within(bytes: &[u8], limits: &Limits) -> Trace {
    let mut first: Option<Trace> = None;
    splits(bytes, |parts| {
        let (mut lasting, mut told) = (opened(Body::None, limits), Trace::default());
        for part in parts {
            told.receive(&mut lasting, part, limits);
        }
        match &first {
            Some(first) => assert_eq!(first, &told),
            None => first = Some(told),
        }
    });
    first.unwrap_or_default()
}

fn told(frames: &[Vec<u8>]) -> Trace {
    told_within(&[settings(&[]), frames.concat()].concat(), &Limits::default())
}

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn a_stream_starts_like_any_connection() {
    let (mut out, mut want) = (Vec::new(), Vec::new());
    let limits = Limits::default();
    Lasting::open(&get(SLASH), &limits, &mut out).unwrap();
    let mut client = Client::new(&limits);
    client.open(&limits, &mut want);
    client.ask(&get(SLASH), &mut want).unwrap();
    assert_eq!(out, want);
}

#[test]
fn pieces_of_the_stream_are_returned_and_control_frames_answered() {
    let told = told(&[
        headers(1, 0, &[(":status", "103")]),
        frame(6, 0, 0, b"12345678"),
        headers(1, 0, OK),
        data(1, 0, b"one "),
        window_update(0, 10),
        data(1, 0, b"two"),
        headers(1, END_STREAM, &[("grpc-status", "0")]),
    ]);
    let pieces = ["200 UntilClose ", "data one ", "data two", "trailers grpc-status=0", "end"];
    let joined = [pieces[0], "data one two", pieces[3], pieces[4]];
    assert_eq!(told.pieces, joined);
    let answers = [frame(4, ACK, 0, b""), frame(6, ACK, 0, b"12345678")].concat();
    assert_eq!((told.out, told.end.as_str()), (answers, ""));
}

/// Reading opens the windows again, so that a stream may last forever.
#[test]
fn windows_are_opened_again() {
    let limits = Limits { stream_window_bytes: 10, ..Limits::default() };
    let frames = [settings(&[]), headers(1, 0, OK), data(1, 0, b"123456"), data(1, 0, b"123456")];
    let told = told_within(&frames.concat(), &limits);
    let updates = [frame(4, ACK, 0, b""), window_update(1, 6), window_update(1, 6)];
    assert_eq!((told.out, told.end.as_str()), (updates.concat(), ""));
}

#[test]
fn a_stream_that_fails_reports_how() {
    let told_end = |frames: &[Vec<u8>]| {
        let told = told(frames);
        (told.pieces.last().cloned().unwrap_or_default(), told.end)
    };
    let end = |piece: &str, end: &str| (piece.to_string(), end.to_string());
    let head = || headers(1, 0, OK);
    assert_eq!(told_end(&[head(), reset(1, ErrorCode::CANCEL)]), end("reset CANCEL false", ""));
    let refused = reset(1, ErrorCode::REFUSED_STREAM);
    assert_eq!(told_end(&[refused]), end("reset REFUSED_STREAM true", ""));
    let going = goaway(0, ErrorCode::NO_ERROR, b"");
    assert_eq!(told_end(&[going]), end("reset NO_ERROR true", ""));
    // A peer that closes after it still continues it.
    let going = goaway(1, ErrorCode::NO_ERROR, b"");
    assert_eq!(told_end(&[head(), going, data(1, 0, b"x")]), end("data x", ""));
    assert_eq!(told_end(&[data(1, 0, b"x")]), end("failed data-before-head", ""));
    assert_eq!(told_end(&[head(), data(3, 0, b"x")]).1, "stream-id");
}

/// Bytes after the head are left, however they are split.
#[test]
fn the_head_can_be_read_alone() {
    let limits = Limits::default();
    let begin = [settings(&[]), headers(1, 0, OK)].concat();
    for behind in [data(1, 0, b"x"), settings(&[])] {
        let bytes = [begin.clone(), behind].concat();
        splits(&bytes, |parts| {
            let (mut lasting, mut told) = (opened(Body::None, &limits), Trace::default());
            let (mut used, mut out) = (0, Vec::new());
            for part in parts {
                let (mut rest, mut room) = (*part, Vec::new());
                while told.pieces.is_empty()
                    && let Some(event) =
                        lasting.next(Time::ZERO, &mut rest, &limits, &mut room, &mut out).unwrap()
                {
                    told.add(event);
                }
                used += part.len() - rest.len();
                if !told.pieces.is_empty() {
                    break;
                }
            }
            assert_eq!((used, told.pieces.len()), (begin.len(), 1));
        });
    }
}

#[test]
fn messages_are_sent_until_the_last() {
    let limits = Limits::default();
    let mut lasting = opened(Body::Open, &limits);
    let (mut out, mut told) = (Vec::new(), Trace::default());
    assert_eq!(lasting.send(b"one", false, &mut out), Ok(()));
    told.receive(&mut lasting, &[settings(&[]), headers(1, 0, OK)].concat(), &limits);
    assert_eq!(lasting.send(b"two, three", true, &mut out), Ok(()));
    let frames = [data(1, 0, b"one"), data(1, END_STREAM, b"two, three")];
    assert_eq!(out, frames.concat());
    assert_eq!(lasting.send(b"four", false, &mut out), Err(NotOpen));
    out.clear();
    lasting.cancel(&mut out);
    let goodbye = [reset(1, ErrorCode::CANCEL), goaway(0, ErrorCode::NO_ERROR, b"")];
    assert_eq!(out, goodbye.concat());
}

#[test]
fn messages_without_a_window_wait() {
    let limits = Limits::default();
    let mut lasting = opened(Body::Open, &limits);
    let mut told = Trace::default();
    told.receive(&mut lasting, &settings(&[(4, 5)]), &limits);
    let mut out = Vec::new();
    assert_eq!(lasting.send(b"0123456789", false, &mut out), Ok(()));
    assert_eq!((out, lasting.backlog()), (data(1, 0, b"01234"), 5));
    assert!(lasting.heap_bytes() >= size_of::<Client>() + 5);
    told.out.clear();
    told.receive(&mut lasting, &window_update(1, 100), &limits);
    assert_eq!((told.out, lasting.backlog()), (data(1, 0, b"56789"), 0));
}

#[test]
fn fuzz_a_stream_does_not_depend_on_the_split() {
    let whole = [
        settings(&[(4, 70_000)]),
        headers(1, 0, OK),
        data(1, PADDED, b"\x02abc\0\0"),
        frame(6, 0, 0, b"12345678"),
        data(1, 0, b"def"),
        headers(1, END_STREAM, &[("grpc-status", "0")]),
    ];
    let reset = [settings(&[]), headers(1, 0, OK), reset(1, ErrorCode::CANCEL)];
    let going = [settings(&[]), goaway(1, ErrorCode::NO_ERROR, b"bye"), headers(1, 0, OK)];
    let corpus = [whole.concat(), reset.concat(), going.concat()];
    let corpus: Vec<&[u8]> = corpus.iter().map(|bytes| &bytes[..]).collect();
    mutations(&corpus, |input, random: &mut Random| {
        let limits = Limits::default();
        let play = |parts: &[&[u8]]| {
            let (mut lasting, mut told) = (opened(Body::None, &limits), Trace::default());
            parts.iter().for_each(|part| told.receive(&mut lasting, part, &limits));
            let is_end = |piece: &&String| {
                *piece == "end" || piece.starts_with("reset") || piece.starts_with("failed")
            };
            let ends = told.pieces.iter().filter(is_end).count();
            assert!(ends <= 1, "{told:?}");
            assert!(ends == 0 || told.pieces.last().as_ref().is_some_and(is_end), "{told:?}");
            told
        };
        let at = random.below(input.len() as u64 + 1) as usize;
        let (first, second) = input.split_at(at);
        let whole = play(&[input]);
        assert_eq!(whole, play(&[first, second]));
        assert_eq!(whole, play(&input.chunks(1).collect::<Vec<_>>()));
    });
}
