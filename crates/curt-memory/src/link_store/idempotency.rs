use std::collections::{BTreeSet, HashMap};
use std::sync::MutexGuard;

use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord, IdempotentRequest,
    RequestToken, ShardItem,
};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, ShardId, UnixMillis};

use super::rows::Changed;
use super::{MemoryLinkStore, Tables};
use crate::{BACKEND, locked};

type Name = (OwnerId, Box<str>);

/// Requests with an idempotency key.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_name: HashMap<Name, IdempotencyRecord>,
    by_age: BTreeSet<(UnixMillis, Name)>,
}

impl Records {
    fn begin(&mut self, request: &IdempotentRequest, plan: &CreationPlan) -> BeginReply {
        let name = name_of(request);
        let is_kept =
            |record: &&IdempotencyRecord| plan.at.since(record.plan.at) <= IDEMPOTENCY_KEPT;
        if let Some(record) = self.by_name.get(&name).filter(is_kept) {
            return record.clone().reply_to(request, plan);
        }
        self.remove(&name);
        self.by_age.insert((plan.at, name.clone()));
        let record = IdempotencyRecord {
            fingerprint: request.fingerprint,
            plan: plan.clone(),
            outcome: None,
        };
        self.by_name.insert(name, record);
        BeginReply::New
    }

    fn find(
        &mut self,
        request: &IdempotentRequest,
        token: RequestToken,
    ) -> Option<&mut IdempotencyRecord> {
        let record = self.by_name.get_mut(&name_of(request));
        record.filter(|record| record.plan.token == token)
    }

    /// The record under a name, whether or not there is one.
    pub(super) fn item_of(&self, name: Name) -> ShardItem {
        let record = self.by_name.get(&name).cloned().map(Box::new);
        let (owner, key) = name;
        ShardItem::Request { owner, key, record }
    }

    pub(super) fn names_of(&self, shard: ShardId) -> Vec<Name> {
        let names = self.by_name.keys();
        names
            .filter(|(owner, key)| ShardId::of_request(*owner, key) == shard)
            .cloned()
            .collect()
    }

    pub(super) fn import(&mut self, name: Name, record: Option<&IdempotencyRecord>) {
        self.remove(&name);
        if let Some(record) = record {
            self.by_age.insert((record.plan.at, name.clone()));
            self.by_name.insert(name, record.clone());
        }
    }

    fn remove(&mut self, name: &Name) {
        if let Some(record) = self.by_name.remove(name) {
            self.by_age.remove(&(record.plan.at, name.clone()));
        }
    }
}

impl MemoryLinkStore {
    /// The tables for a write of this request's record, unless another node owns its shard. A shard that moves remembers it.
    fn owned_request(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
    ) -> PortResult<MutexGuard<'_, Tables>> {
        let shard = ShardId::of_request(request.owner, &request.key);
        let mut tables = locked(&self.tables);
        if !tables.seals.admit_shard(&self.map, shard) {
            return Err(PortError::stale_epoch(BACKEND, op));
        }
        tables.rows.note_change(Changed::Request(name_of(request)));
        Ok(tables)
    }
}

#[async_trait]
impl Idempotency for MemoryLinkStore {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        let mut tables = self.owned_request("begin a request", request)?;
        Ok(tables.records.begin(request, plan))
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        let records = &mut self.owned_request("replace a plan", request)?.records;
        let record = records.find(request, plan.token).ok_or_else(|| {
            let detail = "the idempotency record is gone";
            PortError::new(ErrorKind::Invalid, BACKEND, "replace a plan", detail)
        })?;
        if record.plan.version + 1 == plan.version {
            record.plan = plan.clone();
        }
        Ok(record.plan.clone())
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        let mut tables = self.owned_request("finish a request", request)?;
        match tables.records.find(request, token) {
            Some(record) => Ok(record.outcome.get_or_insert(outcome).clone()),
            None => Ok(outcome),
        }
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        let records = &mut self.owned_request("cancel a request", request)?.records;
        let found = records.find(request, token);
        let is_there = found.is_some_and(|record| record.outcome.is_none());
        if is_there {
            records.remove(&name_of(request));
        }
        Ok(is_there)
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        let records = &mut locked(&self.tables).records;
        let old = records.by_age.iter().take_while(|(at, _)| *at < before);
        let old: Vec<Name> = old.take(limit).map(|(_, name)| name.clone()).collect();
        old.iter().for_each(|name| records.remove(name));
        Ok(old.len())
    }
}

fn name_of(request: &IdempotentRequest) -> Name {
    (request.owner, request.key.clone())
}
