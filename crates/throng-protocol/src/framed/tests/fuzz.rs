//! Random and mutated bytes against declarations of all kinds, and random declarations: nothing
//! panics, memory is bounded, what was written is read again as it was given.

use std::sync::Arc;

use throng_base::Random;
use throng_fuzz::{mutations, rounds};

use super::kinds::{amqp, modbus, words_declaration};
use super::packets::{every_type, every_type_packet, protobuf, protobuf_packet};
use super::*;

/// Reads a stream in some cuts: the packets, and what ended it.
fn packets(protocol: &Protocol, parts: &[&[u8]]) -> (Vec<Vec<u8>>, Option<String>) {
    let mut reader = PacketReader::new();
    let mut packets = Vec::new();
    for part in parts {
        let (mut rest, mut room) = (*part, Vec::new());
        loop {
            match reader.next(Records::Declared(protocol), &mut rest, &mut room) {
                Ok(Some(packet)) => packets.push(packet.to_vec()),
                Ok(None) => break,
                Err(broken) => return (packets, Some(broken.said().english())),
            }
        }
        assert!(reader.held().len() <= part.len() + protocol.table.packet_bytes_max + 16);
    }
    (packets, None)
}

fn cuts<'a>(mut bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let length = 1 + random.below(bytes.len().min(40) as u64) as usize;
        let (part, rest) = bytes.split_at(length);
        parts.push(part);
        bytes = rest;
    }
    parts
}

/// Whether two values are the same: NaN is equal to nothing, including itself.
fn are_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Float(one), Value::Float(other)) if one.is_nan() => other.is_nan(),
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(&**other).all(|(a, b)| are_same(a, b))
        }
        (Value::Map(one), Value::Map(other)) => {
            let pairs = one.iter().zip(&**other);
            one.len() == other.len()
                && pairs.into_iter().all(|(a, b)| a.0 == b.0 && are_same(&a.1, &b.1))
        }
        (one, other) => one == other,
    }
}

/// Reads a packet, and takes out and describes all of it.
fn look(protocol: &Protocol, packet: &[u8], decoded: &mut Decoded) -> bool {
    let read = protocol.decode(packet, decoded);
    let parts = protocol.describe(packet, decoded);
    for pair in parts.windows(2) {
        assert!(pair[0].start <= pair[1].start, "{parts:?}");
    }
    let Ok(read) = read else { return false };
    let last = parts.iter().map(|part| part.end).max().unwrap_or(0);
    assert_eq!(last, packet.len(), "{parts:?}");
    for part in &parts {
        let path = protocol.field(read.message, &part.path).unwrap();
        let value = protocol.value(packet, decoded, &path);
        let is_main =
            !part.note.english().contains("follow") && !part.note.english().contains("delimiter");
        if is_main && part.note != "padding" && !matches!(value, Some(Value::Float(_))) {
            // A JSON number that no double holds has no value.
            let is_json = part.type_word == "json";
            let same = value.as_ref().is_some_and(|value| are_same(value, &part.value));
            assert!(is_json || same, "{part:?} {value:?}");
        }
    }
    true
}

#[test]
fn fuzz_streams_do_not_depend_on_the_split() {
    let chat = chat();
    let lines = compiled(Declaration {
        framing: Framing::Delimiter { bytes: placed(b"\r\n".to_vec()), bytes_max: 40 },
        transport: Transport::Tcp,
        ..one(vec![field("line", Type::Text(Extent::Rest))])
    });
    let varint = compiled(Declaration {
        packet: vec![
            role(
                "n",
                Type::Varint,
                Role::Length { counts: Counts::Packet, plus: 0, bytes_max: None },
            ),
            body(),
        ],
        transport: Transport::Tcp,
        ..one(vec![field("line", Type::Bytes(Extent::Rest))])
    });
    let (resp, nats) = (frames::resp(), frames::nats());
    let fixed = compiled(Declaration {
        framing: Framing::Fixed(placed(5)),
        transport: Transport::Tcp,
        ..one(vec![uint("a", 16)])
    });
    let done = write(&chat, "done", &[("code", Value::Int(3))], 9);
    let say = [("id", Value::Int(1)), ("sent_ns", Value::Int(2)), ("text", Value::from("hi"))];
    let stream = [done.clone(), write(&chat, "say", &say, 10), done].concat();
    let corpus: &[&[u8]] = &[
        &stream,
        b"one\r\ntwo\r\r\n\r\n",
        b"\x03ab\x01\x81\x00\x04abc",
        b"\0\x01\0\0\0\0\x02\0\0\0",
        b"*2\r\n$1\r\na\r\n$0\r\n\r\n+OK\r\n:-5\r\n$3\r\nabc\r\n$-1\r\n",
        b"MSG a 1 3\r\nabc\r\n+OK\r\nINFO {\"a\": 1}\r\nPING\r\n",
    ];
    mutations(corpus, |input, random| {
        for protocol in [&chat, &lines, &varint, &fixed, &resp, &nats] {
            let whole = packets(protocol, &[input]);
            assert_eq!(whole, packets(protocol, &cuts(input, random)));
            let single: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(whole, packets(protocol, &single));
            let mut decoded = Decoded::default();
            for packet in &whole.0 {
                look(protocol, packet, &mut decoded);
            }
        }
    });
}

#[test]
fn fuzz_malformed_packets_are_reported_without_a_panic() {
    let words = compiled(words_declaration(Extent::Delimited(b" ".to_vec())));
    let frames = [frames::mqtt(), frames::resp(), frames::nats(), frames::dns()];
    let all = [chat(), miop(), every_type(), protobuf(), modbus(), amqp(), words];
    let all: Vec<Protocol> = all.into_iter().chain(frames).collect();
    let mut corpus = vec![every_type_packet(), protobuf_packet(), b"MSG a".to_vec()];
    corpus.push(frames::MQTT.to_vec());
    corpus.push(frames::DNS.to_vec());
    corpus.push(b"*2\r\n$1\r\na\r\n$0\r\n\r\n".to_vec());
    corpus.push(b"MSG a 1 3\r\nabc\r\n".to_vec());
    corpus.push(b"\0\x09\0\0\0\x05\x01\x03\x02\0\x07".to_vec());
    corpus.push(b"\x01\0\0\0\0\0\x08\0\x0a\0\x28\0\x01/\xce".to_vec());
    let pushed = [
        ("id", Value::Int(1)),
        ("sent_ns", Value::Int(2)),
        ("data", Value::parse_json(br#"{"a": [1, "x"], "b": {"c": null}}"#).unwrap()),
    ];
    corpus.push(write(&all[1], "push", &pushed, 0));
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    let mut decoded = Decoded::default();
    let mut good = 0;
    mutations(&corpus, |input, _| {
        for protocol in &all {
            good += u64::from(look(protocol, input, &mut decoded));
        }
    });
    assert!(good > rounds() / 100, "only {good} packets were good");
}

/// A declaration of fields that were drawn by lot.
struct Lot<'r> {
    random: &'r mut Random,
    names: u32,
}

impl Lot<'_> {
    fn pick(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    fn id(&mut self) -> String {
        self.names += 1;
        format!("f{}", self.names)
    }

    fn prefix(&mut self) -> Prefix {
        match self.pick(6) {
            0 => Prefix::Varint,
            4 => Prefix::Ber,
            5 => Prefix::Lenenc,
            1 => Prefix::Unsigned(8),
            2 => Prefix::Unsigned(24),
            _ => Prefix::Unsigned(16),
        }
    }

    fn extent(&mut self) -> Extent {
        match self.pick(3) {
            0 => Extent::Fixed(1 + self.pick(20) as u32),
            1 => Extent::Delimited([&b"\0"[..], b"\r\n", b"abab"][self.pick(3) as usize].to_vec()),
            _ => Extent::Prefixed { prefix: self.prefix(), bytes_max: None },
        }
    }

    fn integer(&mut self) -> Type {
        let bits = 8 * (1 + self.pick(8) as u8);
        match self.pick(7) {
            4 => Type::Coded(Coding::Ber),
            5 => Type::Coded(Coding::Lenenc),
            6 => Type::Coded(Coding::Decimal((*b" ").into())),
            0 => Type::Signed(bits),
            1 => Type::Varint,
            2 => Type::ZigZag,
            _ => Type::Unsigned(bits),
        }
    }

    fn ty(&mut self, depth: u32) -> Type {
        match self.pick(12) {
            0..4 => self.integer(),
            4 => Type::Float64,
            5 => Type::Bool,
            6 | 7 => Type::Text(self.extent()),
            8 => Type::Bytes(self.extent()),
            9 => Type::Json(Extent::Prefixed { prefix: self.prefix(), bytes_max: None }),
            _ if depth > 0 => Type::Fields(self.fields(depth - 1, false)),
            _ => Type::Float32,
        }
    }

    fn fields(&mut self, depth: u32, is_last: bool) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        for _ in 0..1 + self.pick(5) {
            let id = self.id();
            let mut made = field(&id, self.ty(depth));
            made.endian = (self.pick(2) == 0).then_some(Endian::Little);
            if matches!(made.ty, Type::Fields(_)) && self.pick(2) == 0 {
                made.bound = Some(Extent::Prefixed { prefix: self.prefix(), bytes_max: None });
            }
            match self.pick(9) {
                8 => made.repeat = Some(Repeat::Until(vec![0xee; 1 + self.pick(2) as usize])),
                0 => made.repeat = Some(Repeat::Prefixed(self.prefix())),
                1 => made.repeat = Some(Repeat::Times(self.pick(4) as u32)),
                2 => {
                    let counter = self.id();
                    fields.push(field(&counter, Type::Unsigned(8)));
                    made.repeat = Some(Repeat::Field(name(&counter)));
                }
                3 => {
                    let asked = self.id();
                    fields.push(field(&asked, Type::Signed(8)));
                    made.condition = Some(Condition {
                        field: name(&asked),
                        comparison: [Comparison::Less, Comparison::HasBits][self.pick(2) as usize],
                        value: self.pick(4) as i64,
                    });
                }
                4 => {
                    let (first, second) = (self.id(), self.id());
                    let bits = 1 + self.pick(60) as u8;
                    fields.push(field(&first, Type::Bits(bits)));
                    fields.push(field(&second, Type::Bits(8 - bits % 8)));
                    // Another group may follow immediately: put something between them.
                    fields.push(field(&self.id(), Type::Bool));
                }
                5 => {
                    let counter = self.id();
                    fields.push(field(&counter, Type::Varint));
                    made.ty = Type::Text(Extent::Field(name(&counter)));
                }
                _ => {}
            }
            fields.push(made);
        }
        if self.pick(3) == 0 {
            let over = Role::Checksum { algorithm: Checksum::Crc32, over: Vec::new() };
            fields.push(role(&self.id(), Type::Unsigned(32), over));
        }
        if is_last {
            match self.pick(4) {
                0 => fields.push(field(&self.id(), Type::Bytes(Extent::Rest))),
                1 => {
                    let rest = Extent::RestBefore(b"ab".to_vec());
                    fields.push(field(&self.id(), Type::Bytes(rest)));
                }
                2 => {
                    let tail = field(&self.id(), Type::Coded(Coding::Ber));
                    fields.push(Field { is_optional: true, ..tail });
                }
                _ => {}
            }
        }
        fields
    }

    fn declaration(&mut self) -> Declaration {
        let counts = [Counts::Packet, Counts::After, Counts::Body][self.pick(3) as usize].clone();
        let ty = match self.pick(5) {
            0 => Type::Varint,
            1 => Type::Coded(Coding::Decimal((*b":").into())),
            2 => Type::Coded(Coding::Lenenc),
            _ => Type::Unsigned(32),
        };
        let plus = self.pick(9) as i64 - 4;
        let crc = Role::Checksum { algorithm: Checksum::Crc16, over: vec![name("body")] };
        let mut packet = vec![
            role("length", ty, Role::Length { counts, plus, bytes_max: None }),
            role("kind", Type::Unsigned(8), Role::Selects),
            role("seq", Type::Unsigned(32), Role::Correlates),
            body(),
        ];
        if self.pick(2) == 0 {
            packet.push(role("crc", Type::Unsigned(16), crc));
        }
        let messages = (0..3).map(|kind| {
            let fields = self.fields(2, true);
            push(&format!("m{kind}"), kind, fields)
        });
        Declaration { messages: messages.collect(), packet, ..Declaration::default() }
    }

    /// A map of values for all fields that are given.
    fn values(&mut self, fields: &[Field]) -> Value {
        let counted: Vec<&str> = fields
            .iter()
            .flat_map(|field| {
                let by_repeat = match &field.repeat {
                    Some(Repeat::Field(name)) => Some(&*name.value),
                    _ => None,
                };
                let by_extent = match &field.ty {
                    Type::Text(Extent::Field(name)) => Some(&*name.value),
                    _ => None,
                };
                [by_repeat, by_extent].into_iter().flatten()
            })
            .collect();
        let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
        for field in fields {
            let is_left_out = field.is_optional && self.pick(2) == 0;
            if counted.contains(&&*field.id.value) || field.role != Role::Value || is_left_out {
                continue;
            }
            let value = match field.repeat {
                None => self.value(&field.ty),
                Some(Repeat::Times(times)) => {
                    Value::from((0..times).map(|_| self.value(&field.ty)).collect::<Vec<_>>())
                }
                Some(_) => {
                    let count = self.pick(4);
                    Value::from((0..count).map(|_| self.value(&field.ty)).collect::<Vec<_>>())
                }
            };
            entries.push((field.id.value.as_str().into(), value));
        }
        entries.into()
    }

    fn value(&mut self, ty: &Type) -> Value {
        let raw = self.random.next_u64() >> self.pick(64);
        let below = |bits: u8| raw & (u64::MAX >> (64 - bits));
        match ty {
            Type::Unsigned(bits) | Type::Bits(bits) => Value::from(below(*bits)),
            Type::Signed(bits) => Value::Int(((raw << (64 - bits)) as i64) >> (64 - bits)),
            Type::Varint => Value::from(raw),
            Type::ZigZag | Type::Coded(Coding::Decimal(_)) => Value::Int(raw as i64),
            Type::Coded(_) => Value::from(raw),
            Type::Float32 => Value::Float(f64::from(raw as u16)),
            Type::Float64 => Value::Float(raw as f64),
            Type::Bool => Value::Bool(raw & 1 == 1),
            Type::Bytes(Extent::Fixed(bytes)) => {
                Value::from((0..*bytes).map(|byte| byte as u8 ^ raw as u8).collect::<Vec<u8>>())
            }
            Type::Bytes(_) => Value::from(vec![raw as u8 | 1; self.pick(9) as usize]),
            Type::Text(Extent::Fixed(bytes)) => {
                Value::from("x".repeat(self.pick(u64::from(*bytes) + 1) as usize))
            }
            Type::Text(_) => Value::from("é".repeat(self.pick(20) as usize)),
            Type::Json(_) | Type::Binary(..) => {
                Value::from(vec![Value::from(raw), Value::from("\"ab"), Value::Null])
            }
            Type::Fields(fields) => self.values(fields),
            Type::Struct(_) | Type::Proto { .. } => Value::Null,
        }
    }
}

/// Everything given is there again; fields whose condition does not hold are not.
fn is_within(given: &Value, read: &Value) -> bool {
    match (given, read) {
        (Value::Map(given), Value::Map(_)) => given
            .iter()
            .all(|(name, value)| read.get(name).is_none_or(|found| is_within(value, found))),
        (Value::List(given), Value::List(read)) => {
            given.len() == read.len() && given.iter().zip(read.iter()).all(|(a, b)| is_within(a, b))
        }
        (given, read) => given.equals(read),
    }
}

/// A map as a scenario gives it: nested, with leaves and literals.
fn given_of(value: &Value, ty: Option<&Type>, random: &mut Random, all: &mut Vec<Value>) -> Given {
    let mut leaf = |value: &Value, random: &mut Random| {
        if random.below(3) == 0 {
            return Given::Literal(value.clone());
        }
        all.push(value.clone());
        Given::Leaf(all.len() as u16 - 1)
    };
    match (value, ty) {
        (Value::Map(entries), Some(Type::Fields(fields))) => {
            let entries = entries.iter().map(|(name, value)| {
                let field = fields.iter().find(|field| *field.id.value == **name).unwrap();
                let given = match (&field.repeat, value) {
                    (Some(_), Value::List(items)) if random.below(2) == 0 => Given::Items(
                        items
                            .iter()
                            .map(|item| given_of(item, Some(&field.ty), random, all))
                            .collect(),
                    ),
                    (Some(_), value) => given_of(value, None, random, all),
                    (None, value) => given_of(value, Some(&field.ty), random, all),
                };
                (name.to_string(), given)
            });
            Given::Fields(entries.collect())
        }
        (value, _) => leaf(value, random),
    }
}

#[test]
fn fuzz_random_declarations_read_what_they_write() {
    let (mut written, mut compiled) = (0, 0);
    for case in throng_fuzz::cases(3) {
        case.try_on(b"", || {
            let read_back = reads_what_it_writes(&mut case.random());
            compiled += u64::from(read_back.is_some());
            written += read_back.unwrap_or_default();
        });
    }
    assert!(compiled > rounds() / 12 && written > rounds() / 12, "{compiled} {written}");
}

/// How many messages of a random declaration were written and read back; nothing if it does not
/// compile.
fn reads_what_it_writes(random: &mut Random) -> Option<u64> {
    let mut written = 0;
    let mut lot = Lot { random: &mut *random, names: 0 };
    let declaration = lot.declaration();
    let protocol = Protocol::compile(declaration.clone()).ok()?;
    for (index, message) in declaration.messages.iter().enumerate() {
        let id = MessageId(index as u16);
        let values = Lot { random: &mut *random, names: 0 }.values(&message.body);
        let mut all = Vec::new();
        let ty = Type::Fields(message.body.clone());
        let given = given_of(&values, Some(&ty), random, &mut all);
        let Ok(template) = protocol.prepare(id, &given) else { continue };
        let mut out = Vec::new();
        let mut leaf =
            |leaf: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(Some(all[usize::from(leaf)].clone()));
        if protocol.encode(&template, 77, &mut leaf, &mut out).is_err() {
            continue;
        }
        written += 1;
        let mut decoded = Decoded::default();
        let told = |what: &str| format!("{what}\n{message:#?}\n{values:?}\n{}", out.escape_ascii());
        match protocol.decode(&out, &mut decoded) {
            Ok(read) => assert_eq!((read.message, read.correlation), (id, Some(77))),
            Err(broken) => panic!("{}", told(&broken.said().english())),
        }
        let path = protocol.field(id, "body").unwrap();
        let read = protocol.value(&out, &decoded, &path).unwrap();
        assert!(is_within(&values, &read), "{}", told(&format!("{read:?}")));
        assert!(look(&protocol, &out, &mut decoded));
        protocol.layout(id);
        for _ in 0..3 {
            let damaged = throng_fuzz::mutate(&[&out], random);
            look(&protocol, &damaged, &mut decoded);
        }
    }
    Some(written)
}
