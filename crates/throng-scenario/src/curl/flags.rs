//! The options of curl that a copied command may contain, and what each means here.

use std::path::Path;

use throng_base::Said;
use throng_program::{Family, HttpVersion};

use super::words::Word;
use super::{CurlReader, Data, certificate_of_curl, credentials};
use crate::network::route::{abstract_socket_of_curl, unix_socket_of_curl};
use crate::syntax::Place;

/// What an option does.
pub(super) enum Meaning {
    /// Changes only the output of curl or how it works internally.
    Ignored,
    /// The same, with a value.
    IgnoredValue,
    /// Accepted with a warning that describes the difference.
    Different(Said),
    DifferentValue(Said),
    /// Not supported: what to do instead.
    Refused(Said),
    RefusedValue(Said),
    /// Changes the request.
    Set(fn(&mut CurlReader)),
    /// Changes the request with its value, which must be UTF-8.
    Text(fn(&mut CurlReader, &str, Place)),
    /// Changes the request with its value.
    Bytes(fn(&mut CurlReader, &Word)),
}

impl Meaning {
    pub(super) fn takes_value(&self) -> bool {
        !matches!(self, Ignored | Different(_) | Refused(_) | Set(_))
    }
}

use Meaning::{
    Bytes, Different, DifferentValue, Ignored, IgnoredValue, Refused, RefusedValue, Set, Text,
};

const HTTP11: Said = say!("throng supports HTTP/1.1 and HTTP/2");
const ONE: Said = say!("write a separate command for each URL");
const BASIC: Said = say!("only Basic and Digest authentication are supported: `-u name:password`");
const ONLY_HTTP: Said = say!("only HTTP proxies are supported: `-x http://proxy.example:3128`");
const PROXY_BASIC: Said =
    say!("only Basic authentication to a proxy is supported: `-U name:password`");

/// Letter (or NUL), long name, meaning.
pub(super) static FLAGS: &[(char, &str, Meaning)] = &[
    ('\0', "url", Text(|r, text, place| r.urls.push((text.into(), place)))),
    ('X', "request", Text(|r, text, place| r.method = Some((text.into(), place)))),
    ('H', "header", Text(CurlReader::header)),
    ('d', "data", Bytes(|r, word| r.data_or_file(word, true))),
    ('\0', "data-ascii", Bytes(|r, word| r.data_or_file(word, true))),
    ('\0', "data-raw", Bytes(|r, word| r.data.push(Data::Bytes(word.bytes.clone())))),
    ('\0', "data-binary", Bytes(|r, word| r.data_or_file(word, false))),
    ('\0', "data-urlencode", Bytes(CurlReader::url_encoded)),
    ('\0', "json", Bytes(CurlReader::json)),
    ('b', "cookie", Text(CurlReader::cookie)),
    ('u', "user", Text(|r, text, _| r.bench.basic_auth = Some(credentials(text)))),
    ('F', "form", Text(CurlReader::form)),
    ('\0', "form-string", Text(CurlReader::form_field)),
    ('A', "user-agent", Text(|r, text, place| r.replace_header("User-Agent", text, place))),
    ('e', "referer", Text(CurlReader::referer)),
    ('I', "head", Set(|r| r.head = true)),
    ('G', "get", Set(|r| r.get = true)),
    ('k', "insecure", Set(|r| r.bench.verify_tls = Some(false))),
    ('L', "location", Set(|r| r.bench.follow_redirects = true)),
    ('\0', "location-trusted", Set(|r| r.bench.follow_redirects = true)),
    ('\0', "compressed", Set(|r| r.compressed = true)),
    ('m', "max-time", Text(|r, text, place| r.bench.timeout = r.seconds(text, place))),
    (
        '\0',
        "connect-timeout",
        Text(|r, text, place| r.bench.connect_timeout = r.seconds(text, place)),
    ),
    ('\0', "cacert", Text(|r, text, _| r.bench.ca = Some(text.into()))),
    (
        'E',
        "cert",
        Text(|r, text, _| r.bench.certificate = Some(certificate_of_curl(Path::new(text)))),
    ),
    ('\0', "key", Text(|r, text, _| r.bench.key = Some(text.into()))),
    ('4', "ipv4", Set(|r| r.bench.family = Some(Family::V4))),
    ('6', "ipv6", Set(|r| r.bench.family = Some(Family::V6))),
    ('\0', "max-redirs", Text(CurlReader::redirects_max)),
    (
        'r',
        "range",
        Text(|r, text, place| r.replace_header("Range", &format!("bytes={text}"), place)),
    ),
    (
        '\0',
        "oauth2-bearer",
        Text(|r, text, place| r.replace_header("Authorization", &format!("Bearer {text}"), place)),
    ),
    ('\0', "interface", Text(CurlReader::interface)),
    ('\0', "resolve", Text(CurlReader::resolve)),
    ('\0', "connect-to", Text(CurlReader::connect_to)),
    (
        '\0',
        "unix-socket",
        Text(|r, text, _| r.bench.route.unix_socket = Some(unix_socket_of_curl(text))),
    ),
    (
        '\0',
        "abstract-unix-socket",
        Text(|r, text, _| r.bench.route.unix_socket = Some(abstract_socket_of_curl(text))),
    ),
    ('x', "proxy", Text(CurlReader::proxy)),
    ('U', "proxy-user", Text(|r, text, _| r.proxy.user = Some(credentials(text)))),
    ('p', "proxytunnel", Set(|r| r.proxy.is_tunnel = true)),
    ('\0', "noproxy", Text(CurlReader::no_proxy)),
    ('\0', "proxy-basic", Ignored),
    ('\0', "suppress-connect-headers", Ignored),
    ('\0', "no-keepalive", Set(|r| r.bench.keep_alive = Some(false))),
    ('\0', "http1.1", Ignored),
    ('0', "http1.0", Different(HTTP11)),
    ('\0', "http2", Set(|r| r.bench.http_version = HttpVersion::Auto)),
    ('\0', "http2-prior-knowledge", Set(|r| r.bench.http_version = HttpVersion::Http2)),
    ('\0', "http3", Different(HTTP11)),
    ('\0', "http3-only", Different(HTTP11)),
    (
        '\0',
        "retry",
        DifferentValue(say!("throng does not retry: it counts the failure and continues")),
    ),
    ('\0', "retry-delay", IgnoredValue),
    ('\0', "retry-max-time", IgnoredValue),
    ('\0', "retry-all-errors", Ignored),
    ('\0', "retry-connrefused", Ignored),
    ('\0', "ciphers", DifferentValue(say!("throng uses its own ciphers"))),
    ('\0', "tls13-ciphers", DifferentValue(say!("throng uses its own ciphers"))),
    ('\0', "tls-max", DifferentValue(say!("throng supports TLS 1.2 and 1.3"))),
    ('1', "tlsv1", Ignored),
    ('\0', "tlsv1.0", Ignored),
    ('\0', "tlsv1.1", Ignored),
    ('\0', "tlsv1.2", Ignored),
    ('\0', "tlsv1.3", Different(say!("throng supports TLS 1.2 and 1.3"))),
    ('\0', "basic", Ignored),
    ('\0', "digest", Set(|r| r.bench.digest = true)),
    ('c', "cookie-jar", IgnoredValue),
    ('j', "junk-session-cookies", Ignored),
    ('o', "output", IgnoredValue),
    ('\0', "output-dir", IgnoredValue),
    ('O', "remote-name", Ignored),
    ('J', "remote-header-name", Ignored),
    ('s', "silent", Ignored),
    ('S', "show-error", Ignored),
    ('i', "include", Ignored),
    ('\0', "show-headers", Ignored),
    ('v', "verbose", Ignored),
    ('w', "write-out", IgnoredValue),
    ('D', "dump-header", IgnoredValue),
    ('f', "fail", Ignored),
    ('\0', "fail-with-body", Ignored),
    ('\0', "fail-early", Ignored),
    ('#', "progress-bar", Ignored),
    ('\0', "no-progress-meter", Ignored),
    ('N', "no-buffer", Ignored),
    ('\0', "stderr", IgnoredValue),
    ('\0', "trace", IgnoredValue),
    ('\0', "trace-ascii", IgnoredValue),
    ('\0', "trace-time", Ignored),
    ('\0', "create-dirs", Ignored),
    ('g', "globoff", Ignored),
    ('\0', "path-as-is", Ignored),
    ('\0', "tcp-nodelay", Ignored),
    ('\0', "tcp-fastopen", Ignored),
    ('\0', "keepalive-time", IgnoredValue),
    ('\0', "ssl-no-revoke", Ignored),
    ('\0', "ssl", Ignored),
    ('\0', "proto", IgnoredValue),
    ('\0', "proto-default", IgnoredValue),
    ('\0', "proto-redir", IgnoredValue),
    ('q', "disable", Ignored),
    ('\0', "styled-output", Ignored),
    ('\0', "no-styled-output", Ignored),
    ('\0', "no-alpn", Ignored),
    ('\0', "no-sessionid", Ignored),
    ('\0', "post301", Ignored),
    ('\0', "post302", Ignored),
    ('\0', "post303", Ignored),
    ('\0', "raw", Ignored),
    ('Z', "parallel", Refused(ONE)),
    (':', "next", Refused(ONE)),
    ('K', "config", RefusedValue(say!("copy the options from that file into the command"))),
    ('T', "upload-file", RefusedValue(say!("write `-X PUT --data-binary @file`"))),
    (
        '\0',
        "pass",
        RefusedValue(say!(
            "use a key without a password: `openssl pkey -in key.pem -out plain.pem`"
        )),
    ),
    ('n', "netrc", Refused(say!("write `-u name:password`"))),
    ('\0', "ntlm", Refused(BASIC)),
    ('\0', "negotiate", Refused(BASIC)),
    ('\0', "anyauth", Refused(BASIC)),
    ('\0', "aws-sigv4", RefusedValue(BASIC)),
    ('\0', "proxy-digest", Refused(PROXY_BASIC)),
    ('\0', "proxy-ntlm", Refused(PROXY_BASIC)),
    ('\0', "proxy-negotiate", Refused(PROXY_BASIC)),
    ('\0', "proxy-anyauth", Refused(PROXY_BASIC)),
    (
        '\0',
        "proxy-header",
        RefusedValue(say!("remove it: throng does not send other headers to a proxy")),
    ),
    ('\0', "preproxy", RefusedValue(ONLY_HTTP)),
    ('\0', "socks4", RefusedValue(ONLY_HTTP)),
    ('\0', "socks4a", RefusedValue(ONLY_HTTP)),
    ('\0', "socks5", RefusedValue(ONLY_HTTP)),
    ('\0', "socks5-hostname", RefusedValue(ONLY_HTTP)),
    ('\0', "limit-rate", RefusedValue(say!("remove it: throng does not limit its read rate"))),
    ('C', "continue-at", RefusedValue(say!("write a range instead: `-r 1000-`"))),
];

pub(super) fn by_letter(letter: char) -> Option<&'static Meaning> {
    FLAGS.iter().find(|(one, _, _)| *one == letter && letter != '\0').map(|(_, _, meaning)| meaning)
}

pub(super) fn by_name(name: &str) -> Option<&'static Meaning> {
    FLAGS.iter().find(|(_, one, _)| *one == name).map(|(_, _, meaning)| meaning)
}
