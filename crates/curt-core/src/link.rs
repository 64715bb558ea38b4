//! A link and what decides whether it redirects.

use crate::account::ApiKeyNumber;
use crate::clock::UnixMillis;
use crate::key::LinkId;
use crate::owner::OwnerId;
use crate::target::Target;

/// The whole stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub id: LinkId,
    pub target: Target,
    pub owner: OwnerId,
    /// The API key that made it; `None` when a signed-in person or nobody did.
    pub made_with: Option<ApiKeyNumber>,
    pub state: LinkState,
    pub revision: Revision,
    pub origin: KeyOrigin,
    pub created_at: UnixMillis,
    pub updated_at: UnixMillis,
    /// The link answers 410 from this instant on. `None`: never.
    pub expires_at: Option<UnixMillis>,
    /// The link answers 404 before this instant.
    pub valid_since: Option<UnixMillis>,
    /// How many people's clicks it has in all; then it answers 410. `None`: any number.
    pub max_clicks: Option<u64>,
    pub visibility: Visibility,
    pub password_hash: Option<Box<str>>,
    pub status: RedirectStatus,
    /// Whether the visitor's query string is added to the target.
    pub forward_query: bool,
    pub title: Option<Box<str>>,
    pub tags: Vec<Box<str>>,
}

impl Link {
    /// Returns what a visitor gets at `now`, by state and time alone.
    #[must_use]
    pub fn availability(&self, now: UnixMillis) -> Availability {
        Availability::at(now, self.state, self.expires_at, self.valid_since)
    }
}

/// What a link is to a visitor, by state and time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It redirects.
    Live,
    /// As if it had never been: 404.
    Absent,
    /// Its time has not come yet: 404.
    Scheduled,
    /// It was there and leads nowhere now: 410.
    Gone(GoneCause),
}

/// Why a link leads nowhere any more, by state and time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneCause {
    Expired,
    /// Switched off, it or its owner's account; may come back.
    Disabled,
    /// Deleted by its owner, or purged some time after its expiry.
    Deleted,
}

impl Availability {
    pub(crate) fn at(
        now: UnixMillis,
        state: LinkState,
        expires_at: Option<UnixMillis>,
        valid_since: Option<UnixMillis>,
    ) -> Self {
        match state {
            LinkState::Seeded => Self::Absent,
            LinkState::Deleted => Self::Gone(GoneCause::Deleted),
            LinkState::Disabled => Self::Gone(GoneCause::Disabled),
            LinkState::Active if expires_at.is_some_and(|at| at <= now) => {
                Self::Gone(GoneCause::Expired)
            }
            LinkState::Active if valid_since.is_some_and(|at| at > now) => Self::Scheduled,
            LinkState::Active => Self::Live,
        }
    }
}

/// The stored number of each state is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkState {
    Active = 0,
    /// Switched off by an administrator; may come back.
    Disabled = 1,
    /// A tombstone: deleted or purged, kept so that the key is not given away too early (L-3).
    Deleted = 2,
    /// A row made ahead of time for the `claim` strategy; nobody's yet.
    Seeded = 3,
}

impl LinkState {
    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        [Self::Active, Self::Disabled, Self::Deleted, Self::Seeded]
            .into_iter()
            .find(|state| *state as u8 == number)
    }
}

/// Grows with every change of a link: `generation` when the key is given to a new owner, `version` with each edit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    pub generation: u32,
    pub version: u32,
}

impl Revision {
    /// The revision of a link that was just created under a new key.
    pub const FIRST: Self = Self {
        generation: 1,
        version: 1,
    };

    #[must_use]
    pub fn edited(self) -> Self {
        Self {
            version: self.version.saturating_add(1),
            ..self
        }
    }

    #[must_use]
    pub fn reborn(self) -> Self {
        Self {
            generation: self.generation.saturating_add(1),
            version: 1,
        }
    }
}

/// Where a link's key came from. Only keys that came from the ledger count in K-2, and an alias is never recycled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeyOrigin {
    /// Chosen by a person.
    Alias = 0,
    /// Minted into the ledger (`pool` and `status`).
    Ledger = 1,
    /// From a key file.
    File = 2,
    /// A pre-seeded row.
    Claim = 3,
    /// A snowflake or sequence id.
    Id = 4,
    /// A hash of the target.
    Hash = 5,
    /// Made on the spot because the supply was dry.
    Random = 6,
}

impl KeyOrigin {
    pub const ALL: [Self; 7] = [
        Self::Alias,
        Self::Ledger,
        Self::File,
        Self::Claim,
        Self::Id,
        Self::Hash,
        Self::Random,
    ];

    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| *origin as u8 == number)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alias => "alias",
            Self::Ledger => "ledger",
            Self::File => "file",
            Self::Claim => "claim",
            Self::Id => "id",
            Self::Hash => "hash",
            Self::Random => "random",
        }
    }
}

/// Who may follow a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Visibility {
    #[default]
    Public = 0,
    Private = 1,
    Password = 2,
}

impl Visibility {
    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        [Self::Public, Self::Private, Self::Password]
            .into_iter()
            .find(|visibility| *visibility as u8 == number)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Password => "password",
        }
    }
}

/// The status that a link redirects with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum RedirectStatus {
    MovedPermanently = 301,
    #[default]
    Found = 302,
    TemporaryRedirect = 307,
    PermanentRedirect = 308,
}

impl RedirectStatus {
    pub const ALL: [Self; 4] = [
        Self::MovedPermanently,
        Self::Found,
        Self::TemporaryRedirect,
        Self::PermanentRedirect,
    ];

    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u16 == code)
    }

    #[must_use]
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Browsers keep these by themselves, so they are always sent with an explicit age.
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::MovedPermanently | Self::PermanentRedirect)
    }
}
