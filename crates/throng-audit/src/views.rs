//! Reads a view: one of the target's lists of online users.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Clock, Said};
use throng_expression::Value;
use throng_extract::{Document, JsonPath, JsonThere};
use throng_metrics::presence::Node;
use throng_monitor::command::{Limits, printed};
use throng_monitor::fetch::Fetcher;
use throng_program::{HttpSource, IDS, RedisKind, Source, View};

use crate::judge::Reading;
use crate::listed::Listed;
use crate::redis::Redis;

/// Time limit for an HTTP request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Large enough for a million names.
pub(crate) const COMMAND_LIMITS: Limits = Limits { bytes: 32_000_000, time: PATIENCE };

/// The users that are judged here: those of the whole run, or those of one generator in a fleet.
#[derive(Clone)]
pub struct Own {
    is_own: Arc<dyn Fn(u64) -> bool + Send + Sync>,
    /// Only one of the generators reports entries that are not users.
    tells_strangers: bool,
}

impl Own {
    pub fn all() -> Own {
        Own::of(|_| true, true)
    }

    pub fn of(is_own: impl Fn(u64) -> bool + Send + Sync + 'static, tells_strangers: bool) -> Own {
        Own { is_own: Arc::new(is_own), tells_strangers }
    }
}

/// See the module's description.
pub struct Reader {
    view: View,
    own: Own,
    nodes: HashMap<String, Node>,
    redis: Option<Redis>,
    fetcher: Fetcher,
    clock: Clock,
}

impl Reader {
    pub fn new(view: &View, own: Own, clock: &Clock) -> Result<Reader, Said> {
        let redis = match &view.source {
            Source::Redis { url, .. } => Some(Redis::new(url, clock)?),
            _ => None,
        };
        let node = |(name, target): &(String, u16)| {
            (name.clone(), Node::try_from(target.saturating_add(1)).unwrap_or(0))
        };
        let nodes = view.nodes.iter().map(node).collect();
        let urls: &[String] = match &view.source {
            Source::Http(http) => &http.urls,
            _ => &[],
        };
        let fetcher = Fetcher::new(urls.iter().map(String::as_str), PATIENCE);
        Ok(Reader { view: view.clone(), own, nodes, redis, fetcher, clock: clock.clone() })
    }

    /// True if it can only be queried by user names.
    pub fn needs_names(&self) -> bool {
        match &self.view.source {
            Source::Redis { kind, .. } => *kind == RedisKind::Mget,
            Source::Http(http) => asks_by_name(http),
            Source::Run(_) => false,
        }
    }

    /// Queries these users, in ascending order; a view that lists all users may return more.
    pub fn ask(&mut self, users: &[u64]) -> Result<Reading, Said> {
        self.read(Some(users))
    }

    /// All online users.
    pub fn list(&mut self) -> Result<Reading, Said> {
        self.read(None)
    }

    fn read(&mut self, users: Option<&[u64]>) -> Result<Reading, Said> {
        let Reader { view, own, nodes, redis, fetcher, clock } = self;
        let from = clock.now();
        let (online, unknown) = (Vec::new(), Vec::new());
        let mut listed = Listed { names: &view.names, nodes, online, strangers: 0, unknown };
        let mut asked = None;
        match (&view.source, redis, users) {
            (Source::Redis { kind, .. }, Some(redis), Some(users)) => {
                asked = Some(users.to_vec());
                redis.ask(kind, &view.names, users, &mut listed)?;
            }
            (Source::Redis { kind, .. }, Some(redis), None) => {
                redis.list(kind, &view.names, &mut listed)?;
            }
            (Source::Http(http), _, Some(users)) if asks_by_name(http) => {
                asked = Some(users.to_vec());
                ask_http(http, fetcher, users, &mut listed)?;
            }
            (Source::Http(http), ..) => list_http(http, fetcher, &mut listed)?,
            (Source::Run(command), ..) => {
                lines(&printed(command, COMMAND_LIMITS, clock)?, &mut listed);
            }
            (Source::Redis { .. }, None, _) => {}
        }
        // A scan can return an entry again; a list should not.
        let may_repeat = matches!(view.source, Source::Redis { .. });
        let Listed { mut online, mut strangers, mut unknown, .. } = listed;
        online.retain(|(user, _)| (own.is_own)(*user));
        if !own.tells_strangers {
            (strangers, unknown) = (0, Vec::new());
        }
        online.sort_unstable();
        let mut twice = 0;
        let mut last = None;
        for (user, _) in &online {
            let seen = last.replace((*user, last.is_some_and(|(it, _)| it == *user)));
            let is_second = seen.is_some_and(|(it, already)| it == *user && !already);
            twice += u64::from(is_second && !may_repeat);
        }
        // A user on several nodes counts once, on the first of them.
        online.dedup_by_key(|(user, _)| *user);
        Ok(Reading { from, to: clock.now(), online, asked, twice, strangers, unknown })
    }
}

/// One name per line, optionally followed by whitespace and a node.
fn lines(text: &str, listed: &mut Listed<'_>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let node = words.next().and_then(|node| listed.nodes.get(node)).copied();
        listed.name(name, node.unwrap_or(0));
    }
}

fn asks_by_name(http: &HttpSource) -> bool {
    http.urls.iter().any(|url| url.contains(IDS))
}

fn list_http(http: &HttpSource, fetcher: &Fetcher, listed: &mut Listed<'_>) -> Result<(), Said> {
    for url in &http.urls {
        let text = fetcher.text(url, &http.headers)?;
        let node = listed.nodes.get(url).copied().unwrap_or(0);
        take(http, &text, |name| listed.name(name, node))?;
    }
    Ok(())
}

fn ask_http(
    http: &HttpSource,
    fetcher: &Fetcher,
    users: &[u64],
    listed: &mut Listed<'_>,
) -> Result<(), Said> {
    for url in &http.urls {
        let node = listed.nodes.get(url).copied().unwrap_or(0);
        for users in users.chunks(http.batch.max(1)) {
            let names: Vec<String> = users.iter().map(|user| listed.names.of(*user)).collect();
            let names: Vec<String> = names.iter().map(|name| encoded(name)).collect();
            let text = fetcher.text(&url.replace(IDS, &names.join(",")), &http.headers)?;
            take(http, &text, |name| listed.name(name, node))?;
        }
    }
    Ok(())
}

/// The names in a response.
fn take(http: &HttpSource, text: &str, mut hear: impl FnMut(&str)) -> Result<(), Said> {
    let document = Document::new(text.as_bytes());
    if document.json().is_none() {
        let refusal = document.refusal().map(|refusal| refusal.said());
        return Err(refusal.unwrap_or(say!("its response is not JSON")));
    }
    let found = http.json.all_in(&document);
    if let Some(refusal) = document.refusal() {
        return Err(refusal.said());
    }
    if found.is_empty() && !is_empty_list(&http.json, &document) {
        return Err(say!("its response has no value at the JSON path"));
    }
    for value in &found {
        match value {
            Value::Text(name) => hear(name),
            Value::Int(number) => hear(&number.to_string()),
            Value::UInt(number) => hear(&number.to_string()),
            _ => return Err(say!("a value at its JSON path is not a name")),
        }
    }
    Ok(())
}

/// True if the path ends with the items of a list that is empty.
fn is_empty_list(path: &JsonPath, document: &Document<'_>) -> bool {
    path.reach(document).is_some_and(|reach| reach.there == JsonThere::List(0))
}

/// Percent-encodes for a query all but letters, digits and `-._~:`.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use throng_program::UserName;

    use super::*;

    fn http(json: Option<&str>) -> HttpSource {
        let json = JsonPath::parse(json.unwrap_or("$[*]")).expect("a path");
        HttpSource { urls: Vec::new(), headers: Vec::new(), json, batch: 500 }
    }

    #[test]
    fn a_command_prints_one_user_per_line() {
        let printed = "printf 'd1 a\nd2\n\nd3\tb\nd2 a\nroot x\n'";
        let shell = ["/bin/sh", "-c", printed].map(str::to_string);
        let view = View {
            name: "command".into(),
            source: Source::Run(shell.to_vec()),
            names: UserName { before: "d".into(), after: String::new() },
            nodes: vec![("a".into(), 0), ("b".into(), 1)],
        };
        // A generator with every second user, which does not report strangers.
        let mut own = Reader::new(&view, Own::of(|user| user % 2 == 0, false), &Clock::start());
        let reading = own.as_mut().expect("a reader").list().expect("a list");
        assert_eq!((&*reading.online, reading.twice, reading.strangers), (&[(2, 0)][..], 1, 0));
        let mut reader = Reader::new(&view, Own::all(), &Clock::start()).expect("a reader");
        assert!(!reader.needs_names());
        let reading = reader.list().expect("a list");
        assert_eq!(reading.online, [(1, 1), (2, 0), (3, 2)]);
        assert_eq!((reading.twice, reading.strangers, reading.asked), (1, 1, None));
        assert_eq!(reading.unknown, ["root"]);
    }

    #[test]
    fn names_can_be_texts_and_numbers() {
        let read = |path: Option<&str>, text: &str| {
            let mut names = Vec::new();
            take(&http(path), text, |name| names.push(name.to_string())).map(|()| names)
        };
        assert_eq!(read(None, "[\"d1\", 2]").expect("a list"), ["d1", "2"]);
        assert_eq!(read(Some("$.online[*]"), "{\"online\": []}").expect("a list"), [""; 0]);
        let why = |path, text: &str| read(path, text).expect_err("no list").english();
        let nothing = "its response has no value at the JSON path";
        assert_eq!(why(Some("$.online[*]"), "{\"onlin\": []}"), nothing);
        assert_eq!(why(None, "<html>"), "its response is not JSON");
        let told = "a value at its JSON path is not a name";
        assert_eq!(why(Some("$.online"), "{\"online\": []}"), told);
        assert_eq!(encoded("a b,ü:1"), "a%20b%2C%C3%BC:1");
    }
}
