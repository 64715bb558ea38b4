//! Look-ups at replicas although the leader is there.
//!
//! A task asks the leader where it is in its log, several times within `lag_max`. A replica that has applied its log up to
//! a position which the leader had at a time `T` shows everything that was acknowledged before `T`: so one that has come
//! as far as the leader was less than `lag_max` ago may be believed, whatever the clocks of the hosts say. It is asked for
//! its position before the look-up on the same connection, in one round trip.
//!
//! What a replica does not have is no answer. The leader is asked for it, by a share of its connections, so that
//! a scan of unknown keys does not keep others from the leader.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use futures_util::future::join_all;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::{Error, Row};

use super::hosts::Hosts;
use super::lane::{Lane, NoConnection, Session};
use super::replica_choice::{ReplicaChooser, ReplicaLoad};
use super::route::Route;
use super::standby::Standby;
use super::{HostReads, Step};
use crate::failure::{BACKEND, spoils_connection};
use crate::settings::{PostgresSettings, ReadFrom};

/// Where the leader is in its log; NULL at a host that is none.
const LEADER_POSITION: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL \
     ELSE pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint END";
/// How far a replica has applied its log; NULL at a host that is none.
const REPLICA_POSITION: &str = "SELECT CASE WHEN pg_is_in_recovery() \
     THEN pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint END";
/// How often the leader is asked within the longest lag, and the bounds of that.
const SAMPLES_PER_LAG: u32 = 4;
const SAMPLE_EVERY_MIN: Duration = Duration::from_millis(10);
const SAMPLE_EVERY_MAX: Duration = Duration::from_millis(250);
/// Positions of the leader that are remembered, to tell how far a replica is behind.
const SAMPLES_MAX: usize = 512;
/// A replica that takes longer is left alone for this look-up; the leader is asked then.
const ANSWER_WITHIN: Duration = Duration::from_millis(250);
const NOTE_EVERY: Duration = Duration::from_secs(1);
/// The share of the connections for look-ups by which the leader is asked for what a replica does not have.
const MISS_SHARE: usize = 4;

/// Where the leader was in its log at some time after `asked`.
#[derive(Clone, Copy)]
struct Sample {
    asked: Instant,
    position: i64,
}

/// One host of the address, for look-ups there while it is a replica.
struct Replica {
    host: usize,
    lane: Arc<Lane>,
    /// Whether it was within the longest lag when it was asked last.
    is_good: AtomicBool,
    reads: AtomicU64,
    load: ReplicaLoad,
    /// How far it was behind, in milliseconds.
    lag: AtomicU64,
}

pub(super) struct Replicas {
    hosts: Arc<Hosts>,
    replicas: Vec<Replica>,
    leader: Arc<Route>,
    /// For the positions of the leader alone: they must not wait behind look-ups.
    watch: Arc<Lane>,
    samples: Mutex<VecDeque<Sample>>,
    lag_max: Duration,
    /// Only hosts of this region are asked, and none where the leader is one of them.
    region: Option<Box<str>>,
    is_watched: AtomicBool,
    chooser: ReplicaChooser,
    misses: Semaphore,
    leader_reads: AtomicU64,
    /// Told of the leader's positions, for when the leader is away.
    standby: Option<Arc<Standby>>,
    noted: Mutex<Option<Instant>>,
}

impl Replicas {
    /// `None` where the settings or the address have look-ups go to the leader.
    pub(super) fn new(
        hosts: &Arc<Hosts>,
        leader: &Arc<Route>,
        standby: Option<&Arc<Standby>>,
        settings: &PostgresSettings,
    ) -> Option<Arc<Self>> {
        let region = settings.region.clone();
        let region = region.filter(|region| hosts.has_region(region));
        let is_on = match settings.read_from {
            ReadFrom::Auto => region.is_some(),
            ReadFrom::Leader => false,
            ReadFrom::Replica => true,
        };
        if !is_on || hosts.count() < 2 {
            return None;
        }
        let connections = settings.lookup_connections.get();
        let local = |host: &usize| region.is_none() || hosts.region(*host) == region.as_deref();
        let replicas = (0..hosts.count()).filter(local).map(|host| Replica {
            host,
            lane: Lane::new(
                Route::to_host(leader, host),
                connections,
                settings.lookup_timeout,
            ),
            is_good: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            load: ReplicaLoad::default(),
            lag: AtomicU64::new(0),
        });
        Some(Arc::new(Self {
            replicas: replicas.collect(),
            hosts: Arc::clone(hosts),
            leader: Arc::clone(leader),
            watch: Lane::new(Arc::clone(leader), 1, settings.lookup_timeout),
            samples: Mutex::default(),
            lag_max: settings.replica_lag_max,
            region,
            is_watched: AtomicBool::new(false),
            chooser: ReplicaChooser::new(settings.replica_choice),
            misses: Semaphore::new((connections / MISS_SHARE).max(1)),
            leader_reads: AtomicU64::new(0),
            standby: standby.cloned(),
            noted: Mutex::new(None),
        }))
    }

    /// Asks one replica that may be believed for `count` rows. `None`: no replica may be believed now, or none needs to be
    /// asked.
    pub(super) async fn ask(
        self: &Arc<Self>,
        step: Step<'_>,
        count: u64,
        deadline: Instant,
    ) -> Option<Vec<Row>> {
        self.start_watching();
        if self.is_leader_near() {
            return None;
        }
        let leader = self.leader.host();
        let is_good = |one: &&Replica| one.host != leader && one.is_good.load(Ordering::Relaxed);
        let good: Vec<&Replica> = self.replicas.iter().filter(is_good).collect();
        let replica = self.chooser.choose(&good, |one| &one.load)?;
        let asked = Instant::now();
        let waiting = replica.load.begin();
        let deadline = deadline.min(asked + ANSWER_WITHIN);
        let rows = self.look_up(replica, step, deadline).await;
        waiting.finish(rows.as_ref().map(|_| asked.elapsed()));
        match &rows {
            Some(_) => {
                replica.reads.fetch_add(count, Ordering::Relaxed);
            }
            // Until the watching task finds it good again.
            None => replica.is_good.store(false, Ordering::Relaxed),
        }
        rows
    }

    /// Waits for a turn to ask the leader for what a replica does not have.
    pub(super) async fn turn_at_leader(
        &self,
        op: &'static str,
        deadline: Instant,
    ) -> PortResult<SemaphorePermit<'_>> {
        match timeout_at(deadline, self.misses.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let detail =
                    "too many look-ups of keys that no replica has are waiting for the leader";
                Err(PortError::new(ErrorKind::Throttled, BACKEND, op, detail))
            }
        }
    }

    pub(super) fn lag_max(&self) -> Duration {
        self.lag_max
    }

    pub(super) fn count_leader_reads(&self, count: u64) {
        self.leader_reads.fetch_add(count, Ordering::Relaxed);
    }

    /// How often which host was read from, and how far replicas are behind.
    pub(super) fn reads(&self) -> Vec<HostReads> {
        let leader = self.leader.host();
        let mut hosts = vec![HostReads {
            host: self.hosts.label(leader),
            is_leader: true,
            reads: self.leader_reads.load(Ordering::Relaxed),
            lag: Duration::ZERO,
        }];
        let replicas = self
            .replicas
            .iter()
            .filter(|replica| replica.host != leader);
        hosts.extend(replicas.map(|replica| HostReads {
            host: self.hosts.label(replica.host),
            is_leader: false,
            reads: replica.reads.load(Ordering::Relaxed),
            lag: Duration::from_millis(replica.lag.load(Ordering::Relaxed)),
        }));
        hosts
    }

    /// Whether the leader is as near as a replica would be.
    fn is_leader_near(&self) -> bool {
        let region = self.hosts.region(self.leader.host());
        self.region.is_some() && region == self.region.as_deref()
    }

    /// `None`: the replica did not answer in time, or is too far behind.
    async fn look_up(
        &self,
        replica: &Replica,
        step: Step<'_>,
        deadline: Instant,
    ) -> Option<Vec<Row>> {
        let session = replica.lane.session(deadline).await.ok()?;
        let asked = timeout_at(deadline, run_behind_position(&session, step)).await;
        let (position, rows) = finish(session, asked)?;
        // Judged when the answer is here: as old as that, it is as old as the leader's position.
        let is_current = self.lag_at(position?) <= self.lag_max;
        is_current.then_some(rows)
    }

    /// How old at most is what a host shows that has come to this position.
    fn lag_at(&self, position: i64) -> Duration {
        let samples = self.lock();
        let reached = samples
            .iter()
            .rev()
            .find(|sample| sample.position <= position);
        match reached.or(samples.front()) {
            // Behind everything that is remembered: at least this much.
            Some(sample) if sample.position > position => {
                sample.asked.elapsed().max(self.lag_max * 2)
            }
            Some(sample) => sample.asked.elapsed(),
            None => Duration::MAX,
        }
    }

    fn start_watching(self: &Arc<Self>) {
        if !self.is_watched.swap(true, Ordering::Relaxed) {
            let watching = Watching(Arc::downgrade(self));
            self.leader.runtime().spawn(watching.run());
        }
    }

    /// Asks the leader where it is, and then each replica how far it has come.
    async fn take_sample(&self) {
        let asked = Instant::now();
        let epoch = self.leader.epoch();
        let position = ask_position(&self.watch, LEADER_POSITION).await;
        if let Some(position) = position {
            self.note_for_standby(position);
            let mut samples = self.lock();
            // Another leader: what the former one had says nothing about replicas of this one.
            if samples.back().is_some_and(|last| last.position > position) {
                samples.clear();
            }
            if self.leader.epoch() == epoch {
                samples.push_back(Sample { asked, position });
            }
            if samples.len() > SAMPLES_MAX {
                samples.pop_front();
            }
        }
        let leader = self.leader.host();
        let others = self
            .replicas
            .iter()
            .filter(|replica| replica.host != leader);
        join_all(others.map(|replica| self.check(replica))).await;
    }

    /// About once a second.
    fn note_for_standby(&self, position: i64) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(standby) = &self.standby
            && noted.is_none_or(|last| last.elapsed() >= NOTE_EVERY)
        {
            *noted = Some(Instant::now());
            standby.note_primary(position);
        }
    }

    async fn check(&self, replica: &Replica) {
        let position = ask_position(&replica.lane, REPLICA_POSITION).await;
        let lag = position.map(|position| self.lag_at(position));
        let is_good = lag.is_some_and(|lag| lag <= self.lag_max);
        replica.is_good.store(is_good, Ordering::Relaxed);
        if let Some(lag) = lag {
            let lag = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
            replica.lag.store(lag, Ordering::Relaxed);
        }
    }

    fn sample_every(&self) -> Duration {
        (self.lag_max / SAMPLES_PER_LAG).clamp(SAMPLE_EVERY_MIN, SAMPLE_EVERY_MAX)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one task that asks the leader and the replicas for their positions. Ends with the engine.
struct Watching(Weak<Replicas>);

impl Watching {
    async fn run(self) {
        while let Some(replicas) = self.0.upgrade() {
            replicas.take_sample().await;
            let pause = replicas.sample_every();
            drop(replicas);
            tokio::time::sleep(pause).await;
        }
    }
}

impl Drop for Watching {
    /// Cut off by a panic or with its runtime: the next look-up starts over.
    fn drop(&mut self) {
        if let Some(replicas) = self.0.upgrade() {
            replicas.is_watched.store(false, Ordering::Relaxed);
        }
    }
}

async fn ask_position(lane: &Arc<Lane>, sql: &str) -> Option<i64> {
    let deadline = lane.deadline();
    let session = match lane.session(deadline).await {
        Ok(session) => session,
        Err(NoConnection::Late) => {
            lane.route().search();
            return None;
        }
        Err(_) => return None,
    };
    let asked = timeout_at(deadline, async {
        let statement = session.prepare_cached(sql).await?;
        session.query_one(&statement, &[]).await?.try_get(0)
    })
    .await;
    if asked.is_err() {
        lane.route().search();
    }
    finish(session, asked)?
}

/// Gives the connection back, unless the call was given up or the connection is not to be trusted.
fn finish<T, E>(session: Session, done: Result<Result<T, Error>, E>) -> Option<T> {
    match done {
        Ok(Ok(answer)) => {
            session.release();
            Some(answer)
        }
        Ok(Err(error)) if spoils_connection(&error) => {
            session.close();
            None
        }
        Ok(Err(_)) => {
            session.release();
            None
        }
        // Its answer is still to come, for nobody.
        Err(_) => None,
    }
}

/// Both statements go out together, and are run one after the other.
async fn run_behind_position(
    client: &Session,
    step: Step<'_>,
) -> Result<(Option<i64>, Vec<Row>), Error> {
    let position = client.prepare_cached(REPLICA_POSITION).await?;
    let statement = client.prepare_cached(step.sql).await?;
    let (position, rows) = futures_util::future::join(
        client.query_one(&position, &[]),
        client.query(&statement, step.values),
    )
    .await;
    let position = position?.try_get(0)?;
    Ok((position, rows?))
}
