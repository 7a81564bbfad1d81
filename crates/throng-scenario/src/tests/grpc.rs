//! What gRPC calls become in the program. Mistakes with their texts stand in `tests-md/grpc.md`.

use throng_program::{Call, Instruction, OnError, Pick, Program, RetryOn, Scheme, StepKind, Want};
use throng_protocol::grpc::{Code, Encoding};

use super::{outline, program};

fn caller(target: &str, steps: &str) -> Program {
    program(&format!(
        "target: {target}\nproto: market.proto\nsessions:\n  a:\n    steps:\n{steps}\nload: [{{users: \
         10, for: 1m}}]\n"
    ))
}

fn calls(program: &Program) -> Vec<&Call> {
    let code = program.sessions[0].code.iter();
    code.filter_map(|one| if let Instruction::Call(call) = one { Some(&**call) } else { None })
        .collect()
}

const BUY: &str = "
      - grpc: Market/Buy
        message: {id: '${user.id}', items: [{name: tea, count: '${user.id}'}], note: x}
        metadata: {Authorization: 'Bearer ${user.id}', many: [a, b]}
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
fn a_call_has_its_messages_composed_by_the_schema() {
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
    assert_eq!(names, ["authorization", "many", "many"]);
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
    // Replies have the names of enums.
    assert!(matches!(&colour.want, Want::Equals(text) if text.as_literal() == Some(b"RED")));
    assert!(matches!(&buy.saves[0].pick, Pick::Proto(path) if &*path.written == "order.id"));
    let rows: Vec<(&str, StepKind)> =
        program.steps.iter().map(|step| (step.name.as_str(), step.kind)).collect();
    assert_eq!(rows, [("market.v1.Market/Buy", StepKind::Grpc), ("again", StepKind::Grpc)]);
    let [link] = &*program.sessions[0].links else { panic!("one link") };
    assert!(!link.lasts && link.targets[..] == [0]);
}

#[test]
fn calls_send_what_their_methods_take() {
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

#[test]
fn the_outline_has_the_method_and_the_names_of_statuses() {
    let program =
        caller("grpc://a:1", &format!("{BUY}\n      - {{grpc: Market/Fill, messages: []}}"));
    let outline = outline(&program);
    let lines = outline.sessions[0].steps.iter();
    let told: Vec<String> =
        lines.map(|line| format!("{} | {}", line.text, line.notes.join(", "))).collect();
    assert_eq!(
        told,
        [
            "grpc market.v1.Market/Buy | compress gzip, check status OK, NOT_FOUND, check \
             order.items[0].colour equals RED, check order.note equals x, save id = order.id, \
             timeout 2s, retry 3, wait 1s..30s, on UNAVAILABLE timeout, on_error next",
            "grpc market.v1.Market/Buy | name again",
            "grpc market.v1.Market/Fill | 0 messages",
        ]
    );
    assert_eq!(outline.sessions[0].expected.requests, 3.0);
}
