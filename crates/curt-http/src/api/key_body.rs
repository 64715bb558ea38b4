//! API keys as JSON: what clients send and what they get.

use curt_accounts::IssuedKey;
use curt_core::UnixMillis;
use curt_core::limits::NAME_BYTES_MAX;
use curt_core::ports::ApiKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::names::{RateBody, ScopeName, UserId};
use super::time::Rfc3339;

// The schemas below can hold only literal numbers.
const _: () = assert!(NAME_BYTES_MAX == 100);

/// An API key to be made.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewApiKey)]
pub(crate) struct NewKeyBody {
    /// What the key is for, in at most 100 bytes. No two keys of a user that are in force have the same name.
    #[schema(min_length = 1, max_length = 100, example = "newsletter")]
    pub(crate) name: String,
    /// What the key may do, never more than you may. Absent: what you may, but not `admin`.
    #[schema(min_items = 1, max_items = 4)]
    pub(crate) scopes: Option<Vec<ScopeName>>,
    /// From this instant on the key counts for nothing. Absent: when the API key ends that it is made with, if it is.
    #[schema(value_type = Option<Rfc3339>)]
    pub(crate) expires_at: Option<Rfc3339>,
    /// How many links the key may make; for administrators.
    #[schema(value_type = Option<RateBody>)]
    pub(crate) creations: Option<Object<RateBody>>,
    /// How often the links that the key makes may be followed; for administrators.
    #[schema(value_type = Option<RateBody>)]
    pub(crate) redirections: Option<Object<RateBody>>,
}

/// How a key is to be replaced.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ApiKeyRotation)]
pub(crate) struct RotateBody {
    /// How long the old key goes on; a day unless said otherwise, at most 30 days.
    #[schema(maximum = 2_592_000, example = 86400)]
    pub(crate) overlap_seconds: Option<u64>,
}

/// An API key, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ApiKey)]
pub(crate) struct KeyBody {
    /// The public part of the key, by which it is named.
    #[schema(pattern = "^[A-Za-z0-9]{8}$", example = "k3J9xQ2a")]
    prefix: String,
    user_id: UserId,
    #[schema(example = "newsletter")]
    name: String,
    scopes: Vec<ScopeName>,
    /// The prefix of the API key that this one was made with, and is revoked with. `null`: a user or the operator made
    /// it.
    #[schema(required = true, pattern = "^[A-Za-z0-9]{8}$", example = "k3J9xQ2a")]
    parent: Option<String>,
    /// Whether the key counts now.
    active: bool,
    created_at: Rfc3339,
    /// `null`: never.
    #[schema(required = true)]
    expires_at: Option<Rfc3339>,
    /// When the key was or will be ended by revoking or replacing it.
    #[schema(required = true)]
    revoked_at: Option<Rfc3339>,
    /// To the minute. `null`: never.
    #[schema(required = true)]
    last_used_at: Option<Rfc3339>,
    /// How many links the key may make. `null`: the server's default.
    #[schema(required = true)]
    creations: Option<RateBody>,
    /// How often its links may be followed. `null`: the server's default.
    #[schema(required = true)]
    redirections: Option<RateBody>,
}

impl KeyBody {
    pub(crate) fn new(key: &ApiKey, now: UnixMillis) -> Self {
        Self {
            prefix: key.prefix.to_string(),
            user_id: UserId(key.user),
            name: key.name.to_string(),
            scopes: key.scopes.iter().map(ScopeName::from).collect(),
            parent: key.parent.as_deref().map(str::to_owned),
            active: key.is_in_force(now),
            created_at: Rfc3339(key.created_at),
            expires_at: key.expires_at.map(Rfc3339),
            revoked_at: key.revoked_at.map(Rfc3339),
            last_used_at: key.last_used_at.map(Rfc3339),
            creations: key.allowance.creations.map(RateBody::new),
            redirections: key.allowance.redirections.map(RateBody::new),
        }
    }
}

/// One page of API keys.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ApiKeyPage)]
pub(crate) struct KeysBody {
    /// Oldest first.
    pub(crate) keys: Vec<KeyBody>,
    /// The cursor of the next page; `null` on the last one.
    #[schema(required = true, example = json!(null))]
    pub(crate) next: Option<String>,
}

/// A new API key.
#[derive(Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = IssuedApiKey)]
pub(crate) struct IssuedBody {
    /// The key itself. It is shown this once; the server keeps only a hash of it.
    #[schema(example = "curt_k3J9xQ2a_Vb0rT8yZc5mN1pLq7sWd4fGh6jKx2eRu")]
    token: String,
    /// What is stored about it; absent for callers without the scope `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyBody>,
}

impl IssuedBody {
    /// `now` for callers who may read.
    pub(crate) fn new(issued: IssuedKey, now: Option<UnixMillis>) -> Self {
        Self {
            key: now.map(|now| KeyBody::new(&issued.key, now)),
            token: issued.token,
        }
    }
}
