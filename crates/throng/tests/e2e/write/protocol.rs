//! `throng protocol`: declarations drawn, bytes decoded, messages encoded.

use crate::run::{Run, Throng, throng};

// Some of what it writes only the unit tests read.
#[allow(dead_code)]
#[path = "../../../../throng-packets/src/capture/sample.rs"]
mod sample;

use sample::{ACK, CLIENT, FIN, SERVER, SYN, Wrap, pcap, pcapng, tcp};

const CHAT: &str = include_str!("../../../../../examples/chat.protocol.yaml");
const MIOP: &str = include_str!("../../../../../examples/miop.protocol.yaml");

/// With both declarations in its folder.
fn with(line: &str) -> Throng {
    throng(line).file("chat.yaml", CHAT).file("miop.yaml", MIOP)
}

#[track_caller]
fn is_narrow(run: &Run) {
    let widest = run.out.lines().map(|line| line.chars().count()).max();
    run.check(widest <= Some(80), "a line is longer than a terminal is wide");
}

/// The bytes of a message.
#[track_caller]
fn encoded(message: &str, sequence: u32) -> Vec<u8> {
    let line = format!("protocol chat.yaml --seq {sequence} --encode");
    let run = with(&line).arg(message).run().exits(0);
    let byte = |pair: &str| u8::from_str_radix(pair, 16).expect("hex");
    run.out.split_whitespace().map(byte).collect()
}

#[test]
fn declarations_are_drawn() {
    let run = with("protocol chat.yaml").run().exits(0);
    run.says(&[
        "every packet",
        "│     magic     │",
        "always 0xc4a7",
        "length of the body in bytes",
        "join · kind 1 · to the target · answered by joined",
        "said · kind 8 · from the target · a push (unsolicited)",
        "heartbeat: ping every 30s, expected reply pong, considered lost after 10s",
    ]);
    is_narrow(&run);
    let run = with("protocol miop.yaml --message push").run().exits(0);
    run.says(&["push · kind 5", "sent_ns", "json"]);
    run.check(!run.out.contains("bound"), "only one message");
    is_narrow(&run);
    let run = with("protocol chat.yaml --json").run().exits(0);
    run.check(run.json()["messages"][0]["answered_by"][0] == "joined", "JSON");
    let run = with("protocol chat.yaml --lang zh").run().exits(0);
    run.says(&["每个报文", "由 joined 应答"]);
}

#[test]
fn what_was_encoded_is_decoded() {
    let join = "join: {room: 42, user: 7, token: t-7}";
    let run = with("protocol chat.yaml --seq 9 --encode").arg(join).run().exits(0);
    let hex = run.out.trim().to_string();
    run.check(hex.starts_with("c4 a7 00 00 00 15 01 00 00 00 09"), "the header");
    let run = with("protocol chat.yaml --decode").arg(&hex).run().exits(0);
    run.says(&["join", "room", "42", "\"t-7\"", "all bytes match the declaration"]);
    is_narrow(&run);
    for text in [
        hex.replace(' ', ""),
        hex.replace(' ', ":"),
        format!("0x{}", hex.replace(' ', ", 0x")),
        format!("00000000: {}  ....", hex.replace(' ', "")),
    ] {
        let run = with("protocol chat.yaml --decode - --json");
        let run = run.file("pasted.hex", &text);
        run.run().exits(2);
        let run = with("protocol chat.yaml --json --decode pasted.hex").file("pasted.hex", &text);
        let run = run.run().exits(0);
        run.check(run.out.contains("\"message\":\"join\""), &text);
    }
}

#[test]
fn bytes_that_break_the_declaration_are_marked() {
    let run = with("protocol chat.yaml --decode").arg("c4a700000000630000 0000").run().exits(1);
    run.says(&[
        "broken packet",
        "byte 6",
        "`kind`",
        "^^",
        "the bytes do not match the declaration",
    ]);
    is_narrow(&run);
    let run = with("protocol chat.yaml --decode").arg("c4a70000").run().exits(1);
    run.says(&["an incomplete packet"]);
    // The next packet is read.
    let bytes = [&b"\xc4\xa7\xff\xff\xff\xff\x09zzz"[..], &encoded("ping", 3)].concat();
    let run = with("protocol chat.yaml --decode x.bin").file("x.bin", bytes).run().exits(1);
    run.says(&["broken packet", "10 bytes are skipped", "ping"]);
}

#[test]
fn captures_are_put_together() {
    let (join, joined) = (
        encoded("join: {room: 42, user: 7, token: t-7}", 1),
        encoded("joined: {code: 0, online: 2}", 1),
    );
    let packets = [
        tcp(CLIENT, SERVER, 0, SYN, b""),
        tcp(SERVER, CLIENT, 100, SYN | ACK, b""),
        tcp(CLIENT, SERVER, 9, ACK, &join[8..]),
        tcp(CLIENT, SERVER, 1, ACK, &join[..8]),
        tcp(CLIENT, SERVER, 1, ACK, &join[..8]),
        tcp(SERVER, CLIENT, 101, ACK | FIN, &joined),
        tcp(CLIENT, 22, 1, ACK, b"another protocol"),
    ];
    for file in [pcap(Wrap::Ethernet, &packets), pcapng(Wrap::Sll2, &packets)] {
        let run = with("protocol chat.yaml --port 9000 --decode it.pcap").file("it.pcap", &file);
        let run = run.run().exits(0);
        run.says(&["10.0.0.1:40000 → 10.0.0.2:9000", "→ join", "← joined", "reply to join after"]);
        run.says(&["replies matched to a request: 1", "retransmitted segments: 1"]);
        let run = with("protocol chat.yaml --decode it.pcap --port 23").file("it.pcap", &file);
        run.run().exits(2).says(&["22, 9000"]);
    }
}

#[test]
fn mistakes_have_a_cure() {
    for (line, last, said) in [
        ("protocol chat.yaml --encode", "joyn: {}", "did you mean `join`?"),
        ("protocol chat.yaml --encode", "join: {room: 1, user: x, token: a}", "`x`"),
        ("protocol chat.yaml --decode", "c4 zz", "` is not a hexadecimal digit"),
        ("protocol chat.yaml --decode", "c4 a", "two hexadecimal digits"),
        ("protocol chat.yaml --decode", "no/such.pcap", "no such file"),
        ("protocol chat.yaml --message", "jon", "did you mean `join`?"),
        ("protocol", "none.yaml", "give the path of a protocol file"),
    ] {
        let run = with(line).arg(last).run().exits(2);
        run.check(run.err.contains(said), &format!("`{line} {last}` does not say `{said}`"));
        run.check(run.err.contains("help"), "no cure");
    }
    with("protocol chat.yaml --raw").run().exits(2);
}

#[test]
fn imports_are_found_in_the_folders_that_are_named() {
    const WIRE: &str = "proto: shop/v1/order.proto\nproto_path: protos\n\
        packet: [{id: length, type: u16, counts: body}, {id: body}]\n\
        messages: {order: {body: [{id: data, type: protobuf(shop.v1.Order)}]}}\n";
    const ORDER: &str = "syntax = \"proto3\";\npackage shop.v1;\nimport \"shop/v1/item.proto\";\n\
        import \"google/protobuf/duration.proto\";\n\
        message Order { Item item = 1; google.protobuf.Duration age = 2; }\n";
    const ITEM: &str =
        "syntax = \"proto3\";\npackage shop.v1;\nmessage Item { string name = 1; }\n";
    let with = |line: &str, wire: &str| {
        throng(line).file("wire.yaml", wire).file("protos/shop/v1/order.proto", ORDER)
    };
    let all = with("protocol wire.yaml --encode", WIRE).file("protos/shop/v1/item.proto", ITEM);
    let run = all.arg("order: {data: {item: {name: a}, age: {seconds: 3}}}").run().exits(0);
    run.says(&["00 09 0a 03 0a 01 61 12 02 08 03"]);
    let run = with("protocol wire.yaml", WIRE).run().exits(2);
    run.says(&["error[file-unreadable]: `shop/v1/item.proto`", "order.proto:3:8", "`proto_path`"]);
}
