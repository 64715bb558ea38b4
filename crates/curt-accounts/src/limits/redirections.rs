use std::collections::HashMap;

use curt_core::ports::{QuotaRule, RedirectionLimits};
use curt_core::{ApiKeyNumber, OwnerId};

use super::LimitSettings;

/// Whose links may be followed only so often: who has a rule of their own, and the rule of everybody else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedirectionRules {
    pub users: HashMap<OwnerId, QuotaRule>,
    pub keys: HashMap<ApiKeyNumber, QuotaRule>,
    pub other_users: Option<QuotaRule>,
    pub other_keys: Option<QuotaRule>,
}

impl RedirectionRules {
    pub(super) fn new(settings: &LimitSettings, own: RedirectionLimits) -> Self {
        Self {
            users: own.users.into_iter().collect(),
            keys: own.keys.into_iter().collect(),
            other_users: settings.redirections_per_user,
            other_keys: settings.redirections_per_key,
        }
    }

    pub(super) fn of_user(&self, user: OwnerId) -> Option<QuotaRule> {
        if user == OwnerId::ANONYMOUS {
            return None;
        }
        self.users.get(&user).copied().or(self.other_users)
    }

    pub(super) fn of_key(&self, key: ApiKeyNumber) -> Option<QuotaRule> {
        self.keys.get(&key).copied().or(self.other_keys)
    }
}
