//! Whom a shown token stands for, remembered for a second.

use curt_core::UnixMillis;

use crate::principal::Principal;
use crate::token;
use crate::verdicts::Verdicts;

/// Verdicts on tokens of every form, by the hash of the token: what the memory holds must not be usable as one.
pub(crate) type Credentials = Verdicts<[u8; 32], Verdict>;

#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) principal: Option<Principal>,
    pub(crate) ends_at: Option<UnixMillis>,
}

impl Verdict {
    pub(crate) const STRANGER: Self = Self {
        principal: None,
        ends_at: None,
    };

    pub(crate) fn principal_at(self, now: UnixMillis) -> Option<Principal> {
        if self.ends_at.is_some_and(|at| at <= now) {
            return None;
        }
        self.principal
    }
}

pub(crate) fn name_of(token: &str) -> [u8; 32] {
    token::hash(token)
}
