use std::collections::HashMap;
use std::str;

use curt_core::limits::{BLOCKLIST_LINE_BYTES_MAX, BLOCKLIST_PATTERNS_MAX};
use regex::bytes::{RegexSet, RegexSetBuilder};
use url::Host;

use super::{Blocklist, Reach, written};

/// Bounds what one pattern costs: its size is what every byte of an address may have to be compared with.
const PATTERN_COMPILED_BYTES_MAX: usize = 64 * 1_024;
/// All patterns together: room for a thousand ordinary ones.
const PATTERNS_COMPILED_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// A line that is no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {mistake}")]
pub struct LineError {
    /// Counted from one.
    pub line: usize,
    pub mistake: Mistake,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("longer than {BLOCKLIST_LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("not UTF-8")]
    Encoding,
    #[error(
        "{0:?} is not a host: write example.com, =example.com, *.example.com, [2001:db8::1] or /pattern/"
    )]
    Host(String),
    #[error("a pattern ends with a slash")]
    PatternEnd,
    #[error("an empty pattern would block everything")]
    PatternEmpty,
    #[error("{0}")]
    Pattern(String),
    #[error("more than {BLOCKLIST_PATTERNS_MAX} patterns")]
    TooManyPatterns,
    #[error("the patterns down to here are too large together: {0}")]
    Patterns(String),
}

impl Blocklist {
    /// The whole list or the first mistake in it: half a list would let through what somebody wanted blocked.
    pub fn parse(text: &[u8]) -> Result<Self, LineError> {
        let mut hosts: HashMap<Box<str>, Reach> = HashMap::new();
        let mut patterns: Vec<&str> = Vec::new();
        let mut last_pattern = 0;
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let at_line = |mistake| LineError {
                line: number,
                mistake,
            };
            match entry(line).map_err(at_line)? {
                Entry::Nothing => {}
                Entry::Host(host, reach) => {
                    let held = hosts.entry(host).or_default();
                    held.itself |= reach.itself;
                    held.below |= reach.below;
                }
                Entry::Pattern(_) if patterns.len() == BLOCKLIST_PATTERNS_MAX => {
                    return Err(at_line(Mistake::TooManyPatterns));
                }
                Entry::Pattern(pattern) => {
                    patterns.push(pattern);
                    last_pattern = number;
                }
            }
        }
        let patterns =
            compiled(&patterns, PATTERNS_COMPILED_BYTES_MAX).map_err(|reason| LineError {
                line: last_pattern,
                mistake: Mistake::Patterns(reason.to_string()),
            })?;
        Ok(Self { hosts, patterns })
    }
}

enum Entry<'a> {
    Nothing,
    Host(Box<str>, Reach),
    Pattern(&'a str),
}

fn entry(line: &[u8]) -> Result<Entry<'_>, Mistake> {
    if line.len() > BLOCKLIST_LINE_BYTES_MAX {
        return Err(Mistake::TooLong);
    }
    let line = str::from_utf8(line).map_err(|_| Mistake::Encoding)?.trim();
    if let Some(rest) = line.strip_prefix('/') {
        return pattern(rest);
    }
    let (line, _comment) = line.split_once('#').unwrap_or((line, ""));
    let line = line.trim();
    if line.is_empty() {
        return Ok(Entry::Nothing);
    }
    let (name, itself, below) = if let Some(name) = line.strip_prefix('=') {
        (name, true, false)
    } else if let Some(name) = line.strip_prefix("*.") {
        (name, false, true)
    } else {
        (line, true, true)
    };
    Ok(Entry::Host(host(name)?, Reach { itself, below }))
}

fn host(name: &str) -> Result<Box<str>, Mistake> {
    let refused = || Mistake::Host(name.to_owned());
    // A host parser would take `*.example.com` as it is, and no host would ever match it.
    if name.contains('*') {
        return Err(refused());
    }
    let host = written(&Host::parse(name).map_err(|_| refused())?);
    if host.is_empty() {
        return Err(refused());
    }
    Ok(host)
}

fn pattern(rest: &str) -> Result<Entry<'_>, Mistake> {
    let pattern = rest.strip_suffix('/').ok_or(Mistake::PatternEnd)?;
    if pattern.is_empty() {
        return Err(Mistake::PatternEmpty);
    }
    // Alone first, so that the mistake has a line.
    compiled(&[pattern], PATTERN_COMPILED_BYTES_MAX)
        .map_err(|reason| Mistake::Pattern(reason.to_string()))?;
    Ok(Entry::Pattern(pattern))
}

fn compiled(patterns: &[&str], bytes_max: usize) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns)
        .unicode(false)
        .size_limit(bytes_max)
        .build()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use url::Url;

    use super::*;

    fn refused(text: &[u8]) -> (usize, Mistake) {
        let error = Blocklist::parse(text).unwrap_err();
        (error.line, error.mistake)
    }

    #[test]
    fn comments_blank_lines_and_foreign_line_ends_are_no_entries() {
        let text = "\u{feff}# list\r\n\r\n  a.example  # why\r\n\t# more\nb.example#x\n/c#d/\n";
        let list = Blocklist::parse(text.as_bytes()).unwrap();
        assert_eq!(
            list,
            Blocklist::parse(b"/c#d/\nb.example\na.example").unwrap()
        );
        assert_eq!(list.entries(), 3);
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason() {
        for (line, says) in [
            ("https://evil.example/", "is not a host"),
            ("evil.example/path", "is not a host"),
            ("a b.example", "is not a host"),
            ("a*.example", "is not a host"),
            ("*.*.example", "is not a host"),
            ("*", "is not a host"),
            ("=", "is not a host"),
            (".", "is not a host"),
            ("user@evil.example", "is not a host"),
            ("2001:db8::1", "is not a host"),
            ("/unfinished", "ends with a slash"),
            ("/", "ends with a slash"),
            ("//", "would block everything"),
            ("/(/", "unclosed group"),
            ("/(a)\\1/", "backreferences are not supported"),
            ("/(?:a{100}){100}{100}/", "size limit"),
        ] {
            let text = format!("good.example\n\n{line}\nalso.example");
            let error = Blocklist::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.line, 3, "{line}");
            let message = error.to_string();
            assert!(message.starts_with("line 3: "), "{message}");
            assert!(message.contains(says), "{line}: {message}");
        }
        assert_eq!(refused(b"a.example\n\xFF.example"), (2, Mistake::Encoding));
    }

    #[test]
    fn lines_and_patterns_are_bounded() {
        let long = format!("#{}", "x".repeat(BLOCKLIST_LINE_BYTES_MAX));
        assert_eq!(refused(long.as_bytes()), (1, Mistake::TooLong));
        let many = "/a/\n".repeat(BLOCKLIST_PATTERNS_MAX);
        assert!(Blocklist::parse(many.as_bytes()).is_ok());
        let more = format!("{many}/b/");
        let line = BLOCKLIST_PATTERNS_MAX + 1;
        assert_eq!(refused(more.as_bytes()), (line, Mistake::TooManyPatterns));
    }

    /// H22. The bound is generous, because tests run on busy machines; a pattern that backtracks would take for ever.
    #[test]
    fn no_pattern_takes_long() {
        let text = "/^(a+)+$/\n/(a|aa)+b/\n/(.*a){20}c/\n/(x+x+)+y/\n/([a-z]+)*[0-9]#/";
        let list = Blocklist::parse(text.as_bytes()).unwrap();
        let address = format!("https://a.example/{}", "aax".repeat(600));
        let url = Url::parse(&address).unwrap();
        let start = Instant::now();
        for _ in 0..10 {
            assert!(!list.blocks(&url));
        }
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn mutated_lists_are_read_or_refused_with_their_line() {
        let samples = [
            "# bad\nexample.com\n=a.example\n*.b.example\n",
            "/^https?:\\/\\/x/\n",
            "[2001:db8::1]\r\n192.0.2.1 # one\n",
            "\u{feff}b\u{fc}cher.example\n",
        ];
        let words = [
            "/.*/", "(a|b)*", "{1,1000}", "*.", "=", "[", "]", "\\", "#", "\n", "xn--", ".",
            "\u{e4}",
        ];
        let urls = [
            "https://example.com/",
            "http://[2001:db8::1]/x",
            "https://b.b.example./?q",
        ];
        let urls: Vec<Url> = urls.iter().map(|url| url.parse().expect("a URL")).collect();
        let fuzz = curt_testkit::fuzz::Fuzz::new("blocklist", samples).with_words(words);
        fuzz.run(|input| match Blocklist::parse(input) {
            Ok(list) => {
                let lines = input.split(|byte| *byte == b'\n').count();
                assert!(list.entries() <= lines, "more entries than lines");
                for url in &urls {
                    assert!(
                        !list.is_empty() || !list.blocks(url),
                        "an empty list blocks"
                    );
                }
                true
            }
            Err(error) => {
                let lines = input.split(|byte| *byte == b'\n').count();
                assert!((1..=lines).contains(&error.line), "{error:?}");
                false
            }
        });
    }
}
