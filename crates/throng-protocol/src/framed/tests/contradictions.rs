//! Contradictory declarations, and their errors.

use super::*;

/// The codes and messages of all mistakes.
fn mistakes(declaration: Declaration) -> Vec<String> {
    match Protocol::compile(declaration) {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes
            .iter()
            .map(|mistake| format!("{}: {}", mistake.code, mistake.message.english()))
            .collect(),
    }
}

#[track_caller]
fn one_mistake(declaration: Declaration, expected: &str) {
    assert_eq!(mistakes(declaration), [expected]);
}

/// The chat with something changed.
#[track_caller]
fn chat_with(change: impl FnOnce(&mut Declaration), expected: &str) {
    let mut declaration = chat_declaration();
    change(&mut declaration);
    one_mistake(declaration, expected);
}

#[test]
fn indistinguishable_messages_are_rejected() {
    chat_with(
        |chat| chat.messages[3].kind = Some(placed(3.into())),
        "protocol-kind-twice: `like` and `gift` both have the kind 3",
    );
    chat_with(
        |chat| chat.messages[3].kind = Some(placed(256.into())),
        "protocol-bad-kind: `kind` cannot encode the kind 256",
    );
    chat_with(
        |chat| chat.messages[3].kind = Some(placed((-1).into())),
        "protocol-bad-kind: `kind` cannot encode the kind -1",
    );
    chat_with(|chat| chat.messages[3].kind = None, "protocol-bad-kind: `gift` has no `kind`");
    chat_with(
        |chat| chat.messages[10].name = name("ping"),
        "protocol-name-twice: the message `ping` is declared twice",
    );
    let mut two = one(vec![]);
    two.messages.push(Message { kind: None, ..push("other", 0, vec![]) });
    one_mistake(two.clone(), "protocol-ambiguous: `it` and `other` cannot be told apart");
    two.messages[1].push = false;
    assert!(mistakes(two.clone()).is_empty(), "one for each direction");
    two.messages[1].kind = Some(placed(4.into()));
    one_mistake(
        two,
        "protocol-bad-kind: `other` has a kind, but no field of the packet contains the kind",
    );
    one_mistake(
        Declaration { messages: vec![], ..one(vec![]) },
        "protocol-empty: there are no messages",
    );
    one_mistake(
        Declaration { packet: vec![], ..one(vec![]) },
        "protocol-empty: the packet has no fields",
    );
}

#[test]
fn replies_and_heartbeats_must_refer_to_messages() {
    chat_with(
        |chat| chat.messages[4].answers.push(name("gifd")),
        "protocol-bad-reply: `answers` of `done` lists `gifd`, which is not a message",
    );
    chat_with(
        |chat| chat.messages[4].answers.push(name("say")),
        "protocol-bad-reply: `answers` of `done` lists `say` twice",
    );
    let mut itself = chat_declaration();
    itself.messages[4].answers.push(name("done"));
    assert!(mistakes(itself.clone()).is_empty(), "the sequence number tells which request it is");
    itself.packet[3].role = Role::Value;
    one_mistake(itself, "protocol-bad-reply: `done` lists itself in `answers`");
    chat_with(
        |chat| chat.messages[7].answers.push(name("say")),
        "protocol-bad-reply: `said` is a push, but `answers` lists `say`",
    );
    fn beat(chat: &mut Declaration) -> &mut Heartbeat {
        chat.heartbeat.as_mut().unwrap()
    }
    chat_with(
        |chat| beat(chat).send = name("pin"),
        "protocol-bad-heartbeat: the heartbeat uses `pin`, which is not a message",
    );
    chat_with(
        |chat| beat(chat).expect = Some(name("pang")),
        "protocol-bad-heartbeat: the heartbeat uses `pang`, which is not a message",
    );
    chat_with(
        |chat| beat(chat).expect = Some(name("done")),
        "protocol-bad-heartbeat: the heartbeat expects `done`, which is not a reply to `ping`",
    );
    chat_with(
        |chat| beat(chat).every = std::time::Duration::ZERO,
        "protocol-bad-heartbeat: the heartbeat interval must be more than 0",
    );
    let mut chat = chat_declaration();
    beat(&mut chat).expect = None;
    assert!(mistakes(chat).is_empty());
}

#[test]
fn impossible_acknowledgements_are_rejected() {
    let with = |message: &str, fields: Vec<(&str, Copied)>| {
        let mut declaration = chat_declaration();
        let fields = fields.into_iter().map(|(id, copied)| (name(id), placed(copied))).collect();
        let acknowledgement = Acknowledgement { message: name(message), fields };
        declaration.messages[7].acknowledged_by = Some(acknowledgement);
        mistakes(declaration)
    };
    let from = |path: &str| Copied::Field(path.to_owned());
    assert!(with("like", vec![("count", from("id"))]).is_empty());
    let code = "protocol-bad-acknowledgement";
    let cases = [
        (with("lik", vec![]), "`said` is acknowledged with `lik`, which is not a message"),
        (with("like", vec![]), "the field `count` is missing"),
        (with("like", vec![("count", from("idd"))]), "there is no field `idd`"),
        (with("like", vec![("cont", from("id"))]), "`like` has no field `cont`"),
        (
            with("light", vec![("colour", Copied::Literal(Literal::Int(999)))]),
            "its type is `u8`: 999 is out of range (0 to 255)",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, [format!("{code}: {expected}")]);
    }
}

#[test]
fn packets_without_a_determined_end_are_rejected() {
    chat_with(
        |chat| chat.packet[1] = uint("length", 32),
        "protocol-no-length: the protocol does not define where a packet ends",
    );
    chat_with(
        |chat| chat.packet[1] = length(16, Counts::Body, 128 * 1024),
        "protocol-bad-length: the type of `length` cannot represent its `max`, 131072",
    );
    chat_with(
        |chat| chat.packet[1] = length(64, Counts::Body, 1 << 40),
        "protocol-bad-length: the limit of 1099511627776 bytes exceeds the maximum of 1073741824",
    );
    chat_with(
        |chat| chat.packet[1] = length(16, Counts::Packet, 8),
        "protocol-bad-length: a packet has at least 9 bytes, but `length` allows at most 8",
    );
    chat_with(
        |chat| chat.packet.insert(1, text("name")),
        "protocol-bad-length: `length` comes after fields of variable size, so its position is \
         unknown",
    );
    chat_with(
        |chat| chat.packet.insert(2, text("name")),
        "protocol-bad-length: `length` counts the body, but the packet has later fields without a \
         fixed size",
    );
    let mut chat = chat_declaration();
    chat.packet[1] = length(32, Counts::After, 64 * 1024);
    chat.packet.push(text("name"));
    one_mistake(chat, "protocol-bad-role: `name` comes after the body and has no fixed size");
    let ten = |fields: Vec<Field>| Declaration {
        framing: Framing::Fixed(placed(10)),
        transport: Transport::Tcp,
        ..one(fields)
    };
    one_mistake(
        ten(vec![uint("a", 64), uint("b", 64)]),
        "protocol-bad-fixed: `it` has at least 16 bytes, but a packet has only 10",
    );
    one_mistake(
        Declaration { packet: vec![uint("a", 64), uint("b", 64), body()], ..ten(vec![]) },
        "protocol-bad-fixed: a packet has at least 16 bytes, but `fixed` is 10",
    );
    let of_size = |bytes: u32| Declaration {
        packet: vec![uint("a", 64)],
        framing: Framing::Fixed(placed(bytes)),
        ..ten(vec![])
    };
    one_mistake(of_size(0), "protocol-bad-fixed: a packet cannot have 0 bytes");
    one_mistake(
        of_size(u32::MAX),
        "protocol-bad-fixed: a packet can have at most 1073741824 bytes, not 4294967295",
    );
    one_mistake(
        Declaration { packet: vec![uint("a", 64)], ..ten(vec![]) },
        "protocol-bad-fixed: the fields of a packet have 8 bytes in total, but `fixed` is 10",
    );
    let delimiter = Framing::Delimiter { bytes: placed(Vec::new()), bytes_max: 9 };
    one_mistake(
        Declaration { framing: delimiter, ..one(vec![]) },
        "protocol-bad-delimiter: the packet delimiter is empty",
    );
}

#[test]
fn the_only_message_may_answer_itself() {
    let mut line = one(vec![field("text", Type::Text(Extent::Rest))]);
    line.messages[0].push = false;
    line.messages[0].answers = vec![name("it")];
    let protocol = compiled(line);
    let it = protocol.message("it").unwrap();
    let info = protocol.info(it);
    assert_eq!((&*info.answers, &*info.answered_by), (&[it][..], &[it][..]));
    assert_eq!(protocol.decode(b"+OK", &mut Decoded::default()).unwrap().message, it);
}

#[test]
fn messages_larger_than_a_packet_are_rejected() {
    let block = |bytes: u32| field("y", Type::Text(Extent::Fixed(bytes)));
    let counted = |bits: u8, fields: Vec<Field>| Declaration {
        transport: Transport::Tcp,
        packet: vec![
            role(
                "length",
                Type::Unsigned(bits),
                Role::Length { counts: Counts::After, plus: 0, bytes_max: None },
            ),
            body(),
        ],
        ..one(fields)
    };
    one_mistake(
        counted(8, vec![block(300)]),
        "protocol-bad-length: `it` has at least 301 bytes, but a packet can have at most 256",
    );
    assert!(mistakes(counted(8, vec![block(255)])).is_empty());
    one_mistake(
        counted(8, vec![block(200), block(56)].into_iter().enumerate().map(renamed).collect()),
        "protocol-bad-length: `it` has at least 257 bytes, but a packet can have at most 256",
    );
    let long = Literal::Text("x".repeat(300));
    let constant = Field { constant: Some(placed(long)), ..text("y") };
    one_mistake(
        counted(8, vec![constant]),
        "protocol-bad-length: `it` has at least 303 bytes, but a packet can have at most 256",
    );
    one_mistake(
        one(vec![block(70_000)]),
        "protocol-too-large: `it` has at least 70000 bytes, but a packet can have at most 65507",
    );
    let delimiter = Framing::Delimiter { bytes: placed(b"\n".to_vec()), bytes_max: 64 };
    one_mistake(
        Declaration { framing: delimiter, ..one(vec![block(65)]) },
        "protocol-too-large: `it` has at least 65 bytes, but a packet can have at most 64",
    );
}

fn renamed((index, field): (usize, Field)) -> Field {
    Field { id: name(&format!("y{index}")), ..field }
}

#[test]
fn a_delimiter_must_not_occur_in_written_values() {
    let with = |delimiter: &[u8], field: Field| {
        let bytes = placed(delimiter.to_vec());
        Declaration {
            transport: Transport::Tcp,
            framing: Framing::Delimiter { bytes, bytes_max: 999 },
            packet: vec![field, body()],
            ..one(vec![text("a")])
        }
    };
    let code = "protocol-bad-delimiter: a packet could end inside";
    let length_cut = format!("{code} `length`, which can contain the delimiter");
    one_mistake(with(b"\n", length(16, Counts::After, 900)), &length_cut);
    one_mistake(with(b"\r\n", length(16, Counts::After, 900)), &length_cut);
    one_mistake(with(b"\0", length(16, Counts::After, 5)), &length_cut);
    assert!(mistakes(with(b"\n", length(8, Counts::After, 9))).is_empty());
    let seq = |ty: Type| role("seq", ty, Role::Correlates);
    let seq_cut = format!("{code} `seq`, which can contain the delimiter");
    one_mistake(with(b"\n", seq(Type::Unsigned(32))), &seq_cut);
    one_mistake(with(b"\xff", seq(Type::Varint)), &seq_cut);
    assert!(mistakes(with(b"\r\n", seq(Type::Unsigned(32)))).is_empty());
    let kind = |kind: i64| {
        let mut declaration = with(b"\n", role("kind", Type::Unsigned(16), Role::Selects));
        declaration.messages[0].kind = Some(placed(kind.into()));
        mistakes(declaration)
    };
    let kind_cut = "protocol-bad-delimiter: the kind 2570 contains the packet delimiter";
    assert_eq!(kind(0x0a0a), [kind_cut]);
    assert!(kind(0x0b0c).is_empty());
}

#[test]
fn misplaced_roles_are_rejected() {
    chat_with(
        |chat| chat.packet.push(role("again", Type::Unsigned(8), Role::Correlates)),
        "protocol-role-twice: two fields of the packet have the same purpose: correlation",
    );
    chat_with(
        |chat| chat.packet.swap(2, 4),
        "protocol-bad-role: `kind` comes after the body that it selects",
    );
    chat_with(
        |chat| chat.packet[3] = role("seq", Type::Signed(32), Role::Correlates),
        "protocol-bad-role: the type of `seq` is not suitable for this purpose",
    );
    chat_with(
        |chat| chat.packet[3].constant = Some(placed(Literal::Int(1))),
        "protocol-bad-role: `seq` has a special purpose, so it cannot have `if`, `const` or \
         `default`",
    );
    chat_with(
        |chat| chat.messages[3].body[0].role = Role::Correlates,
        "protocol-role-twice: two fields of the packet have the same purpose: correlation",
    );
    chat_with(
        |chat| chat.messages[3].body[0].role = Role::Selects,
        "protocol-bad-role: `gift` is not a field of `packet`",
    );
    let mut headless = one(vec![uint("a", 8)]);
    headless.packet = vec![uint("b", 8)];
    one_mistake(headless, "protocol-no-body: `it` has fields, but the packet has no body for them");
}

#[track_caller]
fn fields_with(fields: Vec<Field>, expected: &str) {
    one_mistake(one(fields), expected);
}

/// What would be right differs with what is wrong.
#[test]
fn each_error_has_its_own_fix() {
    let help = |declaration| match Protocol::compile(declaration) {
        Ok(_) => String::new(),
        Err(mistakes) => mistakes[0].help.english().to_string(),
    };
    let bits =
        |bits, condition| one(vec![Field { repeat: condition, ..field("a", Type::Bits(bits)) }]);
    assert!(help(bits(65, None)).contains("several bit fields"));
    assert!(help(bits(8, Some(Repeat::Rest))).contains("into a structure"));
    let rest = |repeat| Field { repeat, ..field("a", Type::Text(Extent::Rest)) };
    assert_eq!(help(one(vec![rest(Some(Repeat::Rest))])), "give each item a length");
    let followed = help(one(vec![rest(None), uint("b", 8)]));
    assert_eq!(followed, "move it to the end, or give it a length");
    let mut chat = chat_declaration();
    chat.packet[3].constant = Some(placed(Literal::Int(1)));
    assert!(help(chat).contains("remove `if`, `const` and `default`"));
    let mut chat = chat_declaration();
    chat.packet[3] = role("seq", Type::Signed(32), Role::Correlates);
    assert!(help(chat).contains("a correlation can also be text or bytes"));
}

#[test]
fn contradictory_fields_are_rejected() {
    let constant = |ty, literal| Field { constant: Some(placed(literal)), ..field("c", ty) };
    let default = |ty, literal| Field { default: Some(placed(literal)), ..field("d", ty) };
    let byte = Type::Unsigned(8);
    let fixed = Type::Text(Extent::Fixed(2));
    fields_with(
        vec![uint("a", 8), uint("a", 8)],
        "protocol-name-twice: two fields have the id `a`",
    );
    fields_with(
        vec![uint("body", 8)],
        "protocol-name-twice: `body` is already a field of the packet",
    );
    fields_with(vec![uint("a", 12)], "protocol-bad-type: integers cannot have 12 bits");
    fields_with(
        vec![field("a", Type::Text(Extent::Rest)), uint("b", 8)],
        "protocol-rest-not-last: `a` takes all remaining bytes, so nothing can follow it",
    );
    let rest = Field { repeat: Some(Repeat::Rest), ..uint("a", 8) };
    fields_with(
        vec![rest, uint("b", 8)],
        "protocol-rest-not-last: `a` takes all remaining bytes, so nothing can follow it",
    );
    fields_with(
        vec![field("a", Type::Bits(3)), field("b", Type::Bits(4))],
        "protocol-bad-bits: these adjacent fields have 7 bits in total, which is not a whole \
         number of bytes",
    );
    fields_with(
        vec![field("a", Type::Bits(65))],
        "protocol-bad-bits: a bit field must have 1 to 64 bits, not 65",
    );
    fields_with(
        vec![constant(byte.clone(), Literal::Int(256))],
        "protocol-bad-constant: the constant of `c` is not valid: 256 is out of range (0 to \
         255)",
    );
    fields_with(
        vec![constant(fixed.clone(), Literal::Text("abc".into()))],
        "protocol-bad-constant: the constant of `c` is not valid: it has 3 bytes, but the size of \
         the field is 2 bytes",
    );
    fields_with(
        vec![default(byte.clone(), Literal::Text("x".into()))],
        "protocol-bad-default: the default of `d` is not valid: expected a whole number, not the \
         text `x`",
    );
    fields_with(
        vec![default(fixed, Literal::Text("abc".into()))],
        "protocol-bad-default: the default of `d` is not valid: it has 3 bytes, but the size of \
         the field is 2 bytes",
    );
    let always = Field { repeat: Some(Repeat::Times(2)), ..constant(byte, Literal::Int(1)) };
    fields_with(vec![always], "protocol-bad-repeat: `c` cannot be repeated");
}

#[test]
fn invalid_labels_and_limits_are_rejected() {
    let labels = |labels: &[(&str, i64)]| Field {
        labels: labels.iter().map(|(label, value)| (name(label), *value)).collect(),
        ..uint("e", 8)
    };
    fields_with(
        vec![labels(&[("x", 1), ("x", 2)])],
        "protocol-bad-label: two values are named `x`",
    );
    fields_with(
        vec![labels(&[("x", 1), ("y", 1)])],
        "protocol-bad-label: 1 is named both `x` and `y`",
    );
    fields_with(
        vec![labels(&[("x", 300)])],
        "protocol-bad-label: `x` is 300, which does not fit into the field",
    );
    fields_with(
        vec![field("a", Type::Text(Extent::Delimited(Vec::new())))],
        "protocol-bad-delimiter: the delimiter of `a` is empty",
    );
    let prefix = Prefix::Unsigned(8);
    fields_with(
        vec![field("a", Type::Bytes(Extent::Prefixed { prefix, bytes_max: Some(300) }))],
        "protocol-bad-length: the length of `a` is a u8, which is too small for the limit of \
         300 bytes",
    );
}

#[test]
fn conditions_that_never_hold_are_rejected() {
    use Comparison::*;
    let asked = |comparison, value| {
        let condition = Some(Condition { field: name("n"), comparison, value });
        Field { condition, ..uint("c", 8) }
    };
    let compared =
        |ty: Type, comparison, value| mistakes(one(vec![field("n", ty), asked(comparison, value)]));
    let never = "protocol-bad-reference: this condition is never true: `n` is";
    for (ty, comparison, value, range) in [
        (Type::Unsigned(8), Equal, 300, "between 0 and 255"),
        (Type::Unsigned(8), Less, 0, "between 0 and 255"),
        (Type::Unsigned(8), LessOrEqual, -1, "between 0 and 255"),
        (Type::Signed(8), Greater, 127, "between -128 and 127"),
        (Type::Bool, GreaterOrEqual, 2, "between 0 and 1"),
        (Type::Unsigned(8), HasBits, 0x100, "between 0 and 255"),
        (Type::Unsigned(8), HasBits, -1, "between 0 and 255"),
    ] {
        assert_eq!(compared(ty, comparison, value), [format!("{never} {range}")]);
    }
    for (ty, comparison, value) in [
        (Type::Unsigned(8), NotEqual, 300),
        (Type::Unsigned(8), Equal, 255),
        (Type::Unsigned(8), Less, 1),
        (Type::Signed(8), HasBits, 0x80),
        (Type::Signed(8), Equal, -128),
        (Type::Unsigned(8), HasBits, 0x81),
        (Type::Varint, Equal, i64::MAX),
    ] {
        assert!(compared(ty, comparison, value).is_empty(), "{comparison:?} {value}");
    }
    let constant = Field { constant: Some(placed(Literal::Int(3))), ..uint("n", 8) };
    fields_with(
        vec![constant, asked(Equal, 1)],
        "protocol-bad-reference: this condition is never true: `n` is always 3",
    );
}

#[test]
fn unknown_references_are_rejected() {
    let by = |counter: &str| field("t", Type::Text(Extent::Field(name(counter))));
    fields_with(
        vec![by("n"), uint("n", 8)],
        "protocol-bad-reference: no earlier field in the same list is named `n`",
    );
    fields_with(
        vec![text("n"), by("n")],
        "protocol-bad-reference: `n` is not a whole number, so it cannot serve as a length or a \
         count",
    );
    let asking = |asked: &str| Field {
        condition: Some(Condition { field: name(asked), comparison: Comparison::Equal, value: 1 }),
        ..uint("c", 8)
    };
    fields_with(
        vec![asking("n"), uint("n", 8)],
        "protocol-bad-reference: no earlier field in the same list is named `n`",
    );
    fields_with(
        vec![text("n"), asking("n")],
        "protocol-bad-reference: `n` cannot be used in a condition",
    );
    let twice = Field { repeat: Some(Repeat::Field(name("n"))), ..by("n") };
    fields_with(
        vec![uint("n", 8), twice],
        "protocol-bad-reference: `n` cannot serve as both a length and a count",
    );
    let sum = |algorithm, bits, over: &[&str]| {
        let over = over.iter().map(|over| name(over)).collect();
        role("sum", Type::Unsigned(bits), Role::Checksum { algorithm, over })
    };
    fields_with(
        vec![sum(Checksum::Crc32, 16, &[])],
        "protocol-bad-checksum: `sum` cannot hold a crc32",
    );
    fields_with(
        vec![sum(Checksum::Crc32, 32, &["later"]), uint("later", 8)],
        "protocol-bad-checksum: no earlier field in the same list is named `later`",
    );
    let mut recursive = one(vec![field("a", Type::Struct(0))]);
    recursive.types = vec![
        Struct { name: name("x"), fields: vec![field("y", Type::Struct(1))] },
        Struct { name: name("y"), fields: vec![field("x", Type::Struct(0))] },
    ];
    assert_eq!(
        mistakes(recursive),
        [
            "protocol-recursive: the structure `x` contains itself",
            "protocol-recursive: the structure `y` contains itself"
        ]
    );
    let many = |fields: usize| {
        let one = |index: usize| uint(&format!("f{index}"), 8);
        Struct { name: name(&format!("t{fields}")), fields: (0..fields).map(one).collect() }
    };
    let mut large = one(vec![]);
    large.types = vec![many(16_385)];
    one_mistake(large, "protocol-too-large: the messages have more than 16384 fields in total");
}

/// Structures that double with every level would be enormous when all their fields are laid out.
#[test]
fn oversized_declarations_are_rejected() {
    let mut declaration = one(vec![field("a", Type::Struct(0))]);
    let level = |index: usize| Struct {
        name: name(&format!("t{index}")),
        fields: (0..8)
            .map(|field_| field(&format!("f{field_}"), Type::Struct(index + 1)))
            .collect(),
    };
    declaration.types = (0..40).map(level).collect();
    declaration.types.push(Struct { name: name("last"), fields: vec![uint("x", 8)] });
    let found = mistakes(declaration);
    assert!(found.iter().any(|mistake| mistake.starts_with("protocol-too-large")), "{found:?}");
}

#[test]
fn all_errors_are_reported_together_with_both_positions() {
    let mut chat = chat_declaration();
    chat.messages[3].kind = Some(Placed { value: 3.into(), place: PlaceId(7) });
    chat.messages[2].kind = Some(Placed { value: 3.into(), place: PlaceId(5) });
    chat.messages[4].answers.push(name("nobody"));
    let found = Protocol::compile(chat).unwrap_err();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].place, PlaceId(7));
    assert_eq!(found[0].other, Some((PlaceId(5), say!("first occurrence"))));
    assert!(!found[1].help.is_empty());
}
