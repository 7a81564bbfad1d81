//! The version of `nats-server`.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// Older ones lack security fixes and features that our streams need.
    pub const NEEDED: Version = Version { major: 2, minor: 15, patch: 0 };

    /// `2.15.1`, optionally with a leading `v` or a suffix like `-RC.1`.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let mut number = || {
            let part = parts.next()?;
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().ok()
        };
        Some(Version { major: number()?, minor: number()?, patch: number().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_ordered() {
        let read = |text| Version::parse(text).map(|version| version.to_string());
        assert_eq!(read("2.15.1").as_deref(), Some("2.15.1"));
        assert_eq!(read("v2.15.2-RC.1\n").as_deref(), Some("2.15.2"));
        assert_eq!(read("2.15").as_deref(), Some("2.15.0"));
        assert_eq!(read("two"), None);
        assert_eq!(read(""), None);
        assert!(Version::parse("2.9.10") < Some(Version::NEEDED));
        assert!(Version::parse("2.15.0") >= Some(Version::NEEDED));
        assert!(Version::parse("3.0.0") > Some(Version::NEEDED));
    }
}
