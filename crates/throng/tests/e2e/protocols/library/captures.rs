//! Captured sessions of other projects' clients, read with the files that come with throng.

use serde_json::Value;

use crate::run::throng;

/// The captures, each with the port of its server and messages that it has.
const CAPTURES: [(&str, u16, &[&str]); 10] = [
    (
        "amqp",
        35672,
        &["publish", "properties", "payload", "confirmed", "got", "delivery", "reject"],
    ),
    ("coap", 35686, &["get", "put", "delete", "content", "changed", "not_found", "not_allowed"]),
    ("dns", 35681, &["query", "reply"]),
    ("imap", 35684, &["login", "select", "search", "expunge", "untagged", "ok", "failed"]),
    ("ldap", 35682, &["bind", "bind_done", "search", "entry", "search_done", "unbind"]),
    (
        "memcached",
        35680,
        &["set", "get", "value", "append", "prepend", "not_found", "server_version"],
    ),
    ("modbus", 35685, &["read_registers", "registers", "write_coil", "read_registers_failed"]),
    ("nats", 35687, &["info", "connect", "subscribe", "publish", "message", "unsubscribe"]),
    ("smtp", 35683, &["ready", "ehlo", "mail_from", "rcpt_to", "mail", "closing"]),
    ("sockjs", 35688, &["opened", "message", "received"]),
];

#[test]
fn captures_of_real_clients_are_read_without_a_remark() {
    for (name, port, messages) in CAPTURES {
        let path = super::file(&format!("captures/{name}.pcap"));
        let line = format!("protocol throng:{name} --port {port} --json --decode");
        let run = throng(&line).arg(&path).run().exits(0);
        let last = run.out.lines().next_back().expect("a summary");
        let last: Value = serde_json::from_str(last).expect("JSON");
        let summary = &last["summary"];
        for count in ["broken", "cut_off", "gap_bytes", "left_bytes", "skipped_bytes"] {
            run.check(summary[count] == 0, &format!("{name}: {count}"));
        }
        for message in messages {
            let came = summary["packets"][message].as_u64();
            run.check(came > Some(0), &format!("{name}: {came:?} `{message}`"));
        }
    }
}
