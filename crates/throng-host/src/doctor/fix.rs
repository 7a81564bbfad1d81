//! The fix of a finding: a command for now and a line that persists; kernel settings can be applied
//! automatically.

use std::io::Write as _;

use throng_base::Said;

use super::host::setting_path;
use super::{Finding, Host, Severity};

/// The file for persistent settings.
const SETTINGS_FILE: &str = "/etc/sysctl.d/90-throng.conf";
const LIMITS_FILE: &str = "/etc/security/limits.d/90-throng.conf";

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A kernel setting and its new value.
    Setting { key: String, value: String },
    /// The limit of open files of a process.
    Descriptors(u64),
    /// A command for now, and one that persists; either may be empty.
    Command { now: String, for_good: String },
    /// A sentence instead of a command.
    Advice(Said),
}

impl Fix {
    pub(super) fn setting(key: impl Into<String>, value: impl Into<Value>) -> Fix {
        Fix::Setting { key: key.into(), value: value.into().0 }
    }

    /// The command that fixes it until the host restarts.
    pub fn now(&self) -> Option<String> {
        match self {
            Fix::Setting { key, value } => Some(format!("sysctl -w {key}={}", quoted(value))),
            Fix::Descriptors(count) => Some(format!("ulimit -n {count}")),
            Fix::Command { now, .. } => (!now.is_empty()).then(|| now.clone()),
            Fix::Advice(_) => None,
        }
    }

    /// The lines that fix it permanently, each with its file.
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

/// The value of a setting.
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

/// A value with several numbers is quoted for the shell.
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

/// Writes only the settings that fix findings.
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

/// A setting that does not exist is not created.
fn write(host: &Host, key: &str, value: &str) -> std::io::Result<()> {
    let path = host.root.path(setting_path(key));
    let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    // The kernel accepts a value only in one write.
    file.write_all(format!("{value}\n").as_bytes())
}
