//! What cures a finding: said as a command for now and as a line that stays, and applied where it
//! is a setting of the kernel.

use std::io::Write as _;

use throng_base::Said;

use super::host::setting_path;
use super::{Finding, Host, Severity};

/// Where settings stay.
const SETTINGS_FILE: &str = "/etc/sysctl.d/90-throng.conf";
const LIMITS_FILE: &str = "/etc/security/limits.d/90-throng.conf";

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A setting of the kernel and its new value.
    Setting { key: String, value: String },
    /// The limit of open files of a process.
    Descriptors(u64),
    /// A command for now, and what makes it stay; either may be empty.
    Command { now: String, for_good: String },
    /// Something that is no command: a sentence.
    Advice(Said),
}

impl Fix {
    pub(super) fn setting(key: impl Into<String>, value: impl Into<Value>) -> Fix {
        Fix::Setting { key: key.into(), value: value.into().0 }
    }

    /// The command that cures it until the host starts again.
    pub fn now(&self) -> Option<String> {
        match self {
            Fix::Setting { key, value } => Some(format!("sysctl -w {key}={}", quoted(value))),
            Fix::Descriptors(count) => Some(format!("ulimit -n {count}")),
            Fix::Command { now, .. } => (!now.is_empty()).then(|| now.clone()),
            Fix::Advice(_) => None,
        }
    }

    /// The lines that cure it for good, each with the file it belongs to.
    pub fn for_good(&self) -> Vec<String> {
        match self {
            Fix::Setting { key, value } => vec![format!("{SETTINGS_FILE}: {key} = {value}")],
            Fix::Descriptors(count) => vec![
                format!("{LIMITS_FILE}: * - nofile {count}"),
                format!("systemd: [Service] LimitNOFILE={count}"),
            ],
            Fix::Command { for_good, .. } if for_good.is_empty() => Vec::new(),
            Fix::Command { for_good, .. } => vec![for_good.clone()],
            Fix::Advice(_) => Vec::new(),
        }
    }

    pub fn advice(&self) -> Option<&Said> {
        match self {
            Fix::Advice(text) => Some(text),
            _ => None,
        }
    }
}

/// What a setting is set to.
pub(super) struct Value(String);

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value(number.to_string())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value(text.to_string())
    }
}

/// A value of several numbers is one word for a shell.
fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("'{value}'") } else { value.to_string() }
}

/// A setting that was written, or could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub key: String,
    pub before: Option<String>,
    pub value: String,
    pub error: Option<Said>,
}

/// Writes the settings that cure what is not fit, and nothing else.
pub fn apply(host: &Host, findings: &[Finding]) -> Vec<Applied> {
    let bad = |finding: &&Finding| matches!(finding.severity, Severity::Unfit | Severity::Warn);
    let fixes = findings.iter().filter(bad).flat_map(|finding| &finding.fixes);
    let settings = fixes.filter_map(|fix| match fix {
        Fix::Setting { key, value } => Some((key, value)),
        _ => None,
    });
    settings
        .map(|(key, value)| Applied {
            key: key.clone(),
            before: host.setting(key),
            value: value.clone(),
            error: write(host, key, value).err().map(|error| Said::of_error(&error)),
        })
        .collect()
}

/// A setting that is not there is not made.
fn write(host: &Host, key: &str, value: &str) -> std::io::Result<()> {
    let path = host.root.path(setting_path(key));
    let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    // The kernel takes a value only in one piece.
    file.write_all(format!("{value}\n").as_bytes())
}
