//! Audits: what the target says of its users and of its books, asked for beside the run.

use std::time::Duration;

use throng_base::StepId;
use throng_extract::JsonPath;

/// Something that the target says is compared with what the generator knows.
#[derive(Clone, Debug)]
pub struct Audit {
    pub name: String,
    /// Between the beginnings of two rounds; None: no round by the clock.
    pub every: Option<Duration>,
    /// Moments of single rounds.
    pub at: Vec<Duration>,
    /// Once more when the load has ended.
    pub at_end: bool,
    pub what: AuditWhat,
}

#[derive(Clone, Debug)]
pub enum AuditWhat {
    /// Who is online.
    Presence {
        views: Vec<View>,
        /// So long a view may take to hear of a change.
        within: Duration,
    },
    /// How many requests of a step were processed.
    Count { books: Books, step: StepId, step_name: String },
}

/// One of the places where the target knows who is online.
#[derive(Clone, Debug)]
pub struct View {
    pub name: String,
    pub source: Source,
    pub names: UserName,
    /// What the view calls a node, and the target that is meant, by its number in the program.
    pub nodes: Vec<(String, u16)>,
}

impl View {
    fn command(&self) -> Option<&[String]> {
        match &self.source {
            Source::Run(command) => Some(command),
            _ => None,
        }
    }

    fn urls(&self) -> &[String] {
        match &self.source {
            Source::Redis { url, .. } => std::slice::from_ref(url),
            Source::Http(http) => &http.urls,
            Source::Run(_) => &[],
        }
    }
}

/// How a view calls a user: these texts before and after its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserName {
    pub before: String,
    pub after: String,
}

impl UserName {
    /// The user that is meant; None where none can be.
    pub fn user(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = is_plain && !digits.is_empty() && !digits.starts_with('0');
        digits.parse().ok().filter(|_| is_plain)
    }

    pub fn of(&self, user: u64) -> String {
        format!("{}{user}{}", self.before, self.after)
    }

    /// As a scenario has it: `d${user.id}`.
    pub fn pattern(&self) -> String {
        format!("{}${{user.id}}{}", self.before, self.after)
    }
}

#[derive(Clone, Debug)]
pub enum Source {
    Redis {
        /// `redis://`; it may hold a password.
        url: String,
        kind: RedisKind,
    },
    /// Lists of the users that are online, one response after another.
    Http(HttpSource),
    /// A program of the controller's host with its arguments. It prints a user per line: its name
    /// and, behind a space or tab, its node if the view knows it.
    Run(Vec<String>),
}

/// In what of Redis a user is online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisKind {
    /// There is a key of its name.
    Scan,
    /// There is a key of its name, asked for by name; its value is the node.
    Mget,
    /// It is in a set.
    Set { key: String },
    /// It is in a sorted set, with a score that is a time no older than this.
    SortedSet { key: String, age_max: Option<Duration> },
}

#[derive(Clone, Debug)]
pub struct HttpSource {
    /// Each has a list of its own. With `${ids}` in it, names of users, separated by commas.
    pub urls: Vec<String>,
    pub headers: Vec<(String, String)>,
    /// The path to the names in the response.
    pub json: JsonPath,
    /// So many names in a request, where the URL has `${ids}`.
    pub batch: usize,
}

/// What a URL has in place of the names that are asked for.
pub const IDS: &str = "${ids}";

/// What says how much was processed.
#[derive(Clone, Debug)]
pub enum Books {
    /// A command whose reply is a number.
    Redis {
        url: String,
        command: Vec<String>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
        json: Option<JsonPath>,
    },
    /// A program of the controller's host with its arguments, which prints the number first.
    Run(Vec<String>),
}

impl Audit {
    /// What it executes on the controller's host.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        let books = match &self.what {
            AuditWhat::Count { books: Books::Run(command), .. } => Some(command.as_slice()),
            _ => None,
        };
        self.views().iter().filter_map(View::command).chain(books)
    }

    /// Where it sends requests.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        let books = match &self.what {
            AuditWhat::Count {
                books: Books::Redis { url, .. } | Books::Http { url, .. }, ..
            } => Some(url),
            _ => None,
        };
        self.views().iter().flat_map(View::urls).chain(books).map(String::as_str)
    }

    /// The views of an audit of presence.
    pub fn views(&self) -> &[View] {
        match &self.what {
            AuditWhat::Presence { views, .. } => views,
            AuditWhat::Count { .. } => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_one_user() {
        let names = UserName { before: "online:d".into(), after: ":x".into() };
        assert_eq!(names.user(&names.of(17)), Some(17));
        for other in
            ["online:d:x", "online:d017:x", "online:d17", "d17:x", "online:d-1:x", "", "17"]
        {
            assert_eq!(names.user(other), None, "{other}");
        }
        assert_eq!(UserName::default().user("99999999999999999999"), None);
    }
}
