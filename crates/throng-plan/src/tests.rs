//! The requested load of scenarios and command lines, and the memory limit of a user.

use super::*;

const IM: &str = "name: im\ntarget: ws://127.0.0.1:9\nsessions:\n  member:\n    steps:\n      \
                  - connect: /\n      - stay: forever\n        heartbeat: {text: beat, every: 30s}\n\
                  load: [{users: {to: 90_000, rate: 3000/s}}, {for: 1m}]\n";

fn compiled(text: &str) -> Program {
    let source = Source::new("test.yaml", text);
    match compile(&source, &CompileOptions::of_process(Vec::new(), PathBuf::new())) {
        Ok((program, _)) => program,
        Err(mistakes) => panic!("{mistakes:#?}\n{text}"),
    }
}

fn wished(text: &str, users: Option<u64>, rate: Option<f64>) -> Wish {
    wish(&compiled(text), &Given { is_scenario: true, users, rate }, None)
}

/// The promised limit: 1,200 B of throng's memory per user that stays on a WebSocket.
#[test]
fn a_websocket_user_stays_below_its_limit() {
    for text in [IM, IDLE] {
        let sizes = sizes(&compiled(text));
        assert!(sizes.user_bytes() as f64 * SLACK < 1_200.0, "{sizes:#?}");
    }
}

#[test]
fn a_scenario_determines_the_load() {
    let wish = wished(IM, None, None);
    assert_eq!((wish.users, wish.opened_per_s), (90_000, Some(3000.0)));
    assert_eq!((wish.heartbeats_per_s, wish.requests_per_s), (3000.0, 3000.0));
    assert!(wish.is_local && wish.endpoints == 1);
    let double = wished(IM, Some(180_000), None);
    assert_eq!((double.users, double.heartbeats_per_s), (180_000, 6000.0));
}

#[test]
fn heartbeats_of_a_session_and_what_is_done_every_so_often_count() {
    let text = "name: devices\ntarget: udp://192.0.2.1:9\nsessions:\n  device:\n    \
                heartbeat: {text: beat, every: 20s}\n    every:\n      - {time: 10s, do: [{send: {text: report}}]}\n    steps:\n      - connect\n      - stay: forever\n\
                load: [{users: {to: 1000, rate: 100/s}}, {for: 1m}]\n";
    let wish = wished(text, None, None);
    let rates = (wish.heartbeats_per_s.round(), wish.requests_per_s.round());
    assert_eq!((wish.users, rates), (1000, (150.0, 150.0)));
    let program = compiled(text);
    let parts = |datagrams: f64| cost(&program, &sizes(&program), datagrams, None).kernel_bytes;
    assert!(parts(1.0) < parts(0.0));
}

#[test]
fn datagrams_take_a_port_each() {
    let text = "name: devices\ntarget: {addresses: [\"udp://192.0.2.1:9\", \"udp://192.0.2.2:9\"]}\n\
                sessions:\n  device:\n    steps: [connect, {stay: forever}]\n\
                load: [{users: 1000, for: 1m}]\n";
    let wish = wished(text, None, None);
    assert_eq!((wish.endpoints, wish.fullest_share), (2, 1.0));
    let wish = wished(&text.replace("udp:", "tcp:"), None, None);
    assert_eq!((wish.endpoints, wish.fullest_share), (2, 0.5));
}

#[test]
fn who_arrives_is_there_for_its_pauses_and_beats_meanwhile() {
    let text = "name: calls\ntarget: ws://192.0.2.1:9\nsessions:\n  caller:\n    steps:\n      \
                - connect: /\n      - send: {text: hello}\n      - stay: 60s\n        \
                heartbeat: {text: beat, every: 30s}\nload: [{arrivals: 10/s, for: 10m}]\n";
    let wish = wished(text, None, None);
    assert_eq!((wish.users, wish.opened_per_s), (600, Some(10.0)));
    let rates = (wish.heartbeats_per_s.round(), wish.requests_per_s.round());
    assert_eq!(rates, (20.0, 30.0), "each that arrives sends once");
}

#[test]
fn connections_left_without_a_word_grow_with_the_users() {
    let text = "name: storm\ntarget: ws://192.0.2.1:9\nsessions:\n  member:\n    \
                steps: [{connect: /}, {stay: forever}]\nload:\n  - {users: {to: 1000, rate: 500/s}}\n  \
                - {name: storm, churn: {share: 100%, every: 1m, how: vanish}, for: 10m}\n";
    let wish = wished(text, None, None);
    assert_eq!((wish.vanished, wish.leaves_behind), (2_000, true));
    assert_eq!(wished(text, Some(100_000), None).vanished, 200_000);
    assert!(!wished(IM, None, None).leaves_behind);
}

#[test]
fn a_rate_needs_users_by_what_each_asks() {
    let shop = "name: shop\ntarget: http://192.0.2.1\nsessions:\n  s:\n    steps:\n      \
                - http: GET /\n      - think: 900ms\nload: [{users: 100, for: 1m}]\n";
    // One request per second, with a response time of 100 ms.
    assert_eq!(wished(shop, None, None).requests_per_s.round(), 100.0);
    let wish = wished(shop, None, Some(5000.0));
    assert_eq!((wish.users, wish.requests_per_s), (5000, 5000.0));
    assert_eq!(wish.opened_per_s, None);
    let idle = Given { is_scenario: false, users: None, rate: Some(50_000.0) };
    assert_eq!(super::wish(&compiled(ASKING), &idle, None).users, 5_000);
}

#[test]
fn closed_connections_stay_in_time_wait() {
    let short = "name: shop\ntarget: http://192.0.2.1\nconnection: {keep_alive: false}\nsessions:\n  \
                 s:\n    steps: [{http: GET /}]\nload: [{users: {to: 10, rate: 5/s}, for: 1m}]\n";
    let wish = wished(short, None, Some(200.0));
    assert_eq!((wish.reopened_per_s, wish.closing_per_s), (200.0, 200.0));
}

#[test]
fn all_users_reconnect_but_only_some_ports_are_in_time_wait() {
    let flapping = "name: flap\ntarget: ws://192.0.2.1/\nsessions:\n  s:\n    steps: [{connect: /}, \
                    {stay: forever}]\nload:\n  - {users: {to: 100, rate: 50/s}}\n  - {churn: {rate: 9/s, \
                    how: [fin, reset, vanish]}, for: 1m}\n";
    let wish = wished(flapping, None, None);
    assert_eq!((wish.reopened_per_s, wish.closing_per_s), (9.0, 3.0));
}
