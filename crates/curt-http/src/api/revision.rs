//! Revisions as entity tags: `ETag: "generation.version"`, `If-Match`, `If-None-Match`.

use curt_core::Revision;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::problem::{Problem, ProblemCode};

/// The text inside a link's entity tag.
pub(crate) fn tag(revision: Revision) -> String {
    format!("{}.{}", revision.generation, revision.version)
}

/// The strong entity tag of a link.
#[expect(
    clippy::expect_used,
    reason = "two numbers and a dot are a header value"
)]
pub(crate) fn etag(revision: Revision) -> HeaderValue {
    HeaderValue::try_from(format!("\"{}\"", tag(revision))).expect("digits in quotes")
}

/// What a client says about the revision that it has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No such header.
    Absent,
    /// `*`: any revision, as long as there is one.
    Any,
    /// The revisions that were named. Tags that are not ours match nothing and are left out.
    Named(Vec<Seen>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) revision: Revision,
    pub(crate) weak: bool,
}

impl Condition {
    pub(crate) fn if_match(headers: &HeaderMap) -> Result<Self, Problem> {
        Self::read(headers, &IF_MATCH)
    }

    pub(crate) fn if_none_match(headers: &HeaderMap) -> Result<Self, Problem> {
        Self::read(headers, &IF_NONE_MATCH)
    }

    fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Self, Problem> {
        let mut seen = Vec::new();
        let mut given = false;
        for value in headers.get_all(name) {
            let malformed = || {
                Problem::new(ProblemCode::MalformedRequest).detail(format!(
                    "{name} holds one or more entity tags in double quotes, or *."
                ))
            };
            let text = value.to_str().map_err(|_| malformed())?.trim();
            if text == "*" {
                return Ok(Self::Any);
            }
            given = true;
            collect_tags(text, &mut seen).ok_or_else(malformed)?;
        }
        Ok(if given {
            Self::Named(seen)
        } else {
            Self::Absent
        })
    }

    /// Whether `If-None-Match` names `revision`: weak comparison, as RFC 9110 asks for reads.
    pub(crate) fn names(&self, revision: Revision) -> bool {
        match self {
            Self::Absent => false,
            Self::Any => true,
            Self::Named(seen) => seen.iter().any(|seen| seen.revision == revision),
        }
    }
}

fn collect_tags(list: &str, into: &mut Vec<Seen>) -> Option<()> {
    let mut rest = list;
    let mut any = false;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return any.then_some(());
        }
        let (weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let (opaque, after) = quoted.strip_prefix('"')?.split_once('"')?;
        if !after.trim_start().is_empty() && !after.trim_start().starts_with(',') {
            return None;
        }
        any = true;
        if let Some(revision) = parse_tag(opaque) {
            into.push(Seen { revision, weak });
        }
        rest = after;
    }
}

fn parse_tag(opaque: &str) -> Option<Revision> {
    let (generation, version) = opaque.split_once('.')?;
    let revision = Revision {
        generation: generation.parse().ok()?,
        version: version.parse().ok()?,
    };
    // Only the exact spelling is the same tag: "01.+1" is somebody else's.
    (tag(revision) == opaque).then_some(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&'static str]) -> Result<Condition, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, HeaderValue::from_static(value));
        }
        Condition::if_match(&headers)
    }

    fn strong(generation: u32, version: u32) -> Seen {
        Seen {
            revision: Revision {
                generation,
                version,
            },
            weak: false,
        }
    }

    #[test]
    fn conditions_are_read() {
        let weak = Seen {
            weak: true,
            ..strong(1, 2)
        };
        for (values, wanted) in [
            (&[][..], Condition::Absent),
            (&["*"], Condition::Any),
            (&["\"1.2\""], Condition::Named(vec![strong(1, 2)])),
            (
                &["\"1.2\" ,\t\"3.4\"", "W/\"1.2\""],
                Condition::Named(vec![strong(1, 2), strong(3, 4), weak]),
            ),
            (&["\"other\", \"01.2\", \"1.+2\""], Condition::Named(vec![])),
        ] {
            assert_eq!(read(values).unwrap(), wanted, "{values:?}");
        }
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for value in ["", "1.2", "\"1.2", "\"1.2\" \"1.3\"", "w/\"1.2\"", ","] {
            let problem = read(&[value]).unwrap_err();
            assert_eq!(problem.code(), ProblemCode::MalformedRequest, "{value:?}");
        }
    }

    #[test]
    fn mutated_tags_are_refused_or_name_revisions_that_have_that_tag() {
        let samples = [
            "\"1.1\"",
            "W/\"3.14\", \"other\"",
            "*",
            "\"4294967295.7\",\"\"",
        ];
        curt_testkit::fuzz::Fuzz::new("entity tags", samples)
            .with_words(["W/", "\"", "\"1.", ", "])
            .run_texts(|text| {
                let Ok(value) = HeaderValue::from_str(text) else {
                    return false;
                };
                let headers = HeaderMap::from_iter([(IF_MATCH, value)]);
                let Ok(condition) = Condition::if_match(&headers) else {
                    return false;
                };
                if let Condition::Named(seen) = condition {
                    let named = |seen: &Seen| text.contains(&tag(seen.revision));
                    assert!(seen.iter().all(named), "{text:?}");
                }
                true
            });
    }
}
