//! Look-ups of links by their keys: at the primary, at a standby while it does not answer, or at a replica.

use std::time::Duration;

use curt_core::PortResult;
use tokio_postgres::Row;

use super::{Engine, Step, Value};

/// Look-ups at one host of an address whose replicas are read.
#[derive(Clone, Debug)]
pub struct HostReads {
    /// Name and port.
    pub host: String,
    pub is_leader: bool,
    pub reads: u64,
    /// How far it is behind the leader.
    pub lag: Duration,
}

/// What a look-up of several keys found.
#[derive(Default)]
pub(crate) struct FoundRows {
    pub(crate) rows: Vec<Row>,
    /// Whether what is missing is nowhere. Otherwise it may be on its way to the host that was asked.
    pub(crate) is_whole: bool,
}

impl Engine {
    /// Finds the one row that a key leads to. Where the primary does not answer, a standby may; a row that is missing
    /// there is a failure and not an answer, because it may be on its way.
    pub(crate) async fn look_up(
        &self,
        op: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> PortResult<Option<Row>> {
        let found = self.look_up_many(op, Step { sql, values }).await?;
        Ok(found.rows.into_iter().next())
    }

    /// Finds the rows that several keys lead to, in the same way.
    pub(crate) async fn look_up_many(
        &self,
        op: &'static str,
        step: Step<'_>,
    ) -> PortResult<FoundRows> {
        let deadline = self.lookups.deadline();
        let primary = async {
            let rows = self.ask(op, &self.lookups, step, deadline).await?;
            let is_whole = true;
            Ok(Some(FoundRows { rows, is_whole }))
        };
        let Some(standby) = &self.standby else {
            return primary.await.map(Option::unwrap_or_default);
        };
        let asked = async {
            let rows = standby.ask(self, op, step, deadline).await?;
            let is_whole = false;
            Ok((!rows.is_empty()).then_some(FoundRows { rows, is_whole }))
        };
        let is_up = !self.lookups.route().is_down();
        let (found, is_silent) = standby.race(is_up, primary, asked).await;
        if is_silent {
            self.lookups.route().search();
        }
        found.map(Option::unwrap_or_default)
    }

    /// As [`look_up`](Self::look_up), at a replica where the settings say so: the row may be as old as the longest lag. A
    /// row that the replica does not have, or that `is_enough` refuses, is looked up at the leader.
    pub(crate) async fn look_up_nearby(
        &self,
        op: &'static str,
        step: Step<'_>,
        is_enough: impl Fn(&Row) -> bool,
    ) -> PortResult<Option<Row>> {
        let Some(replicas) = &self.replicas else {
            return self.look_up(op, step.sql, step.values).await;
        };
        let deadline = self.lookups.deadline();
        let rows = replicas.ask(step, 1, deadline).await;
        let turn = match rows.map(|rows| rows.into_iter().next()) {
            Some(Some(row)) if is_enough(&row) => return Ok(Some(row)),
            Some(Some(_)) | None => None,
            Some(None) => Some(replicas.turn_at_leader(op, deadline).await?),
        };
        replicas.count_leader_reads(1);
        let found = self.look_up(op, step.sql, step.values).await;
        drop(turn);
        found
    }

    /// As [`look_up_many`](Self::look_up_many) of `count` keys, at a replica where the settings say so. What that one does
    /// not have, or what needs the leader's answer, is for the caller to look up by itself.
    pub(crate) async fn look_up_many_nearby(
        &self,
        op: &'static str,
        step: Step<'_>,
        count: u64,
    ) -> PortResult<FoundRows> {
        if let Some(replicas) = &self.replicas {
            let deadline = self.lookups.deadline();
            if let Some(rows) = replicas.ask(step, count, deadline).await {
                let is_whole = false;
                return Ok(FoundRows { rows, is_whole });
            }
            replicas.count_leader_reads(count);
        }
        self.look_up_many(op, step).await
    }

    /// Whether look-ups go to replicas.
    pub(crate) fn reads_replicas(&self) -> bool {
        self.replicas.is_some()
    }

    /// How long a replica may show what was before a write; `None` where none is read.
    pub(crate) fn replica_lag_max(&self) -> Option<Duration> {
        self.replicas.as_ref().map(|replicas| replicas.lag_max())
    }

    /// How often which host was read from by [`look_up_nearby`](Self::look_up_nearby).
    pub(crate) fn reads(&self) -> Vec<HostReads> {
        let replicas = self.replicas.as_ref();
        replicas.map_or_else(Vec::new, |replicas| replicas.reads())
    }
}
