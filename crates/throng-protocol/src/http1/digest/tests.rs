//! The examples of the RFCs, typical challenges of servers, and mutations of them.

use throng_fuzz::mutations;

use super::*;

fn challenge(value: &str) -> Challenge {
    Challenge::choose([value.as_bytes()]).unwrap()
}

/// The answer to a request, with this client nonce.
fn answer(value: &str, (user, password): (&str, &str), nonce: &str, uri: &str) -> String {
    let mut answerer = Answerer::new(challenge(value), user, password, 0);
    answerer.nonce = nonce.into();
    String::from_utf8(answerer.next(b"GET", uri.as_bytes())).unwrap()
}

const MUFASA: (&str, &str) = ("Mufasa", "Circle of Life");
const OF_RFC_7616: &str = "realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
    nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
    opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";

/// RFC 7616, 3.9.1.
#[test]
fn answers_match_the_examples_of_the_rfc() {
    for (algorithm, response) in [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ] {
        let value = format!("Digest {OF_RFC_7616}, algorithm={algorithm}");
        let nonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let answer = answer(&value, MUFASA, nonce, "/dir/index.html");
        assert_eq!(
            answer,
            format!(
                "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 uri=\"/dir/index.html\", cnonce=\"{nonce}\", nc=00000001, qop=auth, \
                 response=\"{response}\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", algorithm={algorithm}"
            )
        );
    }
}

/// As in RFC 7616, 3.9.2, whose digests are not those of SHA-512/256 (FIPS 180-4; erratum 4897):
/// these are what Python's hashlib makes.
#[test]
fn a_user_may_be_hidden() {
    let value = "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
        nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", charset=UTF-8, userhash=true, \
        opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\"";
    let user = ("Jäsøn Doe", "Secret, or not?");
    let answer = answer(value, user, "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm", "/doe.json");
    for part in [
        "username=\"793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b\"",
        "response=\"7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c\"",
        "userhash=true",
    ] {
        assert!(answer.contains(part), "{answer}");
    }
}

/// RFC 2617, 3.5, and the same without `qop`, as in RFC 2069.
#[test]
fn older_servers_are_answered() {
    let user = ("Mufasa", "Circle Of Life");
    let value = "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", \
        nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
    let new = answer(value, user, "0a4f113b", "/dir/index.html");
    assert!(new.contains("response=\"6629fae49393a05397450978507c4ef1\""), "{new}");
    assert!(!new.contains("algorithm"), "{new}");
    let old = answer(&value.replace("qop=\"auth,auth-int\", ", ""), user, "x", "/dir/index.html");
    assert!(old.contains("response=\"670fd8c2df070c60b045671b8b24ff02\""), "{old}");
    assert!(!old.contains("nc=") && !old.contains("qop"), "{old}");
}

#[test]
fn the_count_increases_and_a_session_has_its_own_secret() {
    let value = format!("Digest {OF_RFC_7616}, algorithm=MD5-sess");
    let mut answerer = Answerer::new(challenge(&value), "Mufasa", "Circle of Life", 7);
    let first = String::from_utf8(answerer.next(b"GET", b"/")).unwrap();
    let second = String::from_utf8(answerer.next(b"GET", b"/")).unwrap();
    assert!(first.contains("nc=00000001") && second.contains("nc=00000002"), "{first} {second}");
    let response = |text: &str| text.split("response=").nth(1).map(str::to_string);
    assert_ne!(response(&first), response(&second));
    let plain = format!("Digest {OF_RFC_7616}, algorithm=MD5");
    let mut plain = Answerer::new(challenge(&plain), "Mufasa", "Circle of Life", 7);
    let plain = String::from_utf8(plain.next(b"GET", b"/")).unwrap();
    assert_ne!(response(&first), response(&plain));
    assert!(answerer.is_of("Mufasa", "Circle of Life"));
    assert!(!answerer.is_of("Mufasa", "other") && !answerer.is_of("other", "Circle of Life"));
}

#[test]
fn the_first_challenge_that_can_be_answered_is_chosen() {
    let chosen = |values: &[&str]| {
        let challenge = Challenge::choose(values.iter().map(|value| value.as_bytes()))?;
        Some(String::from_utf8(challenge.realm).unwrap())
    };
    let one = |value| chosen(&[value]);
    let some = |realm: &str| Some(realm.to_string());
    assert_eq!(one("Basic realm=\"a\", Digest realm=\"b\", nonce=\"n\""), some("b"));
    assert_eq!(one("Negotiate abc==, digest nonce = n , realm = b"), some("b"));
    assert_eq!(
        one("Digest realm=\"a, \\\"b\\\", Digest c\",nonce=\"n\""),
        some("a, \"b\", Digest c")
    );
    let unknown = "Digest realm=a, nonce=n, algorithm=SHA-3";
    let only_whole = "Digest realm=a, nonce=n, qop=\"auth-int\"";
    let good = "Digest realm=b, nonce=n, qop=\"auth-int , AUTH\", algorithm=sha-256-sess";
    assert_eq!(chosen(&[unknown, only_whole, good]), some("b"));
    let both = format!("{unknown}, {good}");
    assert_eq!(chosen(&[&both]), some("b"));
    for bad in [
        "",
        "Basic realm=x",
        "Digest",
        "Digest realm=a",
        "Digest nonce=n",
        "Digest realm=\"a, nonce=n",
        "realm=a, nonce=n",
        "Digest realm=\"a\u{1}\", nonce=n",
        unknown,
        only_whole,
    ] {
        assert_eq!(one(bad), None, "{bad}");
    }
    let long = format!("{good}, x=\"{}\"", "y".repeat(CHALLENGES_BYTES_MAX));
    assert_eq!(chosen(&[&long, "Digest realm=c, nonce=n"]), some("c"));
}

/// Whatever a server sends: the answer is one line with the intended values.
#[test]
fn fuzz_challenges() {
    let corpus: Vec<String> = [
        format!("Digest {OF_RFC_7616}, algorithm=SHA-256"),
        "Basic realm=\"x\", Digest realm=\"a \\\"b\\\\\", nonce=n, userhash=true".to_string(),
        "Negotiate abc==, Digest qop=\"auth,auth-int\",nonce=\"n\",realm=\"\",opaque=\"\"".into(),
    ]
    .into();
    let corpus: Vec<&[u8]> = corpus.iter().map(|text| text.as_bytes()).collect();
    mutations(&corpus, |input, random| {
        let Some(challenge) = Challenge::choose([input]) else { return };
        let random = u128::from(random.next_u64());
        let mut answerer = Answerer::new(challenge.clone(), "ann \"b\"", "word", random);
        let said = answerer.next(b"GET", b"/x?y=\"z\"");
        assert!(!said.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t'));
        let mut read = challenges(&said);
        let (scheme, parameters) = read.pop().unwrap();
        assert!(read.is_empty() && scheme == b"Digest");
        let find = |name: &str| {
            parameters.iter().find(|(own, _)| *own == name.as_bytes()).map(|(_, value)| &value[..])
        };
        assert_eq!(find("realm"), Some(&challenge.realm[..]));
        assert_eq!(find("nonce"), Some(&challenge.nonce[..]));
        assert_eq!(find("opaque"), challenge.opaque.as_deref());
        assert_eq!(find("uri"), Some(&b"/x?y=\"z\""[..]));
    });
}
