//! Requests with an `Idempotency-Key`: as a whole or not at all, in one step with the record of it.
//!
//! The record comes first and holds the outcome that the request counts on, usually that every link is created. The
//! engine then adds the links and undoes everything if one is missing. So the usual case is a single statement without
//! a look at any table, which many requests share. Those whose name is recorded already, and all if they were undone,
//! look at what is there and count on that in the next round. To look at a record is to write it ([`sql::FIND_RECORDS`]).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use curt_core::limits::{COMMIT_GROUP_MAX, IDEMPOTENCY_KEPT};
use curt_core::ports::{InsertReply, InsertRequest, Inserted, Once, Replay};
use curt_core::{ErrorKind, KeyOrigin, Link, LinkId, LinkRef, PortError, PortResult, UnixMillis};
use tokio_postgres::error::SqlState;

use super::insert::{answer_all, created_with, first_of_each_id, generations_in, ids_in};
use super::queue::Call;
use super::record::{Columns, id_columns, parse_id};
use super::{OP_INSERT, sql};
use crate::array_text::array_text;
use crate::decode::time;
use crate::engine::{Engine, Step, Value, column};
use crate::failure::{BACKEND, constraint, sql_state};

/// How often a request looks again because others were faster.
const ROUNDS_MAX: usize = 8;

/// Old records are removed each time that so many have been added.
const RECORDS_BETWEEN_CLEANUPS: u64 = 1_000;

/// Old records that one statement removes at most: more than came since the last cleanup.
const FORGOTTEN_AT_ONCE: u32 = 8_000;

const _: () =
    assert!(FORGOTTEN_AT_ONCE as usize > RECORDS_BETWEEN_CLEANUPS as usize + COMMIT_GROUP_MAX);

/// Generations of links whose key another one had before.
type Generations = HashMap<LinkId, u32>;

/// What is known about a request that comes again.
#[derive(Clone)]
pub(super) enum Recorded {
    Same(Replay),
    Other,
}

/// Applies the requests of all calls and answers each, and removes old records now and then. `count` is how many have
/// come before.
pub(super) async fn run(engine: &Engine, group: Vec<Call>, count: &AtomicU64) {
    let (added, now) = (
        group.len() as u64,
        group.iter().map(|call| call.request.now).max(),
    );
    answer(engine, group).await;
    let before = count.fetch_add(added, Ordering::Relaxed);
    let cleanups = |count: u64| count / RECORDS_BETWEEN_CLEANUPS;
    let Some(now) = now.filter(|_| cleanups(before) != cleanups(before + added)) else {
        return;
    };
    if let Err(error) = forget_old(&engine.in_background(), OP_INSERT, now).await {
        // Nobody waits for it, and the next time will do.
        tracing::debug!(%error, "old records stay for now");
    }
}

async fn answer(engine: &Engine, mut open: Vec<Call>) {
    for round in 0..ROUNDS_MAX {
        let replies = match play(engine, &open, round > 0).await {
            Ok(replies) => replies,
            Err(error) => return answer_all(open, error),
        };
        let mut left = Vec::new();
        for (call, reply) in open.into_iter().zip(replies) {
            match reply {
                Some(reply) => call.answer(Ok(reply)),
                None => left.push(call),
            }
        }
        open = left;
        if open.is_empty() {
            return;
        }
    }
    let detail = "others were in the way each time; nothing was changed";
    answer_all(
        open,
        PortError::new(ErrorKind::Throttled, BACKEND, OP_INSERT, detail),
    );
}

/// Plays one round and returns the replies of those who are done. In the first round nobody looks, in the hope to be
/// the first everywhere.
async fn play(engine: &Engine, open: &[Call], look: bool) -> PortResult<Vec<Option<InsertReply>>> {
    let mut replies = vec![None; open.len()];
    let there = match look {
        true => Some(look_around(engine, open).await?),
        false => None,
    };
    let mut attempts = Attempts::default();
    for (place, Call { request, .. }) in open.iter().enumerate() {
        let recorded = there
            .as_ref()
            .and_then(|there| there.recorded[place].clone());
        if let Some(recorded) = recorded {
            replies[place] = Some(match recorded {
                Recorded::Same(replay) => InsertReply::Replayed(replay),
                Recorded::Other => InsertReply::Mismatch,
            });
            continue;
        }
        let wanted = free(&request.links, there.as_ref());
        if !needs_other_keys(&request.links, &wanted) {
            attempts.add(place, request, wanted);
        } else if look {
            replies[place] = Some(outcomes(&request.links, &wanted, |_| Inserted::Withheld));
        }
    }
    let (applied, anew) = attempts.apply(engine).await?;
    for Attempt {
        place,
        request,
        wanted,
        ..
    } in applied
    {
        let created = |link: &Link| match anew.get(&link.id) {
            Some(generation) => created_with(link, *generation),
            None => Inserted::Created,
        };
        replies[place] = Some(outcomes(&request.links, &wanted, created));
    }
    Ok(replies)
}

/// What a round finds before it begins.
struct There {
    recorded: Vec<Option<Recorded>>,
    taken: HashSet<LinkId>,
}

async fn look_around(engine: &Engine, open: &[Call]) -> PortResult<There> {
    let names: Vec<(&Once, UnixMillis)> = open
        .iter()
        .filter_map(|call| Some((call.request.once.as_ref()?, call.request.now)))
        .collect();
    let recorded = find(engine, OP_INSERT, &names).await?;
    let links = open.iter().flat_map(|call| &call.request.links);
    let (domains, keys) = id_columns(links.map(|link| &link.id));
    let rows = engine
        .read_latest(OP_INSERT, sql::TAKEN, &[&domains, &keys])
        .await?;
    let taken = ids_in(OP_INSERT, &rows)?;
    Ok(There { recorded, taken })
}

/// A request with what it counts on.
struct Attempt<'a> {
    place: usize,
    request: &'a InsertRequest,
    once: &'a Once,
    /// For each link, whether it is to be created.
    wanted: Vec<bool>,
}

impl<'a> Attempt<'a> {
    fn wanted_links(&self) -> impl Iterator<Item = &'a Link> {
        let pairs = self.request.links.iter().zip(&self.wanted);
        pairs.filter(|(_, wanted)| **wanted).map(|(link, _)| link)
    }

    /// What is recorded of it.
    fn outcome(&self) -> String {
        let pairs = self.request.links.iter().zip(&self.wanted);
        let ids: Vec<Option<String>> = pairs
            .map(|(link, wanted)| wanted.then(|| link.id.to_string()))
            .collect();
        array_text(ids.iter().map(Option::as_deref))
    }
}

/// Requests of one statement, none of which is in the way of another.
#[derive(Default)]
struct Attempts<'a> {
    all: Vec<Attempt<'a>>,
    names: HashSet<(u64, &'a str)>,
    ids: HashSet<LinkRef<'a>>,
}

impl<'a> Attempts<'a> {
    /// Adds the request unless it has a name or an id of another one; it comes in a later round then.
    fn add(&mut self, place: usize, request: &'a InsertRequest, wanted: Vec<bool>) {
        let Some(once) = &request.once else { return };
        let attempt = Attempt {
            place,
            request,
            once,
            wanted,
        };
        let name = (once.owner.0, &*once.key);
        let in_the_way = self.names.contains(&name)
            || attempt
                .wanted_links()
                .any(|link| self.ids.contains(&link.id.as_ref()));
        if !in_the_way {
            self.names.insert(name);
            self.ids
                .extend(attempt.wanted_links().map(|link| link.id.as_ref()));
            self.all.push(attempt);
        }
    }

    /// Returns those that were applied with their records, and the generations of links whose key another one had before.
    /// The names of the others are recorded already, or all were undone because a link that one of them counted on
    /// could not be created.
    async fn apply(self, engine: &Engine) -> PortResult<(Vec<Attempt<'a>>, Generations)> {
        if self.all.is_empty() {
            return Ok(Default::default());
        }
        let (recorded, anew) = match self.write(engine).await {
            Ok(written) => written,
            Err(error) if undone_by_others(&error) => return Ok(Default::default()),
            Err(error) => return Err(error),
        };
        let pairs = self.all.into_iter().zip(1_i64..);
        let applied = pairs.filter(|(_, number)| recorded.contains(number));
        Ok((applied.map(|(attempt, _)| attempt).collect(), anew))
    }

    async fn write(&self, engine: &Engine) -> PortResult<(HashSet<i64>, Generations)> {
        let numbered = || self.all.iter().zip(1_i64..);
        let columns = Columns::of(self.all.iter().flat_map(Attempt::wanted_links));
        let requests: Vec<i64> = numbered()
            .flat_map(|(attempt, number)| attempt.wanted_links().map(move |_| number))
            .collect();
        let names = Names::of(self.all.iter().map(|a| (a.once, a.request.now)));
        let fingerprints: Vec<&[u8]> = self.all.iter().map(|a| &a.once.fingerprint[..]).collect();
        let times: Vec<i64> = self.all.iter().map(|a| a.request.now.0).collect();
        let outcomes: Vec<String> = self.all.iter().map(Attempt::outcome).collect();
        let rest: [Value<'_>; 6] = [
            &requests,
            &names.owners,
            &names.texts,
            &fingerprints,
            &times,
            &outcomes,
        ];
        let values = [columns.values(), rest.to_vec()].concat();
        let rows = engine.write(OP_INSERT, sql::INSERT_ONCE, &values).await?;
        let mut recorded = HashSet::new();
        let mut anew = Vec::new();
        for row in &rows {
            match column::<Option<i64>>(OP_INSERT, row, 0)? {
                Some(number) => _ = recorded.insert(number),
                None => anew.push(row),
            }
        }
        Ok((recorded, generations_in(OP_INSERT, anew, 1)?))
    }
}

/// Whether the engine undid everything because others were there first.
fn undone_by_others(error: &PortError) -> bool {
    constraint(error) == Some("once_as_a_whole")
        || sql_state(error) == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// For each link, whether its id is not known to belong to another one, of the store or earlier in the request.
fn free(links: &[Link], there: Option<&There>) -> Vec<bool> {
    let mut free = first_of_each_id(links);
    for (free, link) in free.iter_mut().zip(links) {
        *free = *free && !there.is_some_and(|there| there.taken.contains(&link.id));
    }
    free
}

/// Whether a key that nobody chose cannot be had: the caller brings another.
fn needs_other_keys(links: &[Link], wanted: &[bool]) -> bool {
    links
        .iter()
        .zip(wanted)
        .any(|(link, wanted)| !wanted && link.origin != KeyOrigin::Alias)
}

fn outcomes(links: &[Link], wanted: &[bool], of_wanted: impl Fn(&Link) -> Inserted) -> InsertReply {
    let outcome = |(link, wanted): (&Link, &bool)| match wanted {
        true => of_wanted(link),
        false => Inserted::Conflict,
    };
    InsertReply::Stored(links.iter().zip(wanted).map(outcome).collect())
}

/// What is recorded under each name, as durably as if it had been recorded by this call. Records that have grown too old
/// are removed.
pub(super) async fn find(
    engine: &Engine,
    op: &'static str,
    names: &[(&Once, UnixMillis)],
) -> PortResult<Vec<Option<Recorded>>> {
    let columns = Names::of(names.iter().copied());
    let values = columns.values();
    let forget = Step {
        sql: sql::FORGET_RECORDS,
        values: &values,
    };
    let lock = Step {
        sql: sql::LOCK_RECORDS,
        values: &values[..2],
    };
    let find = Step {
        sql: sql::FIND_RECORDS,
        values: &values[..2],
    };
    let mut answers = engine.transact(op, &[forget, lock, find]).await?;
    let mut found = vec![None; names.len()];
    for row in answers.pop().unwrap_or_default() {
        let number: i64 = column(op, &row, 0)?;
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let Some(((once, _), found)) = names.get(place).zip(found.get_mut(place)) else {
            continue;
        };
        *found = Some(match column::<&[u8]>(op, &row, 1)? == once.fingerprint {
            true => Recorded::Same(Replay {
                at: time(op, &row, 3)?,
                ids: parse_outcome(op, &column::<Vec<_>>(op, &row, 2)?)?,
            }),
            false => Recorded::Other,
        });
    }
    Ok(found)
}

/// Names by column, with the oldest record that still counts for each.
pub(super) struct Names<'a> {
    owners: Vec<i64>,
    texts: Vec<&'a str>,
    oldest: Vec<i64>,
}

impl<'a> Names<'a> {
    pub(super) fn of(names: impl IntoIterator<Item = (&'a Once, UnixMillis)>) -> Self {
        let mut columns = Self {
            owners: Vec::new(),
            texts: Vec::new(),
            oldest: Vec::new(),
        };
        for (once, now) in names {
            columns.owners.push(once.owner.0.cast_signed());
            columns.texts.push(&once.key);
            columns.oldest.push(oldest_kept(now));
        }
        columns
    }

    /// The parameters of [`sql::FORGET_RECORDS`]; the first two are those of [`sql::FIND_RECORDS`].
    pub(super) fn values(&self) -> [Value<'_>; 3] {
        [&self.owners, &self.texts, &self.oldest]
    }
}

fn parse_outcome(op: &'static str, ids: &[Option<&str>]) -> PortResult<Vec<Option<LinkId>>> {
    ids.iter()
        .map(|id| id.map(|id| parse_id(op, id)).transpose())
        .collect()
}

/// Removes some records that nobody may ask for any more.
pub(super) async fn forget_old(
    engine: &Engine,
    op: &'static str,
    now: UnixMillis,
) -> PortResult<()> {
    let values: &[Value<'_>] = &[&oldest_kept(now), &i64::from(FORGOTTEN_AT_ONCE)];
    engine.write(op, sql::FORGET_OLD, values).await.map(drop)
}

fn oldest_kept(now: UnixMillis) -> i64 {
    now.minus(IDEMPOTENCY_KEPT).0
}
