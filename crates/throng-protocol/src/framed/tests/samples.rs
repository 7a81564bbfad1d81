//! Declarations that the tests share, and short ways to write them.

use std::time::Duration;

use super::super::declaration::*;
use super::super::*;

pub(crate) fn placed<T>(value: T) -> Placed<T> {
    Placed { value, place: PlaceId::default() }
}

pub(crate) fn name(text: &str) -> Placed<String> {
    placed(text.to_owned())
}

pub(crate) fn field(id: &str, ty: Type) -> Field {
    Field::new(name(id), ty, PlaceId::default())
}

pub(crate) fn role(id: &str, ty: Type, role: Role) -> Field {
    Field { role, ..field(id, ty) }
}

pub(crate) fn body() -> Field {
    role("body", Type::Bytes(Extent::Rest), Role::Body)
}

pub(crate) fn length(bits: u8, counts: Counts, bytes_max: u64) -> Field {
    let bytes_max = Some(placed(bytes_max));
    role("length", Type::Unsigned(bits), Role::Length { counts, plus: 0, bytes_max })
}

pub(crate) fn text(id: &str) -> Field {
    let prefix = Prefix::Unsigned(16);
    field(id, Type::Text(Extent::Prefixed { prefix, bytes_max: None }))
}

pub(crate) fn message(id: &str, kind: i64, body: Vec<Field>) -> Message {
    Message {
        name: name(id),
        kind: Some(placed(kind.into())),
        answers: Vec::new(),
        push: false,
        more: None,
        holds_packets: false,
        body,
        acknowledged_by: None,
        place: PlaceId::default(),
    }
}

pub(crate) fn answer(id: &str, kind: i64, to: &[&str], body: Vec<Field>) -> Message {
    Message { answers: to.iter().map(|to| name(to)).collect(), ..message(id, kind, body) }
}

pub(crate) fn push(id: &str, kind: i64, body: Vec<Field>) -> Message {
    Message { push: true, ..message(id, kind, body) }
}

pub(crate) fn uint(id: &str, bits: u8) -> Field {
    field(id, Type::Unsigned(bits))
}

/// `chat.protocol.yaml`.
pub(crate) fn chat_declaration() -> Declaration {
    let magic = Field { constant: Some(placed(Literal::Int(0xc4a7))), ..uint("magic", 16) };
    Declaration {
        packet: vec![
            magic,
            length(32, Counts::Body, 64 * 1024),
            role("kind", Type::Unsigned(8), Role::Selects),
            role("seq", Type::Unsigned(32), Role::Correlates),
            body(),
        ],
        messages: vec![
            message("join", 1, vec![uint("room", 64), uint("user", 64), text("token")]),
            answer("joined", 2, &["join"], vec![uint("code", 16), uint("online", 32)]),
            message("like", 3, vec![field("count", Type::Varint)]),
            message("gift", 4, vec![uint("gift", 16), uint("price", 32)]),
            answer("done", 5, &["gift", "say", "light"], vec![uint("code", 16)]),
            message("light", 6, vec![uint("colour", 8)]),
            message("say", 7, vec![uint("id", 64), uint("sent_ns", 64), text("text")]),
            push(
                "said",
                8,
                vec![uint("from", 64), uint("id", 64), uint("sent_ns", 64), text("text")],
            ),
            message("ping", 9, vec![]),
            answer("pong", 10, &["ping"], vec![]),
            message("leave", 11, vec![]),
        ],
        heartbeat: Some(Heartbeat {
            send: name("ping"),
            expect: Some(name("pong")),
            every: Duration::from_secs(30),
            lost_after: Some(Duration::from_secs(10)),
            place: PlaceId::default(),
        }),
        ..Declaration::default()
    }
}

pub(crate) fn chat() -> Protocol {
    compiled(chat_declaration())
}

pub(crate) fn compiled(declaration: Declaration) -> Protocol {
    match Protocol::compile(declaration) {
        Ok(protocol) => protocol,
        Err(mistakes) => panic!("{mistakes:#?}"),
    }
}

/// `miop.protocol.yaml`, with pushes that are acknowledged immediately.
pub(crate) fn miop() -> Protocol {
    let short = |id: &str| {
        let prefix = Prefix::Unsigned(8);
        field(id, Type::Text(Extent::Prefixed { prefix, bytes_max: None }))
    };
    let json = || field("data", Type::Json(Extent::Rest));
    let received = Acknowledgement {
        message: name("received"),
        fields: vec![(name("id"), placed(Copied::Field("id".to_owned())))],
    };
    let pushed = push("push", 5, vec![uint("id", 64), uint("sent_ns", 64), json()]);
    compiled(Declaration {
        packet: vec![
            length(16, Counts::After, 16 * 1024),
            role("kind", Type::Unsigned(8), Role::Selects),
            role("seq", Type::Unsigned(32), Role::Correlates),
            body(),
        ],
        messages: vec![
            message("bind", 1, vec![short("device"), short("key")]),
            answer("bound", 2, &["bind"], vec![uint("code", 8)]),
            message("heartbeat", 3, vec![]),
            answer("alive", 4, &["heartbeat"], vec![]),
            Message { acknowledged_by: Some(received), ..pushed },
            message("received", 6, vec![uint("id", 64)]),
            message("report", 7, vec![json()]),
            answer("noted", 8, &["report"], vec![]),
        ],
        ..Declaration::default()
    })
}

/// A protocol whose only message `it` has these fields, one datagram each.
pub(crate) fn one(fields: Vec<Field>) -> Declaration {
    Declaration {
        transport: Transport::Udp,
        packet: vec![body()],
        messages: vec![Message { kind: None, ..push("it", 0, fields) }],
        ..Declaration::default()
    }
}
