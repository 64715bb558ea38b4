use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curt_core::limits::{EMAIL_BYTES_MAX, PAGE_ACCOUNTS_MAX};
use curt_core::names::{audit, event};
use curt_core::ports::{Accounts, AuditEntry};
use curt_core::{Clock, OwnerId, PortResult};

/// Who asks for something, and from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// `None` when nobody is signed in, or when the operator asks by command.
    pub actor: Option<OwnerId>,
    /// `None` when it did not come by network.
    pub address: Option<IpAddr>,
}

impl Origin {
    /// The operator, by command.
    pub const OPERATOR: Self = Self {
        actor: None,
        address: None,
    };

    /// The same request, known to act for `actor`.
    #[must_use]
    pub fn by(self, actor: OwnerId) -> Self {
        Self {
            actor: Some(actor),
            ..self
        }
    }
}

/// Writes down what touches security.
pub struct Audit {
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
    sign_in_failures: AtomicU64,
}

impl Audit {
    pub fn new(accounts: Arc<dyn Accounts>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            accounts,
            clock,
            sign_in_failures: AtomicU64::new(0),
        })
    }

    /// Records what was done. `action` is one of [`names::audit`](curt_core::names::audit). A failed write is logged
    /// and not returned: what was done is done, and its caller has to hear of that.
    pub async fn record(&self, origin: Origin, action: &'static str, subject: &str) {
        if action == audit::SIGN_IN_FAILED {
            self.sign_in_failures.fetch_add(1, Ordering::Relaxed);
        }
        let subject = shorten(subject);
        let address = origin.address.map(|address| address.to_string());
        tracing::info!(
            event = action,
            actor = origin.actor.map(|actor| actor.0),
            subject,
            address,
            "audit"
        );
        let entry = AuditEntry {
            at: self.clock.now(),
            actor: origin.actor,
            action: action.into(),
            subject: subject.into(),
            address: address.map(Into::into),
        };
        if let Err(failure) = self.accounts.record(&entry).await {
            tracing::error!(
                event = event::STORE_FAILED,
                %failure,
                action,
                "audit record not stored"
            );
        }
    }

    /// Returns how many passwords of users were wrong since the start.
    #[must_use]
    pub fn sign_in_failures(&self) -> u64 {
        self.sign_in_failures.load(Ordering::Relaxed)
    }

    /// Up to `limit` entries with a number below `before`, newest first.
    pub async fn list(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> PortResult<Vec<(u64, AuditEntry)>> {
        // One beyond a page, which tells whether there is a next.
        let limit = limit.min(PAGE_ACCOUNTS_MAX + 1);
        self.accounts.audit(before, limit).await
    }
}

/// A failed sign-in names whatever somebody typed.
fn shorten(subject: &str) -> &str {
    &subject[..subject.floor_char_boundary(EMAIL_BYTES_MAX)]
}
