//! Redis clients: their credentials, and the commands they send.
//!
//! A message with [`Commands`] is one write, a pipeline if there are several. The step ends when
//! all replies have arrived. An error among them is a failure, unless the step checks `error`.
//! Fields besides the content are headers ([`crate::Pick::Header`]): `value`, `type` and `error` of
//! replies, `channel` and `pattern` of messages.

use std::fmt;

use throng_expression::Expression;
use throng_protocol::redis::{write_head, write_word};

use super::{Command, Scheme};
use crate::text::Text;

impl Scheme {
    pub fn is_redis(self) -> bool {
        matches!(self, Scheme::Redis | Scheme::Rediss)
    }

    /// Whether users receive messages only from what they subscribe to.
    pub fn subscribes(self) -> bool {
        self.is_redis()
    }
}

/// The parts of a target's URL: credentials and database.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
    pub database: u32,
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).field("database", &self.database).finish()
    }
}

/// Commands that are sent together.
#[derive(Clone, Debug)]
pub struct Commands {
    /// In readable form.
    pub written: String,
    /// The number of commands.
    pub count: u32,
    /// The number of replies: one per command, and one per channel that is subscribed to.
    pub replies: u32,
    /// The step reads the replies.
    pub is_read: bool,
    /// Messages of channels may follow.
    pub subscribes: bool,
    /// The text that the last command publishes, if any.
    published: Option<Text>,
    pieces: Box<[Piece]>,
}

/// A part of the commands.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Constant bytes.
    Fixed(Box<[u8]>),
    /// A word that differs per user.
    Word(Text),
}

impl Commands {
    /// From the words of commands, none of which is empty.
    pub fn new(commands: &[Vec<Text>], written: String, is_read: bool) -> Commands {
        let (mut pieces, mut fixed, mut all) = (Vec::new(), Vec::new(), Commands::none(written));
        for words in commands {
            all.count += 1;
            all.replies += all.replies_to(words);
            write_head(&mut fixed, words.len());
            for word in words {
                match word.as_literal() {
                    Some(literal) => write_word(&mut fixed, literal),
                    None => {
                        pieces.push(Piece::Fixed(std::mem::take(&mut fixed).into()));
                        pieces.push(Piece::Word(word.clone()));
                    }
                }
            }
        }
        if !fixed.is_empty() {
            pieces.push(Piece::Fixed(fixed.into()));
        }
        Commands { is_read, pieces: pieces.into(), ..all }
    }

    fn none(written: String) -> Commands {
        Commands {
            written,
            count: 0,
            replies: 0,
            is_read: false,
            subscribes: false,
            published: None,
            pieces: Box::default(),
        }
    }

    /// The number of replies to a command.
    fn replies_to(&mut self, words: &[Text]) -> u32 {
        let name = words.first().and_then(Text::as_literal).unwrap_or_default();
        self.published = None;
        match name.to_ascii_uppercase().as_slice() {
            b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" => self.subscribes = true,
            b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" | b"SUNSUBSCRIBE" => {}
            b"PUBLISH" | b"SPUBLISH" => {
                self.published = words.get(2).cloned();
                return 1;
            }
            _ => return 1,
        }
        words.len() as u32 - 1
    }

    /// The complete commands, if all users share them.
    pub fn fixed(&self) -> Option<&[u8]> {
        match &*self.pieces {
            [Piece::Fixed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// The parts in order; words must be preceded by their lengths.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

impl Command for Commands {
    fn verb(&self) -> &'static str {
        "redis"
    }

    /// The last command may publish one.
    fn text(&self) -> Option<&Text> {
        self.published.as_ref()
    }

    fn subscribes(&self) -> bool {
        self.subscribes
    }

    fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        for piece in &self.pieces {
            if let Piece::Word(text) = piece {
                text.expressions(visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_expression::{Expression, Value};

    use super::*;
    use crate::text::{Escape, Segment};

    fn words(text: &str) -> Vec<Text> {
        text.split(' ').map(Text::literal).collect()
    }

    #[test]
    fn parts_that_all_users_share_are_written_once() {
        let value = Expression::constant(Value::Int(7));
        let varies = Text { segments: vec![Segment::Value { value, escape: Escape::None }] };
        let get = [words("GET k")];
        let commands = Commands::new(&get, String::new(), false);
        assert_eq!(commands.fixed(), Some(&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"[..]));
        let set = [words("SET k"), vec![varies.clone()], words("EX 5")].concat();
        let commands = Commands::new(&[get[0].clone(), set], String::new(), false);
        assert_eq!((commands.fixed(), commands.count, commands.replies), (None, 2, 2));
        let shown: Vec<String> =
            commands.pieces().iter().map(|piece| format!("{piece:?}")).collect();
        assert_eq!(shown.len(), 3, "{shown:?}");
    }

    #[test]
    fn each_channel_has_its_own_reply() {
        for (text, replies, subscribes) in [
            ("subscribe a b c", 3, true),
            ("PSUBSCRIBE a*", 1, true),
            ("UNSUBSCRIBE a b", 2, false),
            ("PUBLISH a hello", 1, false),
        ] {
            let commands = Commands::new(&[words(text)], String::new(), false);
            assert_eq!((commands.replies, commands.subscribes), (replies, subscribes), "{text}");
            let published = commands.text().and_then(Text::as_literal);
            assert_eq!(published, text.starts_with("PUBLISH").then_some(&b"hello"[..]));
        }
        // Only the word that was written last is still known after sending.
        let both = [words("PUBLISH a hello"), words("GET k")];
        assert!(Commands::new(&both, String::new(), false).text().is_none());
    }
}
