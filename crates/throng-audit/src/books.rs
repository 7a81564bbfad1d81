//! Reads one of the target's own counts.

use throng_base::{Clock, Said};
use throng_extract::{Document, JsonPath};
use throng_monitor::command::printed;
use throng_monitor::fetch::Fetcher;
use throng_program::Books;

use crate::redis::Redis;
use crate::views::COMMAND_LIMITS;

/// See the module's description.
pub struct Reader {
    books: Books,
    redis: Option<Redis>,
    fetcher: Fetcher,
    clock: Clock,
}

impl Reader {
    pub fn new(books: &Books, clock: &Clock) -> Result<Reader, Said> {
        let redis = match books {
            Books::Redis { url, .. } => Some(Redis::new(url, clock)?),
            _ => None,
        };
        let url = match books {
            Books::Http { url, .. } => Some(url.as_str()),
            Books::Redis { .. } | Books::Run(_) => None,
        };
        let fetcher = Fetcher::new(url, crate::views::PATIENCE);
        Ok(Reader { books: books.clone(), redis, fetcher, clock: clock.clone() })
    }

    pub fn read(&mut self) -> Result<i64, Said> {
        let text = match &self.books {
            Books::Redis { command, .. } => {
                let redis = self.redis.as_mut().ok_or(say!("the reply is not a number"))?;
                return redis.number(command);
            }
            Books::Http { url, headers, json } => {
                let text = self.fetcher.text(url, headers)?;
                match json {
                    Some(path) => first(path, &text)?,
                    None => text,
                }
            }
            Books::Run(command) => printed(command, COMMAND_LIMITS, &self.clock)?,
        };
        number(&text).ok_or(match self.books {
            Books::Run(_) => say!("the output does not begin with a number"),
            _ => say!("the response is not a number"),
        })
    }
}

fn first(path: &JsonPath, text: &str) -> Result<String, Said> {
    let document = Document::new(text.as_bytes());
    let found = path.first_in(&document);
    let mut text = Vec::new();
    match found {
        Some(value) => value.write_text(&mut text),
        None => return Err(say!("the response has no value at the JSON path")),
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The first number in a text; decimals must be zero.
fn number(text: &str) -> Option<i64> {
    let word = text.split_whitespace().next()?;
    let whole = word.strip_suffix(".0").unwrap_or(word);
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_read() {
        for (text, found) in [
            ("17\n", Some(17)),
            (" 17 orders", Some(17)),
            ("17.0", Some(17)),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(number(text), found, "{text}");
        }
    }
}
