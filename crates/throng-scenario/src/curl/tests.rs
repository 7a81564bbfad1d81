//! What browsers copy, and what people type.

use super::*;

fn good(text: &str) -> Bench {
    match parse(&Source::new("request.curl", text)) {
        Ok(request) => request.bench,
        Err(errors) => panic!("{}", errors[0].render(false)),
    }
}

fn body(text: &str) -> BenchBody {
    good(text).body
}

fn header(request: &Bench, name: &str) -> Option<String> {
    let found = request.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.clone())
}

#[test]
fn what_browsers_copy_for_bash() {
    let request = good(
        "curl 'https://example.com/api?x=1' \\\n  -H 'accept: */*' \\\r\n  \
         -H 'content-type: application/json' \\ \n  -H 'content-length: 3' -b 'a=b; c=d' \\\n  \
         --data-raw $'{\"n\":\"O\\'Hara\\u0021\\ud83d\\ude00\\n\"}' \\\n  --compressed --insecure",
    );
    assert_eq!(
        (request.url.as_str(), request.method.as_deref()),
        ("https://example.com/api?x=1", Some("POST"))
    );
    assert_eq!(request.body, BenchBody::Text("{\"n\":\"O'Hara!😀\n\"}".into()));
    assert_eq!(header(&request, "cookie").as_deref(), Some("a=b; c=d"));
    assert_eq!(header(&request, "content-type").as_deref(), Some("application/json"));
    assert_eq!(header(&request, "content-length"), None);
    assert_eq!(request.verify_tls, Some(false));
    assert!(header(&request, "accept-encoding").is_some());
}

#[test]
fn what_browsers_copy_for_cmd() {
    let new = good(
        "curl ^\"https://e.com/a?b=1^&c=%^41^\" ^\r\n  -H ^\"x: y^\" ^\n  \
         --data-raw ^\"^{^\\^\"a^\\^\":^\\^\"b^\\^\\n^\\^\"^}^\n\nend^\"",
    );
    assert_eq!(new.url, "https://e.com/a?b=1&c=%41");
    assert_eq!(header(&new, "x").as_deref(), Some("y"));
    assert_eq!(new.body, BenchBody::Text("{\"a\":\"b\\n\"}\nend".into()));
    let old =
        good("curl \"http://e.com/\" ^\n -H \"x: \\\"y\\\"\" ^\n --data-raw \"^{\"\"a\"\":1^}\"");
    assert_eq!(header(&old, "x").as_deref(), Some("\"y\""));
    assert_eq!(old.body, BenchBody::Text("{\"a\":1}".into()));
}

#[test]
fn options_mean_what_they_mean_to_curl() {
    let text = |text: &str| BenchBody::Text(text.into());
    assert_eq!(
        body("curl a -d x=1 --data y=2 --data-urlencode 'z=a b&'"),
        text("x=1&y=2&z=a+b%26")
    );
    assert_eq!(body("curl a --json '{' --json '}'"), text("{}"));
    assert_eq!(body("curl a --data-raw @x"), text("@x"));
    assert_eq!(body("curl a --data-binary @x"), BenchBody::File("x".into()));
    assert_eq!(body("curl a -d $'\\xff\\x00'"), BenchBody::Bytes(vec![0xff, 0]));
    assert_eq!(body("curl a -d ''"), text(""));
    let form = good("curl a");
    assert_eq!((form.method.as_deref(), form.url.as_str()), (Some("GET"), "http://a"));
    let request =
        good("curl -sSLkXPUT -d@f -m1.5 --connect-timeout=2 --max-redirs 3 -u me:p:w http://h/");
    assert_eq!(request.method.as_deref(), Some("PUT"));
    assert_eq!((request.follow_redirects, request.verify_tls), (true, Some(false)));
    assert_eq!(request.redirects_max, Some(3));
    assert_eq!(request.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(request.connect_timeout, Some(Duration::from_secs(2)));
    assert_eq!(request.basic_auth, Some(("me".into(), "p:w".into())));
    assert_eq!(request.body, BenchBody::File("f".into()));
    assert_eq!(good("curl -G h/p?a=1 -d b=2 -d c=3").url, "http://h/p?a=1&b=2&c=3");
    assert_eq!(good("curl -I h").method.as_deref(), Some("HEAD"));
    assert_eq!(good("curl -I -X GET h").method.as_deref(), Some("GET"));
    assert_eq!(header(&good("curl h -d a -H 'Content-Type:'"), "content-type"), None);
    let agent = good("curl h -A me -e 'http://r;auto' -H 'X-Empty;' -r 0-9 --oauth2-bearer t");
    let sent: Vec<String> = agent.headers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
    let want = [
        "User-Agent: me",
        "Referer: http://r",
        "X-Empty: ",
        "Range: bytes=0-9",
        "Authorization: Bearer t",
    ];
    assert_eq!(sent, want);
    assert_eq!(good("curl h -u me:pw -H 'authorization: Bearer t'").basic_auth, None);
    assert!(good("curl h --digest -u me:pw -H 'authorization: Bearer t'").basic_auth.is_some());
}

#[test]
fn forms_have_files_names_and_types() {
    let request = good(
        "curl h -F 'a=b' -F 'f=@x.png;type=image/png;filename=\"a;b.png\"' --form-string 's=@y'",
    );
    let BenchBody::Form(parts) = request.body else { panic!("a form") };
    assert_eq!(parts[0].content, FormContent::Text("b".into()));
    assert_eq!(parts[1].content, FormContent::File("x.png".into()));
    assert_eq!(parts[1].content_type.as_deref(), Some("image/png"));
    assert_eq!(parts[1].filename.as_deref(), Some("a;b.png"));
    assert_eq!(parts[2].content, FormContent::Text("@y".into()));
}

#[test]
fn messages_about_a_command_show_no_secret_of_it() {
    for (words, secret) in [
        ("-u ann:pw4u", "pw4u"),
        ("-sSku ann:pw4u", "pw4u"),
        ("-uann:pw4u", "pw4u"),
        ("--oauth2-bearer t0ken4u", "t0ken4u"),
        ("-H 'Authorization: Bearer t0ken4u'", "t0ken4u"),
        ("-H 'X-Api-Key: k3y4u'", "k3y4u"),
        ("-b sid=c00kie4u", "c00kie4u"),
        ("-x http://ann:pw4u@proxy:3128", "pw4u"),
    ] {
        let source = Source::new("request.curl", format!("curl {words} http://a/ --nonsense"));
        let Err(errors) = parse(&source) else { panic!("{words}: it is good") };
        let told: String = errors.iter().map(|error| error.render(false)).collect();
        assert!(told.contains("--nonsense") && !told.contains(secret), "{words}: {told}");
    }
    // What names a file is shown.
    let source = Source::new("request.curl", "curl -b jar.txt http://a/ --nonsense");
    let Err(errors) = parse(&source) else { panic!("it is good") };
    assert!(errors.iter().any(|error| error.render(false).contains("jar.txt")));
}

#[test]
fn shell_around_the_command_is_seen() {
    assert_eq!(good("$ curl \"a\" > out.txt 2>&1 # note").url, "http://a");
    assert_eq!(good("curl h/a\\ b -o x 2> /dev/null ; \n").url, "http://h/a b");
}

#[test]
fn a_copied_upgrade_becomes_a_connect() {
    let bench = good(
        "curl 'wss://h/acc' -H 'Upgrade: websocket' -H 'Connection: Upgrade' -H 'Origin: http://o' \
         -H 'Sec-WebSocket-Key: x' -H 'Sec-WebSocket-Version: 13' \
         -H 'Sec-WebSocket-Protocol: a, b' -H 'Sec-WebSocket-Extensions: permessage-deflate'",
    );
    assert_eq!(bench.headers, [("Origin".to_string(), "http://o".to_string())]);
    assert_eq!(bench.protocols, ["a", "b"]);
    assert!(bench.deflate && bench.method.is_none());
    crate::tests::program(&crate::bench::write(&bench));
}

#[test]
fn fuzz_curl_commands() {
    let corpus: &[&[u8]] = &[
        b"curl 'https://example.com/api?x=1' \\\n  -H 'accept: */*' --data-raw $'{\\u0021\\x41\\101}' -b 'a=b'",
        b"curl ^\"http://e.com/^\" ^\r\n -H ^\"x: y^\" ^\r\n --data-raw ^\"^{^\\^\"a^\\^\":1^}^\n\n^\"",
        b"curl -sSLXPUT -d@f -m1.5 --max-redirs=3 -F 'f=@x;type=a/b;filename=\"q\"' 2>/dev/null ; curl b",
        b"curl \"http://h/$(x)\" -G --data-urlencode 'z=a b&' -u me:w -I > out && wget",
    ];
    throng_fuzz::mutations(corpus, |input, _| {
        let source = Source::new("fuzz.curl", String::from_utf8_lossy(input));
        match parse(&source) {
            Ok(request) => {
                crate::bench::write(&request.bench);
            }
            Err(errors) => {
                assert!(!errors.is_empty());
                for one in errors {
                    let span = one.span.as_ref().expect("every diagnostic has a place");
                    assert!(span.start <= span.end && span.end <= source.text.len(), "{one:?}");
                    assert!(one.help.is_some());
                    one.render(false);
                }
            }
        }
    });
}
