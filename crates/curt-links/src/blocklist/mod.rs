//! Where links must not lead: hosts and patterns from a file, asked when a link is made or edited and when it is
//! loaded for a visitor.
//!
//! One entry per line; everything behind a `#` is a comment.
//!
//! ```text
//! example.com           # the host and all hosts below it
//! =example.com          # the host alone
//! *.example.com         # all hosts below it, not itself
//! /^https?:[^?]*\.exe/  # a pattern over the whole address; a # in it is no comment
//! ```
//!
//! Hosts are compared as browsers see them: lower case, punycode, no dot at the end. Patterns are matched in linear
//! time, whatever they are, and case matters in them.

mod file;
mod parse;

use std::collections::HashMap;
use std::fmt;

use regex::bytes::RegexSet;
use url::{Host, Url};

pub use self::file::{BlocklistError, BlocklistFile};
pub use self::parse::{LineError, Mistake};

/// Blocked hosts and patterns. Does not change: a new file makes a new list.
#[derive(Default)]
pub struct Blocklist {
    hosts: HashMap<Box<str>, Reach>,
    /// Over bytes, because an address is ASCII and needs no Unicode tables.
    patterns: RegexSet,
}

/// What an entry blocks of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach {
    itself: bool,
    below: bool,
}

impl Blocklist {
    #[must_use]
    pub fn blocks(&self, url: &Url) -> bool {
        self.blocks_host_of(url) || self.patterns.is_match(url.as_str().as_bytes())
    }

    /// Like [`blocks`](Self::blocks), for a serialised address.
    pub(crate) fn blocks_address(&self, address: &str) -> bool {
        !self.is_empty() && Url::parse(address).is_ok_and(|url| self.blocks(&url))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.patterns.is_empty()
    }

    /// Different hosts and patterns.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.hosts.len() + self.patterns.len()
    }

    /// A look-up per label of the host: the size of the list does not matter.
    fn blocks_host_of(&self, url: &Url) -> bool {
        let Some(host) = url.host().filter(|_| !self.hosts.is_empty()) else {
            return false;
        };
        let host = written(&host);
        if self.hosts.get(&*host).is_some_and(|reach| reach.itself) {
            return true;
        }
        let mut rest = &*host;
        while let Some((_, above)) = rest.split_once('.') {
            if self.hosts.get(above).is_some_and(|reach| reach.below) {
                return true;
            }
            rest = above;
        }
        false
    }
}

/// Whether the same is blocked; the order of entries does not matter.
impl PartialEq for Blocklist {
    fn eq(&self, other: &Self) -> bool {
        self.hosts == other.hosts && self.patterns.patterns() == other.patterns.patterns()
    }
}

impl fmt::Debug for Blocklist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocklist")
            .field("hosts", &self.hosts.len())
            .field("patterns", &self.patterns.len())
            .finish()
    }
}

/// One way to write each host. A URL parser has done most of it, except for schemes that it does not know.
fn written<S: AsRef<str>>(host: &Host<S>) -> Box<str> {
    match host {
        Host::Domain(name) => name
            .as_ref()
            .trim_end_matches('.')
            .to_ascii_lowercase()
            .into(),
        Host::Ipv4(address) => address.to_string().into(),
        // The same machine, written in the longer form.
        Host::Ipv6(address) => match address.to_ipv4_mapped() {
            Some(address) => address.to_string().into(),
            None => format!("[{address}]").into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Blocklist {
        Blocklist::parse(text.as_bytes()).unwrap()
    }

    fn blocks(list: &Blocklist, address: &str) -> bool {
        let url = Url::parse(address).unwrap();
        let blocked = list.blocks(&url);
        assert_eq!(list.blocks_address(url.as_str()), blocked, "{address}");
        blocked
    }

    #[test]
    fn each_kind_of_entry_reaches_what_it_says() {
        let list = list("evil.example\n=only.example\n*.below.example\n");
        for (address, is_blocked) in [
            ("https://evil.example/", true),
            ("http://evil.example:8080/x?y", true),
            ("https://a.evil.example/", true),
            ("https://a.b.c.evil.example/", true),
            ("https://notevil.example/", false),
            ("https://evil.example.com/", false),
            ("https://example/", false),
            ("https://good.example/?evil.example", false),
            ("https://good.example/evil.example", false),
            ("https://only.example/", true),
            ("https://a.only.example/", false),
            ("https://below.example/", false),
            ("https://a.below.example/", true),
            ("https://a.b.below.example/", true),
        ] {
            assert_eq!(blocks(&list, address), is_blocked, "{address}");
        }
    }

    #[test]
    fn entries_for_one_host_add_up() {
        for text in ["=a.example\n*.a.example", "*.a.example\n=a.example"] {
            assert_eq!(list(text), list("a.example"));
        }
        let both = list("a.example\n=a.example");
        assert!(blocks(&both, "https://b.a.example/"), "the wider one holds");
    }

    #[test]
    fn there_is_no_other_way_to_write_a_blocked_host() {
        let list = list("EVIL.example.\nbücher.example\n192.0.2.1\n[2001:db8::1]\n");
        for address in [
            "https://evil.EXAMPLE/",
            "https://evil.example./",
            "https://e%76il.example/",
            "https://ｅvil.example/",
            "https://xn--bcher-kva.example/",
            "https://BÜCHER.example/",
            "https://192.0.2.1/",
            "https://3221225985/",
            "https://0xC0.0x00.0x02.0x01/",
            "https://0300.0.02.1/",
            "https://192.0.2.1./",
            "https://[::ffff:192.0.2.1]/",
            "https://[2001:DB8:0:0:0::1]/",
            "app://EVIL.example/",
        ] {
            assert!(blocks(&list, address), "{address}");
        }
        assert!(!blocks(&list, "https://1.192.0.2.1.example/"));
    }

    #[test]
    fn patterns_see_the_whole_address() {
        let list = list("/^https?:[^?#]*\\.exe/\n/(?i)free#money$/\n");
        assert!(blocks(&list, "https://a.example/setup.exe"));
        assert!(!blocks(&list, "https://a.example/?setup.exe"));
        assert!(blocks(&list, "https://a.example/Free#Money"));
        assert!(!blocks(&list, "https://a.example/free#moneys"));
    }

    #[test]
    fn an_empty_list_blocks_nothing() {
        for empty in [list(""), list("\n  \n# nothing\n"), Blocklist::default()] {
            assert!(empty.is_empty());
            assert!(!blocks(&empty, "https://evil.example/"));
        }
    }

    /// Prints what a look-up costs in a long list; `--nocapture` shows it.
    #[test]
    fn a_long_list_finds_its_hosts() {
        let lines: String = (0..100_000).map(|n| format!("host{n}.example\n")).collect();
        let list = list(&lines);
        assert_eq!(list.entries(), 100_000);
        let blocked = Url::parse("https://www.host99999.example/path").unwrap();
        let free = Url::parse("https://a.b.hosts.example/path?query").unwrap();
        let rounds = 10_000;
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            assert!(std::hint::black_box(&list).blocks(&blocked));
            assert!(!std::hint::black_box(&list).blocks(&free));
        }
        println!("{:?} per look-up", start.elapsed() / (rounds * 2));
    }
}
