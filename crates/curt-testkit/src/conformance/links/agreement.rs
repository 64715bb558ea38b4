//! Two stores that are asked the same must answer the same: random histories against a reference.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::account::ApiKeyNumber;
use curt_core::ports::{
    BeginReply, ChangeReply, CreationOutcome, CreationPlan, IdempotentRequest, Inserted, ListOrder,
    ListQuery, RequestToken,
};
use curt_core::{
    DomainId, EffectiveState, KeyOrigin, Link, LinkId, LinkState, OwnerId, RedirectStatus,
    Revision, UnixMillis,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Seeded, ids, totals};
use crate::conformance::same;
use crate::sample::{NOW, id, link, plan, target};

/// Runs a history of `steps` random calls, fixed by the seed, on both stores and compares every answer. What the port
/// leaves open, such as the order of links of one instant, is not compared.
///
/// # Panics
/// At the first difference, with the seed and the step.
pub async fn agreement(seed: u64, steps: usize, reference: Seeded, other: Seeded) {
    let mut history = History {
        random: StdRng::seed_from_u64(seed),
        now: NOW,
        reference,
        other,
    };
    for step in 0..steps {
        let result = history.step().await;
        if let Err(error) = result {
            panic!("LinkStore: seed {seed}, step {step}: {error:#}");
        }
    }
}

struct History {
    random: StdRng,
    now: UnixMillis,
    reference: Seeded,
    other: Seeded,
}

/// Asks both stores and compares the answers in a form that leaves out what the port does not promise.
macro_rules! both {
    ($history:ident, $what:expr, |$store:ident| $call:expr, $form:expr) => {{
        let what = $what;
        let ask = async |$store: &Seeded| $call.await.context("the call failed");
        let want = $form(ask(&$history.reference).await?);
        let got = $form(ask(&$history.other).await?);
        same(&what, &got, &want)?;
        want
    }};
}

impl History {
    async fn step(&mut self) -> Result<()> {
        let minutes = self.random.random_range(0..120);
        self.now = self.now.plus(Duration::from_secs(minutes * 60));
        match self.random.random_range(0..12) {
            0..3 => self.insert().await?,
            3..5 => self.update().await?,
            5 => self.delete().await?,
            6 => self.purge().await?,
            7 => self.release().await?,
            8 => self.seed().await?,
            9 => self.spend().await?,
            10 => self.begin().await?,
            _ => self.list().await?,
        }
        let id = self.any_id();
        both!(self, format!("get {id}"), |store| store.get(&id), |link| {
            link
        });
        both!(self, "counts".to_owned(), |store| store.counts(), totals);
        Ok(())
    }

    async fn insert(&mut self) -> Result<()> {
        let count = self.random.random_range(0..4);
        let links: Vec<Link> = (0..count).map(|_| self.any_link()).collect();
        let mut ids = HashSet::new();
        let is_distinct = links.iter().all(|link| ids.insert(&link.id));
        let token = is_distinct.then(|| self.any_token()).flatten();
        let what = format!("insert with {token:?}: {links:?}");
        let insert = |inserted: Vec<Inserted>| inserted;
        both!(
            self,
            what,
            |store| store.insert_if_absent(links.clone(), token),
            insert
        );
        Ok(())
    }

    async fn begin(&mut self) -> Result<()> {
        let request = IdempotentRequest {
            owner: OwnerId(self.random.random_range(0..2)),
            key: format!("o{}", self.random.random_range(0..4)).into(),
            fingerprint: [self.random.random_range(0..2); 32],
        };
        let plan = CreationPlan {
            at: self.now,
            ..plan(self.random.random_range(0..200), &["a"])
        };
        let what = format!("begin {request:?} with {plan:?}");
        let begin = |reply: BeginReply| reply;
        let reply = both!(self, what, |store| store.begin(&request, &plan), begin);
        let BeginReply::Resumed(plan) = reply else {
            return Ok(());
        };
        if self.random.random_bool(0.5) {
            let next = CreationPlan {
                version: plan.version + 1,
                ..plan
            };
            let what = format!("replace the plan of {request:?}");
            both!(
                self,
                what,
                |store| store.replace_plan(&request, &next),
                |plan| plan
            );
        } else {
            let outcome = CreationOutcome {
                at: plan.at,
                ids: vec![None],
            };
            let what = format!("finish {request:?}");
            both!(
                self,
                what,
                |store| store.finish(&request, plan.token, outcome.clone()),
                |outcome| outcome
            );
        }
        Ok(())
    }

    async fn update(&mut self) -> Result<()> {
        let link = self.any_link();
        let seen = self.seen(&link.id).await?;
        let what = format!("update at {seen:?} to {link:?}");
        let update = |reply: ChangeReply| reply;
        both!(
            self,
            what,
            |store| store.update_at(link.clone(), seen),
            update
        );
        Ok(())
    }

    async fn delete(&mut self) -> Result<()> {
        let (id, now) = (self.any_id(), self.now);
        let seen = self.seen(&id).await?;
        let what = format!("delete {id} at {seen:?}");
        both!(
            self,
            what,
            |store| store.delete_at(&id, seen, now),
            |reply| { reply }
        );
        Ok(())
    }

    async fn purge(&mut self) -> Result<()> {
        let now = self.now;
        let before = now.minus(Duration::from_secs(self.random.random_range(0..20_000)));
        let ended = |mut batch: Vec<(LinkId, Revision)>| {
            batch.sort();
            batch
        };
        let mut batch = both!(
            self,
            format!("ended at {before}"),
            |store| store.ended(before, 1_000),
            ended
        );
        let id = self.any_id();
        let seen = self.seen(&id).await?;
        batch.push((id, seen));
        let what = format!("purge {batch:?}");
        both!(self, what, |store| store.purge(&batch, before, now), sorted);
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        let before = self
            .now
            .minus(Duration::from_secs(self.random.random_range(0..86_400)));
        let what = format!("release before {before}");
        both!(self, what, |store| store.release(before, 1_000), sorted);
        Ok(())
    }

    async fn seed(&mut self) -> Result<()> {
        let ids = [self.any_id(), self.any_id()];
        // Seeds take keys away from everything else for good, so that there must not be many.
        if self.random.random_bool(0.2) {
            both!(
                self,
                format!("seed {ids:?}"),
                |store| store.seed(&ids),
                |new| new
            );
        }
        Ok(())
    }

    async fn spend(&mut self) -> Result<()> {
        let id = self.any_id();
        let seen = self.seen(&id).await?;
        let what = format!("spend a click of {id} at {seen:?}");
        both!(self, what, |store| store.spend_click(&id, seen), |reply| {
            reply
        });
        let what = format!("spent clicks of {id}");
        both!(self, what, |store| store.clicks_spent(&id), |spent| spent);
        Ok(())
    }

    async fn list(&mut self) -> Result<()> {
        let query = self.any_query();
        let got = walk(&self.other, &query).await?;
        let want = walk(&self.reference, &query).await?;
        let what = format!("{query:?}");
        if matches!(query.order, ListOrder::KeyRising | ListOrder::KeyFalling) {
            same(&what, ids(&got), ids(&want))?;
        }
        let by_id = |mut links: Vec<Link>| {
            links.sort_by(|a, b| a.id.cmp(&b.id));
            links
        };
        same(&what, by_id(got), by_id(want))
    }

    /// Mostly the revision that the link has.
    async fn seen(&mut self, id: &LinkId) -> Result<Revision> {
        let now = self.reference.get(id).await?.map(|link| link.revision);
        let right = self.random.random_bool(0.8);
        Ok(now.filter(|_| right).unwrap_or(Revision::FIRST))
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.random_range(0..all.len())].clone()
    }

    fn any_id(&mut self) -> LinkId {
        let mut id = id(&format!("k{}", self.random.random_range(0..40)));
        id.domain = DomainId(u32::from(self.random.random_bool(0.2)));
        id
    }

    fn any_token(&mut self) -> Option<RequestToken> {
        let token = RequestToken([self.random.random_range(0..4); 16]);
        self.random.random_bool(0.4).then_some(token)
    }

    fn any_link(&mut self) -> Link {
        let soon = self
            .now
            .plus(Duration::from_secs(self.random.random_range(0..20_000)));
        let tags: &[&str] = self.one_of(&[&[] as &[_], &["red"], &["RED", "blue"], &["a,b"]]);
        Link {
            id: self.any_id(),
            target: target(self.one_of(&["https://a.example/", "https://B.example/x%25_"])),
            owner: OwnerId(self.random.random_range(0..3)),
            made_with: self.one_of(&[None, Some(ApiKeyNumber(1)), Some(ApiKeyNumber(9))]),
            state: self.one_of(&[
                LinkState::Active,
                LinkState::Active,
                LinkState::Disabled,
                LinkState::Deleted,
                LinkState::DeletedDisabled,
            ]),
            valid_since: self.random.random_bool(0.2).then_some(soon),
            origin: self.one_of(&KeyOrigin::ALL),
            status: self.one_of(&RedirectStatus::ALL),
            created_at: self.now,
            updated_at: self.now,
            max_clicks: self.one_of(&[None, Some(0), Some(2)]),
            expires_at: self.random.random_bool(0.5).then_some(soon),
            title: self.one_of(&[None, Some("Title".into()), Some("100%_'".into())]),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
            ..link("any")
        }
    }

    fn any_query(&mut self) -> ListQuery {
        let some = |random: &mut StdRng| random.random_bool(0.3);
        let past = |random: &mut StdRng, now: UnixMillis| {
            now.minus(Duration::from_secs(random.random_range(0..1_000_000)))
        };
        let random = &mut self.random;
        let mut query = ListQuery {
            owner: some(random).then(|| OwnerId(random.random_range(0..3))),
            state: some(random)
                .then(|| EffectiveState::ALL[random.random_range(0..EffectiveState::ALL.len())]),
            now: self.now,
            created_from: some(random).then(|| past(random, self.now)),
            created_before: some(random).then(|| past(random, self.now)),
            expires_before: some(random).then_some(self.now),
            limit: random.random_range(1..20),
            ..ListQuery::default()
        };
        if some(random) {
            query.tags = vec![self.one_of(&["red", "Blue", "a,b", "absent"]).into()];
        }
        if some(&mut self.random) {
            query.search = Some(self.one_of(&["k1", "TITLE", "%_", "b.EXAMPLE", "'"]).into());
        }
        query.order = self.one_of(&[
            ListOrder::NewestFirst,
            ListOrder::OldestFirst,
            ListOrder::KeyRising,
            ListOrder::KeyFalling,
        ]);
        query
    }
}

fn sorted<T: Ord>(mut found: Vec<T>) -> Vec<T> {
    found.sort();
    found
}

/// Every page of the query, in the order that it asks for.
async fn walk(store: &Seeded, query: &ListQuery) -> Result<Vec<Link>> {
    let links = super::list::walk(store, query).await?;
    let in_order = match query.order {
        ListOrder::NewestFirst => links.is_sorted_by(|a, b| a.created_at >= b.created_at),
        ListOrder::OldestFirst => links.is_sorted_by(|a, b| a.created_at <= b.created_at),
        ListOrder::KeyRising => links.is_sorted_by(|a, b| a.id < b.id),
        ListOrder::KeyFalling => links.is_sorted_by(|a, b| a.id > b.id),
    };
    ensure!(in_order, "{query:?} is out of order: {:?}", ids(&links));
    Ok(links)
}
