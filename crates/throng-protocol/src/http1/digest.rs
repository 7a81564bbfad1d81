//! Digest authentication, client side (RFC 7616, with RFC 2069 for servers without `qop`): reads a
//! challenge, and answers it in each request with an incremented nonce count.

use std::fmt::Write as _;

use ring::digest;

/// Longer challenge headers are ignored.
const CHALLENGES_BYTES_MAX: usize = 8 * 1024;

/// The hash algorithm of digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha256,
    Sha512Slash256,
}

impl Algorithm {
    /// In lower-case hexadecimal, of the pieces joined by colons.
    fn of(self, pieces: &[&[u8]]) -> String {
        let bytes = pieces.join(&b':');
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
                let _ = write!(out, "{byte:02x}");
                out
            })
        };
        match self {
            Algorithm::Md5 => format!("{:x}", md5::compute(&bytes)),
            Algorithm::Sha256 => hex(digest::digest(&digest::SHA256, &bytes).as_ref()),
            Algorithm::Sha512Slash256 => hex(digest::digest(&digest::SHA512_256, &bytes).as_ref()),
        }
    }
}

/// A server's challenge that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    algorithm: Algorithm,
    /// Name sent by the server, for the answer.
    named: Option<&'static str>,
    /// The first nonces are part of the secret (`-sess`).
    is_session: bool,
    /// `qop=auth` is offered; otherwise as in RFC 2069.
    has_qop: bool,
    hides_user: bool,
}

impl Challenge {
    /// The first challenge of all `WWW-Authenticate` headers that can be answered: servers list
    /// them in order of preference (RFC 7616, 3.7).
    pub fn choose<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Option<Challenge> {
        let mut values = values.into_iter().filter(|value| value.len() <= CHALLENGES_BYTES_MAX);
        values.find_map(|value| {
            challenges(value).into_iter().find_map(|(scheme, parameters)| {
                scheme.eq_ignore_ascii_case(b"digest").then(|| Challenge::of(&parameters))?
            })
        })
    }

    fn of(parameters: &[(&[u8], Vec<u8>)]) -> Option<Challenge> {
        let find = |name: &str| {
            let mut same =
                parameters.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()));
            same.next().map(|(_, value)| value)
        };
        let is_true = |name| find(name).is_some_and(|value| value.eq_ignore_ascii_case(b"true"));
        let (algorithm, named, is_session) = match find("algorithm") {
            None => (Algorithm::Md5, None, false),
            Some(name) => ALGORITHMS
                .iter()
                .find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()))
                .map(|(known, algorithm, is_session)| (*algorithm, Some(*known), *is_session))?,
        };
        let has_qop = match find("qop") {
            None => false,
            Some(offered) => {
                let mut words = offered.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                words.any(|word| word.eq_ignore_ascii_case(b"auth")).then_some(true)?
            }
        };
        Some(Challenge {
            realm: find("realm")?.clone(),
            nonce: find("nonce")?.clone(),
            opaque: find("opaque").cloned(),
            algorithm,
            named,
            is_session,
            has_qop,
            hides_user: is_true("userhash"),
        })
    }
}

const ALGORITHMS: [(&str, Algorithm, bool); 6] = [
    ("MD5", Algorithm::Md5, false),
    ("MD5-sess", Algorithm::Md5, true),
    ("SHA-256", Algorithm::Sha256, false),
    ("SHA-256-sess", Algorithm::Sha256, true),
    ("SHA-512-256", Algorithm::Sha512Slash256, false),
    ("SHA-512-256-sess", Algorithm::Sha512Slash256, true),
];

/// A challenge that a user answers repeatedly.
#[derive(Clone, Debug)]
pub struct Answerer {
    challenge: Challenge,
    user: Box<str>,
    /// Hash of user, realm and password.
    secret: Box<str>,
    /// The client nonce; the same for all requests, because the count distinguishes them.
    nonce: Box<str>,
    count: u32,
}

impl Answerer {
    /// `random` must be unique.
    pub fn new(challenge: Challenge, user: &str, password: &str, random: u128) -> Answerer {
        let secret = secret(&challenge, user, password).into();
        let nonce = format!("{random:032x}").into();
        Answerer { challenge, user: user.into(), secret, nonce, count: 0 }
    }

    /// Whether it answers for this user with this password.
    pub fn is_of(&self, user: &str, password: &str) -> bool {
        *self.user == *user && *self.secret == *secret(&self.challenge, user, password)
    }

    /// The value of `Authorization` for the next request.
    pub fn next(&mut self, method: &[u8], uri: &[u8]) -> Vec<u8> {
        self.count = self.count.saturating_add(1);
        let Answerer { challenge, nonce, .. } = self;
        let hash = |pieces: &[&[u8]]| challenge.algorithm.of(pieces);
        let (theirs, ours) = (&*challenge.nonce, nonce.as_bytes());
        let secret = match challenge.is_session {
            true => hash(&[self.secret.as_bytes(), theirs, ours]),
            false => self.secret.to_string(),
        };
        let (secret, asked) = (secret.as_bytes(), hash(&[method, uri]));
        let count = format!("{:08x}", self.count);
        let response = match challenge.has_qop {
            true => hash(&[secret, theirs, count.as_bytes(), ours, b"auth", asked.as_bytes()]),
            false => hash(&[secret, theirs, asked.as_bytes()]),
        };
        let mut out = b"Digest ".to_vec();
        match challenge.hides_user {
            true => {
                let hidden = hash(&[self.user.as_bytes(), &challenge.realm]);
                quote(&mut out, "username", hidden.as_bytes());
            }
            false => quote(&mut out, "username", self.user.as_bytes()),
        }
        for (name, value) in [("realm", &*challenge.realm), ("nonce", theirs), ("uri", uri)] {
            quote(&mut out, name, value);
        }
        if challenge.has_qop || challenge.is_session {
            quote(&mut out, "cnonce", ours);
        }
        if challenge.has_qop {
            out.extend_from_slice(format!("nc={count}, qop=auth, ").as_bytes());
        }
        quote(&mut out, "response", response.as_bytes());
        if let Some(opaque) = &challenge.opaque {
            quote(&mut out, "opaque", opaque);
        }
        if let Some(named) = challenge.named {
            out.extend_from_slice(format!("algorithm={named}, ").as_bytes());
        }
        if challenge.hides_user {
            out.extend_from_slice(b"userhash=true, ");
        }
        out.truncate(out.len() - 2);
        out
    }
}

fn secret(challenge: &Challenge, user: &str, password: &str) -> String {
    challenge.algorithm.of(&[user.as_bytes(), &challenge.realm, password.as_bytes()])
}

/// Writes `name="value", `.
fn quote(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.extend_from_slice(b"\", ");
}

/// A scheme and its parameters.
type Offer<'v> = (&'v [u8], Vec<(&'v [u8], Vec<u8>)>);

/// The challenges of a header (RFC 9110, 11.6.1): schemes and their parameters are separated by the
/// same commas. Anything else is ignored.
fn challenges(value: &[u8]) -> Vec<Offer<'_>> {
    let mut all: Vec<Offer<'_>> = Vec::new();
    for piece in pieces(value) {
        let (word, rest) = word(piece);
        if word.is_empty() {
            continue;
        }
        let parameter = match rest.trim_ascii_start().strip_prefix(b"=") {
            Some(value) => Some((word, value)),
            None => {
                all.push((word, Vec::new()));
                let (name, rest) = self::word(rest.trim_ascii_start());
                rest.trim_ascii_start().strip_prefix(b"=").map(|value| (name, value))
            }
        };
        if let (Some((name, value)), Some((_, parameters))) = (parameter, all.last_mut())
            && let Some(value) = unquoted(value.trim_ascii())
        {
            parameters.push((name, value));
        }
    }
    all
}

/// Splits at commas outside of quotes.
fn pieces(value: &[u8]) -> Vec<&[u8]> {
    let (mut pieces, mut begin, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in value.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                pieces.push(value[begin..at].trim_ascii());
                begin = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(value[begin..].trim_ascii());
    pieces
}

/// The leading token, and the rest.
fn word(piece: &[u8]) -> (&[u8], &[u8]) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    piece.split_at(piece.iter().position(|byte| !is_word(byte)).unwrap_or(piece.len()))
}

/// The value of a parameter; `None` if it contains bytes that headers must not contain.
fn unquoted(value: &[u8]) -> Option<Vec<u8>> {
    let plain = match value.strip_prefix(b"\"") {
        None => value.to_vec(),
        Some(quoted) => {
            let (mut plain, mut bytes) = (Vec::new(), quoted.iter());
            loop {
                match bytes.next()? {
                    b'"' => break,
                    b'\\' => plain.push(*bytes.next()?),
                    byte => plain.push(*byte),
                }
            }
            plain
        }
    };
    plain.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control()).then_some(plain)
}

#[cfg(test)]
mod tests;
