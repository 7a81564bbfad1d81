//! Redis users against a server that answers, is late, violates the protocol and rejects logins.

use throng_base::redis as base;
use throng_program::redis::{self, Commands};
use throng_program::{Content, Expect, Login};
use throng_protocol::redis::{Reply, read_reply};

use super::*;

/// A server that answers the words of each command with these bytes.
fn server(answer: impl Fn(&[String]) -> (Duration, Vec<u8>) + 'static) -> Server {
    Box::new(move |asked, _| {
        let mut deeds = Vec::new();
        while let Ok(Some((Reply::List(words), bytes))) = read_reply(asked) {
            asked.drain(..bytes);
            let words = words.iter().map(|word| word.text().unwrap_or_default().to_string());
            let (delay, bytes) = answer(&words.collect::<Vec<_>>());
            deeds.push((delay, Deed::Say(bytes)));
        }
        deeds
    })
}

fn text(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A step that sends these words, and expects this value in the reply.
fn redis(step: u16, commands: &[&[Text]], checks: Vec<Check>) -> Statement {
    let commands: Vec<Vec<Text>> = commands.iter().map(|words| words.to_vec()).collect();
    let commands = Commands::new(&commands, String::new(), !checks.is_empty());
    let mut asks = ask("", Until::Any);
    if let Statement::Request(request) = &mut asks {
        let request = Arc::make_mut(request);
        (request.step, request.checks, request.timeout) = (StepId(step), checks, 100 * MS);
        request.message = Message { content: Content::Redis(Box::new(commands)), cut: None };
    }
    asks
}

fn words(words: &str) -> Vec<Text> {
    words.split(' ').map(Text::literal).collect()
}

fn header(name: &str, want: Want) -> Check {
    Check { pick: Pick::Header(name.into()), want }
}

const KINDS: [StepKind; 4] =
    [StepKind::Connect, StepKind::Redis, StepKind::Redis, StepKind::Expect];

fn asking(code: Block, begin: usize, users: u64, time: Duration) -> Program {
    let drive = Drive::Users(Users { to: users, coming: Coming::AtOnce });
    program(Scheme::Redis, vec![session(code, begin)], &KINDS, phase(drive, Some(time)))
}

fn second() -> Statement {
    Statement::Think(Pause::Uniform { low: S, high: S })
}

#[test]
fn replies_match_their_commands_however_they_are_split() {
    let own = [Text::literal("ECHO"), valued("string(user.id) + \"-\" + string(iteration)")];
    let code = vec![
        connect(),
        redis(1, &[&own], vec![header("value", Want::Equals(own[1].clone()))]),
        redis(2, &[&own, &words("INCR n"), &own], vec![header("type", Want::Present)]),
        second(),
    ];
    let server = server(|words| match words[0].as_str() {
        "ECHO" => (MS, text(&words[1])),
        _ => (MS, b":7\r\n".to_vec()),
    });
    let outcome = run(asking(code, 1, 200, 5 * S), 51, |world| world.clog(0.2), server);
    outcome.is_sound(51);
    assert_eq!(outcome.sum.total().errors, [], "{:?}", outcome.examples);
    let ok = outcome.step(1).ok;
    assert!(ok >= 800 && outcome.step(2).ok == ok, "{ok}");
    let messages = outcome.sum.traffic.messages;
    assert_eq!((messages.sent, messages.received, messages.unasked), (4 * ok, 4 * ok, 0));
}

#[test]
fn a_late_reply_is_not_taken_for_the_next_one() {
    let code = vec![
        connect(),
        redis(1, &[&words("SLOW a")], Vec::new()),
        redis(2, &[&words("ECHO b")], vec![header("value", Want::Equals(Text::literal("b")))]),
        second(),
    ];
    let server = server(|words| match words[0].as_str() {
        "SLOW" => (150 * MS, text(&words[1])),
        _ => (151 * MS, text(&words[1])),
    });
    let mut program = asking(code, 1, 10, 3 * S);
    for statement in &mut program.sessions[0].steps {
        if let Statement::Request(request) = statement
            && request.step == StepId(2)
        {
            Arc::make_mut(request).timeout = S;
        }
    }
    let outcome = run(program, 52, |world| world, server);
    outcome.is_sound(52);
    let late = outcome.step(1);
    assert_eq!((late.ok, late.failed()), (0, outcome.errors(Cause::Timeout)));
    assert!(late.failed() >= 10 && outcome.step(2).ok == late.failed(), "{:?}", outcome.examples);
    assert_eq!(outcome.sum.traffic.messages.unasked, late.failed());
}

#[test]
fn the_code_of_an_error_decides_its_cause() {
    for (error, cause) in [
        ("WRONGTYPE no", Cause::RedisRequest),
        ("OOM full", Cause::RedisError),
        ("ERR odd", Cause::RedisError),
        ("MYMODULE odd", Cause::RedisError),
    ] {
        let code = vec![connect(), redis(1, &[&words("GET a")], Vec::new()), second()];
        let answer = format!("-{error}\r\n").into_bytes();
        let server = server(move |_| (MS, answer.clone()));
        let outcome = run(asking(code, 1, 3, 2 * S), 53, |world| world, server);
        outcome.is_sound(53);
        let failed = outcome.errors(cause);
        assert!(failed >= 3 && outcome.step(1).ok == 0, "{error}");
        let status = base::status(error.split(' ').next().unwrap_or_default().as_bytes());
        assert_eq!(outcome.step(1).codes, [(status, failed)]);
        assert_eq!(outcome.examples[0].detail.english(), format!("Redis error: {error}"));
    }
}

#[test]
fn a_login_succeeds_or_fails() {
    for (reply, ok) in [(&b"+OK\r\n"[..], true), (b"-WRONGPASS no\r\n", false), (b"", false)] {
        let code = vec![connect(), redis(1, &[&words("GET a")], Vec::new()), second()];
        let mut program = asking(code, 1, 3, 2 * S);
        let login = redis::Login { user: String::new(), password: "word".into(), database: 2 };
        program.targets[0].login = Some(Arc::new(Login::Redis(login)));
        let server = server(move |words| match words[0].as_str() {
            "AUTH" => (MS, reply.to_vec()),
            "SELECT" => (MS, b"+OK\r\n".to_vec()),
            _ => (MS, text("a")),
        });
        let outcome = run(program, 54, |world| world, server);
        outcome.is_sound(54);
        match (ok, reply) {
            (true, _) => assert!(outcome.step(1).ok >= 3 && outcome.sum.total().errors.is_empty()),
            (false, b"") => assert!(outcome.errors(Cause::Timeout) >= 3),
            (false, _) => assert!(outcome.errors(Cause::RedisRequest) >= 3),
        }
    }
}

#[test]
fn messages_reach_the_steps_that_wait_for_them() {
    let news = header("channel", Want::Equals(Text::literal("news")));
    let expect = Expect {
        step: StepId(3),
        link: 0,
        message: Which { checks: vec![news], ..Which::default() },
        until: Until::Any,
        checks: vec![body("hi")],
        saves: Vec::new(),
        timeout: 500 * MS,
        failing: Failing::default(),
    };
    let code = vec![
        connect(),
        redis(1, &[&words("SUBSCRIBE odd news")], Vec::new()),
        redis(2, &[&words("PING")], Vec::new()),
        Statement::Expect(Arc::new(expect)),
        second(),
    ];
    let message = |channel: &str| {
        let words = ["message", channel, "hi"].map(text);
        [b"*3\r\n".to_vec(), words.concat()].concat()
    };
    let server = server(move |words| match words[0].as_str() {
        "SUBSCRIBE" => {
            let one = |channel: &str, count| {
                let words = ["subscribe", channel].map(text).concat();
                [b"*3\r\n", &words[..], format!(":{count}\r\n").as_bytes()].concat()
            };
            (MS, [one(&words[1], 1), message("odd"), one(&words[2], 2)].concat())
        }
        // Before its reply, and after it.
        _ => (MS, [message("news"), b"*2\r\n".to_vec(), text("pong"), text("")].concat()),
    });
    let outcome = run(asking(code, 2, 20, 3 * S), 55, |world| world.clog(0.1), server);
    outcome.is_sound(55);
    assert_eq!(outcome.sum.total().errors, [], "{:?}", outcome.examples);
    assert!(outcome.step(3).ok >= 40 && outcome.step(1).ok == 20);
}

#[test]
fn a_server_that_speaks_another_protocol_is_disconnected() {
    for (bytes, cause) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], Cause::WrongScheme),
        (b"$4294967296\r\n", Cause::TooLarge),
        (b"hello\r\n", Cause::Malformed),
    ] {
        let code = vec![connect(), redis(1, &[&words("GET a")], Vec::new()), second()];
        let server = server(move |_| (MS, bytes.to_vec()));
        let outcome = run(asking(code, 1, 3, 2 * S), 56, |world| world, server);
        outcome.is_sound(56);
        assert!(outcome.errors(cause) >= 3, "{:?}", outcome.examples);
    }
}
