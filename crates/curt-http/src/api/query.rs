//! Queries of a few named parameters, read strictly: a mistyped filter would show everything.

use curt_core::limits::PAGE_ACCOUNTS_MAX;
use url::form_urlencoded;

use super::names::UserId;
use crate::problem::{InvalidField, Problem};

const PAGE_DEFAULT: usize = 50;

/// The values of `names`, in their order. An unknown or repeated parameter is refused.
pub(crate) fn values<const N: usize>(
    text: &str,
    names: [&'static str; N],
) -> Result<[Option<String>; N], Problem> {
    let mut found = [const { None }; N];
    let mut errors = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let short = || name.chars().take(64).collect::<String>();
        match names.iter().position(|known| *known == name) {
            None => errors.push(InvalidField::new(
                short(),
                "unknown",
                "There is no such parameter.",
            )),
            Some(at) if found[at].is_some() => errors.push(InvalidField::new(
                short(),
                "duplicate",
                "Give this parameter once.",
            )),
            Some(at) => found[at] = Some(value.into_owned()),
        }
    }
    if errors.is_empty() {
        Ok(found)
    } else {
        Err(Problem::invalid(errors))
    }
}

/// How many things a page of a list has at most.
pub(crate) fn limit(value: Option<&str>) -> Result<usize, Problem> {
    let Some(value) = value else {
        return Ok(PAGE_DEFAULT);
    };
    let limit = number(value).and_then(|limit| usize::try_from(limit).ok());
    limit
        .filter(|limit| (1..=PAGE_ACCOUNTS_MAX).contains(limit))
        .ok_or_else(|| {
            let message = format!("Must be a number from 1 to {PAGE_ACCOUNTS_MAX}.");
            Problem::invalid_field("limit", "value", message)
        })
}

/// Digits and nothing else.
pub(crate) fn number(value: &str) -> Option<u64> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| digits)
}

pub(crate) fn user(field: &'static str, value: Option<&str>) -> Result<Option<UserId>, Problem> {
    let parse = |value| {
        UserId::parse(value)
            .ok_or_else(|| Problem::invalid_field(field, "value", "Must be the id of a user."))
    };
    value.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_known_and_given_once() {
        let read = values("b=2&a=%31", ["a", "b", "c"]).unwrap();
        assert_eq!(read, [Some("1".to_owned()), Some("2".to_owned()), None]);
        for (text, code) in [("a=1&a=1", "duplicate"), ("d=1", "unknown")] {
            let problem = values(text, ["a", "b"]).unwrap_err();
            assert_eq!(problem.errors()[0].code, code);
        }
    }

    #[test]
    fn limits_are_plain_numbers_in_bounds() {
        assert_eq!(limit(None).unwrap(), 50);
        assert_eq!(limit(Some("200")).unwrap(), 200);
        for value in ["0", "201", "+5", "", "x", "99999999999999999999999"] {
            assert!(limit(Some(value)).is_err(), "{value:?}");
        }
    }
}
