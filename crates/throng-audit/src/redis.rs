//! Views and counts in Redis.

use std::io;
use std::time::Duration;

use throng_base::clock::wall_now;
use throng_base::{Clock, Said};
use throng_program::{RedisKind, UserName};
use throng_redis::{Link, RedisAddress, Reply, write_command, write_head, write_word};

use crate::listed::Listed;

/// Time limit for an exchange.
const PATIENCE: Duration = Duration::from_secs(10);
/// Names in one command, and commands in one pipeline.
const BATCH: usize = 1000;
/// The number of entries that `SCAN` examines in one step.
const COUNT: &[u8] = b"1000";
/// Scores above this are milliseconds since 1970, others are seconds.
const SCORE_MS_MIN: f64 = 1e11;

pub(crate) struct Redis {
    address: RedisAddress,
    clock: Clock,
    link: Option<Link>,
}

impl Redis {
    pub(crate) fn new(url: &str, clock: &Clock) -> Result<Redis, Said> {
        Ok(Redis { address: url.parse()?, clock: clock.clone(), link: None })
    }

    /// All online users.
    pub(crate) fn list(
        &mut self,
        kind: &RedisKind,
        names: &UserName,
        listed: &mut Listed<'_>,
    ) -> Result<(), Said> {
        let pattern = format!("{}*{}", escaped(&names.before), escaped(&names.after));
        match kind {
            RedisKind::Scan | RedisKind::Mget => {
                let rest = [&b"MATCH"[..], pattern.as_bytes(), b"COUNT", COUNT];
                self.scan(&[b"SCAN"], &rest, |items| items.iter().for_each(|it| named(it, listed)))
            }
            RedisKind::Set { key } => {
                let rest = [&b"COUNT"[..], COUNT];
                let head = [&b"SSCAN"[..], key.as_bytes()];
                self.scan(&head, &rest, |items| items.iter().for_each(|it| named(it, listed)))
            }
            RedisKind::SortedSet { key, age_max } => {
                let (head, age_max) = ([&b"ZSCAN"[..], key.as_bytes()], *age_max);
                self.scan(&head, &[b"COUNT", COUNT], |items| {
                    for pair in items.chunks_exact(2) {
                        if is_young(&pair[1], age_max) {
                            named(&pair[0], listed);
                        }
                    }
                })
            }
        }
    }

    /// Which of these users are online.
    pub(crate) fn ask(
        &mut self,
        kind: &RedisKind,
        names: &UserName,
        users: &[u64],
        listed: &mut Listed<'_>,
    ) -> Result<(), Said> {
        for users in users.chunks(BATCH) {
            let (mut pipeline, mut commands) = (Vec::new(), users.len());
            for user in users {
                let name = names.of(*user);
                let name = name.as_bytes();
                match kind {
                    RedisKind::Scan => write_command(&mut pipeline, &[b"EXISTS", name]),
                    RedisKind::Mget => write_word(&mut pipeline, name),
                    RedisKind::Set { key } => {
                        write_command(&mut pipeline, &[b"SISMEMBER", key.as_bytes(), name]);
                    }
                    RedisKind::SortedSet { key, .. } => {
                        write_command(&mut pipeline, &[b"ZSCORE", key.as_bytes(), name]);
                    }
                }
            }
            if *kind == RedisKind::Mget {
                let mut command = Vec::new();
                write_head(&mut command, users.len() + 1);
                write_word(&mut command, b"MGET");
                command.append(&mut pipeline);
                (pipeline, commands) = (command, 1);
            }
            let mut replies = Vec::with_capacity(users.len());
            self.exchange(&pipeline, commands, |reply| replies.push(reply))?;
            if let [Reply::List(values)] = replies.as_mut_slice() {
                replies = std::mem::take(values);
            }
            for (user, reply) in users.iter().zip(&replies) {
                match (kind, reply) {
                    (RedisKind::Mget, Reply::Text(_)) => listed.user_at(*user, reply.text()),
                    (RedisKind::SortedSet { age_max, .. }, score) if is_young(score, *age_max) => {
                        listed.user_at(*user, None);
                    }
                    (RedisKind::Scan | RedisKind::Set { .. }, Reply::Number(1)) => {
                        listed.user_at(*user, None);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The number that a command returns.
    pub(crate) fn number(&mut self, words: &[String]) -> Result<i64, Said> {
        let mut pipeline = Vec::new();
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        write_command(&mut pipeline, &words);
        let mut number = None;
        self.exchange(&pipeline, 1, |reply| {
            number = match &reply {
                Reply::Number(number) => Some(*number),
                Reply::Nothing => Some(0),
                reply => reply.text().and_then(|text| text.trim().parse().ok()),
            };
        })?;
        number.ok_or(say!("the reply is not a number"))
    }

    /// Runs a command that returns a large set in parts.
    fn scan(
        &mut self,
        head: &[&[u8]],
        rest: &[&[u8]],
        mut hear: impl FnMut(&[Reply]),
    ) -> Result<(), Said> {
        let mut cursor = b"0".to_vec();
        loop {
            let mut pipeline = Vec::new();
            let words = head.iter().copied().chain([cursor.as_slice()]).chain(rest.iter().copied());
            write_command(&mut pipeline, &words.collect::<Vec<_>>());
            let mut next = None;
            self.exchange(&pipeline, 1, |reply| {
                if let Reply::List(parts) = reply
                    && let [Reply::Text(cursor), Reply::List(items)] = parts.as_slice()
                {
                    hear(items);
                    next = Some(cursor.clone());
                }
            })?;
            cursor = next.ok_or(say!("the reply is not valid in the Redis protocol"))?;
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    fn exchange(
        &mut self,
        pipeline: &[u8],
        commands: usize,
        hear: impl FnMut(Reply),
    ) -> Result<(), Said> {
        let failed = |error: &io::Error| Said::of_error(error);
        let mut link = match self.link.take() {
            Some(link) => link,
            None => Link::open(&self.address, self.clock.clone(), PATIENCE)
                .map_err(|error| failed(&error))?,
        };
        link.ask(pipeline, commands, hear).map_err(|error| failed(&error))?;
        self.link = Some(link);
        Ok(())
    }
}

fn named(item: &Reply, listed: &mut Listed<'_>) {
    match item.text() {
        Some(name) => listed.name(name, 0),
        None => listed.stranger("?"),
    }
}

/// True if a member exists and its score is a recent time.
fn is_young(score: &Reply, age_max: Option<Duration>) -> bool {
    let Some(score) = score.text().and_then(|text| text.parse::<f64>().ok()) else { return false };
    let Some(age_max) = age_max else { return true };
    let now = wall_now().as_secs_f64();
    let at = if score > SCORE_MS_MIN { score / 1e3 } else { score };
    now - at <= age_max.as_secs_f64()
}

/// Escapes the special characters of Redis globs.
fn escaped(text: &str) -> String {
    let special = |c: char| "*?[]^\\".contains(c);
    let piece = |c: char| if special(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_times_in_seconds_or_milliseconds() {
        let now = wall_now().as_secs_f64();
        let score = |score: f64| Reply::Text(score.to_string().into_bytes());
        let age_max = Some(Duration::from_secs(30));
        for (it, young) in [
            (score(now - 10.0), true),
            (score(now - 60.0), false),
            (score((now - 10.0) * 1e3), true),
            (score((now - 60.0) * 1e3), false),
            (Reply::Nothing, false),
        ] {
            assert_eq!(is_young(&it, age_max), young, "{it:?}");
        }
        assert!(is_young(&score(1.0), None) && !is_young(&Reply::Nothing, None));
    }

    #[test]
    fn keys_are_read_by_their_types() {
        assert_eq!(escaped("a*b[c]?"), "a\\*b\\[c\\]\\?");
    }
}
