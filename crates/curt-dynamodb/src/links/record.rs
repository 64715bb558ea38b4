//! A link as an item of the table `links`.

use aws_sdk_dynamodb::types::AttributeValue;
use curt_adapter_kit::wide_column::Mark;
use curt_adapter_kit::wide_column::links::{
    LinkPut, PutLink, PutRow, RELEASED, ReleasedCounts, RowName, Stored, StoredLink,
};
use curt_core::account::ApiKeyNumber;
use curt_core::ports::RequestToken;
use curt_core::{
    DomainId, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortResult, RedirectStatus, Revision,
    ShardId, Target, UnixMillis, Visibility,
};

use crate::failure::corrupt;
use crate::item::{Item, Key, PARTITION, Table, bytes, flag, number, text};
use crate::write::Change;

/// Stands in the place of a domain.
const COUNTS: &str = "released";

pub(super) fn key_of(id: &LinkId) -> Key {
    Key {
        table: Table::Links,
        partition: format!("{}/{}", id.domain.0, id.key.as_str()),
        sort: None,
    }
}

/// The item of released links of a shard that were counted elsewhere.
pub(super) fn counts_key(shard: ShardId) -> Key {
    Key {
        table: Table::Links,
        partition: format!("{COUNTS}/{}", shard.number()),
        sort: None,
    }
}

/// What an item is about.
pub(super) fn name_of(op: &'static str, item: &Item) -> PortResult<RowName> {
    let read = |partition: &str| {
        let (domain, rest) = partition.split_once('/')?;
        if domain == COUNTS {
            return ShardId::new(rest.parse().ok()?).map(RowName::Released);
        }
        link_id(domain, rest).map(RowName::Link)
    };
    read(item.text(PARTITION)?).ok_or_else(|| corrupt(op, "the key of an item"))
}

/// A link as keys of items have it.
pub(crate) fn link_id(domain: &str, key: &str) -> Option<LinkId> {
    let key = curt_core::Key::parse(key).ok()?;
    Some(LinkId::new(DomainId(domain.parse().ok()?), key))
}

/// What the item of a link says.
pub(super) fn of_item(op: &'static str, id: &LinkId, item: &Item) -> PortResult<Stored> {
    let changed_by = item.maybe_fixed("change_mark")?.map(Mark);
    if item.small::<i8>("state")? == RELEASED {
        return Ok(Stored::Released {
            generation: item.small("generation")?,
            by: changed_by,
            released: released_of(op, item)?,
        });
    }
    Ok(Stored::Link(Box::new(StoredLink {
        was_permanent: item.flag("was_permanent"),
        spent: item.number("spent")?.cast_unsigned(),
        token: item.maybe_fixed("request_token")?.map(RequestToken),
        changed_by,
        spent_by: item.maybe_fixed("spend_mark")?.map(Mark),
        released: released_of(op, item)?,
        link: link_of(op, id, item)?,
    })))
}

fn link_of(op: &'static str, id: &LinkId, item: &Item) -> PortResult<Link> {
    let time = |name| Ok(item.maybe_number(name)?.map(UnixMillis));
    let target = item.text("target")?.to_owned();
    let tag = |value: &AttributeValue| match value.as_s() {
        Ok(tag) => Ok(tag.as_str().into()),
        Err(_) => Err(corrupt(op, "a tag")),
    };
    let tags: PortResult<_> = item.list("tags").iter().map(tag).collect();
    Ok(Link {
        id: id.clone(),
        target: Target::from_serialised(target).map_err(|error| corrupt(op, error))?,
        owner: OwnerId(item.number("owner")?.cast_unsigned()),
        made_with: match item.maybe_number("made_with")? {
            Some(_) => Some(ApiKeyNumber(item.small("made_with")?)),
            None => None,
        },
        state: item.word("state", LinkState::from_stored)?,
        revision: Revision {
            generation: item.small("generation")?,
            version: item.small("version")?,
        },
        origin: item.word("origin", KeyOrigin::from_stored)?,
        created_at: UnixMillis(item.number("created_at")?),
        updated_at: UnixMillis(item.number("updated_at")?),
        expires_at: time("expires_at")?,
        valid_since: time("valid_since")?,
        max_clicks: item.maybe_number("max_clicks")?.map(i64::cast_unsigned),
        visibility: item.word("visibility", Visibility::from_stored)?,
        password_hash: item.maybe_text("password_hash")?.map(Into::into),
        status: match item.maybe_number("status")? {
            None => RedirectStatus::default(),
            Some(code) => {
                RedirectStatus::from_code(item.small("status")?).ok_or_else(|| corrupt(op, code))?
            }
        },
        forward_query: item.flag("forward_query"),
        title: item.maybe_text("title")?.map(Into::into),
        tags: tags?,
    })
}

/// What an edit may change; what is not there is removed.
fn editable(link: &Link, mark: Mark) -> Vec<Change> {
    let time = |at: Option<UnixMillis>| at.map(|at| number(at.0));
    let is_unusual = link.status != RedirectStatus::default();
    let tags = link.tags.iter().map(|tag| text(tag)).collect::<Vec<_>>();
    let max_clicks = link.max_clicks.map(u64::cast_signed);
    vec![
        ("target", Some(text(link.target.as_str()))),
        ("owner", Some(number(link.owner.0.cast_signed()))),
        ("state", Some(number(link.state as u8))),
        ("version", Some(number(link.revision.version))),
        ("updated_at", Some(number(link.updated_at.0))),
        ("expires_at", time(link.expires_at)),
        ("valid_since", time(link.valid_since)),
        ("max_clicks", max_clicks.map(number)),
        ("visibility", Some(number(link.visibility as u8))),
        ("password_hash", link.password_hash.as_deref().map(text)),
        ("status", is_unusual.then(|| number(link.status.code()))),
        ("forward_query", Some(flag(link.forward_query))),
        ("title", link.title.as_deref().map(text)),
        (
            "tags",
            (!tags.is_empty()).then_some(AttributeValue::L(tags)),
        ),
        ("change_mark", Some(bytes(&mark.0))),
    ]
}

/// From `before` to `after`, which has the next revision.
pub(super) fn edited(before: &StoredLink, after: &Link, mark: Mark) -> Vec<Change> {
    let mut changes = editable(after, mark);
    let was_permanent = before.was_permanent || after.status.is_permanent();
    changes.push(("was_permanent", Some(flag(was_permanent))));
    changes
}

/// All that an item says.
pub(super) fn put_row(new: &LinkPut<'_>) -> Vec<Change> {
    match &new.row {
        PutRow::Link(put) => link_row(put, &new.released, new.mark),
        PutRow::Released(generation) => released_row(*generation, &new.released, new.mark),
    }
}

fn link_row(put: &PutLink<'_>, released: &ReleasedCounts, mark: Mark) -> Vec<Change> {
    let link = put.link;
    let token = put.token.map(|token| bytes(&token.0));
    let released = (!released.is_empty()).then(|| released_value(released));
    let mut attributes = editable(link, mark);
    attributes.extend([
        ("made_with", link.made_with.map(|made| number(made.0))),
        ("origin", Some(number(link.origin as u8))),
        ("generation", Some(number(link.revision.generation))),
        ("created_at", Some(number(link.created_at.0))),
        ("was_permanent", Some(flag(put.was_permanent))),
        ("spent", Some(number(put.spent.cast_signed()))),
        ("request_token", token),
        ("released", released),
    ]);
    attributes
}

/// All that is left of a link that was released.
pub(super) fn released_row(generation: u32, released: &ReleasedCounts, mark: Mark) -> Vec<Change> {
    vec![
        ("state", Some(number(RELEASED))),
        ("generation", Some(number(generation))),
        ("released", Some(released_value(released))),
        ("change_mark", Some(bytes(&mark.0))),
    ]
}

/// Counts by origin.
pub(super) fn released_value(released: &ReleasedCounts) -> AttributeValue {
    let counts = released.iter();
    let counts = counts.map(|(origin, count)| (origin.to_string(), number(*count)));
    AttributeValue::M(counts.collect())
}

pub(super) fn released_of(op: &'static str, item: &Item) -> PortResult<ReleasedCounts> {
    let Some(counts) = item.map("released") else {
        return Ok(ReleasedCounts::new());
    };
    let count = |(origin, count): (&String, &AttributeValue)| {
        Some((origin.parse().ok()?, count.as_n().ok()?.parse().ok()?))
    };
    let counts: Option<_> = counts.iter().map(count).collect();
    counts.ok_or_else(|| corrupt(op, "released"))
}
