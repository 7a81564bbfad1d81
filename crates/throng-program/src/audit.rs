//! Audits: compare the target's presence data and counts with the run, in parallel to the load.

use std::time::Duration;

use throng_base::StepId;
use throng_extract::JsonPath;

/// Compares the target's data with that of the generator.
#[derive(Clone, Debug)]
pub struct Audit {
    pub name: String,
    /// Interval between the starts of two rounds; `None`: no periodic rounds.
    pub every: Option<Duration>,
    /// Times of single rounds.
    pub at: Vec<Duration>,
    /// One more round after the load has ended.
    pub at_end: bool,
    pub what: AuditWhat,
}

#[derive(Clone, Debug)]
pub enum AuditWhat {
    /// Which users are online.
    Presence {
        views: Vec<View>,
        /// How long a view may take to reflect a change.
        within: Duration,
    },
    /// How many requests of a step were processed.
    Count { books: Books, step: StepId, step_name: String },
}

/// One of the places where the target stores which users are online.
#[derive(Clone, Debug)]
pub struct View {
    pub name: String,
    pub source: Source,
    pub names: UserName,
    /// The view's names of nodes, and their targets, by index in the program.
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

/// A view's name of a user: these texts before and after its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserName {
    pub before: String,
    pub after: String,
}

impl UserName {
    /// The user with this name; `None` if the name is not valid.
    pub fn user(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = is_plain && !digits.is_empty() && !digits.starts_with('0');
        digits.parse().ok().filter(|_| is_plain)
    }

    pub fn of(&self, user: u64) -> String {
        format!("{}{user}{}", self.before, self.after)
    }

    /// As in a scenario: `d${user.id}`.
    pub fn pattern(&self) -> String {
        format!("{}${{user.id}}{}", self.before, self.after)
    }
}

#[derive(Clone, Debug)]
pub enum Source {
    Redis {
        /// `redis://`; may contain a password.
        url: String,
        kind: RedisKind,
    },
    /// Lists of the users that are online, one response after another.
    Http(HttpSource),
    /// A program on the controller's host with its arguments. It prints one user per line: its name
    /// and, after a space or tab, its node if the view knows it.
    Run(Vec<String>),
}

/// How Redis stores that a user is online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisKind {
    /// A key with its name exists.
    Scan,
    /// A key with its name exists, looked up by name; its value is the node.
    Mget,
    /// It is in a set.
    Set { key: String },
    /// It is in a sorted set, with a score that is a time no older than this.
    SortedSet { key: String, age_max: Option<Duration> },
}

#[derive(Clone, Debug)]
pub struct HttpSource {
    /// Each has a list of its own. With `${ids}` in it, it is given user names, separated by
    /// commas.
    pub urls: Vec<String>,
    pub headers: Vec<(String, String)>,
    /// The path to the names in the response.
    pub json: JsonPath,
    /// Names per request, if the URL contains `${ids}`.
    pub batch: usize,
}

/// Placeholder in a URL for the requested names.
pub const IDS: &str = "${ids}";

/// The source of the number of processed requests.
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
    /// A program on the controller's host with its arguments; its output starts with the number.
    Run(Vec<String>),
}

impl Audit {
    /// The commands that it runs on the controller's host.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        let books = match &self.what {
            AuditWhat::Count { books: Books::Run(command), .. } => Some(command.as_slice()),
            _ => None,
        };
        self.views().iter().filter_map(View::command).chain(books)
    }

    /// The URLs that it sends requests to.
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
    fn a_name_belongs_to_one_user() {
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
