//! A link as a row of the table `links`, and many links as one array per column.

use curt_core::account::ApiKeyNumber;
use curt_core::ports::{LinkChange, RequestToken};
use curt_core::{
    KeyOrigin, Link, LinkId, LinkState, PortResult, RedirectStatus, Revision, ShardId, ShardMap,
    Target, Visibility,
};
use tokio_postgres::Row;

use crate::array_text::array_text;
use crate::decode::{corrupt, link_id, number, owner, small, time, time_or_none};
use crate::engine::{Value, column};

/// What a seeded row, which leads nowhere, shows as its target.
const SEEDED_TARGET: &str = "about:blank";

/// Links by column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    domain: Vec<i64>,
    key: Vec<&'a str>,
    target: Vec<&'a str>,
    owner: Vec<i64>,
    state: Vec<i16>,
    origin: Vec<i16>,
    generation: Vec<i64>,
    version: Vec<i64>,
    created_at: Vec<i64>,
    updated_at: Vec<Option<i64>>,
    expires_at: Vec<Option<i64>>,
    valid_since: Vec<Option<i64>>,
    max_clicks: Vec<Option<i64>>,
    visibility: Vec<i16>,
    password_hash: Vec<Option<&'a str>>,
    status: Vec<Option<i16>>,
    was_permanent: Vec<bool>,
    forward_query: Vec<bool>,
    title: Vec<Option<&'a str>>,
    tags: Vec<Option<String>>,
    made_with: Vec<Option<i64>>,
    request_token: Vec<Option<Vec<u8>>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(links: impl Iterator<Item = (&'a Link, Option<RequestToken>)>) -> Self {
        let mut columns = Self::default();
        for (link, token) in links {
            columns.push(link, token);
        }
        columns
    }

    fn push(&mut self, link: &'a Link, token: Option<RequestToken>) {
        self.domain.push(link.id.domain.0.into());
        self.key.push(link.id.key.as_str());
        self.target.push(link.target.as_str());
        self.owner.push(link.owner.0.cast_signed());
        self.state.push(link.state as i16);
        self.origin.push(link.origin as i16);
        self.generation.push(link.revision.generation.into());
        self.version.push(link.revision.version.into());
        self.created_at.push(link.created_at.0);
        self.updated_at.push(updated_at(link));
        self.expires_at.push(link.expires_at.map(|at| at.0));
        self.valid_since.push(link.valid_since.map(|at| at.0));
        self.max_clicks.push(link.max_clicks.map(u64::cast_signed));
        self.visibility.push(link.visibility as i16);
        self.password_hash.push(link.password_hash.as_deref());
        self.status.push(status(link));
        self.was_permanent.push(link.status.is_permanent());
        self.forward_query.push(link.forward_query);
        self.title.push(link.title.as_deref());
        let tags = link.tags.iter().map(|tag| Some(&**tag));
        let tags = (!link.tags.is_empty()).then(|| array_text(tags));
        self.tags.push(tags);
        let made_with = link.made_with.map(|number| number.0.into());
        self.made_with.push(made_with);
        self.request_token.push(token.map(|token| token.0.to_vec()));
    }

    /// The parameters of the first link as single values.
    pub(super) fn first_values<'b>(&'b self, tags: &'b Option<Vec<&'b str>>) -> Vec<Value<'b>> {
        vec![
            &self.domain[0],
            &self.key[0],
            &self.target[0],
            &self.owner[0],
            &self.state[0],
            &self.origin[0],
            &self.generation[0],
            &self.version[0],
            &self.created_at[0],
            &self.updated_at[0],
            &self.expires_at[0],
            &self.valid_since[0],
            &self.max_clicks[0],
            &self.visibility[0],
            &self.password_hash[0],
            &self.status[0],
            &self.was_permanent[0],
            &self.forward_query[0],
            &self.title[0],
            tags,
            &self.made_with[0],
            &self.request_token[0],
        ]
    }

    /// The parameters `$1` to `$22`.
    pub(super) fn values(&self) -> Vec<Value<'_>> {
        vec![
            &self.domain,
            &self.key,
            &self.target,
            &self.owner,
            &self.state,
            &self.origin,
            &self.generation,
            &self.version,
            &self.created_at,
            &self.updated_at,
            &self.expires_at,
            &self.valid_since,
            &self.max_clicks,
            &self.visibility,
            &self.password_hash,
            &self.status,
            &self.was_permanent,
            &self.forward_query,
            &self.title,
            &self.tags,
            &self.made_with,
            &self.request_token,
        ]
    }
}

/// `NULL` for a link that was never changed. The time of a deletion is in an index, so it is always written out.
fn updated_at(link: &Link) -> Option<i64> {
    let changed = link.updated_at != link.created_at || !link.state.is_live();
    changed.then_some(link.updated_at.0)
}

/// `NULL` for the usual one.
pub(super) fn status(link: &Link) -> Option<i16> {
    let unusual = link.status != RedirectStatus::default();
    unusual.then_some(link.status.code().cast_signed())
}

/// The number of a link's shard.
pub(super) fn shard_of(id: &LinkId) -> i16 {
    ShardId::of(id).number().cast_signed()
}

/// The epoch of a link's shard.
pub(super) fn epoch_of(map: &ShardMap, id: &LinkId) -> i64 {
    map.epoch(ShardId::of(id)).0.cast_signed()
}

/// The epochs of all shards, as far as one has moved.
pub(super) fn epochs(map: &ShardMap) -> Vec<i64> {
    let epochs = ShardId::all().map(|shard| map.epoch(shard).0.cast_signed());
    let mut epochs: Vec<i64> = epochs.collect();
    let moved = epochs.iter().rposition(|epoch| *epoch > 0);
    epochs.truncate(moved.map_or(0, |last| last + 1));
    epochs
}

/// Ids by column.
pub(super) fn id_columns<'a>(
    ids: impl IntoIterator<Item = &'a LinkId>,
) -> (Vec<i64>, Vec<&'a str>) {
    let pair = |id: &'a LinkId| (i64::from(id.domain.0), id.key.as_str());
    ids.into_iter().map(pair).unzip()
}

/// A row with every column of [`sql::COLUMNS`](super::sql::COLUMNS).
pub(super) fn link_of(op: &'static str, row: &Row) -> PortResult<Link> {
    let state = number(op, row, 4, LinkState::from_stored)?;
    let created_at = time(op, row, 8)?;
    let millis = |index| time_or_none(op, row, index);
    let tags: Option<Vec<Box<str>>> = column(op, row, 19)?;
    Ok(Link {
        id: link_id(op, row)?,
        target: target_of(op, row, state)?,
        owner: owner(op, row, 3)?,
        state,
        revision: revision_of(op, row, 6)?,
        origin: number(op, row, 5, KeyOrigin::from_stored)?,
        created_at,
        updated_at: millis(9)?.unwrap_or(created_at),
        expires_at: millis(10)?,
        valid_since: millis(11)?,
        max_clicks: column::<Option<i64>>(op, row, 12)?.map(i64::cast_unsigned),
        visibility: number(op, row, 13, Visibility::from_stored)?,
        password_hash: column(op, row, 14)?,
        status: status_of(op, row)?,
        forward_query: column(op, row, 17)?,
        title: column(op, row, 18)?,
        tags: tags.unwrap_or_default(),
        made_with: made_with_of(op, row)?,
    })
}

/// The revision in two columns from `index` on.
pub(super) fn revision_of(op: &'static str, row: &Row, index: usize) -> PortResult<Revision> {
    Ok(Revision {
        generation: small(op, column(op, row, index)?)?,
        version: small(op, column(op, row, index + 1)?)?,
    })
}

/// The id and revision in the first four columns of an answer.
pub(super) fn change_of(op: &'static str, row: &Row) -> PortResult<LinkChange> {
    Ok(LinkChange {
        id: link_id(op, row)?,
        revision: revision_of(op, row, 2)?,
    })
}

fn target_of(op: &'static str, row: &Row, state: LinkState) -> PortResult<Target> {
    let text = match state {
        LinkState::Seeded => SEEDED_TARGET,
        _ => column(op, row, 2)?,
    };
    Target::from_serialised(text).map_err(|error| corrupt(op, text).with_source(error))
}

fn status_of(op: &'static str, row: &Row) -> PortResult<RedirectStatus> {
    let Some(code) = column::<Option<i16>>(op, row, 15)? else {
        return Ok(RedirectStatus::default());
    };
    RedirectStatus::from_code(code.cast_unsigned()).ok_or_else(|| corrupt(op, code))
}

fn made_with_of(op: &'static str, row: &Row) -> PortResult<Option<ApiKeyNumber>> {
    let number = column::<Option<i64>>(op, row, 20)?;
    let number = number.map(|number| small(op, number)).transpose()?;
    Ok(number.map(ApiKeyNumber))
}
