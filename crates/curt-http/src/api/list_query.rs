//! The query of a list: filters, order and position.

use curt_core::limits::{PAGE_LINKS_MAX, SEARCH_BYTES_MAX, TAGS_MAX};
use curt_core::ports::{ListOrder, ListQuery};
use curt_core::{EffectiveState, OwnerId, UnixMillis};
use serde::Serialize;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use super::link_body::StateName;
use super::names::UserId;
use super::time::Rfc3339;
use crate::problem::{InvalidField, Problem};

const PAGE_LINKS_DEFAULT: usize = 50;

// The parameters below can hold only literal numbers.
const _: () = assert!(SEARCH_BYTES_MAX == 200 && TAGS_MAX == 32 && PAGE_LINKS_MAX == 200);

/// The parameters as the OpenAPI document shows them; [`parse`] reads them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct ListParams {
    /// Part of the key, the target or the title, upper or lower case alike.
    #[param(nullable = false, max_length = 200, example = "spring")]
    search: Option<String>,
    /// Only links with this tag; repeat it for links that have all of several tags.
    #[param(max_items = 32, required = false)]
    tag: Vec<String>,
    /// Only links in this state; all but deleted ones unless said otherwise.
    #[param(inline, nullable = false)]
    state: Option<StateName>,
    /// Only links made at or after this instant.
    #[param(inline, nullable = false, value_type = Option<Rfc3339>)]
    created_from: Option<Rfc3339>,
    /// Only links made before this instant.
    #[param(inline, nullable = false, value_type = Option<Rfc3339>)]
    created_before: Option<Rfc3339>,
    /// Only links that expire before this instant.
    #[param(inline, nullable = false, value_type = Option<Rfc3339>)]
    expires_before: Option<Rfc3339>,
    /// Whose links: your own unless said otherwise. For administrators also another user's id, or `all`.
    #[param(nullable = false, pattern = "^(all|[1-9][0-9]{0,19})$")]
    owner_id: Option<String>,
    /// `newest` unless said otherwise. By `clicks`, those that most people followed come first; at most 1,000 links can be
    /// ordered so, after all filters.
    #[param(inline, nullable = false)]
    order: Option<OrderName>,
    /// How many links a page has at most; 50 unless said otherwise.
    #[param(nullable = false, minimum = 1, maximum = 200, example = 50)]
    limit: Option<u16>,
    /// The `next` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// The parameters of a list that is sent whole.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct ListFileParams {
    /// Part of the key, the target or the title, upper or lower case alike.
    #[param(nullable = false, max_length = 200, example = "spring")]
    search: Option<String>,
    /// Only links with this tag; repeat it for links that have all of several tags.
    #[param(max_items = 32, required = false)]
    tag: Vec<String>,
    /// Only links in this state; all but deleted ones unless said otherwise.
    #[param(inline, nullable = false)]
    state: Option<StateName>,
    /// Only links made at or after this instant.
    #[param(inline, nullable = false, value_type = Option<Rfc3339>)]
    created_from: Option<Rfc3339>,
    /// Only links made before this instant.
    #[param(inline, nullable = false, value_type = Option<Rfc3339>)]
    created_before: Option<Rfc3339>,
    /// Only links that expire before this instant.
    #[param(inline, nullable = false, value_type = Option<Rfc3339>)]
    expires_before: Option<Rfc3339>,
    /// Whose links: your own unless said otherwise. For administrators also another user's id, or `all`.
    #[param(nullable = false, pattern = "^(all|[1-9][0-9]{0,19})$")]
    owner_id: Option<String>,
    /// `newest` unless said otherwise; `oldest`, `key` or `-key`.
    #[param(nullable = false, pattern = "^(newest|oldest|key|-key)$")]
    order: Option<String>,
}

/// By time of creation, by key, or by clicks.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LinkOrder)]
#[expect(dead_code, reason = "only the documentation is generated from it")]
pub(crate) enum OrderName {
    Newest,
    Oldest,
    Key,
    #[serde(rename = "-key")]
    KeyFalling,
    Clicks,
}

/// What a list is to show.
#[derive(Debug)]
pub(crate) struct ListRequest {
    /// Whatever it says about the owner means nothing yet.
    pub(crate) query: ListQuery,
    /// Whether the most clicked come first, whatever the query's order.
    pub(crate) by_clicks: bool,
    pub(crate) owner: Option<OwnerFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerFilter {
    All,
    One(OwnerId),
}

/// Reads the query. Unknown and repeated parameters are refused: a mistyped filter would show everything.
pub(crate) fn parse(text: &str) -> Result<ListRequest, Problem> {
    let mut asked = ListRequest {
        query: ListQuery {
            limit: PAGE_LINKS_DEFAULT,
            ..ListQuery::default()
        },
        by_clicks: false,
        owner: None,
    };
    let mut errors = Vec::new();
    let mut met: Vec<String> = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if name != "tag" && met.iter().any(|before| *before == name) {
            let field = name.chars().take(64).collect::<String>();
            errors.push(InvalidField::new(
                field,
                "duplicate",
                "Give this parameter once.",
            ));
            continue;
        }
        met.push(name.clone().into_owned());
        if let Err(error) = set(&mut asked, &name, &value) {
            errors.push(error);
        }
    }
    if errors.is_empty() {
        Ok(asked)
    } else {
        Err(Problem::invalid(errors))
    }
}

/// Reads the query of a list that is sent whole: it has no pages, and cannot be ranked.
pub(crate) fn parse_for_file(text: &str) -> Result<ListRequest, Problem> {
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if name == "limit" || name == "cursor" {
            let message = "There is no such parameter.";
            return Err(Problem::invalid_field(
                name.into_owned(),
                "unknown",
                message,
            ));
        }
        if name == "order" && value == "clicks" {
            let message = "Must be newest, oldest, key or -key.";
            return Err(Problem::invalid_field("order", "value", message));
        }
    }
    parse(text)
}

fn set(asked: &mut ListRequest, name: &str, value: &str) -> Result<(), InvalidField> {
    let query = &mut asked.query;
    match name {
        "search" => {
            if value.len() > SEARCH_BYTES_MAX {
                let message = format!("A search text has at most {SEARCH_BYTES_MAX} bytes.");
                return Err(InvalidField::new("search", "length", message));
            }
            query.search = (!value.is_empty()).then(|| value.into());
        }
        "tag" => {
            if query.tags.len() == TAGS_MAX {
                let message = format!("A link has at most {TAGS_MAX} tags.");
                return Err(InvalidField::new("tag", "count", message));
            }
            query.tags.push(value.into());
        }
        "state" => {
            query.state = Some(state(value)?);
        }
        "created_from" => query.created_from = Some(instant("created_from", value)?),
        "created_before" => query.created_before = Some(instant("created_before", value)?),
        "expires_before" => query.expires_before = Some(instant("expires_before", value)?),
        "owner_id" => asked.owner = Some(owner(value)?),
        "order" if value == "clicks" => asked.by_clicks = true,
        "order" => query.order = order(value)?,
        "limit" => query.limit = limit(value)?,
        "cursor" => query.cursor = Some(value.into()),
        _ => {
            let field = name.chars().take(64).collect::<String>();
            let message = "There is no such parameter.";
            return Err(InvalidField::new(field, "unknown", message));
        }
    }
    Ok(())
}

fn state(value: &str) -> Result<EffectiveState, InvalidField> {
    let known = EffectiveState::ALL.into_iter();
    known
        .clone()
        .find(|state| state.name() == value)
        .ok_or_else(|| {
            let names: Vec<_> = known.map(EffectiveState::name).collect();
            let message = format!("Must be one of: {}.", names.join(", "));
            InvalidField::new("state", "value", message)
        })
}

fn instant(field: &'static str, value: &str) -> Result<UnixMillis, InvalidField> {
    Rfc3339::parse(value)
        .map(|at| at.0)
        .map_err(|error| InvalidField::new(field, "time", error.to_string()))
}

pub(crate) fn owner(value: &str) -> Result<OwnerFilter, InvalidField> {
    match value {
        "all" => Ok(OwnerFilter::All),
        id => UserId::parse(id)
            .map(|id| OwnerFilter::One(id.0))
            .ok_or_else(|| {
                InvalidField::new("owner_id", "value", "Must be the id of a user, or all.")
            }),
    }
}

fn order(value: &str) -> Result<ListOrder, InvalidField> {
    match value {
        "newest" => Ok(ListOrder::NewestFirst),
        "oldest" => Ok(ListOrder::OldestFirst),
        "key" => Ok(ListOrder::KeyRising),
        "-key" => Ok(ListOrder::KeyFalling),
        _ => Err(InvalidField::new(
            "order",
            "value",
            "Must be newest, oldest, key, -key or clicks.",
        )),
    }
}

fn limit(value: &str) -> Result<usize, InvalidField> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    value
        .parse()
        .ok()
        .filter(|limit| digits && (1..=PAGE_LINKS_MAX).contains(limit))
        .ok_or_else(|| {
            let message = format!("Must be a number from 1 to {PAGE_LINKS_MAX}.");
            InvalidField::new("limit", "value", message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        let text = "search=a%20b&tag=x&tag=y&state=disabled&created_from=1970-01-01T00:00:01Z\
                    &order=-key&limit=200&cursor=c&owner_id=7";
        let ListRequest { query, owner, .. } = parse(text).unwrap();
        assert_eq!(owner, Some(OwnerFilter::One(OwnerId(7))));
        assert_eq!(query.search.as_deref(), Some("a b"));
        assert_eq!(query.tags, ["x".into(), "y".into()]);
        assert_eq!(query.created_from, Some(UnixMillis(1_000)));
        assert_eq!(query.order, ListOrder::KeyFalling);
        assert_eq!((query.limit, query.cursor.as_deref()), (200, Some("c")));
    }

    #[test]
    fn every_wrong_parameter_is_named() {
        let text = "limit=0&order=best&state=gone&created_before=today&serach=x&cursor=a&cursor=b";
        let problem = parse(text).unwrap_err();
        let named: Vec<_> = problem
            .errors()
            .iter()
            .map(|error| (error.field.as_ref(), error.code.as_ref()))
            .collect();
        assert_eq!(
            named,
            [
                ("limit", "value"),
                ("order", "value"),
                ("state", "value"),
                ("created_before", "time"),
                ("serach", "unknown"),
                ("cursor", "duplicate"),
            ]
        );
    }
}
