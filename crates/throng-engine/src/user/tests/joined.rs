//! Messages that a server joins, and messages that arrive before the acknowledgement of what caused
//! them.

use throng_program::Link;

use super::chat::web_server;
use super::*;

const STEPS: [StepKind; 3] = [StepKind::Connect, StepKind::Request, StepKind::Expect];

/// Sends a message and waits for its acknowledgement, then for its effect; ten times.
fn saying(scheme: Scheme, delimiter: Option<&str>, server: Server) -> Outcome {
    let mut say = ask("hello", Until::Any);
    if let Statement::Request(request) = &mut say {
        Arc::make_mut(request).answer.checks = vec![body("ok hello")];
    }
    let mut said = expect("");
    if let Statement::Expect(said) = &mut said {
        let said = Arc::make_mut(said);
        (said.step, said.timeout) = (StepId(2), 300 * MS);
        (said.message.checks, said.checks) = (vec![body("said hello")], Vec::new());
    }
    let mut session = session(vec![connect(), say, said], 1);
    let delimiter = delimiter.map(|delimiter| delimiter.as_bytes().into());
    session.links = [Link { delimiter, ..Link::default() }].into();
    let drive = Drive::Iterations(Iterations::new(5, None, Some(50)));
    let program = program(scheme, vec![session], &STEPS, phase(drive, None));
    let outcome = run(program, 71, |world| world.clog(0.2), server);
    outcome.is_sound(71);
    outcome
}

fn replies(joined: bool, acknowledged_first: bool) -> impl Fn(&str) -> Vec<String> + 'static {
    move |text| {
        let mut all = vec![format!("said {text}"), format!("ok {text}")];
        if acknowledged_first {
            all.reverse();
        }
        match joined {
            true => vec![all.join("\r\n") + "\r\n"],
            false => all,
        }
    }
}

fn has_met_all(outcome: &Outcome) {
    assert_eq!(outcome.sum.total().errors, []);
    let ok: Vec<u64> = [1, 2].map(|step| outcome.step(step).ok).into();
    assert_eq!(ok, [50, 50]);
    let messages = &outcome.sum.traffic.messages;
    assert_eq!((messages.received, messages.pushes, messages.dropped), (100, 0, 0));
}

#[test]
fn a_message_before_its_acknowledgement_is_kept_for_its_expect() {
    for acknowledged_first in [true, false] {
        let server = web_server(0, replies(false, acknowledged_first));
        has_met_all(&saying(Scheme::Ws, None, server));
    }
}

#[test]
fn records_in_one_message_are_separate_messages() {
    for acknowledged_first in [true, false] {
        let server = web_server(0, replies(true, acknowledged_first));
        has_met_all(&saying(Scheme::Ws, Some("\r\n"), server));
    }
    // Without a delimiter, nothing shows that the message is two.
    let outcome = saying(Scheme::Ws, None, web_server(0, replies(true, true)));
    assert_eq!(outcome.errors(Cause::Timeout), 100);
}

/// The expected reply may be one of the values of a message that cannot be read: that is not the
/// target's fault. A message with one value, even on several lines, does not count as joined.
#[test]
fn a_reply_among_joined_json_values_is_reported_as_missed() {
    let missed = |joined: &'static str| {
        let server = web_server(0, move |_| vec![joined.to_owned()]);
        saying(Scheme::Ws, None, server)
    };
    for joined in ["{\"n\":1}\n{\"n\":2}", "{\"n\":1}{\"n\":2}", "[1][2]", "{\"n\":1}\u{1e}"] {
        let outcome = missed(joined);
        assert_eq!(outcome.errors(Cause::MessagesJoined), 50, "{joined}");
        assert_eq!(outcome.sum.total().ok, 5, "{joined}");
    }
    for single in ["{\"n\":1}", "{\n  \"n\": 1\n}", "not JSON\n{", "{\"n\":\"}{\"}"] {
        let outcome = missed(single);
        assert_eq!(
            (outcome.errors(Cause::MessagesJoined), outcome.errors(Cause::Timeout)),
            (0, 100)
        );
    }
}

/// On a byte stream, pieces arrive in any sizes.
#[test]
fn records_on_a_stream_are_separate_messages() {
    let server: Server = Box::new(|asked, random| {
        let count = asked.len() / "hello".len();
        asked.drain(..count * "hello".len());
        let said = replies(true, false)("hello").concat().repeat(count).into_bytes();
        let (first, rest) = said.split_at(random.below(said.len() as u64 + 1) as usize);
        vec![(MS, say(first)), (5 * MS, say(rest))]
    });
    has_met_all(&saying(Scheme::Tcp, Some("\r\n"), server));
}
