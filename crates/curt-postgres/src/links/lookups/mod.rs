//! Look-ups of links by their keys, alone or several by one statement ([`groups`]).

mod groups;

use std::sync::Arc;

use curt_core::{Link, LinkId, PortError, PortResult, ShardMap};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;

use self::groups::{Group, Groups, Joined, Turn};
use super::{PostgresLinks, is_open_to_all, record, sql};
use crate::engine::{Engine, FoundRows, Step, Value, column};
use crate::failure::{BACKEND, all_busy};

const OP: &str = "read a link";

/// Where a routed look-up says that another node owns the link.
const RETIRED: usize = 21;
/// Where a look-up of several says which one a row is for, counted from 1.
const NUMBER: usize = 22;

/// The look-ups that are under way.
pub(super) struct Lookups {
    /// Those that the leader has to answer.
    latest: Arc<Groups<Wanted, Answer>>,
    /// Those that a replica may answer.
    nearby: Arc<Groups<Wanted, Answer>>,
}

impl Lookups {
    /// `places`: statements that may be under way.
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self {
            latest: Groups::new(places),
            nearby: Groups::new(places),
        })
    }
}

struct Wanted {
    id: LinkId,
    /// Of the link's shard, by the map that the look-up was routed by; `None` without one.
    epoch: Option<i64>,
}

enum Answer {
    Told(PortResult<Option<Link>>),
    /// The host that was asked cannot tell: to be looked up alone.
    Unknown,
}

impl PostgresLinks {
    /// Looks a link up; `nearby`: at a replica where the settings say so. A replica is enough for links that everybody may
    /// follow: the rest needs a decision at each click, and what was released, seeded or claimed must not be taken for
    /// absent.
    pub(super) async fn find(&self, id: &LinkId, nearby: bool) -> PortResult<Option<Link>> {
        let engine = self.tables.lookups().await?;
        let nearby = nearby && engine.reads_replicas();
        let groups = match nearby {
            true => &self.lookups.nearby,
            false => &self.lookups.latest,
        };
        let deadline = engine.lookup_deadline();
        let epoch = epoch_of(&self.map, id);
        loop {
            let wanted = Wanted {
                id: id.clone(),
                epoch,
            };
            let turn = match groups.join(wanted) {
                Joined::Leading(forming) => Ok(Ok(Turn::Lead(forming.gather().await))),
                Joined::Waiting(turn) => timeout_at(deadline, turn).await,
            };
            let answer = match turn {
                Ok(Ok(Turn::Lead(group))) => find_all(engine, group, nearby).await,
                Ok(Ok(Turn::Answered(answer))) => answer,
                Ok(Err(_)) if Instant::now() < deadline => continue,
                Ok(Err(_)) | Err(_) => return Err(all_busy(OP, engine.address())),
            };
            return match answer {
                Answer::Told(found) => found,
                Answer::Unknown => find_alone(engine, id, epoch, nearby).await,
            };
        }
    }
}

/// `None` for what was opened without a map, which is no node of many.
fn epoch_of(map: &ShardMap, id: &LinkId) -> Option<i64> {
    (map.version() > 0).then(|| record::epoch_of(map, id))
}

async fn find_alone(
    engine: &Engine,
    id: &LinkId,
    epoch: Option<i64>,
    nearby: bool,
) -> PortResult<Option<Link>> {
    let (domain, key) = (i64::from(id.domain.0), id.key.as_str());
    let (shard, at) = (record::shard_of(id), epoch.unwrap_or_default());
    let values: [Value<'_>; 4] = [&domain, &key, &shard, &at];
    let (sql, values) = match epoch {
        Some(_) => (sql::FIND_ROUTED, &values[..]),
        None => (sql::FIND, &values[..2]),
    };
    let is_routed = epoch.is_some();
    let row = match nearby {
        true => {
            let is_enough = |row: &Row| is_enough_at_replica(&link_in(row, is_routed));
            let step = Step { sql, values };
            engine.look_up_nearby(OP, step, is_enough).await?
        }
        false => engine.look_up(OP, sql, values).await?,
    };
    row.map(|row| link_in(&row, is_routed)).transpose()
}

/// Looks up all of a group, gives the others their answers and returns that of the leader.
async fn find_all(engine: &Engine, group: Group<Wanted, Answer>, nearby: bool) -> Answer {
    if group.others() == 0 {
        let Wanted { id, epoch } = group.leader();
        return Answer::Told(find_alone(engine, id, *epoch, nearby).await);
    }
    let ids: Vec<(&LinkId, i64)> = group
        .wanted()
        // No shard was given up to an owner of the last epoch.
        .map(|wanted| (&wanted.id, wanted.epoch.unwrap_or(i64::MAX)))
        .collect();
    let (domains, keys) = record::id_columns(ids.iter().map(|(id, _)| *id));
    let shards: Vec<i16> = ids.iter().map(|(id, _)| record::shard_of(id)).collect();
    let epochs: Vec<i64> = ids.iter().map(|(_, epoch)| *epoch).collect();
    let step = Step {
        sql: sql::FIND_GROUP,
        values: &[&domains, &keys, &shards, &epochs],
    };
    let found = match nearby {
        true => {
            let count = ids.len() as u64;
            engine.look_up_many_nearby(OP, step, count).await
        }
        false => engine.look_up_many(OP, step).await,
    };
    let answers = answers_in(found, ids.len());
    group.answer(answers).unwrap_or(Answer::Unknown)
}

/// The answers to `count` look-ups, in their order.
fn answers_in(found: PortResult<FoundRows>, count: usize) -> Vec<Answer> {
    let found = match found {
        Ok(found) => found,
        Err(failure) => {
            let failed = || Answer::Told(Err(failure.clone()));
            return std::iter::repeat_with(failed).take(count).collect();
        }
    };
    let missing = || match found.is_whole {
        true => Answer::Told(Ok(None)),
        false => Answer::Unknown,
    };
    let mut answers: Vec<Answer> = std::iter::repeat_with(missing).take(count).collect();
    for row in &found.rows {
        let number = column::<i64>(OP, row, NUMBER).ok();
        let place = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        let link = link_in(row, true);
        if let Some(answer) = place.and_then(|place| answers.get_mut(place))
            && (found.is_whole || is_enough_at_replica(&link))
        {
            *answer = Answer::Told(link.map(Some));
        }
    }
    answers
}

/// The link of a row, unless another node owns it.
fn link_in(row: &Row, is_routed: bool) -> PortResult<Link> {
    match is_routed && column(OP, row, RETIRED)? {
        true => Err(PortError::stale_epoch(BACKEND, OP)),
        false => record::link_of(OP, row),
    }
}

fn is_enough_at_replica(link: &PortResult<Link>) -> bool {
    link.as_ref().is_ok_and(is_open_to_all)
}
