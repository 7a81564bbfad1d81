//! `--urls FILE`: requests from a list, as other tools have it. A line is
//!
//! ```text
//! [METHOD] URL [WEIGHT]        http://127.0.0.1:8080/a · GET /b 3 · vegeta's `GET http://…`
//! URL POST [BODY]              as in siege
//! ```
//!
//! A URL without a host goes to that of the command line. `#` begins a comment.

use std::path::Path;
use std::sync::Arc;

use throng_base::clean::without_mark;
use throng_base::{Diagnostic, Said, Source, Span, plain};

use super::{Bench, BenchBody, Writer};
use crate::syntax::SOURCE_BYTES_MAX;
use crate::url::Url;

/// With more requests, a report with a row for each is not readable.
pub const URLS_MAX: usize = 500;

/// A request of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchUrl {
    /// None uses the method of the command line.
    pub method: Option<String>,
    /// Including scheme and host.
    pub url: String,
    pub weight: u32,
    pub body: Option<String>,
}

/// Reads the list in a file.
pub fn read_urls(path: &Path, base: &str) -> Result<Vec<BenchUrl>, Vec<Diagnostic>> {
    let text = plain::read_given_text(path, SOURCE_BYTES_MAX).map_err(|error| {
        let error = Said::of_error(&error);
        let message = say!("cannot read the list of URLs {}: {error}", path.display());
        let error = Diagnostic::error("file-unreadable", message);
        vec![error.help(say!("set --urls to the path of a text file"))]
    })?;
    parse_urls(&Source::new(path.display().to_string(), without_mark(&text)), base)
}

/// Reads a list; returns all mistakes. `base` is the URL of the command line.
pub fn parse_urls(source: &Arc<Source>, base: &str) -> Result<Vec<BenchUrl>, Vec<Diagnostic>> {
    let (mut urls, mut errors): (Vec<BenchUrl>, Vec<Diagnostic>) = (Vec::new(), Vec::new());
    let base = Url::parse(base).ok().map(|url| url.origin());
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let text = line.split_once(" #").map_or(line, |(text, _)| text).trim();
        let begin = start + line.find(text).unwrap_or(0);
        let span = Span { source: Arc::clone(source), start: begin, end: begin + text.len() };
        start += line.len();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match parse_line(text, base.as_deref()) {
            Ok(url) => {
                let first = urls.first().and_then(|first| Url::parse(&first.url).ok());
                let origin = |url: &Url| url.origin();
                let own = Url::parse(&url.url).ok();
                match first.as_ref().map(origin).zip(own.as_ref().map(origin)) {
                    Some((first, own)) if first != own => {
                        let message = say!("this URL is on {own}, but the first one is on {first}");
                        let help = say!("`bench` loads only one target: use one list per target");
                        errors.push(mistake(message, help).at(span));
                    }
                    _ => urls.push(url),
                }
            }
            Err((message, help)) => errors.push(mistake(message, help).at(span)),
        }
        if urls.len() > URLS_MAX {
            let message = say!("the list has more than {URLS_MAX} URLs");
            let help = say!("use a scenario with `data`: `http: GET ${{data.urls.path}}`");
            return Err(vec![mistake(message, help)]);
        }
    }
    if urls.is_empty() && errors.is_empty() {
        let message = say!("the list has no URLs");
        errors.push(mistake(message, say!("write one per line: `GET http://127.0.0.1:8080/ 3`")));
    }
    if errors.is_empty() { Ok(urls) } else { Err(errors) }
}

fn mistake(message: Said, help: Said) -> Diagnostic {
    Diagnostic::error("bad-url-list", message).help(help)
}

fn parse_line(text: &str, base: Option<&str>) -> Result<BenchUrl, (Said, Said)> {
    let (first, rest) = split(text);
    let (method, url, rest) = match is_method(first) {
        true => {
            let (url, rest) = split(rest);
            (Some(first.to_string()), url, rest)
        }
        false => (None, first, rest),
    };
    let help = || say!("write `[METHOD] URL [WEIGHT]`: `GET http://127.0.0.1:8080/ 3`");
    if url.is_empty() {
        return Err((say!("the line has no URL"), help()));
    }
    let url = match (url.starts_with('/'), base) {
        (true, Some(base)) => format!("{base}{url}"),
        (true, None) => {
            let help = say!("give the host on the command line: `throng bench http://… --urls …`");
            return Err((say!("the URL has no host"), help));
        }
        (false, _) => url.to_string(),
    };
    match Url::parse(&url) {
        Ok(parsed) if matches!(parsed.scheme.word(), "http" | "https") => {}
        Ok(parsed) => {
            let message = say!("`{}` URLs are not supported in a list", parsed.scheme.word());
            return Err((message, say!("use http:// or https://")));
        }
        Err(error) => return Err((error.message, error.help)),
    }
    let one = BenchUrl { method, url, weight: 1, body: None };
    let (word, body) = split(rest);
    match (word, &one.method) {
        ("", _) => Ok(one),
        // As in siege.
        (word, None) if is_method(word) => {
            let body = Some(body.to_string()).filter(|body| !body.is_empty());
            Ok(BenchUrl { method: Some(word.to_string()), body, ..one })
        }
        (word, _) => match word.parse::<u32>() {
            Ok(weight) if weight > 0 && body.is_empty() => Ok(BenchUrl { weight, ..one }),
            _ => Err((say!("`{rest}` is not a weight", rest = rest.trim()), help())),
        },
    }
}

/// The first word, and what follows it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

fn is_method(word: &str) -> bool {
    word.len() >= 3 && word.chars().all(|c| c.is_ascii_uppercase())
}

impl Writer<'_> {
    /// One step per URL; users choose one by weight each time.
    pub(super) fn listed(&mut self) -> bool {
        let bench = self.bench;
        if bench.urls.is_empty() {
            return false;
        }
        self.line("      - choose:");
        for one in &bench.urls {
            let request = Bench {
                url: one.url.clone(),
                method: one.method.clone().or_else(|| bench.method.clone()),
                body: one.body.clone().map_or_else(|| bench.body.clone(), BenchBody::Text),
                urls: Vec::new(),
                ..bench.clone()
            };
            let mut writer = Writer::new(&request);
            writer.auth.clone_from(&self.auth);
            writer.http_step();
            self.line(&format!("          - weight: {}", one.weight));
            self.line("            steps:");
            writer.out.lines().for_each(|line| self.line(&format!("        {line}")));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use throng_program::Statement;

    use super::*;
    use crate::bench::write;
    use crate::tests::program;

    fn list(text: &str) -> Result<Vec<BenchUrl>, String> {
        let source = Source::new("urls.txt", text);
        parse_urls(&source, "http://127.0.0.1:8080/x").map_err(|errors| {
            errors.iter().map(|error| error.render(false)).collect::<Vec<_>>().join("\n")
        })
    }

    #[test]
    fn lists_of_other_tools_are_read() {
        let text = "# what users do\n\n\
                    http://127.0.0.1:8080/plain\n\
                    GET http://127.0.0.1:8080/vegeta\n\
                    GET /weighted?q=1 30   # most of it\n\
                    http://127.0.0.1:8080/siege POST a=b&c=d e\n\
                    DELETE /one\r\n";
        let urls = list(text).expect("a list");
        let short = |it: &BenchUrl| {
            let method = it.method.clone().unwrap_or_default();
            (method, it.url[21..].to_string(), it.weight, it.body.clone())
        };
        let one = |method: &str, path: &str, weight, body: Option<&str>| {
            (method.to_string(), path.to_string(), weight, body.map(str::to_string))
        };
        assert_eq!(
            urls.iter().map(short).collect::<Vec<_>>(),
            [
                one("", "/plain", 1, None),
                one("GET", "/vegeta", 1, None),
                one("GET", "/weighted?q=1", 30, None),
                one("POST", "/siege", 1, Some("a=b&c=d e")),
                one("DELETE", "/one", 1, None),
            ]
        );
    }

    #[test]
    fn a_list_becomes_a_choice_with_a_row_for_each_url() {
        let urls = list("GET /a 3\nPOST /b\n").expect("a list");
        let url = "http://127.0.0.1:8080/x".to_string();
        let program = program(&write(&Bench { url, urls, users: 1, ..Bench::default() }));
        let names: Vec<&str> = program.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["GET /a", "POST /b"]);
        assert!(matches!(program.sessions[0].steps[0], Statement::Choose { .. }), "{program:?}");
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, part) in [
            ("", "the list has no URLs"),
            ("GET /a\nGET\n", "urls.txt:2"),
            ("GET /a x\n", "`x` is not a weight"),
            ("GET /a 0\n", "`0` is not a weight"),
            ("GET /a 3 4\n", "`3 4` is not a weight"),
            ("ws://127.0.0.1:8080/a\n", "`ws` URLs are not supported in a list"),
            ("/a\nhttp://127.0.0.2/b\n", "urls.txt:2"),
            ("no url\n", "urls.txt:1"),
        ] {
            let told = list(text).expect_err(text);
            assert!(told.contains(part) && told.contains("bad-url-list"), "{text}: {told}");
        }
        let many = "GET /a\n".repeat(URLS_MAX + 1);
        assert!(list(&many).expect_err("too many").contains("more than 500"));
    }
}
