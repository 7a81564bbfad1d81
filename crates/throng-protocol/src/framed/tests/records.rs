//! Records that a server has joined in one message, or that follow each other on a stream.

use super::*;

fn split(records: Records<'_>, message: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    records.split(message, &mut |record| {
        all.push(String::from_utf8_lossy(record).into_owned());
        all.len() < 5
    });
    all
}

#[test]
fn records_joined_in_one_message_are_separated() {
    let records = Records::Delimited { delimiter: b"\r\n", bytes_max: 100 };
    assert_eq!(split(records, b"a\r\nb\r\n"), ["a", "b"]);
    assert_eq!(split(records, b"\r\na\r\n\r\nb"), ["a", "b"], "no record is between delimiters");
    assert_eq!(split(records, b"a\rb"), ["a\rb"], "the last one needs no delimiter");
    assert_eq!(split(records, b""), [""], "an empty message is one");
    assert_eq!(split(records, b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n"), ["1", "2", "3", "4", "5"]);
    let long = Records::Delimited { delimiter: b"\n", bytes_max: 3 };
    assert_eq!(
        split(long, b"abc\nabcd\nd"),
        ["abc", "abcd\nd"],
        "it is said by whoever decodes it"
    );

    let carries_length = |transport| {
        let packet = vec![length(8, Counts::Packet, 100), body()];
        compiled(Declaration { packet, transport, ..one(vec![text("text")]) })
    };
    for transport in [Transport::Udp, Transport::WebSocket] {
        let protocol = carries_length(transport);
        let records = Records::Declared(&protocol);
        assert_eq!(split(records, b"\x03ab\x02c\x04def"), ["\x03ab", "\x02c", "\x04def"]);
        assert_eq!(split(records, b"\x03ab\x04c"), ["\x03ab", "\x04c"], "half a packet");
        assert_eq!(split(records, b"\x03ab\x00c"), ["\x03ab", "\x00c"], "a length that is wrong");
    }
    // Without a length in it, the message is the packet.
    let whole = Declaration { transport: Transport::Udp, ..one(vec![text("text")]) };
    assert_eq!(split(Records::Declared(&compiled(whole)), b"\x03ab\x02c"), ["\x03ab\x02c"]);
}

/// A stream that ends with a delimiter gives the same records however it is cut, and so does one
/// message of all of it.
#[test]
fn records_do_not_depend_on_the_split() {
    let stream = b"one\r\n\rtwo\r\n\r\n{\"id\":3}\r\n";
    let records = Records::Delimited { delimiter: b"\r\n", bytes_max: 20 };
    for cut in 0..=stream.len() {
        let (mut reader, mut all) = (PacketReader::new(), Vec::new());
        for part in [&stream[..cut], &stream[cut..]] {
            let (mut rest, mut room) = (part, Vec::new());
            while let Some(record) = reader.next(records, &mut rest, &mut room).unwrap() {
                all.push(String::from_utf8_lossy(record).into_owned());
            }
            assert!(rest.is_empty());
        }
        assert_eq!(all, ["one", "\rtwo", "", "{\"id\":3}"], "{cut}");
    }
    assert_eq!(split(records, stream), ["one", "\rtwo", "{\"id\":3}"]);
}
