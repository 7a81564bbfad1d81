//! Topic names and topic filters (MQTT 5, 4.7 and 4.8.2).

use throng_base::Said;

use super::wire::FIELD_BYTES_MAX;

/// An error in a topic name or a topic filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicError {
    Empty,
    TooLong,
    NulCharacter,
    /// A name contains `+` or `#`.
    WildcardInName,
    /// A `#` that is not the whole last level.
    HashMisplaced,
    /// A `+` that is not a whole level.
    PlusMisplaced,
    /// `$share/` without a group, or without a filter after it.
    ShareIncomplete,
    /// A group of a shared subscription contains a wildcard.
    WildcardInGroup,
}

impl TopicError {
    /// The section of MQTT 5; 3.1.1 has the same numbers except for shared subscriptions.
    pub fn section(self) -> &'static str {
        match self {
            TopicError::Empty | TopicError::TooLong | TopicError::NulCharacter => "4.7.3",
            TopicError::WildcardInName => "3.3.2.1",
            TopicError::HashMisplaced => "4.7.1.2",
            TopicError::PlusMisplaced => "4.7.1.3",
            TopicError::ShareIncomplete | TopicError::WildcardInGroup => "4.8.2",
        }
    }

    pub fn said(self) -> Said {
        match self {
            TopicError::Empty => say!("the topic is empty"),
            TopicError::TooLong => say!("the topic has more than 65535 bytes"),
            TopicError::NulCharacter => say!("the topic contains the character U+0000"),
            TopicError::WildcardInName => {
                say!("a message cannot be published to a topic with a wildcard")
            }
            TopicError::HashMisplaced => {
                say!("`#` must be the whole last level of a topic filter")
            }
            TopicError::PlusMisplaced => say!("`+` must be a whole level of a topic filter"),
            TopicError::ShareIncomplete | TopicError::WildcardInGroup => {
                say!(
                    "a shared subscription has the form `$share/GROUP/FILTER`, without a wildcard \
                     in the group"
                )
            }
        }
    }
}

fn check_text(text: &str) -> Result<(), TopicError> {
    match text.len() {
        0 => Err(TopicError::Empty),
        bytes if bytes > FIELD_BYTES_MAX => Err(TopicError::TooLong),
        _ if memchr::memchr(0, text.as_bytes()).is_some() => Err(TopicError::NulCharacter),
        _ => Ok(()),
    }
}

/// Checks that messages can be published under this name.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), TopicError> {
    check_text(name)?;
    match memchr::memchr2(b'+', b'#', name.as_bytes()) {
        Some(_) => Err(TopicError::WildcardInName),
        None => Ok(()),
    }
}

/// Checks that a subscription can have this filter.
///
/// # Errors
/// What is wrong with it.
pub fn check_filter(filter: &str) -> Result<(), TopicError> {
    check_text(filter)?;
    let shared = shared(filter)?;
    let mut levels = shared.map_or(filter, |(_, filter)| filter).split('/').peekable();
    while let Some(level) = levels.next() {
        if level.contains('#') && (level != "#" || levels.peek().is_some()) {
            return Err(TopicError::HashMisplaced);
        }
        if level.contains('+') && level != "+" {
            return Err(TopicError::PlusMisplaced);
        }
    }
    Ok(())
}

/// Whether the filter contains `+` or `#`.
pub fn has_wildcard(filter: &str) -> bool {
    memchr::memchr2(b'+', b'#', filter.as_bytes()).is_some()
}

/// The group and the filter of a shared subscription (4.8.2); `None` for any other.
///
/// # Errors
/// It starts like one, but is invalid.
pub fn shared(filter: &str) -> Result<Option<(&str, &str)>, TopicError> {
    let Some(rest) = filter.strip_prefix("$share/") else { return Ok(None) };
    match rest.split_once('/') {
        Some((group, filter)) if !group.is_empty() && !filter.is_empty() => {
            if has_wildcard(group) {
                return Err(TopicError::WildcardInGroup);
            }
            Ok(Some((group, filter)))
        }
        _ => Err(TopicError::ShareIncomplete),
    }
}

/// Whether a message with this topic name matches this filter. The filter of a shared subscription
/// is given without its group.
pub fn matches(filter: &str, name: &str) -> bool {
    // 4.7.2: topics that start with `$` only match filters that do, too.
    if name.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut names = name.split('/');
    for level in filter.split('/') {
        match (level, names.next()) {
            // It also matches its parent level.
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (level, Some(found)) if level == found => {}
            _ => return false,
        }
    }
    names.next().is_none()
}
