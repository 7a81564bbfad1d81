//! The options of curl that a copied command may contain, and what each means here.

/// What an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Changes only what curl prints or how it works inside.
    Ignored,
    /// The same, with a value.
    IgnoredValue,
    /// Accepted with a warning: what is different here.
    Different(&'static str),
    DifferentValue(&'static str),
    /// Not possible: what to do instead.
    Refused(&'static str),
    RefusedValue(&'static str),
    /// Changes the request.
    Set(Flag),
    /// Changes the request with its value.
    Value(Flag),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Url,
    Method,
    Header,
    Data,
    DataRaw,
    DataBinary,
    DataUrlEncode,
    Json,
    Cookie,
    User,
    Form,
    FormString,
    Agent,
    Referer,
    Head,
    Get,
    Insecure,
    Location,
    Compressed,
    MaxTime,
    ConnectTimeout,
    Ca,
    Certificate,
    Key,
    V4,
    V6,
    RedirectsMax,
    Range,
    Bearer,
    Interface,
    Resolve,
    ConnectTo,
    UnixSocket,
    AbstractSocket,
    Proxy,
    ProxyUser,
    Digest,
    ProxyTunnel,
    NoProxy,
    NoKeepAlive,
    Http2,
    Http2PriorKnowledge,
}

use Flag as F;
use Meaning::{
    Different, DifferentValue, Ignored, IgnoredValue, Refused, RefusedValue, Set, Value,
};

// sentences
const HTTP11: &str = "throng speaks HTTP/1.1 and HTTP/2";
// sentences
const ONE: &str = "write a command for each URL";
// sentences
const BASIC: &str = "only basic and digest authentication are possible: `-u name:password`";
// sentences
const ONLY_HTTP: &str = "only HTTP proxies are possible: `-x http://proxy.example:3128`";
// sentences
const PROXY_BASIC: &str = "only Basic authentication to a proxy is possible: `-U name:password`";

/// Letter (or NUL), long name, meaning.
// sentences
pub(super) static FLAGS: &[(char, &str, Meaning)] = &[
    ('\0', "url", Value(F::Url)),
    ('X', "request", Value(F::Method)),
    ('H', "header", Value(F::Header)),
    ('d', "data", Value(F::Data)),
    ('\0', "data-ascii", Value(F::Data)),
    ('\0', "data-raw", Value(F::DataRaw)),
    ('\0', "data-binary", Value(F::DataBinary)),
    ('\0', "data-urlencode", Value(F::DataUrlEncode)),
    ('\0', "json", Value(F::Json)),
    ('b', "cookie", Value(F::Cookie)),
    ('u', "user", Value(F::User)),
    ('F', "form", Value(F::Form)),
    ('\0', "form-string", Value(F::FormString)),
    ('A', "user-agent", Value(F::Agent)),
    ('e', "referer", Value(F::Referer)),
    ('I', "head", Set(F::Head)),
    ('G', "get", Set(F::Get)),
    ('k', "insecure", Set(F::Insecure)),
    ('L', "location", Set(F::Location)),
    ('\0', "location-trusted", Set(F::Location)),
    ('\0', "compressed", Set(F::Compressed)),
    ('m', "max-time", Value(F::MaxTime)),
    ('\0', "connect-timeout", Value(F::ConnectTimeout)),
    ('\0', "cacert", Value(F::Ca)),
    ('E', "cert", Value(F::Certificate)),
    ('\0', "key", Value(F::Key)),
    ('4', "ipv4", Set(F::V4)),
    ('6', "ipv6", Set(F::V6)),
    ('\0', "max-redirs", Value(F::RedirectsMax)),
    ('r', "range", Value(F::Range)),
    ('\0', "oauth2-bearer", Value(F::Bearer)),
    ('\0', "interface", Value(F::Interface)),
    ('\0', "resolve", Value(F::Resolve)),
    ('\0', "connect-to", Value(F::ConnectTo)),
    ('\0', "unix-socket", Value(F::UnixSocket)),
    ('\0', "abstract-unix-socket", Value(F::AbstractSocket)),
    ('x', "proxy", Value(F::Proxy)),
    ('U', "proxy-user", Value(F::ProxyUser)),
    ('p', "proxytunnel", Set(F::ProxyTunnel)),
    ('\0', "noproxy", Value(F::NoProxy)),
    ('\0', "proxy-basic", Ignored),
    ('\0', "suppress-connect-headers", Ignored),
    ('\0', "no-keepalive", Set(F::NoKeepAlive)),
    ('\0', "http1.1", Ignored),
    ('0', "http1.0", Different(HTTP11)),
    ('\0', "http2", Set(F::Http2)),
    ('\0', "http2-prior-knowledge", Set(F::Http2PriorKnowledge)),
    ('\0', "http3", Different(HTTP11)),
    ('\0', "http3-only", Different(HTTP11)),
    ('\0', "retry", DifferentValue("throng counts a failure and goes on")),
    ('\0', "retry-delay", IgnoredValue),
    ('\0', "retry-max-time", IgnoredValue),
    ('\0', "retry-all-errors", Ignored),
    ('\0', "retry-connrefused", Ignored),
    ('\0', "ciphers", DifferentValue("throng takes its own ciphers")),
    ('\0', "tls13-ciphers", DifferentValue("throng takes its own ciphers")),
    ('\0', "tls-max", DifferentValue("throng speaks TLS 1.2 and 1.3")),
    ('1', "tlsv1", Ignored),
    ('\0', "tlsv1.0", Ignored),
    ('\0', "tlsv1.1", Ignored),
    ('\0', "tlsv1.2", Ignored),
    ('\0', "tlsv1.3", Different("throng speaks TLS 1.2 and 1.3")),
    ('\0', "basic", Ignored),
    ('\0', "digest", Set(F::Digest)),
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
    ('K', "config", RefusedValue("write the options of that file into the command")),
    ('T', "upload-file", RefusedValue("write `-X PUT --data-binary @file`")),
    ('n', "netrc", Refused("write `-u name:password`")),
    ('\0', "ntlm", Refused(BASIC)),
    ('\0', "negotiate", Refused(BASIC)),
    ('\0', "anyauth", Refused(BASIC)),
    ('\0', "aws-sigv4", RefusedValue(BASIC)),
    ('\0', "proxy-digest", Refused(PROXY_BASIC)),
    ('\0', "proxy-ntlm", Refused(PROXY_BASIC)),
    ('\0', "proxy-negotiate", Refused(PROXY_BASIC)),
    ('\0', "proxy-anyauth", Refused(PROXY_BASIC)),
    ('\0', "proxy-header", RefusedValue("throng sends no other headers to a proxy: leave it out")),
    ('\0', "preproxy", RefusedValue(ONLY_HTTP)),
    ('\0', "socks4", RefusedValue(ONLY_HTTP)),
    ('\0', "socks4a", RefusedValue(ONLY_HTTP)),
    ('\0', "socks5", RefusedValue(ONLY_HTTP)),
    ('\0', "socks5-hostname", RefusedValue(ONLY_HTTP)),
    ('\0', "limit-rate", RefusedValue("leave it out: throng reads as fast as it can")),
    ('C', "continue-at", RefusedValue("write the range: `-r 1000-`")),
];

pub(super) fn by_letter(letter: char) -> Option<Meaning> {
    FLAGS
        .iter()
        .find(|(one, _, _)| *one == letter && letter != '\0')
        .map(|(_, _, meaning)| *meaning)
}

pub(super) fn by_name(name: &str) -> Option<Meaning> {
    FLAGS.iter().find(|(_, one, _)| *one == name).map(|(_, _, meaning)| *meaning)
}
