//! Tests the programs of gRPC calls. `tests-md/grpc.md` contains errors and their messages.

use throng_program::{
    Beat, Call, Content, OnError, Pick, Program, RetryOn, Scheme, Statement, StepKind, Want,
};
use throng_protocol::grpc::{Code, Encoding};

use crate::outline::outline;
use crate::tests::program;

fn caller(target: &str, steps: &str) -> Program {
    program(&format!(
        "target: {target}\nproto: market.proto\nsessions:\n  a:\n    steps:\n{steps}\nload: [{{users: \
         10, for: 1m}}]\n"
    ))
}

fn calls(program: &Program) -> Vec<&Call> {
    let all = program.sessions[0].all();
    all.filter_map(|one| if let Statement::Call(call) = one { Some(&**call) } else { None })
        .collect()
}

const BUY: &str = "
      - grpc: Market/Buy
        message: {id: '${user.id}', items: [{name: tea, count: '${user.id}'}], note: x}
        metadata: {Authorization: 'Bearer ${user.id}', many: [a, b], t-bin: \"\\x00\\xff\"}
        compress: gzip
        timeout: 2s
        check:
          status: [OK, not_found]
          order.items[0].colour: 1
          order.note: x
        save: {id: order.id}
        retry: {on: [UNAVAILABLE, timeout]}
        on_error: next
      - {grpc: Market/Buy, message: {id: '${saved.id}'}, name: again}";

#[test]
fn messages_of_a_call_are_encoded_by_the_schema() {
    let program = caller("grpcs://a", BUY);
    assert_eq!((program.targets[0].scheme, program.targets[0].port), (Scheme::Grpcs, 443));
    let schema = program.schema.as_deref().unwrap();
    let [buy, again] = calls(&program)[..] else { panic!("two calls") };
    let method = schema.method(buy.opened.method);
    assert_eq!(&*method.path, "/market.v1.Market/Buy");
    let [message] = &buy.opened.messages[..] else { panic!("one message") };
    assert_eq!(message.template.message(), method.input);
    assert_eq!((message.leaves.len(), message.template.constant()), (2, None));
    let names: Vec<&str> = buy.opened.metadata.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["authorization", "many", "many", "t-bin"]);
    // Escaped bytes are bytes, not their digits.
    assert_eq!(buy.opened.metadata[3].1.as_literal(), Some(&b"\x00\xff"[..]));
    assert_eq!(buy.opened.encoding, Encoding::Gzip);
    assert_eq!(again.opened.encoding, Encoding::Identity);
    assert_eq!((buy.timeout.as_secs(), again.timeout.as_secs()), (2, 30));
    assert_eq!(buy.failing.then, OnError::Next);
    let on = buy.failing.retry.map(|retry| retry.on);
    let Some(RetryOn::Only { statuses, .. }) = on else { panic!("{on:?}") };
    let unavailable = Code::Unavailable.status();
    assert_eq!(statuses[0], Some((unavailable, unavailable)));
    let [status, colour, _] = &buy.checks[..] else { panic!("{:?}", buy.checks) };
    assert_eq!(
        status.status().unwrap().ranges,
        [Code::Ok, Code::NotFound].map(|code| (code.status(), code.status()))
    );
    let Pick::Proto(path) = &colour.pick else { panic!("{colour:?}") };
    assert_eq!((&*path.written, path.message), ("order.items[0].colour", method.output));
    // Replies contain the names of enum values.
    assert!(matches!(&colour.want, Want::Equals(text) if text.as_literal() == Some(b"RED")));
    assert!(matches!(&buy.saves[0].pick, Pick::Proto(path) if &*path.written == "order.id"));
    let rows: Vec<(&str, StepKind)> =
        program.steps.iter().map(|step| (step.name.as_str(), step.kind)).collect();
    assert_eq!(rows, [("market.v1.Market/Buy", StepKind::Grpc), ("again", StepKind::Grpc)]);
    let [link] = &*program.sessions[0].links else { panic!("one link") };
    assert!(!link.lasts && link.targets[..] == [0]);
}

#[test]
fn calls_send_what_their_methods_accept() {
    let steps = "
      - grpc: Market/Close
      - {grpc: Market/Watch, message: {name: tea}}
      - {grpc: Market/Fill, messages: [{name: a}, {name: '${user.id}'}, {}]}
      - {grpc: Market/Fill, messages: []}
      - {grpc: Market/Haggle, message: {name: a}}";
    let program = caller("grpc://a:1", steps);
    let lengths = calls(&program).into_iter().map(|call| call.opened.messages.len());
    assert_eq!(lengths.collect::<Vec<_>>(), [1, 1, 3, 0, 1]);
    let close = &calls(&program)[0].opened.messages[0];
    assert_eq!(close.template.constant(), Some(&b""[..]));
}

const HAGGLE: &str = "
      - {connect: Market/Haggle, as: deal, metadata: {a: b}, compress: gzip, heartbeat: {send: {name: \
          ping}, every: 5s}, on: [{message: {paid: true}, do: [{log: '${message.order.id}'}]}]}
      - {connect: Market/Watch, as: watch, message: {name: '${user.id}'}}
      - {connect: Market/Haggle, as: other}
      - {send: {name: '${user.id}', count: 2}, on: deal}
      - {request: {name: tea}, on: deal, expect: {cents: 5}, check: {paid: true}, save: {id: order.id}}
      - {expect: {colour: RED, name: '${saved.id}'}, on: watch}
      - {disconnect: half_close, on: deal}";

#[test]
fn an_open_call_is_a_connection_with_the_messages_of_its_method() {
    let program = caller("grpc://a:1", HAGGLE);
    let schema = program.schema.as_deref().unwrap();
    let session = &program.sessions[0];
    let links: Vec<(&str, bool)> =
        session.links.iter().map(|link| (&*link.name, link.lasts)).collect();
    assert_eq!(links, [("deal", true), ("watch", true), ("other", true)]);
    let opened: Vec<(u8, &str, usize)> = session
        .steps
        .iter()
        .filter_map(|one| match one {
            Statement::Connect(one) => {
                let call = one.options.as_ref()?.call()?;
                Some((one.link, &*schema.method(call.method).name, call.messages.len()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(opened, [(0, "Haggle", 0), (1, "Watch", 1), (2, "Haggle", 0)]);
    let Some(Beat::Message(beat)) = session.links[0].heartbeat.as_ref().map(|one| &one.beat) else {
        panic!("a heartbeat")
    };
    let Content::Proto(beat) = &beat.content else { panic!("{beat:?}") };
    assert_eq!(beat.template.constant(), Some(&b"\x0a\x04ping"[..]));
    let [handler] = &session.links[0].handlers[..] else { panic!("one handler") };
    assert!(
        matches!(&handler.message.checks[0].pick, Pick::Proto(path) if &*path.written == "paid")
    );
    // Fields that the handler uses are saved to slots.
    assert!(matches!(&handler.saves[0].pick, Pick::Proto(path) if &*path.written == "order.id"));
    assert_eq!(program.step(handler.step).name, "paid=true");
    let Statement::Send(send) = &session.steps[3] else { panic!("a send") };
    let Content::Proto(message) = &send.message.content else { panic!("{send:?}") };
    assert_eq!((message.leaves.len(), send.link), (1, 0));
    let Statement::Request(request) = &session.steps[4] else { panic!("a request") };
    assert_eq!(request.checks.len(), 2);
    assert!(matches!(&request.saves[0].pick, Pick::Proto(path) if &*path.written == "order.id"));
    let Statement::Expect(expect) = &session.steps[5] else { panic!("an expect") };
    assert_eq!((expect.link, expect.message.checks.len(), expect.checks.len()), (1, 2, 0));
    let told = &outline(&program, usize::MAX).sessions[0];
    let line = |at: usize| format!("{} | {}", told.steps[at].text, told.steps[at].notes.join(", "));
    assert_eq!(line(0), "connect market.v1.Market/Haggle | as deal, metadata a: b, compress gzip");
    assert_eq!(line(3), "send market.v1.Item | on deal");
    assert_eq!(line(5), "expect colour equals RED and name equals ${saved.id} | on watch");
    assert_eq!(told.beside[0].text, "heartbeat market.v1.Item every 5s");
}

#[test]
fn the_outline_has_the_method_and_the_names_of_statuses() {
    let program =
        caller("grpc://a:1", &format!("{BUY}\n      - {{grpc: Market/Fill, messages: []}}"));
    let outline = outline(&program, usize::MAX);
    let lines = outline.sessions[0].steps.iter();
    let told: Vec<String> =
        lines.map(|line| format!("{} | {}", line.text, line.notes.join(", "))).collect();
    assert_eq!(
        told,
        [
            "grpc market.v1.Market/Buy | metadata authorization: Bearer ${user.id}, metadata many: a, \
             metadata many: b, metadata t-bin: AP8=, compress gzip, check status OK, NOT_FOUND, check \
             order.items[0].colour equals RED, check order.note equals x, save id = order.id, \
             timeout 2s, retry 3, wait 1s..30s, on UNAVAILABLE timeout, on_error next",
            "grpc market.v1.Market/Buy | name again",
            "grpc market.v1.Market/Fill | messages 0",
        ]
    );
}
