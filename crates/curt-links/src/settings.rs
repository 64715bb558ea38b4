use std::time::Duration;

use curt_core::limits::TARGET_BYTES_DEFAULT;
use curt_core::{DomainId, KeyRules, RedirectStatus};

use crate::admit::OwnHost;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What creating and editing links goes by.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The domain that new links live under.
    pub domain: DomainId,
    /// Longest target after serialisation; never more than [`TARGET_BYTES_MAX`](curt_core::limits::TARGET_BYTES_MAX).
    pub target_bytes_max: usize,
    /// Schemes that a target may have, lower case, without the colon.
    pub schemes: Vec<Box<str>>,
    /// Hosts that a target must not lead to, because they serve short links: a link to them could go round in a ring.
    pub own_hosts: Vec<OwnHost>,
    /// What a key must be like to be given to a link, generated or chosen.
    pub keys: KeyRules,
    /// When a link ends whose creator says nothing about it; `None`: never.
    pub default_expiry: Option<Duration>,
    /// How long expired and deleted links stay for their owners, who can renew or restore them. Zero: deletions are for
    /// good.
    pub grace: Duration,
    pub default_status: RedirectStatus,
    pub default_forward_query: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            domain: DomainId::DEFAULT,
            target_bytes_max: TARGET_BYTES_DEFAULT,
            schemes: vec!["http".into(), "https".into()],
            own_hosts: Vec::new(),
            keys: KeyRules::default(),
            default_expiry: Some(DAY * 365 * 2),
            grace: DAY * 30,
            default_status: RedirectStatus::default(),
            default_forward_query: false,
        }
    }
}
