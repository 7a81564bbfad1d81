//! Allow lists: names, addresses and networks that may be loaded, as the owner of a machine or an
//! agent writes them. Nothing is read or resolved here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use throng_base::clean::without_mark;

/// One list. If there are several, a target must be allowed by all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    /// Source of the list: a variable or a path.
    pub origin: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// In lower case.
    Name(String),
    /// `*.example.com` without the star: all names with this suffix.
    Ending(String),
    Network {
        base: IpAddr,
        bits: u32,
    },
}

impl AllowList {
    /// Entries are separated by spaces, commas or line ends; `#` starts a comment. The error is the
    /// first invalid entry.
    pub fn parse(origin: impl Into<String>, text: &str) -> Result<AllowList, String> {
        let lines = without_mark(text).lines().map(|line| line.split('#').next().unwrap_or(""));
        let words = lines.flat_map(|line| line.split([',', ' ', '\t', '\r']));
        let words = words.filter(|word| !word.is_empty());
        let entries: Result<_, _> = words.map(|word| entry(word).ok_or(word.to_string())).collect();
        Ok(AllowList { origin: origin.into(), entries: entries? })
    }

    /// Whether a target may be loaded at this address: its name is allowed, or the address is.
    fn allows(&self, host: Option<&str>, address: IpAddr) -> bool {
        let host = host.map(|host| host.trim_end_matches('.').to_ascii_lowercase());
        let host = host.as_deref();
        let address = address.to_canonical();
        self.entries.iter().any(|entry| match entry {
            Entry::Name(name) => host == Some(name),
            Entry::Ending(ending) => host.is_some_and(|host| host.ends_with(ending.as_str())),
            Entry::Network { base, bits } => shares(*base, address, *bits),
        })
    }

    /// Whether targets that are only reachable from this host may be loaded: `localhost`, or one of
    /// its addresses.
    pub(crate) fn allows_this_host(&self) -> bool {
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        loopback.into_iter().any(|address| self.allows(Some("localhost"), address))
    }

    /// The first address of a target that the list does not allow. Without a host name, only the
    /// addresses are checked.
    pub fn stranger(&self, host: Option<&str>, addresses: &[SocketAddr]) -> Option<IpAddr> {
        let addresses = addresses.iter().map(SocketAddr::ip);
        addresses.into_iter().find(|address| !self.allows(host, *address))
    }
}

fn entry(word: &str) -> Option<Entry> {
    let bare = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(word);
    if let Ok(address) = bare.parse::<IpAddr>() {
        let base = address.to_canonical();
        return Some(Entry::Network { base, bits: length(base) });
    }
    if let Some((address, bits)) = word.split_once('/') {
        let base: IpAddr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok()?;
        return (bits <= length(base)).then_some(Entry::Network { base, bits });
    }
    let name = word.trim_end_matches('.').to_ascii_lowercase();
    let (name, is_ending) = match name.strip_prefix('*') {
        Some(ending) => (ending.to_string(), true),
        None => (name, false),
    };
    let is_label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (name.chars().all(is_label) && name.contains(char::is_alphabetic), is_ending) {
        (true, true) if name.starts_with('.') => Some(Entry::Ending(name)),
        (true, false) => Some(Entry::Name(name)),
        _ => None,
    }
}

fn length(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => Ipv4Addr::BITS,
        IpAddr::V6(_) => Ipv6Addr::BITS,
    }
}

/// Whether two addresses of one family share a prefix of this length.
fn shares(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    let shared = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => return false,
    };
    shared >= bits
}

/// Whether an address may belong to a third party: it is not an address of this host, of a private
/// network (RFC 1918, RFC 4193, RFC 6598), or of a link.
pub fn is_public(address: IpAddr) -> bool {
    let is_own = match address.to_canonical() {
        IpAddr::V4(address) => {
            let shared = (Ipv4Addr::new(100, 64, 0, 0), 10);
            address.is_loopback()
                || address.is_unspecified()
                || address.is_private()
                || address.is_link_local()
                || shares(shared.0.into(), address.into(), shared.1)
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
        }
    };
    !is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> AllowList {
        AllowList::parse("test", text).unwrap()
    }

    #[test]
    fn names_addresses_and_networks_are_allowed() {
        let list = list(
            "\u{feff}shop.example, *.test.example # ours\n127.0.0.0/30,10.1.2.3\r\n\nfd00::/8 [::1]\t192.0.2.0/24",
        );
        for (host, address, allowed) in [
            ("shop.example", "192.0.3.1", true),
            ("SHOP.example.", "192.0.3.1", true),
            ("a.shop.example", "192.0.3.1", false),
            ("a.b.test.example", "192.0.3.1", true),
            ("test.example", "192.0.3.1", false),
            ("eviltest.example", "192.0.3.1", false),
            ("x", "127.0.0.3", true),
            ("x", "127.0.0.4", false),
            ("x", "10.1.2.3", true),
            ("x", "10.1.2.2", false),
            ("x", "fd12::1", true),
            ("x", "fe80::1", false),
            ("x", "::1", true),
            ("x", "::ffff:10.1.2.3", true),
            ("x", "::ffff:10.1.2.4", false),
            ("x", "192.0.2.1", true),
        ] {
            assert_eq!(
                list.allows(Some(host), address.parse().unwrap()),
                allowed,
                "{host} {address}"
            );
        }
        let addresses = ["10.1.2.3:80", "192.0.3.1:80"].map(|it| it.parse().unwrap());
        assert_eq!(list.stranger(Some("x"), &addresses), Some("192.0.3.1".parse().unwrap()));
        assert_eq!(list.stranger(Some("shop.example"), &addresses), None);
        assert_eq!(list.stranger(None, &addresses), Some("192.0.3.1".parse().unwrap()));
    }

    #[test]
    fn an_empty_list_allows_nothing_and_a_zero_prefix_allows_all() {
        assert!(!list(" # nothing\n").allows(Some("localhost"), "127.0.0.1".parse().unwrap()));
        assert!(list("0.0.0.0/0").allows(Some("x"), "192.0.2.1".parse().unwrap()));
        assert!(list("::/0").allows(Some("x"), "2001:db8::1".parse().unwrap()));
        assert!(!list("::/0").allows(Some("x"), "192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn an_invalid_entry_is_quoted() {
        for (text, word) in [
            ("a 10.0.0.0/33", "10.0.0.0/33"),
            ("10.0.0.0/x", "10.0.0.0/x"),
            ("http://a/", "http://a/"),
            ("a:80", "a:80"),
            ("10.0.0", "10.0.0"),
            ("*", "*"),
            ("*a.example", "*a.example"),
        ] {
            assert_eq!(AllowList::parse("test", text), Err(word.to_string()));
        }
    }

    #[test]
    fn addresses_of_third_parties_are_public() {
        for own in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
            "::1",
            "::",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_public(own.parse().unwrap()), "{own}");
        }
        for public in [
            "192.0.2.1",
            "172.32.0.1",
            "100.128.0.1",
            "11.0.0.1",
            "2001:db8::1",
            "::ffff:192.0.2.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
