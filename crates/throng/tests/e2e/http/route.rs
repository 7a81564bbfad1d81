//! On which way a target is reached: names that lead elsewhere, as curl has it.

use crate::http::tls::Papers;
use crate::run::{Throng, throng};
use crate::scenarios::{one_session, times};
use crate::scribe::Scribe;
use crate::servers::Nginx;

/// Says by which names it was asked.
const NAMES: &str = "location /names { return 200 \"sni $ssl_server_name, host $http_host.\"; }";

fn bench(url: &str, line: &str) -> Throng {
    throng(&format!("bench {url} -n 20 -c 2 --json {line}"))
}

/// The certificate is for `throng.test`, a name that no one has.
#[test]
fn a_name_uses_the_given_addresses_and_stays_the_name() {
    let papers = Papers::own();
    let nginx = papers.nginx("self", NAMES);
    let (port, trusted) = (nginx.port, papers.words("--cacert", "self.pem"));
    let url = format!("https://throng.test:{port}/names");
    let said = format!("sni throng.test, host throng.test:{port}.");
    let resolve = format!("--resolve throng.test:{port}:127.0.0.1");
    bench(&url, &format!("{trusted} {resolve}")).arg("--expect-text").arg(&said).run().succeeds(20);
    // IPv6, any host, and more addresses than one.
    let any = format!("--resolve *:{port}:[::1],127.0.0.1");
    bench(&url, &format!("{trusted} {any}")).arg("--expect-text").arg(&said).run().succeeds(20);
    // Another certificate than that of the name is as untrusted as ever.
    let other =
        format!("https://other.test:{port}/ {trusted} --resolve other.test:{port}:127.0.0.1");
    let run = throng(&format!("bench {other} -n 4 -c 1 --json")).run().exits(4);
    run.fails("certificate-refused", "scenario", Some(4));
}

#[test]
fn a_connection_goes_to_another_host_and_port() {
    let papers = Papers::own();
    let nginx = papers.nginx("self", NAMES);
    let (port, trusted) = (nginx.port, papers.words("--cacert", "self.pem"));
    let said = "sni throng.test, host throng.test.";
    let url = "https://throng.test/names";
    for way in [
        format!("--connect-to throng.test:443:127.0.0.1:{port}"),
        format!("--connect-to ::localhost:{port} -4"),
        format!("--connect-to throng.test:443::{port} --resolve throng.test:{port}:127.0.0.1"),
    ] {
        bench(url, &format!("{trusted} {way}")).arg("--expect-text").arg(said).run().succeeds(20);
    }
    let session = "- {http: GET /names, check: {text: \"host throng.test\"}}";
    let text = one_session("https://throng.test", &times(20, 2), session)
        + &format!("connection: {{connect_to: {{\"throng.test:443\": \"127.0.0.1:{port}\"}}}}\n")
        + "tls: {verify: false}\n";
    throng("run it.yaml --json").file("it.yaml", &text).run().succeeds(20);
}

#[test]
fn a_curl_command_says_the_same() {
    let nginx = Nginx::start("", NAMES);
    let port = nginx.port;
    for command in [
        format!("curl --resolve +throng.test:{port}:127.0.0.1 http://throng.test:{port}/names"),
        format!("curl http://throng.test/names --connect-to throng.test:80:127.0.0.1:{port}"),
    ] {
        let run = throng("bench --curl it.txt -n 20 -c 2 --json --expect-text").arg("throng.test");
        run.file("it.txt", &command).run().succeeds(20);
    }
}

#[test]
fn an_allowed_name_allows_no_other_address() {
    let scribe = Scribe::start();
    let port = scribe.target().rsplit(':').next().expect("a port").to_string();
    let bench = |list: &str| {
        let line = format!("--resolve shop.test:{port}:127.0.0.1");
        bench(&format!("http://shop.test:{port}/"), &line).env("THRONG_TARGETS", list)
    };
    bench("shop.test").run().exits(2).says(&["target-not-allowed", "`shop.test` (127.0.0.1)"]);
    assert_eq!(scribe.accepted(), 0);
    bench("127.0.0.1").run().succeeds(20);
}

#[test]
fn errors_are_reported_before_anything_is_sent() {
    let line =
        |line: &str| throng(&format!("bench http://a.test/ -n 1 -c 1 {line}")).run().exits(2);
    line("--resolve a.test:127.0.0.1").says(&["--resolve", "HOST:PORT:ADDRESS"]);
    line("--resolve a.test:80:b.test").says(&["this is not an IPv4 or IPv6 address"]);
    line("--connect-to a.test:80:b.test").says(&["a colon is missing"]);
    let run = throng("bench http://a.test/ -n 1 -c 1 --resolve a.test:81:127.0.0.1").run().exits(4);
    run.says(&["warning[unused-route]", "`a.test:81`", "cannot resolve `a.test`"]);
}
