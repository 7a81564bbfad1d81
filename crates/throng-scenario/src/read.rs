//! Reads the tree: maps by their tables, values by their types. A mistake is noted and reading
//! continues, so that all mistakes of a file are reported together.
//!
//! - [`found`]: the findings.
//! - [`names`]: names in expressions; [`template`]: texts with expressions.
//! - [`foreign`]: syntax of other tools.

pub(crate) mod foreign;
mod found;
mod mistakes;
pub(crate) mod names;
pub(crate) mod template;

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throng_base::units::{self, UnitError};
use throng_base::{Said, Source};

use crate::scope::{FileRole, SessionNames, SetupNames, Spoken};
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::Node;
use crate::words::{names, shorten, switch};

pub(crate) use found::Found;
pub use mistakes::DIAGNOSTICS_MAX;

/// Reads a file, but at most one byte more than the limit: the only access of this crate to the
/// disk.
pub type ReadFile<'a> = &'a dyn Fn(&Path, usize) -> std::io::Result<Vec<u8>>;

/// Reads an environment variable.
pub type ReadVariable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The context of reading a node: findings so far, and what is in scope.
pub(crate) struct Context<'a> {
    pub(crate) found: &'a mut Found,
    /// The names of the session that is being compiled.
    pub(crate) session: &'a mut SessionNames,
    pub(crate) scope: Scope<'a>,
    pub(crate) env: ReadVariable<'a>,
    read_file: ReadFile<'a>,
}

/// What is in scope where something is read. It is passed down: a nested place has its own scope,
/// derived from the enclosing one.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The protocol of the messages in scope.
    pub(crate) spoken: &'a Spoken,
    pub(crate) defaults: &'a Defaults,
    /// The values that `setup.NAME` can name.
    pub(crate) setup: &'a SetupNames,
    /// Whether expressions can use a response, and whether that is a declared message.
    pub(crate) answer: Option<AnswerKind>,
    /// It is only evaluated when its values exist.
    pub(crate) in_time: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Parts,
    Fields,
}

impl Scope<'_> {
    const OUTSIDE: Scope<'static> = Scope {
        spoken: &Spoken::Plain,
        defaults: &Defaults::NONE,
        setup: &SetupNames::None,
        answer: None,
        in_time: false,
    };
}

impl Deref for Context<'_> {
    type Target = Found;

    fn deref(&self) -> &Found {
        self.found
    }
}

impl DerefMut for Context<'_> {
    fn deref_mut(&mut self) -> &mut Found {
        self.found
    }
}

/// Maximum size of a certificate or key file.
const PEM_BYTES_MAX: usize = 16 << 20;
/// Maximum total size of the files that a scenario sends.
const FILES_BYTES_MAX: usize = 1 << 30;

/// Defaults for steps.
#[derive(Clone)]
pub(crate) struct Defaults {
    pub(crate) headers: Vec<(String, throng_program::Text)>,
    pub(crate) cookies: Vec<(String, throng_program::Text)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) failing: throng_program::Failing,
}

/// The limit of redirects is the same for the whole program, but steps can state it too.
#[derive(Default)]
pub(crate) struct Redirects {
    pub(crate) limit: Option<u8>,
}

impl Defaults {
    const NONE: Defaults = Defaults {
        headers: Vec::new(),
        cookies: Vec::new(),
        timeout: None,
        connect_timeout: None,
        failing: throng_program::Failing { retry: None, then: throng_program::OnError::Count },
    };
}

impl<'a> Context<'a> {
    /// The context at the start of a file, with empty `found` and `session`.
    pub(crate) fn new(
        (found, session): (&'a mut Found, &'a mut SessionNames),
        (source, base): (&Arc<Source>, &Path),
        (read_file, env): (ReadFile<'a>, ReadVariable<'a>),
    ) -> Context<'a> {
        found.add_source(source.clone(), base.to_path_buf());
        Context { found, session, scope: Scope::OUTSIDE, env, read_file }
    }

    /// The same with another scope.
    pub(crate) fn scoped<'b>(&'b mut self, scope: Scope<'b>) -> Context<'b> {
        let Context { found, session, env, read_file, .. } = self;
        Context { found, session, scope, env: *env, read_file: *read_file }
    }

    /// The same for another session.
    pub(crate) fn in_session<'b>(&'b mut self, session: &'b mut SessionNames) -> Context<'b> {
        let Context { found, scope, env, read_file, .. } = self;
        Context { found, session, scope: *scope, env: *env, read_file: *read_file }
    }

    /// Reads a file from disk, but at most one byte more than the limit.
    pub(crate) fn read(&self, path: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
        (self.read_file)(path, bytes_max)
    }

    /// Reads something that belongs to a connection, with its protocol in scope.
    pub(crate) fn speaking<T>(
        &mut self,
        spoken: &Spoken,
        read: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let scope = Scope { spoken, ..self.scope };
        read(&mut self.scoped(scope))
    }

    /// The bytes of a file that the scenario names.
    pub(crate) fn file(&mut self, node: &Node, role: FileRole) -> Option<(PathBuf, Arc<[u8]>)> {
        let name = self.text(node, say!("the path of a file"))?;
        let path = self.named_path(node.place, &name, role);
        if let Some(bytes) = self.files.get(&path) {
            return Some((path.clone(), bytes.clone()));
        }
        let bytes_max = match role {
            FileRole::Certificate | FileRole::Key => PEM_BYTES_MAX,
            _ => FILES_BYTES_MAX - self.files.values().map(|bytes| bytes.len()).sum::<usize>(),
        };
        match (self.read_file)(&path, bytes_max) {
            Ok(bytes) if bytes.len() > bytes_max => {
                let message = match role {
                    FileRole::Certificate | FileRole::Key => say!("`{name}` is larger than 16 MiB"),
                    _ => say!("the files that the scenario sends are larger than 1 GiB in total"),
                };
                let help = say!("use smaller files; all of them are kept in memory");
                self.refuse("file-too-large", node.place, message, say!("too large"), help)
            }
            Ok(bytes) => {
                let bytes: Arc<[u8]> = bytes.into();
                self.files.insert(path.clone(), bytes.clone());
                Some((path, bytes))
            }
            Err(reason) => {
                let message = say!("`{name}` cannot be read");
                let help =
                    say!("file paths are relative to the folder that contains the scenario file");
                self.refuse("file-unreadable", node.place, message, Said::of_error(&reason), help)
            }
        }
    }
}

/// Values with a type.
impl Context<'_> {
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(crate) fn unit<T>(
        &mut self,
        node: &Node,
        want: Said,
        parse: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let text = self.text(node, want.clone())?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(reason) => {
                let message = say!("`{}` is not {want}", shorten(&text));
                let mut error = self
                    .error("bad-value", message, node.place)
                    .label(reason.message)
                    .help(reason.help);
                if let Some(name) = self.vars.single_name(node) {
                    error = error.note(say!("`vars.{name}` is `{}`", shorten(&text)));
                }
                self.fail(error)
            }
        }
    }

    pub(crate) fn duration(&mut self, node: &Node) -> Option<Duration> {
        self.unit(node, say!("a duration"), units::parse_time)
    }

    /// A duration that must not be zero.
    pub(crate) fn time_limit(&mut self, node: &Node) -> Option<Duration> {
        let duration = self.duration(node)?;
        if duration.is_zero() {
            return self.bad_value(
                node,
                say!("the duration must be greater than zero"),
                say!("write `30s`"),
            );
        }
        Some(duration)
    }

    pub(crate) fn duration_range(&mut self, node: &Node) -> Option<(Duration, Duration)> {
        self.unit(node, say!("a duration or a range of durations"), units::parse_time_range)
    }

    pub(crate) fn size(&mut self, node: &Node) -> Option<u64> {
        let size = self.unit(node, say!("a size"), units::parse_size)?;
        match size {
            0 => self.bad_value(
                node,
                say!("the limit must be greater than zero"),
                say!("write `64KiB`"),
            ),
            _ => Some(size),
        }
    }

    pub(crate) fn rate(&mut self, node: &Node) -> Option<f64> {
        self.unit(node, say!("a rate"), units::parse_rate)
    }

    pub(crate) fn share(&mut self, node: &Node) -> Option<f64> {
        self.unit(node, say!("a share"), units::parse_share)
    }

    pub(crate) fn count(&mut self, node: &Node) -> Option<u64> {
        self.unit(node, say!("a count"), units::parse_count)
    }

    /// A count that fits into 32 bits, such as a weight.
    pub(crate) fn small_count(&mut self, node: &Node) -> Option<u32> {
        let count = self.count(node)?;
        match u32::try_from(count) {
            Ok(count) => Some(count),
            Err(_) => self.bad_value(
                node,
                say!("the number is too large"),
                say!("write at most 4 billion"),
            ),
        }
    }

    pub(crate) fn whole(&mut self, node: &Node) -> Option<u64> {
        let help = say!("a seed must be a whole number: `7`");
        self.unit(node, say!("a seed"), |text| {
            let plain = text.trim().replace('_', "");
            plain
                .parse()
                .map_err(|_| UnitError { message: say!("not a whole number"), help: help.clone() })
        })
    }

    pub(crate) fn bool(&mut self, node: &Node) -> Option<bool> {
        match self.text(node, say!("`true` or `false`"))?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                let message = say!("`{}` is neither `true` nor `false`", shorten(other));
                let label = near_label(switch(other), say!("not a boolean"));
                let help = say!("write `true` or `false`");
                self.refuse("bad-value", node.place, message, label, help)
            }
        }
    }

    /// One of several words.
    pub(crate) fn word<T: Copy>(&mut self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, say!("a word"))?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let message = say!("`{}` is not allowed here", shorten(&text));
        let words = words.iter().map(|(word, _)| *word);
        let label = near_label(did_you_mean(&text, words.clone()), say!("here"));
        let help = say!("write one of these: {}", names(words));
        self.refuse("bad-value", node.place, message, label, help)
    }
}
