//! Takes keys from a supply as fast as it gives them: what `curt bench keys` times.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use curt_core::link::{KeyOrigin, Link, LinkState, RedirectStatus, Revision, Visibility};
use curt_core::{DomainId, Key, LinkId, OwnerId, Target};
use curt_keys::{KeyPorts, KeyRequest, KeySupply};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Rows that one claim asks for.
const CLAIM_ROWS: usize = 64;
/// How long a dry supply is waited for.
const DRY_MAX: Duration = Duration::from_secs(10);

/// What a drive found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driven {
    /// Keys that the strategy gave, without fallbacks.
    pub(super) keys: u64,
    /// How many of them were different.
    pub(super) distinct: u64,
    /// How often the supply was dry. Each time the random key was thrown away and the supply waited for.
    pub(super) dry: u64,
    pub(super) elapsed: Duration,
}

/// Takes `keys` keys with as many tasks as `takers` says and throws them away. Rows of the `claim` strategy are really
/// claimed. The reconcilers must be running; a supply that stays dry for ten seconds is an error.
pub(super) async fn drive(
    supply: &Arc<KeySupply>,
    ports: &KeyPorts,
    keys: u64,
    takers: u64,
) -> anyhow::Result<Driven> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for taker in 0..takers {
        let share = keys / takers + u64::from(taker < keys % takers);
        let share = usize::try_from(share)?;
        let taker = Taker {
            supply: Arc::clone(supply),
            ports: ports.clone(),
            number: taker,
            taken: Vec::with_capacity(share),
            dry: 0,
        };
        tasks.spawn(taker.run(share));
    }
    let (mut all, mut dry) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let taker = ended.context("a taker panicked")??;
        dry += taker.dry;
        all.extend(taker.taken);
    }
    let elapsed = started.elapsed();
    let keys = all.len() as u64;
    all.sort_unstable();
    all.dedup();
    Ok(Driven {
        keys,
        distinct: all.len() as u64,
        dry,
        elapsed,
    })
}

struct Taker {
    supply: Arc<KeySupply>,
    ports: KeyPorts,
    number: u64,
    taken: Vec<Key>,
    dry: u64,
}

impl Taker {
    async fn run(mut self, share: usize) -> anyhow::Result<Self> {
        let mut dry_since = None;
        while self.taken.len() < share {
            let before = self.taken.len();
            if self.supply.claims_rows() {
                let rows = (share - before).min(CLAIM_ROWS);
                self.taken.extend(self.claim(rows).await?);
            }
            if self.taken.len() == before {
                // Also where rows ran out: it calls for more.
                self.taken.extend(self.take().await?);
            }
            if self.taken.len() > before {
                dry_since = None;
                continue;
            }
            self.dry += 1;
            let dry_for = dry_since.get_or_insert_with(Instant::now).elapsed();
            ensure!(dry_for <= DRY_MAX, "the supply stayed dry");
            // Leaves keygen the processor.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(self)
    }

    fn target(&self) -> anyhow::Result<Target> {
        let target = format!("https://example.com/{}/{}", self.number, self.taken.len());
        Ok(Target::from_serialised(target)?)
    }

    async fn take(&self) -> anyhow::Result<Option<Key>> {
        let hint = KeyRequest {
            target: &self.target()?,
            owner: OwnerId::ANONYMOUS,
            attempt: 0,
        };
        let supplied = self.supply.take(&hint).await;
        Ok((supplied.origin != KeyOrigin::Random).then_some(supplied.key))
    }

    async fn claim(&self, rows: usize) -> anyhow::Result<Vec<Key>> {
        let now = self.ports.clock.now();
        let link = Link {
            id: LinkId::new(DomainId::DEFAULT, Key::parse("claimed")?),
            target: self.target()?,
            owner: OwnerId::ANONYMOUS,
            made_with: None,
            state: LinkState::Active,
            revision: Revision::FIRST,
            origin: KeyOrigin::Claim,
            created_at: now,
            updated_at: now,
            expires_at: None,
            valid_since: None,
            max_clicks: None,
            visibility: Visibility::Public,
            password_hash: None,
            status: RedirectStatus::Found,
            forward_query: false,
            title: None,
            tags: Vec::new(),
        };
        let links = self.ports.links.as_ref().context("no links database")?;
        let seeded = links.seeded.as_ref().context("no seeded rows")?;
        let claimed = seeded.claim(vec![link; rows]).await?;
        Ok(claimed.into_iter().map(|link| link.id.key).collect())
    }
}
