//! Finds and parses the head of a request without copying.

use super::Refusal;

/// The head of a request; borrows the received bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    /// The minor version: HTTP/1.0 or HTTP/1.1.
    pub(crate) minor: u8,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
    pub(crate) chunked: bool,
    pub(crate) length: Option<u64>,
    /// The requested delay of the response.
    pub(crate) sleep: Option<&'a str>,
    pub(crate) times: Option<&'a str>,
    /// Whether the request asks for an upgrade, and for a WebSocket.
    upgrades: bool,
    offers_websocket: bool,
    pub(crate) fields: Fields<'a>,
}

/// The header lines of a valid head, including line breaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.split_terminator('\n').filter_map(|line| {
            let (name, value) = line.strip_suffix('\r')?.split_once(':')?;
            Some((name, trim(value)))
        })
    }

    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        self.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// The end of the head that starts at 0, after its empty line. Bytes before `from` were searched
/// before.
pub(crate) fn find_end(input: &[u8], from: usize) -> Option<usize> {
    let start = from.saturating_sub(3);
    let rest = input.get(start..)?;
    let mut at = 0;
    // Search for the last byte of the empty line: most bytes of a head are not line feeds.
    while let Some(found) = rest[at..].iter().position(|byte| *byte == b'\n') {
        let end = at + found + 1;
        if end >= 4 && &rest[end - 4..end] == b"\r\n\r\n" {
            return Some(start + end);
        }
        at = end;
    }
    None
}

/// Parses a head, including its empty line.
pub(crate) fn parse(bytes: &[u8]) -> Result<Head<'_>, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::bad("the head is not UTF-8"))?;
    let text = text.strip_suffix("\r\n").unwrap_or(text);
    // Split at one byte, because a search for two is slower.
    let (line, fields) = text.split_once('\n').unwrap_or((text, ""));
    let (method, target, minor) = request_line(without_end(line)?)?;
    let mut head = Head {
        method,
        target,
        minor,
        keep_alive: minor == 1,
        fields: Fields(fields),
        ..Head::default()
    };
    let mut hosts = 0;
    for line in fields.split_terminator('\n') {
        let (name, value) = field(without_end(line)?)?;
        hosts += u32::from(name.eq_ignore_ascii_case("host"));
        head.notice(name, value)?;
    }
    if minor == 1 && hosts != 1 {
        return Err(Refusal::bad("an HTTP/1.1 request must have exactly one Host"));
    }
    if head.chunked && head.length.is_some() {
        return Err(Refusal::bad("both Content-Length and Transfer-Encoding"));
    }
    Ok(head)
}

impl<'a> Head<'a> {
    pub(crate) fn asks_for_websocket(&self) -> bool {
        self.upgrades && self.offers_websocket
    }

    /// Evaluates a field that affects the connection, the body or the response.
    fn notice(&mut self, name: &str, value: &'a str) -> Result<(), Refusal> {
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                if has_word(value, "close") {
                    self.keep_alive = false;
                } else if self.minor == 0 && has_word(value, "keep-alive") {
                    self.keep_alive = true;
                }
                self.upgrades |= has_word(value, "upgrade");
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let length = value.parse().ok().filter(|_| digits);
                let length = length.ok_or(Refusal::bad("Content-Length is not a number"))?;
                if self.length.is_some_and(|earlier| earlier != length) {
                    return Err(Refusal::bad("two different Content-Length values"));
                }
                self.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.minor == 0 {
                    return Err(Refusal::bad("Transfer-Encoding is not allowed in HTTP/1.0"));
                }
                if self.chunked || !value.eq_ignore_ascii_case("chunked") {
                    return Err(Refusal::new(501, "the only supported transfer coding is chunked"));
                }
                self.chunked = true;
            }
            5 if name.eq_ignore_ascii_case("sleep") => self.sleep = self.sleep.or(Some(value)),
            5 if name.eq_ignore_ascii_case("times") => self.times = self.times.or(Some(value)),
            7 if name.eq_ignore_ascii_case("upgrade") => {
                self.offers_websocket |= has_word(value, "websocket");
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                if !value.eq_ignore_ascii_case("100-continue") {
                    return Err(Refusal::new(
                        417,
                        "the only supported expectation is 100-continue",
                    ));
                }
                self.expects_continue = self.minor == 1;
            }
            _ => {}
        }
        Ok(())
    }
}

fn without_end(line: &str) -> Result<&str, Refusal> {
    line.strip_suffix('\r').ok_or(Refusal::bad("a line ends without a carriage return"))
}

fn request_line(line: &str) -> Result<(&str, &str, u8), Refusal> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::bad("a request line must be a method, a target and a version"));
    };
    if !is_token(method) {
        return Err(Refusal::bad("the method is not a token"));
    }
    if target.is_empty() || target.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(Refusal::bad("the target is empty or has control characters"));
    }
    match version {
        "HTTP/1.1" => Ok((method, target, 1)),
        "HTTP/1.0" => Ok((method, target, 0)),
        _ if version.starts_with("HTTP/") => Err(Refusal::new(505, "this server speaks HTTP/1.1")),
        _ => Err(Refusal::bad("a request line must end with its version")),
    }
}

fn field(line: &str) -> Result<(&str, &str), Refusal> {
    let (name, value) = line.split_once(':').ok_or(Refusal::bad("a header without a colon"))?;
    if !is_token(name) {
        return Err(Refusal::bad("a header name is not a token"));
    }
    if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        return Err(Refusal::bad("a header value has control characters"));
    }
    Ok((name, trim(value)))
}

fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

fn has_word(value: &str, word: &str) -> bool {
    value.split(',').any(|item| trim(item).eq_ignore_ascii_case(word))
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let special = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_parsed() {
        let bytes = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nSleep:\t20 \r\nContent-Length: 5\r\n\
            Connection: TE, Close\r\nExpect: 100-Continue\r\nEmpty:\r\n\r\n";
        assert_eq!(find_end(bytes, 0), Some(bytes.len()));
        let head = parse(bytes).unwrap();
        assert_eq!((head.method, head.target, head.minor), ("POST", "/a?b=c", 1));
        assert_eq!((head.keep_alive, head.length, head.expects_continue), (false, Some(5), true));
        assert_eq!(
            (head.sleep, head.times, head.fields.get("sleep")),
            (Some("20"), None, Some("20"))
        );
        assert_eq!(head.fields.get("EMPTY"), Some(""));
        assert!(has_word("TE, Close", "te") && !has_word("TE, Close", "e"));
        assert!(!head.asks_for_websocket());
        assert_eq!(head.fields.iter().count(), 6);
    }

    #[test]
    fn an_upgrade_requires_two_fields() {
        let asks = |fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
            parse(text.as_bytes()).unwrap().asks_for_websocket()
        };
        assert!(asks("Connection: keep-alive\r\nUpgrade: a, WebSocket\r\nConnection: Upgrade\r\n"));
        assert!(!asks("Upgrade: websocket\r\n") && !asks("Connection: upgrade\r\n"));
        assert!(!asks("Connection: upgrade\r\nUpgrade: h2c\r\n"));
    }

    #[test]
    fn the_version_determines_the_default_of_keep_alive() {
        let keeps = |text: &str| parse(text.as_bytes()).unwrap().keep_alive;
        assert!(keeps("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.0\r\n\r\n"));
        assert!(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    }

    #[test]
    fn the_end_is_found_wherever_the_search_resumes() {
        let bytes = b"GET / HTTP/1.1\r\nA: b\r\n\r\nmore";
        for from in 0..=bytes.len() - 4 {
            assert_eq!(find_end(&bytes[..bytes.len()], from.min(23)), Some(24), "{from}");
        }
        assert_eq!(find_end(b"GET / HTTP/1.1\r\nA: b\r\n\r", 0), None);
    }

    #[test]
    fn malformed_heads_are_rejected() {
        for (text, status) in [
            ("", 400),
            ("GET /\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400),
            ("G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /\t HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET / HTTP/1.1\nHost: x\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\n\r\n", 505),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nA: \u{1}\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nA: b\nB: c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
                400,
            ),
            ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n", 417),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().status, status, "{text:?}");
        }
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n").unwrap_err().status, 400);
    }

    #[test]
    fn fuzz_heads() {
        let corpus: [&[u8]; 3] = [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /a?b=c HTTP/1.0\r\nSleep: 20\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
            b"PUT http://h/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        ];
        throng_fuzz::mutations(&corpus, |input, random| {
            let end = find_end(input, 0);
            let seen = random.below(end.unwrap_or(input.len()).max(1) as u64) as usize;
            assert_eq!(find_end(input, seen), end);
            let Some(end) = end else { return };
            if let Ok(head) = parse(&input[..end]) {
                assert!(!(head.chunked && head.length.is_some()));
                assert!(head.fields.iter().all(|(name, _)| is_token(name)));
            }
        });
    }
}
