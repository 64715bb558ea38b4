//! Look-ups that a replica may answer.

use std::time::Duration;

use curt_core::PortResult;
use tokio_postgres::Row;

use super::replicas::ReplicaAnswer;
use super::{Engine, Step};

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

impl Engine {
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
        let turn = match replicas.ask(step, deadline).await {
            ReplicaAnswer::Found(row) if is_enough(&row) => return Ok(Some(row)),
            ReplicaAnswer::Found(_) | ReplicaAnswer::Unasked => None,
            ReplicaAnswer::Absent => Some(replicas.turn_at_leader(op, deadline).await?),
        };
        replicas.count_leader_read();
        let found = self.look_up(op, step.sql, step.values).await;
        drop(turn);
        found
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
