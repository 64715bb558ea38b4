//! Driving a supply for a number of keys: what `curt bench keys` times and what soak tests check.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::link::{KeyOrigin, Link, LinkState, RedirectStatus, Revision, Visibility};
use curt_core::ports::{ClaimReply, InsertRequest};
use curt_core::{DomainId, ErrorKind, Key, LinkId, OwnerId, PortError, PortResult, Target};
use tokio::task::JoinSet;

use crate::ports::KeyPorts;
use crate::source::KeyHint;
use crate::supply::KeySupply;

/// Rows that one claim asks for.
const CLAIM_ROWS: usize = 64;
/// How long a dry supply is waited for.
const DRY_MAX: Duration = Duration::from_secs(10);

/// What a drive found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driven {
    /// Keys that the strategy gave, without fallbacks.
    pub keys: u64,
    /// How many of them were different.
    pub distinct: u64,
    /// How often the supply was dry. Each time the random key was thrown away and the supply waited for.
    pub dry: u64,
    pub elapsed: Duration,
}

/// Takes `keys` keys with as many tasks as `takers` says and throws them away. Rows of the `claim` strategy are really
/// claimed. The reconcilers must be running; a supply that stays dry for ten seconds is an error.
pub async fn drive(
    supply: &Arc<KeySupply>,
    ports: &KeyPorts,
    keys: u64,
    takers: u64,
) -> PortResult<Driven> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    let takers = takers.max(1);
    for taker in 0..takers {
        let share = keys / takers + u64::from(taker < keys % takers);
        let taker = Taker {
            supply: Arc::clone(supply),
            ports: ports.clone(),
            number: taker,
            taken: Vec::with_capacity(usize::try_from(share).unwrap_or(0)),
            dry: 0,
        };
        tasks.spawn(taker.run(share));
    }
    let (mut all, mut dry) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let taker = ended.map_err(|panic| dry_error("a taker panicked").with_source(panic))??;
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
    async fn run(mut self, share: u64) -> PortResult<Self> {
        let mut dry_since = None;
        while (self.taken.len() as u64) < share {
            let wanted = usize::try_from(share).unwrap_or(usize::MAX) - self.taken.len();
            let before = self.taken.len();
            if self.supply.claims_rows() {
                let rows = wanted.min(CLAIM_ROWS);
                self.taken.extend(self.claim(rows).await?);
            } else {
                self.taken.extend(self.take().await?);
            }
            if self.taken.len() > before {
                dry_since = None;
                continue;
            }
            self.dry += 1;
            if dry_since.get_or_insert_with(Instant::now).elapsed() > DRY_MAX {
                return Err(dry_error("the supply stayed dry: does keygen run?"));
            }
            // Asking again nudges keygen; the pause leaves it the processor.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(self)
    }

    fn target(&self) -> PortResult<Target> {
        let target = format!("https://example.com/{}/{}", self.number, self.taken.len());
        Target::from_serialised(target)
            .map_err(|error| dry_error("a made-up target is refused").with_source(error))
    }

    async fn take(&self) -> PortResult<Option<Key>> {
        let hint = KeyHint {
            target: &self.target()?,
            owner: OwnerId::ANONYMOUS,
            attempt: 0,
        };
        let supplied = self.supply.take(&hint).await;
        Ok((supplied.origin != KeyOrigin::Random).then_some(supplied.key))
    }

    async fn claim(&self, rows: usize) -> PortResult<Vec<Key>> {
        let now = self.ports.clock.now();
        let target = self.target()?;
        let Ok(key) = Key::parse("claimed") else {
            return Ok(Vec::new());
        };
        let link = Link {
            id: LinkId::new(DomainId::DEFAULT, key),
            target,
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
        let request = InsertRequest {
            links: vec![link; rows],
            once: None,
            now,
        };
        let claimed = match self.ports.links()?.claim(request).await? {
            ClaimReply::Claimed(links) => links,
            ClaimReply::Replayed(_) | ClaimReply::Mismatch => Vec::new(),
        };
        if claimed.is_empty() {
            // Calls for more rows.
            self.take().await?;
        }
        Ok(claimed.into_iter().map(|link| link.id.key).collect())
    }
}

fn dry_error(detail: &str) -> PortError {
    PortError::new(ErrorKind::Unavailable, "key supply", "give keys", detail)
}
