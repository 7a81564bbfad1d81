//! Detects URLs of created resources in a recording: a URL with a number that no page or request
//! contained before the first change. Another user needs the URL of its own page.

use std::collections::HashSet;

use regex::Regex;

use super::super::names::is_id;
use super::super::page::quoted;
use crate::model::Save;

/// The separators of words in a URL.
const CUTS: [char; 5] = ['/', '?', '&', '=', '#'];
/// The maximum number of stored URL prefixes.
const KNOWN_MAX: usize = 100_000;

#[derive(Default)]
pub(super) struct Links {
    /// The prefixes of URLs from before the first change, each up to the end of a word.
    known: HashSet<String>,
    has_login: bool,
    has_changed: bool,
}

impl Links {
    /// New words of later URLs may name created resources.
    pub(super) fn change(&mut self) {
        self.has_changed = true;
    }

    /// New words of later URLs may belong to the user.
    pub(super) fn log_in(&mut self) {
        self.has_login = true;
    }

    /// A link of a page.
    pub(super) fn see(&mut self, url: &str) {
        if !self.may_be_new(url) {
            self.remember(url);
        }
    }

    fn may_be_new(&self, url: &str) -> bool {
        self.has_changed || self.has_login && is_personal(url)
    }

    pub(super) fn remember(&mut self, url: &str) {
        for (at, _) in words(url) {
            if self.known.len() < KNOWN_MAX {
                self.known.insert(url[..at.end].to_string());
            }
        }
    }

    /// The first word that makes a URL new.
    fn first_new<'u>(&self, url: &'u str) -> Option<&'u str> {
        let mut new = words(url).filter(|(at, _)| !self.known.contains(&url[..at.end]));
        new.find(|(_, word)| has_number(word)).map(|(_, word)| word)
    }

    /// True if the URL of a redirect names a new resource.
    pub(super) fn is_new(&self, url: &str) -> bool {
        words(url).any(|(_, word)| is_id(word))
            || self.may_be_new(url) && self.first_new(url).is_some()
    }

    /// The path of a URL with `:id` instead of new words.
    pub(super) fn row(&self, url: &str) -> String {
        let path = url.split('?').next().unwrap_or_default();
        let mut out = String::new();
        let mut end = 0;
        for (at, word) in words(path) {
            out.push_str(&path[end..at.start]);
            let is_new = has_number(word) && !self.known.contains(&path[..at.end]);
            let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
            out.push_str(match is_id(word) || is_new {
                // `issue7`
                true if name.bytes().all(|b| b.is_ascii_alphabetic()) => name,
                true => "",
                false => word,
            });
            out.push_str(if is_id(word) || is_new { ":id" } else { "" });
            end = at.end;
        }
        out + &path[end..]
    }

    /// A save that finds the link at `number` among those of its kind, by the text before and after
    /// its new part. `None` if none does.
    pub(super) fn finds(
        &self,
        kind: (&str, &str),
        all: &[String],
        number: usize,
        resolved: &str,
        body: &str,
    ) -> Option<Save> {
        let raw = all.get(number).filter(|_| self.may_be_new(resolved))?;
        let word = self.first_new(resolved)?;
        let from = raw.find(word)?;
        let digit = from + word.find(|c: char| c.is_ascii_digit())?;
        let last = words(raw).rfind(|(_, word)| has_number(word))?.0.end;
        let behind = &raw[last.max(from + word.len())..];
        let first = |before: &&str| {
            let is_alike = |link: &String| link.starts_with(before) && link.ends_with(behind);
            all.iter().position(is_alike) == Some(number)
        };
        let mut beginnings = [&raw[..from], &raw[..digit]].into_iter();
        match beginnings.find(|before| !(before.is_empty() && behind.is_empty()) && first(before)) {
            Some(before) => Some(by_selector(kind, before, behind)),
            None => by_pattern(raw, digit, body)
                .or_else(|| by_place(kind, all, number, (&raw[..from], behind))),
        }
    }
}

/// The first element with this prefix and this suffix.
fn by_selector((tag, attribute): (&str, &str), before: &str, behind: &str) -> Save {
    let test = |sign: &str, part: &str| match part {
        "" => String::new(),
        part => format!("[{attribute}{sign}{}]", quoted(part)),
    };
    Save::Css(format!("{tag}{}{}@{attribute}", test("^=", before), test("$=", behind)))
}

/// The first quoted text that differs only in its numbers from `digit` on.
fn by_pattern(raw: &str, digit: usize, body: &str) -> Option<Save> {
    let mut pattern = regex::escape(&raw[..digit]);
    let mut rest = &raw[digit..];
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        pattern.push_str(&regex::escape(&rest[..at]));
        pattern.push_str("\\d+");
        rest = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let pattern = format!("[\"']({pattern}{})[\"']", regex::escape(rest));
    let found = Regex::new(&pattern).ok()?.captures(body)?.get(1)?;
    (found.as_str() == raw).then_some(Save::Regex(pattern))
}

/// The element at this position, or the last one, among similar ones.
fn by_place(
    (tag, attribute): (&str, &str),
    all: &[String],
    number: usize,
    (before, behind): (&str, &str),
) -> Option<Save> {
    if before.contains('\'') || behind.contains('\'') || behind.is_empty() {
        return None;
    }
    let is_alike = |link: &&String| link.starts_with(before) && link.contains(behind);
    let place = all[..number].iter().filter(is_alike).count() + 1;
    let place = match place == all.iter().filter(is_alike).count() {
        true => "last()".to_string(),
        false => place.to_string(),
    };
    let name = format!("@{attribute}");
    let tests = format!("starts-with({name}, '{before}') and contains({name}, '{behind}')");
    Some(Save::XPath(format!("(//{tag}[{tests}])[{place}]/{name}")))
}

/// The words of a URL, and their positions.
fn words(url: &str) -> impl DoubleEndedIterator<Item = (std::ops::Range<usize>, &str)> {
    let start = url.as_ptr() as usize;
    url.split(CUTS).filter(|word| !word.is_empty()).map(move |word| {
        let at = word.as_ptr() as usize - start;
        (at..at + word.len(), word)
    })
}

/// True if a URL names a user by number: `/users/7`, `/user7`.
fn is_personal(url: &str) -> bool {
    const USERS: [&str; 8] =
        ["user", "users", "member", "members", "profile", "profiles", "account", "accounts"];
    let names_users = |word: &str| USERS.iter().any(|it| word.eq_ignore_ascii_case(it));
    let mut before = "";
    words(url).any(|(_, word)| {
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_user = has_number(word) && (names_users(before) || names_users(stem));
        before = word;
        is_user
    })
}

/// A word with a number, unless it is a version.
fn has_number(word: &str) -> bool {
    let is_version = word.starts_with('v') && word[1..].bytes().all(|b| b.is_ascii_digit());
    !is_version && word.bytes().any(|b| b.is_ascii_digit())
}

/// The path and the query of a link on a page, without a fragment. `None`: another host.
pub(super) fn resolved(page: &str, link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or_default().trim();
    let path = match link.split_once("://") {
        Some(("http" | "https", rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None if !link.starts_with("//") && !link.split(CUTS).next()?.contains(':') => link,
        _ => return None,
    };
    let base = page.split('?').next().unwrap_or_default();
    match path.as_bytes().first() {
        Some(b'/') => return Some(path.to_string()),
        Some(b'?') => return Some(format!("{base}{path}")),
        None => return Some(page.to_string()),
        _ => {}
    }
    let mut folders: Vec<&str> = base.split('/').collect();
    folders.pop();
    let mut rest = path;
    while let Some(behind) = rest.strip_prefix("./").or_else(|| rest.strip_prefix("../")) {
        if rest.starts_with("..") && folders.len() > 1 {
            folders.pop();
        }
        rest = behind;
    }
    Some(format!("{}/{rest}", folders.join("/")))
}

#[cfg(test)]
mod tests {
    use throng_extract::{Css, Page, XPath};

    use super::*;

    #[test]
    fn a_user_after_login_is_new_and_a_product_is_not() {
        let mut links = Links::default();
        links.log_in();
        for url in ["/products/7", "/users/17", "/member17/edit"] {
            links.see(url);
        }
        let is_found = |url: &str| {
            let page = format!("<a href=\"{url}\">x</a>");
            links.finds(("a", "href"), &[url.to_string()], 0, url, &page).is_some()
        };
        assert!(!is_found("/products/7"));
        assert!(is_found("/users/17") && is_found("/member17/edit"));
    }

    #[test]
    fn links_are_resolved_against_their_page() {
        let cases = [
            ("/x/1?a=b#c", Some("/x/1?a=b")),
            ("http://a.example/x/1", Some("/x/1")),
            ("https://a.example", Some("/")),
            ("edit?id=2", Some("/board/edit?id=2")),
            ("./3", Some("/board/3")),
            ("../../../y", Some("/y")),
            ("?page=2", Some("/board/list?page=2")),
            ("#top", Some("/board/list?page=1")),
            ("mailto:a@b.example", None),
            ("javascript:void(0)", None),
            ("//cdn.example/x", None),
        ];
        for (link, want) in cases {
            assert_eq!(resolved("/board/list?page=1", link).as_deref(), want, "{link}");
        }
    }

    #[test]
    fn a_new_link_is_found_by_the_text_around_its_number() {
        let mut links = Links::default();
        links.remember("/forum/general-1/topic/create/");
        links.remember("/forum/general-1/topic/rules-3/");
        links.change();
        let all = [
            "/forum/general-1/topic/rules-3/",
            "/forum/general-1/topic/tea-17/post/create/",
            "/forum/general-1/topic/tea-17/post/4/edit/#e4",
            "/forum/general-1/topic/tea-17/post/5/edit/#e5",
            "/forum/general-1/topic/tea-17/post/4/edit/",
            "/forum/general-1/topic/tea-17/post/5/edit/",
        ]
        .map(String::from);
        let page = all.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect::<String>();
        let found = |number: usize| {
            let url = resolved("/", &all[number]).unwrap();
            links.finds(("a", "href"), &all, number, &url, &page)
        };
        let tree = Page::new(page.as_bytes());
        assert_eq!(found(0), None);
        let Some(Save::Css(create)) = found(1) else { panic!("{:?}", found(1)) };
        assert_eq!(create, "a[href^=\"/forum/general-1/topic/\"][href$=\"/post/create/\"]@href");
        assert_eq!(
            Css::parse(&create).unwrap().first(&tree).unwrap().to_text().to_string(),
            all[1]
        );
        let Some(Save::Regex(edit)) = found(2) else { panic!("{:?}", found(2)) };
        assert_eq!(edit, "[\"'](/forum/general\\-1/topic/tea\\-\\d+/post/\\d+/edit/\\#e\\d+)[\"']");
        assert_eq!(found(3), None);
        let Some(Save::XPath(edit)) = found(5) else { panic!("{:?}", found(5)) };
        assert!(edit.ends_with("and contains(@href, '/edit/')])[last()]/@href"), "{edit}");
        assert_eq!(
            XPath::parse(&edit).unwrap().first(&tree).unwrap().to_text().to_string(),
            all[5]
        );
        assert_eq!(
            links.row("/forum/general-1/topic/tea-17/issue7/4"),
            "/forum/general-1/topic/:id/issue:id/:id"
        );
    }
}
