//! `/digest`: digest authentication (RFC 7616). Nonces are not stored, so a repeated nonce count is
//! accepted.
//!
//! `/digest?user=ann&password=word&algorithm=MD5&uses=10`: the names are used as written; a nonce
//! becomes stale after `uses` requests.

use ring::digest::{SHA256, digest};
use throng_base::Random;

use super::{Head, Refusal, pairs};

const REALM: &str = "throng";
/// Length of the seal at the end of a nonce, computed from the rest.
const SEAL_DIGITS: usize = 8;
const WRONG: Refusal =
    Refusal::bad("`/digest` takes user=NAME, password=WORD, algorithm=MD5 or SHA-256, and uses=N");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    Md5,
}

impl Algorithm {
    const ALL: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Md5];

    fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Md5 => "MD5",
        }
    }

    fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|one| name.eq_ignore_ascii_case(one.name()))
    }

    fn of(self, text: &str) -> String {
        match self {
            Algorithm::Sha256 => hex(digest(&SHA256, text.as_bytes()).as_ref()),
            Algorithm::Md5 => format!("{:x}", md5::compute(text)),
        }
    }
}

/// The result of checking a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    /// Authenticated as this user.
    From(String),
    /// Not authenticated: challenge with the given algorithm, or with both.
    Ask { algorithm: Option<&'static str>, stale: bool },
}

struct Wanted<'q> {
    user: &'q str,
    password: &'q str,
    /// Both if `None`.
    algorithm: Option<Algorithm>,
    uses: u32,
}

impl Digest {
    pub(super) fn asked(head: &Head<'_>, query: &str) -> Result<Digest, Refusal> {
        let wanted = Wanted::of(query)?;
        let ask = |stale| {
            let algorithm = wanted.algorithm.map(Algorithm::name);
            Digest::Ask { algorithm, stale }
        };
        let said = head.fields.get("authorization").and_then(|said| said.split_once(' '));
        let Some((_, said)) = said.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("digest"))
        else {
            return Ok(ask(false));
        };
        let answer = Parameters::of(said);
        let count = answer.get("nc").and_then(|count| u32::from_str_radix(count, 16).ok());
        Ok(match count.filter(|_| wanted.is_answered(head, &answer)) {
            None => ask(false),
            Some(count) if count > wanted.uses => ask(true),
            Some(_) => Digest::From(wanted.user.to_owned()),
        })
    }

    /// The challenges, each the value of a separate header.
    pub(super) fn challenges(
        algorithm: Option<&str>,
        stale: bool,
        random: &mut Random,
    ) -> Vec<String> {
        let fresh = format!("{:016x}", random.next_u64());
        let nonce = format!("{fresh}{}", seal(&fresh));
        let stale = if stale { ", stale=true" } else { "" };
        let wanted =
            Algorithm::ALL.into_iter().filter(|one| algorithm.is_none_or(|it| it == one.name()));
        let challenge = |one: Algorithm| {
            let algorithm = one.name();
            format!(
                "Digest realm=\"{REALM}\", nonce=\"{nonce}\", qop=\"auth\", \
                 algorithm={algorithm}, opaque=\"o\"{stale}"
            )
        };
        wanted.map(challenge).collect()
    }
}

impl<'q> Wanted<'q> {
    fn of(query: &'q str) -> Result<Wanted<'q>, Refusal> {
        let mut wanted = Wanted { user: "user", password: "pass", algorithm: None, uses: u32::MAX };
        for (key, value) in pairs(query) {
            match key {
                "user" => wanted.user = value,
                "password" => wanted.password = value,
                "algorithm" => wanted.algorithm = Some(Algorithm::named(value).ok_or(WRONG)?),
                "uses" => wanted.uses = value.parse().map_err(|_| WRONG)?,
                _ => return Err(WRONG),
            }
        }
        Ok(wanted)
    }

    fn is_answered(&self, head: &Head<'_>, answer: &Parameters) -> bool {
        let get = |name| answer.get(name).unwrap_or("");
        let Some(algorithm) = Algorithm::named(answer.get("algorithm").unwrap_or("MD5")) else {
            return false;
        };
        let (nonce, count, own) = (get("nonce"), get("nc"), get("cnonce"));
        let is_ours = nonce.len().checked_sub(SEAL_DIGITS);
        let is_ours = is_ours.and_then(|at| nonce.split_at_checked(at));
        let is_ours = is_ours.is_some_and(|(fresh, end)| seal(fresh) == end);
        let who = algorithm.of(&format!("{}:{REALM}:{}", self.user, self.password));
        let what = algorithm.of(&format!("{}:{}", head.method, head.target));
        let right = algorithm.of(&format!("{who}:{nonce}:{count}:{own}:auth:{what}"));
        is_ours
            && self.algorithm.is_none_or(|wanted| wanted == algorithm)
            && (get("username"), get("realm"), get("uri")) == (self.user, REALM, head.target)
            && (get("qop"), get("opaque"), count.len()) == ("auth", "o", 8)
            && !own.is_empty()
            && get("response") == right
    }
}

fn seal(fresh: &str) -> String {
    let mut seal = Algorithm::Md5.of(&format!("nonce of {REALM}: {fresh}"));
    seal.truncate(SEAL_DIGITS);
    seal
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `name=value` or `name="value"`, separated by commas.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses up to the first malformed parameter.
    fn of(text: &str) -> Parameters {
        let mut all = Vec::new();
        let mut rest = text.trim_start();
        while let Some((name, behind)) = rest.split_once('=') {
            let (value, behind) = match behind.strip_prefix('"') {
                Some(quoted) => match unquoted(quoted) {
                    Some(split) => split,
                    None => break,
                },
                None => {
                    let end = behind.find(',').unwrap_or(behind.len());
                    (behind[..end].trim_end().to_owned(), &behind[end..])
                }
            };
            all.push((name.trim().to_owned(), value));
            rest = behind.trim_start_matches([' ', ',']);
        }
        Parameters(all)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The text before the closing quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse;

    fn nonce() -> String {
        let challenges = Digest::challenges(None, false, &mut Random::new(1));
        let parameters = Parameters::of(challenges[0].strip_prefix("Digest ").unwrap());
        parameters.get("nonce").unwrap().to_owned()
    }

    fn asked(target: &str, authorization: &str) -> Digest {
        let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n{authorization}\r\n");
        let query = target.split_once('?').map_or("", |(_, query)| query);
        Digest::asked(&parse(head.as_bytes()).unwrap(), query).unwrap()
    }

    #[test]
    fn digests_match_the_rfc() {
        // RFC 7616, section 3.9.1.
        let of = |algorithm: Algorithm| {
            let who = algorithm.of("Mufasa:http-auth@example.org:Circle of Life");
            let what = algorithm.of("GET:/dir/index.html");
            let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
            let own = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
            algorithm.of(&format!("{who}:{nonce}:00000001:{own}:auth:{what}"))
        };
        assert_eq!(of(Algorithm::Md5), "8ca523f5e9506fed4657c9700eebdbec");
        let sha256 = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
        assert_eq!(of(Algorithm::Sha256), sha256);
    }

    #[test]
    fn challenges_name_the_requested_algorithms() {
        let random = &mut Random::new(1);
        let both = Digest::challenges(None, false, random);
        assert!(both[0].contains("algorithm=SHA-256") && both[1].contains("algorithm=MD5"));
        let one = Digest::challenges(Some("MD5"), true, random);
        assert!(one.len() == 1 && one[0].ends_with(", algorithm=MD5, opaque=\"o\", stale=true"));
    }

    #[test]
    fn every_part_of_a_response_is_checked() {
        let (target, nonce) = ("/digest?user=a&uses=3", nonce());
        let answer = |count: &str, password: &str| {
            let algorithm = Algorithm::Sha256;
            let who = algorithm.of(&format!("a:{REALM}:{password}"));
            let what = algorithm.of(&format!("GET:{target}"));
            let right = algorithm.of(&format!("{who}:{nonce}:{count}:c\"d:auth:{what}"));
            format!(
                "Authorization: Digest username=\"a\", realm=\"throng\",nonce=\"{nonce}\", \
                 uri=\"{target}\", algorithm=SHA-256, qop=auth, nc={count}, cnonce=\"c\\\"d\" , \
                 opaque=\"o\", response=\"{right}\"\r\n"
            )
        };
        let ask = |stale| Digest::Ask { algorithm: None, stale };
        let good = answer("00000003", "pass");
        assert_eq!(asked(target, &good), Digest::From("a".to_owned()));
        assert_eq!(asked(target, &answer("00000004", "pass")), ask(true));
        assert_eq!(asked(target, &answer("00000001", "word")), ask(false));
        assert_eq!(asked("/digest?user=a", &good), ask(false));
        assert_eq!(asked(target, ""), ask(false));
        assert_eq!(asked(target, "Authorization: Basic dTpw\r\n"), ask(false));
        for (part, other) in [
            ("=\"a\"", "=\"b\""),
            ("realm=\"throng\"", "realm=\"other\""),
            (&nonce, "0123456789abcdef01234567"),
            ("SHA-256", "MD5"),
            ("qop=auth", "qop=auth-int"),
            ("00000003", "3"),
            ("c\\\"d", "cd"),
            ("opaque=\"o\"", "opaque=\"p\""),
            ("response=\"", "response=\"0"),
            ("uri=\"/", "uri=\"/x"),
        ] {
            let wrong = good.replace(part, other);
            assert!(wrong != good);
            assert_eq!(asked(target, &wrong), ask(false), "{part}");
        }
    }

    #[test]
    fn invalid_queries_are_rejected() {
        for query in ["algorithm=SHA-1", "uses=many", "name=a", "algorithm"] {
            assert_eq!(Wanted::of(query).err(), Some(WRONG), "{query}");
        }
    }

    #[test]
    fn fuzz_responses() {
        let whole = "username=\"a\", realm=\"t\\\"h\", nc=00000001 ,qop=auth, response=\"\"";
        throng_fuzz::mutations(&[whole.as_bytes()], |input, _| {
            let text = String::from_utf8_lossy(input);
            let parameters = Parameters::of(&text);
            assert!(
                parameters.0.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
                    <= text.len()
            );
        });
    }
}
