//! Whose a link is.

use std::fmt;

/// The account that owns links and API keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub u64);

impl OwnerId {
    /// Links made without credentials, where the configuration allows that. Nobody can manage them by API.
    pub const ANONYMOUS: Self = Self(0);
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
