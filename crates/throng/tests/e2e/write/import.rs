//! `throng import`: what it writes is checked and tried against a live service, and what it left
//! out is told.

use crate::run::{Run, throng};
use crate::servers::Target;

/// A recording of a login whose token a later request sends.
fn recording(address: &str) -> String {
    let json = |text: &str| text.replace('"', "\\\"");
    let login = json(r#"{"user": "ann", "password": "open-sesame"}"#);
    let answer = json(r#"{"code": 0, "data": {"token": "t-recorded-4711"}}"#);
    format!(
        r#"{{"log": {{"entries": [
        {{"startedDateTime": "2026-01-31T12:00:00Z", "time": 20,
          "request": {{"method": "POST", "url": "http://{address}/login", "headers": [],
            "postData": {{"mimeType": "application/json", "text": "{login}"}}}},
          "response": {{"status": 200, "content": {{"mimeType": "application/json", "text": "{answer}"}}}}}},
        {{"startedDateTime": "2026-01-31T12:00:02Z", "time": 20,
          "request": {{"method": "GET", "url": "http://{address}/products",
            "headers": [{{"name": "Authorization", "value": "Bearer t-recorded-4711"}}]}},
          "response": {{"status": 200, "content": {{"mimeType": "application/json", "text": "[]"}}}}}},
        {{"request": {{"method": "GET", "url": "http://{address}/logo.png"}}, "response": {{"status": 200}}}},
        {{"request": {{"method": "GET", "url": "http://tracker.example/t"}}, "response": {{"status": 200}}}}
        ]}}}}"#
    )
}

fn read(run: &Run, name: &str) -> String {
    std::fs::read_to_string(run.folder().join(name)).expect("a file")
}

#[test]
fn a_recording_runs_again_with_new_tokens() {
    let target = Target::start("http");
    let har = recording(&target.address.to_string());
    let run = throng("import har shop.har").file("shop.har", har).run().exits(0);
    run.says(&["wrote shop.yaml · requests: 2", "wrote shop-accounts.csv", "saved values: 1"]);
    run.says(&["left out: static resources", "requests to other hosts (tracker.example)"]);
    run.says(&["secrets come from the environment: set PASSWORD"]);
    let (text, rows) = (read(&run, "shop.yaml"), read(&run, "shop-accounts.csv"));
    run.check(!text.contains("open-sesame") && !text.contains("t-recorded"), "a secret is there");
    run.check(text.contains("Bearer ${saved.token}"), "the token is saved");
    run.check(text.contains("think: 2s"), "the pause is there");
    for line in ["check shop.yaml", "try shop.yaml --pause 10ms"] {
        let with =
            throng(line).file("shop.yaml", text.clone()).file("shop-accounts.csv", rows.clone());
        let run = with.run().exits(0);
        run.check(run.err.is_empty(), "there are warnings");
        run.check(!run.out.contains('✗'), "something failed");
    }
}

#[test]
fn other_formats_run_against_a_given_service() {
    let target = Target::start("http");
    let url = format!("http://{}", target.address);
    let files = [
        (
            "k6",
            "import http from 'k6/http';\nexport default () => { http.get('https://a.example/'); }",
        ),
        (
            "locust",
            "class A(HttpUser):\n    @task\n    def t(self):\n        self.client.get('/')\n",
        ),
        ("openapi", "openapi: 3.0.0\npaths: {/: {get: {responses: {'200': {}}}}}\n"),
        ("postman", r#"{"item": [{"name": "a", "request": "{{base}}/"}]}"#),
        ("curl", "curl https://a.example/"),
    ];
    for (kind, text) in files {
        let line = format!("import {kind} file.txt --out a.yaml --target {url}");
        let run = throng(&line).file("file.txt", text).run().exits(0);
        run.says(&["wrote a.yaml · requests: 1"]);
        let text = read(&run, "a.yaml");
        let run = throng("try a.yaml").file("a.yaml", text).run().exits(0);
        run.check(!run.out.contains('✗'), "something failed");
    }
}

#[test]
fn a_description_is_loaded_from_its_service() {
    let server = crate::faulty::Faulty::start(|mut peer| {
        while peer.request().is_some() {
            let body = "{\"openapi\": \"3.0.0\", \"paths\": {\"/a\": {\"get\": {}}}}";
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            peer.says(format!("{head}{body}").as_bytes());
        }
    });
    let url = format!("http://{}/openapi.json", server.address);
    let run = throng(&format!("import openapi {url} --out -")).run().exits(0);
    run.check(run.out.contains(&format!("target: http://{}", server.address)), "the address");
    run.check(run.out.contains("http: GET /a"), "the request");
}

#[test]
fn what_cannot_be_imported_is_said() {
    let of = |line: &str| throng(line).file("a.har", "{\"log\": {\"entries\": [{\"request\": ");
    let run = of("import har a.har").run().exits(2);
    run.says(&["error[import-unreadable]", "a.har:1:", "unexpected end of the JSON text", "help"]);
    of("import har missing.har").run().exits(2).says(&["error[file-unreadable]", "missing.har"]);
    let run = of("import postman a.har").run().exits(2);
    run.says(&["error[import-unreadable]", "v2.1"]);
    of("import har a.har --target ftp://x").run().exits(2).says(&["import-unreadable", "ftp://x"]);
    of("import har http://127.0.0.1:1/a.har").run().exits(2).says(&["download the file"]);
    of("import openapi http://127.0.0.1:1/a.json").run().exits(2).says(&["cannot load"]);
    let run = throng("import curl").arg("curl http://a/").file("curl.yaml", "mine").run().exits(2);
    run.says(&["error[file-unwritable]", "--force"]);
    assert_eq!(read(&run, "curl.yaml"), "mine");
}
