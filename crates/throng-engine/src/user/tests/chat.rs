//! A WebSocket server.

use super::*;

/// A WebSocket server that echoes, and now and then pings, pushes, closes or violates the protocol.
pub(super) fn chat_server(faults: u64) -> Server {
    web_server(faults, |text| vec![text.to_owned()])
}

/// The same, with these messages for each that arrives.
pub(super) fn web_server(faults: u64, replies: impl Fn(&str) -> Vec<String> + 'static) -> Server {
    Box::new(move |asked, random| {
        let mut out = Vec::new();
        if asked.starts_with(b"GET ") {
            let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Vec::new();
            };
            let head = String::from_utf8_lossy(&asked[..end]).into_owned();
            asked.drain(..end + 4);
            let key = head.split("Sec-WebSocket-Key: ").nth(1).unwrap().as_bytes()[..24].to_vec();
            let accept = accept_of(&key);
            out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n");
            out.extend_from_slice(b"Connection: Upgrade\r\nSec-WebSocket-Accept: ");
            out.extend_from_slice(&accept);
            out.extend_from_slice(b"\r\n\r\n");
        }
        let mut reader = throng_protocol::websocket::FrameReader::new(Role::Server, None);
        let (mut inflater, limits) = (Inflater::new(), Default::default());
        let mut closed = false;
        let whole = whole_frames(asked);
        let frames: Vec<u8> = asked.drain(..whole).collect();
        let (mut rest, mut room) = (&frames[..], Vec::new());
        while let Some(message) = reader
            .next(&mut rest, &limits, &mut inflater, &mut room)
            .expect("the client keeps to the protocol")
        {
            use throng_protocol::websocket::Message as M;
            match message {
                M::Text(text) => {
                    for reply in replies(text) {
                        let reply = reply.as_bytes();
                        write_frame(&mut out, Opcode::Text, true, false, None, reply);
                    }
                }
                M::Close { .. } => {
                    closed = true;
                    write_frame(&mut out, Opcode::Close, true, false, None, &[0x03, 0xe8]);
                }
                M::Ping(payload) => {
                    write_frame(&mut out, Opcode::Pong, true, false, None, payload);
                }
                _ => {}
            }
        }
        let mut deeds = Vec::new();
        match random.below(200) {
            0 if faults > 0 => deeds.push((MS, Deed::Reset)),
            1 if faults > 0 => out.extend_from_slice(&[0x88, 0x02, 0x03, 0xe9]),
            2 if faults > 0 => out.extend_from_slice(&[0xff, 0xff, 0xff]),
            3..20 => write_frame(&mut out, Opcode::Ping, true, false, None, b"are you there"),
            _ => {}
        }
        deeds.push((MS, Deed::Say(out)));
        if closed {
            deeds.push((MS, Deed::Close));
        }
        deeds
    })
}

/// The length of the complete, short, masked frames at the start of `bytes`.
fn whole_frames(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(header) = bytes.get(end..end + 2) {
        let length = 2 + 4 + usize::from(header[1] & 0x7f);
        if bytes.len() < end + length {
            break;
        }
        end += length;
    }
    end
}

fn accept_of(key: &[u8]) -> [u8; 28] {
    // The machine's own key type can only create keys; decode this one to build the same.
    let mut bytes = [0; 16];
    let mut bits = 0u32;
    let mut held = 0;
    let mut at = 0;
    for byte in key.iter().filter(|byte| **byte != b'=') {
        let table = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let value = table.iter().position(|known| known == byte).unwrap() as u32;
        bits = bits << 6 | value;
        held += 6;
        if held >= 8 && at < 16 {
            held -= 8;
            bytes[at] = (bits >> held) as u8;
            at += 1;
        }
    }
    Key::new(bytes).expected_accept()
}
