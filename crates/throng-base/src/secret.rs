//! Masks secrets: passwords, tokens, cookies, keys. They are identified by their names in headers,
//! JSON, forms and queries, and by their values anywhere.
//!
//! A value that the scenario also contains elsewhere (`admin`) is masked only where it is inserted;
//! see [`Use`].
//!
//! All code that records or prints text of a scenario or a server calls [`Secrets::mask`].

mod placed;

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

pub use placed::Use;

/// Replaces a secret.
pub const MASK: &str = "***";

/// Shorter values are masked only next to their name, because any text can contain them.
const VALUE_BYTES_MIN: usize = 4;
/// Shorter values are masked only if no letter or digit is next to them.
const VALUE_BYTES_SURE: usize = 10;
/// Maximum number of values to search for, each in all forms.
const VALUES_MAX: usize = 2000;

/// Words that make a name that of a secret, at any position.
const WORDS: [&str; 15] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "authtoken",
    "accesstoken",
];
/// Words before `key` that make it a secret.
const KEYS: [&str; 10] = [
    "api",
    "access",
    "private",
    "auth",
    "signing",
    "encryption",
    "session",
    "client",
    "secret",
    "account",
];
/// Every name of a secret contains one of these.
const PARTS: [&str; 9] =
    ["pass", "pwd", "secret", "token", "key", "auth", "cookie", "credential", "jwt"];
/// Ends of names that are written without separators.
const ENDS: [&str; 6] = ["password", "passwd", "passphrase", "token", "secret", "apikey"];

/// The secrets of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Names that the scenario declares secret, in addition to those with secret words.
    names: Vec<String>,
    /// Variables, including environment variables, that are secret because of where they are used.
    variables: Vec<String>,
    /// Values in all forms in which they are sent, longest first.
    values: Vec<Vec<u8>>,
    /// Ends of basic credentials with such a value as password. The user is unknown, because it can
    /// come from data.
    endings: Vec<Vec<u8>>,
    /// Secrets that are also common words, by where they are used.
    places: placed::Places,
}

/// Whether this is the name of a secret: `password`, `X-Api-Key`, `accessToken`, `key`.
pub fn is_secret_name(name: &str) -> bool {
    // Fast path: large scenarios have hundreds of thousands of names, and hardly any is secret.
    let has = |part: &&str| {
        let mut windows = name.as_bytes().windows(part.len());
        windows.any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
    };
    if name.is_ascii() && !PARTS.iter().any(has) {
        return false;
    }
    let mut words: Vec<String> = vec![String::new()];
    let mut before_is_small = false;
    for c in name.chars() {
        let is_boundary = !c.is_alphanumeric() || (c.is_uppercase() && before_is_small);
        if is_boundary && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        before_is_small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    let is_key = |pair: &[String]| pair[1] == "key" && KEYS.contains(&&*pair[0]);
    let is_secret =
        |word: &String| WORDS.contains(&&**word) || ENDS.iter().any(|end| word.ends_with(end));
    words.iter().any(is_secret) || words.windows(2).any(is_key) || words == ["key"]
}

/// A value that is never secret, whatever its name: a boolean, an empty value, or a mask.
pub fn is_plain_word(value: &str) -> bool {
    let words = ["", "true", "false", "null", "~", "none", "None", "on", "off", "yes", "no", MASK];
    words.contains(&value)
}

impl Secrets {
    /// Declares the values of this name secret.
    pub fn add_name(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_string());
        }
    }

    /// Adds a secret, including its forms in JSON, queries and forms.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        let is_name = is_secret_name(value) && value.chars().all(|c| c.is_alphabetic());
        if value.len() < VALUE_BYTES_MIN || is_plain_word(value) || is_name {
            return;
        }
        for form in forms(value) {
            let form = form.into_bytes();
            if self.values.len() < VALUES_MAX && !self.values.contains(&form) {
                self.values.push(form);
            }
        }
        self.values.sort_by_key(|form| std::cmp::Reverse(form.len()));
        self.add_endings(value);
    }

    /// Adds the base64 forms of a password for any user: the user name shifts it by up to two
    /// bytes, and its first character also depends on the user (RFC 7617, 2).
    fn add_endings(&mut self, password: &str) {
        for shift in 0..3 {
            let pair = [&b"uu:"[2 - shift..], password.as_bytes()].concat();
            let sent = STANDARD_NO_PAD.encode(pair);
            let ending = sent.as_bytes()[(shift * 4).div_ceil(3)..].to_vec();
            if self.endings.len() < VALUES_MAX && !self.endings.contains(&ending) {
                self.endings.push(ending);
            }
        }
    }

    /// Adds the credentials of an `Authorization` header without their scheme, or any other secret.
    pub fn add_header(&mut self, value: &str) {
        self.add(credentials(value));
    }

    /// Declares a variable secret; other values of this name are not.
    pub fn add_variable(&mut self, name: &str) {
        if !self.is_variable(name) {
            self.variables.push(name.to_string());
        }
    }

    pub fn is_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|known| known == name) || self.is_name(name)
    }

    /// Masks the value of a variable.
    pub fn mask_variable<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        match self.is_variable(name) && !is_plain_word(value) {
            true => Cow::Borrowed(MASK),
            false => self.mask(value),
        }
    }

    pub fn is_name(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name) || is_secret_name(name)
    }

    /// Masks a value with a known name.
    pub fn mask_value<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        match self.is_name(name) && !is_plain_word(value) {
            true => Cow::Borrowed(MASK),
            false => self.mask(value),
        }
    }

    /// Masks secrets in a text.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.ranges(text.as_bytes()) {
            ranges if ranges.is_empty() => Cow::Borrowed(text),
            ranges => Cow::Owned(String::from_utf8_lossy(&put(text.as_bytes(), &ranges)).into()),
        }
    }

    /// Masks secrets in the bytes of a message.
    pub fn mask_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let mut ranges = self.ranges(bytes);
        self.find_in_message(bytes, &mut ranges);
        match in_order(ranges) {
            ranges if ranges.is_empty() => Cow::Borrowed(bytes),
            ranges => Cow::Owned(put(bytes, &ranges)),
        }
    }

    /// The same for a message that is text.
    pub fn mask_message<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }

    /// Masks the values of secrets in a message of throng, ignoring names.
    pub fn mask_sentence<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.value_ranges(text.as_bytes()) {
            ranges if ranges.is_empty() => Cow::Borrowed(text),
            ranges => Cow::Owned(String::from_utf8_lossy(&put(text.as_bytes(), &ranges)).into()),
        }
    }

    /// The ranges of secrets in a text, sorted and disjoint.
    pub fn ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut ranges = self.value_ranges(text);
        self.find_named(text, &mut ranges);
        self.find_fields(text, &mut ranges);
        self.find_placed(text, &mut ranges);
        find_passwords_of_urls(text, &mut ranges);
        in_order(ranges)
    }

    /// The ranges of known values in a text.
    pub fn value_ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for value in &self.values {
            for start in memchr::memmem::find_iter(text, value) {
                let end = start + value.len();
                let beside = [start.checked_sub(1).and_then(|at| text.get(at)), text.get(end)];
                let is_part = beside.into_iter().flatten().any(u8::is_ascii_alphanumeric);
                if value.len() >= VALUE_BYTES_SURE || !is_part {
                    ranges.push(start..end);
                }
            }
        }
        for ending in &self.endings {
            for start in memchr::memmem::find_iter(text, ending) {
                let rest = &text[start + ending.len()..];
                let padding = rest.iter().take(2).take_while(|byte| **byte == b'=').count();
                if !rest.get(padding).is_some_and(u8::is_ascii_alphanumeric) {
                    ranges.push(start..start + ending.len() + padding);
                }
            }
        }
        self.find_cut(text, &mut ranges);
        in_order(ranges)
    }

    /// Finds the start of a value, followed by an ellipsis, at the end of a truncated text.
    fn find_cut(&self, text: &[u8], ranges: &mut Vec<Range<usize>>) {
        for end in memchr::memmem::find_iter(text, "…") {
            let left = |value: &Vec<u8>| {
                let lengths = VALUE_BYTES_MIN..value.len();
                lengths.rev().find(|len| text[..end].ends_with(&value[..*len]))
            };
            let known = self.values.iter().chain(&self.endings);
            if let Some(len) = known.filter_map(left).max() {
                ranges.push(end - len..end);
            }
        }
    }

    /// Finds fields of multipart forms with names of secrets (RFC 7578).
    fn find_fields(&self, text: &[u8], ranges: &mut Vec<Range<usize>>) {
        let find = |from: usize, needle: &[u8]| {
            memchr::memmem::find(&text[from..], needle).map(|at| from + at)
        };
        for at in memchr::memmem::find_iter(text, b"form-data; name=\"") {
            let start = at + b"form-data; name=\"".len();
            let Some(end) = find(start, b"\"") else { return };
            let Some(head) = find(end, b"\r\n\r\n") else { return };
            let value = head + 4..find(head + 2, b"\r\n--").unwrap_or(text.len()).max(head + 4);
            let name = String::from_utf8_lossy(&text[start..end]);
            if self.is_name(&name) || self.is_placed_under(&name, &text[value.clone()]) {
                ranges.push(value);
            }
        }
    }

    /// Finds `name: value`, `name=value`, `"name": "value"` and `<name>value` with names of
    /// secrets.
    fn find_named(&self, text: &[u8], ranges: &mut Vec<Range<usize>>) {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let mut at = 0;
        while at < text.len() {
            if !is_word(&text[at]) {
                at += 1;
                continue;
            }
            let end = at + text[at..].iter().take_while(|byte| is_word(byte)).count();
            let name = Name { text, start: at, end };
            at = end;
            if let Some(range) = name.value(self) {
                at = range.end;
                ranges.push(range);
            }
        }
    }
}

/// A word that may be the name of a secret.
struct Name<'t> {
    text: &'t [u8],
    start: usize,
    end: usize,
}

impl Name<'_> {
    /// The range of its value, if it is a secret.
    fn value(&self, secrets: &Secrets) -> Option<Range<usize>> {
        let text = self.text;
        let name = std::str::from_utf8(&text[self.start..self.end]).ok()?;
        let before = self.start.checked_sub(1).map_or(b' ', |at| text[at]);
        // A path into a document, or a name in an expression.
        if matches!(before, b'.' | b'$' | b'`') {
            return None;
        }
        let quote = Some(before).filter(|byte| matches!(byte, b'"' | b'\''));
        let mut at = self.end;
        if text.get(at) == Some(&b'\\') {
            at += 1;
        }
        let is_quoted = quote.is_some() && text.get(at) == quote.as_ref();
        at = if is_quoted { at + 1 } else { self.end };
        if matches!(before, b'<' | b':') && text.get(at) == Some(&b'>') {
            return self.element(at + 1).filter(|range| self.is_secret(secrets, name, range));
        }
        at += spaces(&text[at..]);
        let separator = *text.get(at).filter(|byte| matches!(byte, b':' | b'='))?;
        at += 1;
        let is_name = secrets.is_name(name);
        if !is_name && !secrets.has_placed()
            || matches!(text.get(at), Some(b'=' | b':' | b'~' | b'/'))
        {
            return None;
        }
        // In prose, `key:` is an ordinary word.
        if separator == b':' && !is_quoted && name.eq_ignore_ascii_case("key") {
            return None;
        }
        at += spaces(&text[at..]);
        let ends_at = quote.filter(|_| !is_quoted);
        let mut range = self.extent(at, separator, ends_at, is_header(name));
        let value = &text[range.clone()];
        let skipped = value
            .iter()
            .position(|byte| *byte == b' ')
            .filter(|end| is_header(name) && is_scheme(&value[..*end]));
        range.start += skipped.map_or(0, |end| end + 1);
        self.is_secret(secrets, name, &range).then_some(range)
    }

    fn is_secret(&self, secrets: &Secrets, name: &str, range: &Range<usize>) -> bool {
        let value = &self.text[range.clone()];
        let is_it = secrets.is_name(name) || secrets.is_placed_under(name, value);
        let value = std::str::from_utf8(value).unwrap_or("x");
        is_it && !value.contains("${") && !is_plain_word(value)
    }

    /// The content of an XML element up to the next tag; `None` if that is markup.
    fn element(&self, at: usize) -> Option<Range<usize>> {
        let length = self.text[at..].iter().position(|byte| *byte == b'<')?;
        let value = &self.text[at..at + length];
        let start = at + (value.len() - value.trim_ascii_start().len());
        let range = start..start + value.trim_ascii().len();
        (!range.is_empty()).then_some(range)
    }

    /// The range of the value that starts at `at`.
    fn extent(&self, at: usize, separator: u8, quote: Option<u8>, header: bool) -> Range<usize> {
        let text = self.text;
        let until = |start: usize, is_end: &dyn Fn(u8) -> bool| {
            let length = text[start..].iter().position(|byte| is_end(*byte));
            start..start + length.unwrap_or(text.len() - start)
        };
        let range = match (text.get(at), text.get(at + 1)) {
            (Some(b'\\'), Some(b'"')) => until(at + 2, &|byte| byte == b'\\'),
            (Some(&open @ (b'"' | b'\'')), _) => at + 1..closing(text, at + 1, open),
            (Some(b'['), _) if separator == b':' => until(at + 1, &|byte| b"]\n".contains(&byte)),
            // The entries of a map have their own names. Expressions and block scalars are not
            // secret.
            (Some(b'{' | b'|' | b'>'), _) | (None, _) => at..at,
            _ if separator == b'=' => until(at, &|byte| b"&;,\"'` \t\r\n)}]<>".contains(&byte)),
            _ if header => until(at, &|byte| b"\r\n".contains(&byte) || Some(byte) == quote),
            _ => until(at, &|byte| b"\r\n,}]".contains(&byte) || Some(byte) == quote),
        };
        let value = &text[range.clone()];
        range.start..range.start + value.trim_ascii_end().len()
    }
}

fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The end of a quoted text that starts at `start`.
fn closing(text: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while at < text.len() && text[at] != quote {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at.min(text.len())
}

/// Headers whose whole value is secret.
fn is_header(name: &str) -> bool {
    ["authorization", "proxy-authorization", "cookie", "set-cookie"]
        .iter()
        .any(|header| name.eq_ignore_ascii_case(header))
}

/// Whether this is the scheme of credentials (RFC 9110, 11.4), which is not secret.
pub fn is_scheme(word: &[u8]) -> bool {
    [&b"basic"[..], b"bearer", b"digest", b"token", b"negotiate", b"apikey"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// The credentials of a header without their scheme.
fn credentials(value: &str) -> &str {
    let credentials = value.split_once(' ').filter(|(scheme, _)| is_scheme(scheme.as_bytes()));
    credentials.map_or(value, |(_, credentials)| credentials)
}

/// A text as it is, and as written in JSON, HTML, queries and forms by common software.
fn forms(value: &str) -> [String; 10] {
    let quoted: String = value.chars().flat_map(in_json).collect();
    let (slashed, safe) = (quoted.replace('/', "\\/"), safe_in_html(&quoted));
    let query = percent(value);
    let small = small_digits(&query);
    let form = |query: &str| query.replace("%20", "+");
    let [named, numbered] = [["&quot;", "&#39;"], ["&#34;", "&#x27;"]].map(|of| html(value, of));
    let (form_small, form) = (form(&small), form(&query));
    [value.to_string(), quoted, slashed, safe, form, query, form_small, small, named, numbered]
}

/// Percent-encoding with lowercase digits: servers use both (RFC 3986, 2.1).
fn small_digits(query: &str) -> String {
    let mut parts = query.split('%');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        out.push('%');
        out.push_str(&digits.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

/// As in HTML and XML; there are several escapes for quotes.
fn html(value: &str, [double, single]: [&str; 2]) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', double).replace('\'', single)
}

/// JSON that is safe within HTML, as Go writes it by default.
fn safe_in_html(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// `scheme://user:password@host` (RFC 3986, 3.2.1).
fn find_passwords_of_urls(text: &[u8], ranges: &mut Vec<Range<usize>>) {
    for at in memchr::memmem::find_iter(text, b"://") {
        let start = at + 3;
        let length = text[start..].iter().position(|byte| b"/?# \t\r\n\"'`<>".contains(byte));
        let authority = &text[start..length.map_or(text.len(), |length| start + length)];
        let Some(at_sign) = authority.iter().rposition(|byte| *byte == b'@') else { continue };
        let Some(colon) = authority[..at_sign].iter().position(|byte| *byte == b':') else {
            continue;
        };
        let range = start + colon + 1..start + at_sign;
        if !range.is_empty() && !text[range.clone()].starts_with(b"${") {
            ranges.push(range);
        }
    }
}

/// Replaces every byte of these ranges by a star, so that positions stay the same.
pub fn blot(text: &str, ranges: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for place in ranges.iter().cloned().flatten() {
        if let Some(byte) = bytes.get_mut(place).filter(|byte| **byte != b'\n') {
            *byte = b'*';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sorts ranges, and merges those that overlap.
fn in_order(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Replaces these ranges by [`MASK`].
fn put(text: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        out.extend_from_slice(&text[at..range.start]);
        out.extend_from_slice(MASK.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// A character as in a JSON string (RFC 8259, 7).
fn in_json(c: char) -> Vec<char> {
    match c {
        '"' | '\\' => vec!['\\', c],
        '\n' => vec!['\\', 'n'],
        '\r' => vec!['\\', 'r'],
        '\t' => vec!['\\', 't'],
        c if c < ' ' => format!("\\u{:04x}", u32::from(c)).chars().collect(),
        c => vec![c],
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3).
fn percent(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_secret_contains_one_of_the_parts() {
        let pairs = KEYS.iter().map(|word| format!("{word} key"));
        let names = WORDS.iter().chain(&ENDS).map(ToString::to_string).chain(pairs);
        for name in names.chain(["key".to_string()]) {
            assert!(PARTS.iter().any(|part| name.contains(part)), "{name}");
            assert!(is_secret_name(&name), "{name}");
        }
    }

    #[test]
    fn secrets_are_masked_in_every_form() {
        let mut secrets = Secrets::default();
        secrets.learn("", "s<3&\"x\"/ü'9");
        for text in [
            "HTML s&lt;3&amp;&quot;x&quot;/ü&#39;9 end",
            "HTML s&lt;3&amp;&#34;x&#34;/ü&#x27;9 end",
            "JSON of Go s\\u003c3\\u0026\\\"x\\\"/ü'9 end",
            "JSON of PHP s<3&\\\"x\\\"\\/ü'9 end",
            "query s%3C3%26%22x%22%2F%C3%BC%279 end",
            "query s%3c3%26%22x%22%2f%c3%bc%279 end",
        ] {
            let masked = secrets.mask(text);
            assert!(masked.contains(" *** end"), "{text}: {masked}");
        }
    }

    #[test]
    fn the_start_of_a_secret_in_truncated_text_is_masked() {
        let mut secrets = Secrets::default();
        secrets.learn("", "s<3cret+word");
        for (text, masked) in [
            ("got `s<3cret+…`, not it", "got `***…`, not it"),
            ("got `s%3C3cret%2B…`", "got `***…`"),
            ("Basic YW5uOnM8M2NyZXQ…", "Basic YW5u***…"),
            ("`s<3…` is too short to tell", "`s<3…` is too short to tell"),
            ("not cut: s<3cret+", "not cut: s<3cret+"),
        ] {
            assert_eq!(secrets.mask(text), masked);
        }
    }

    /// The user name shifts the password in the base64 of both.
    #[test]
    fn passwords_are_masked_in_the_credentials_of_any_user() {
        use base64::Engine as _;
        let mut secrets = Secrets::default();
        secrets.set_words(["open the door"].into_iter());
        for password in ["sesame12", "open"] {
            secrets.learn("", password);
            for user in ["a", "al", "ali", "alib", "user@example.com"] {
                let pair = format!("{user}:{password}");
                let sent = base64::engine::general_purpose::STANDARD.encode(&pair);
                let masked = secrets.mask(&format!("got `{sent}` here")).into_owned();
                assert!(masked.ends_with("***` here"), "{pair}: {masked}");
                let bare = sent.trim_end_matches('=');
                let masked = secrets.mask(&format!("got {bare}\n")).into_owned();
                assert!(masked.ends_with("***\n"), "{pair}: {masked}");
            }
        }
        assert_eq!(secrets.mask("open the door"), "open the door");
    }

    #[test]
    fn secrets_are_identified_by_their_names() {
        for name in [
            "password",
            "Passwd",
            "user_password",
            "dbPassword",
            "PGPASSWORD",
            "token",
            "accessToken",
            "access_token",
            "X-Auth-Token",
            "csrf-token",
            "secret",
            "clientSecret",
            "api_key",
            "apiKey",
            "X-Api-Key",
            "apikey",
            "key",
            "KEY",
            "private-key",
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "Set-Cookie",
            "session_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "user",
            "name",
            "keyboard",
            "monkey",
            "max_tokens",
            "tokenizer",
            "routing_key",
            "keys",
            "public_key",
            "passenger",
            "secretary",
            "compass",
            "",
            "-",
            "_",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    fn check(secrets: &Secrets, text: &str, want: &str) {
        assert_eq!(secrets.mask(text), want, "{text}");
        assert_eq!(secrets.mask(want), want, "masked twice: {want}");
        assert_eq!(blot(text, &secrets.ranges(text.as_bytes())).len(), text.len(), "{text}");
    }

    #[test]
    fn values_after_names_of_secrets_are_masked() {
        let none = Secrets::default();
        for (text, want) in [
            ("Authorization: Bearer abc.def, x", "Authorization: Bearer ***"),
            ("authorization:abc\r\nHost: a", "authorization:***\r\nHost: a"),
            ("Cookie: a=1; b=2\r\nX: y", "Cookie: ***\r\nX: y"),
            ("Set-Cookie: sid=9; Path=/", "Set-Cookie: ***"),
            ("-H \"Authorization: Basic xyz\" -v", "-H \"Authorization: Basic ***\" -v"),
            (r#"{"user":"a","password":"b\"c","n":1}"#, r#"{"user":"a","password":"***","n":1}"#),
            (r#"{"token": 123, "n": 1}"#, r#"{"token": ***, "n": 1}"#),
            (r#"{"tokens":1,"apiKey":null}"#, r#"{"tokens":1,"apiKey":null}"#),
            (r#""{\"password\":\"x\",\"n\":2}""#, r#""{\"password\":\"***\",\"n\":2}""#),
            (r#"{"key":["a","b"],"x":1}"#, r#"{"key":[***],"x":1}"#),
            ("user=a&password=b%20c&x=1", "user=a&password=***&x=1"),
            ("GET /a?api_key=zzz HTTP/1.1", "GET /a?api_key=*** HTTP/1.1"),
            ("password: hunter2", "password: ***"),
            ("{password: hunter2, user: a}", "{password: ***, user: a}"),
            ("password=hunter2", "password=***"),
            ("postgres://me:pw@host/db", "postgres://me:***@host/db"),
            // Not secrets.
            ("password: ${vars.password}", "password: ${vars.password}"),
            ("Authorization: Bearer ${saved.token}", "Authorization: Bearer ${saved.token}"),
            ("`$.data.token` finds nothing", "`$.data.token` finds nothing"),
            ("${saved.token == 'x'}", "${saved.token == 'x'}"),
            ("the key: it opens", "the key: it opens"),
            ("secret: true", "secret: true"),
            ("token:", "token:"),
            ("http://host:80/a@b", "http://host:80/a@b"),
        ] {
            check(&none, text, want);
        }
    }

    #[test]
    fn known_values_are_masked_anywhere() {
        let mut secrets = Secrets::default();
        for value in ["s3cr et&\"x", "hunter2", "1", "true", "token", "abcdefghijkl"] {
            secrets.add(value);
        }
        secrets.add_name("pin");
        secrets.add_header("Bearer qwertz");
        for (text, want) in [
            ("a s3cr et&\"x b", "a *** b"),
            (r#"{"q":"s3cr et&\"x"}"#, r#"{"q":"***"}"#),
            ("?q=s3cr%20et%26%22x&r=s3cr+et%26%22x", "?q=***&r=***"),
            ("/users/hunter2/x hunter22", "/users/***/x hunter22"),
            ("xabcdefghijklx", "x***x"),
            ("pin=12 spin=12 pin2=4", "pin=*** spin=12 pin2=4"),
            ("a qwertz b", "a *** b"),
            ("1 true token", "1 true token"),
        ] {
            check(&secrets, text, want);
        }
        assert_eq!(&*secrets.mask_bytes(b"\xff\x00hunter2\x01"), b"\xff\x00***\x01");
        assert_eq!(secrets.mask_value("pin", "12"), "***");
        assert_eq!(secrets.mask_value("user", "hunter2"), "***");
    }

    #[test]
    fn any_text_can_be_masked() {
        let mut secrets = Secrets::default();
        secrets.add("größe!");
        let text =
            "é\"token\":\"ä\\\"ö\" key=ü token:\\\" password:'\\ größe! http://ä:ö@ü cookie:";
        for start in 0..=text.len() {
            for end in start..=text.len() {
                let _ = secrets.mask_bytes(&text.as_bytes()[start..end]);
            }
            if let Some(rest) = text.get(start..) {
                let blotted = blot(rest, &secrets.ranges(rest.as_bytes()));
                assert_eq!(blotted.len(), rest.len());
            }
        }
        assert_eq!(secrets.mask("xx größe! y"), "xx *** y");
    }
}
