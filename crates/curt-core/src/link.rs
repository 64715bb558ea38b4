//! A link and what decides whether it redirects.

use crate::account::ApiKeyNumber;
use crate::clock::UnixMillis;
use crate::key::LinkId;
use crate::owner::OwnerId;
use crate::target::Target;

/// The whole stored record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

    /// Returns what the link is to its owner at `now`, as if clicks were left; see
    /// [`EffectiveState::with_clicks`]. `None`: a tombstone or a seeded row.
    #[must_use]
    pub fn effective_state(&self, now: UnixMillis) -> Option<EffectiveState> {
        EffectiveState::at(now, self.state, self.expires_at, self.valid_since)
    }

    /// Returns since when the link is expired or deleted, if it is at `now`: from then on it waits to be purged.
    #[must_use]
    pub fn ended_at(&self, now: UnixMillis) -> Option<UnixMillis> {
        match self.state {
            LinkState::Active => self.expires_at.filter(|at| *at <= now),
            LinkState::Deleted | LinkState::DeletedDisabled => Some(self.updated_at),
            LinkState::Disabled | LinkState::Tombstone | LinkState::Seeded => None,
        }
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
            LinkState::Tombstone | LinkState::Deleted | LinkState::DeletedDisabled => {
                Self::Gone(GoneCause::Deleted)
            }
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
    /// Purged, or deleted for good: kept so that the key is not given away too early (L-3).
    Tombstone = 2,
    /// A row made ahead of time for the `claim` strategy; nobody's yet.
    Seeded = 3,
    /// Deleted, since `updated_at`: its owner can restore it until it is purged.
    Deleted = 4,
    /// Deleted while it was switched off: restored, it is switched off again.
    DeletedDisabled = 5,
}

impl LinkState {
    pub const ALL: [Self; 6] = [
        Self::Active,
        Self::Disabled,
        Self::Tombstone,
        Self::Seeded,
        Self::Deleted,
        Self::DeletedDisabled,
    ];

    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == number)
    }

    /// Whether a link in this state is deleted and can be restored.
    #[must_use]
    pub fn is_deleted(self) -> bool {
        matches!(self, Self::Deleted | Self::DeletedDisabled)
    }

    /// Whether a link in this state is neither deleted nor a tombstone nor a seeded row.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::Active | Self::Disabled)
    }

    /// Whether a link in this state has an owner who sees it.
    #[must_use]
    pub fn is_kept(self) -> bool {
        self.is_live() || self.is_deleted()
    }

    /// The state of a link in this one when it is deleted.
    #[must_use]
    pub fn deleted(self) -> Self {
        match self {
            Self::Active => Self::Deleted,
            Self::Disabled => Self::DeletedDisabled,
            other => other,
        }
    }

    /// The state of a link in this one when it is restored.
    #[must_use]
    pub fn restored(self) -> Self {
        match self {
            Self::Deleted => Self::Active,
            Self::DeletedDisabled => Self::Disabled,
            other => other,
        }
    }
}

/// What a link is to its owner at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectiveState {
    /// It redirects.
    Active,
    /// It begins to redirect later.
    Scheduled,
    /// Its clicks are used up.
    Exhausted,
    Expired,
    /// Switched off by an administrator.
    Disabled,
    /// It can be restored until it is purged.
    Deleted,
}

impl EffectiveState {
    pub const ALL: [Self; 6] = [
        Self::Active,
        Self::Scheduled,
        Self::Exhausted,
        Self::Expired,
        Self::Disabled,
        Self::Deleted,
    ];

    /// The state by what is stored and the time, as if clicks were left. `None`: a tombstone or a seeded row, which
    /// nobody sees.
    #[must_use]
    pub fn at(
        now: UnixMillis,
        state: LinkState,
        expires_at: Option<UnixMillis>,
        valid_since: Option<UnixMillis>,
    ) -> Option<Self> {
        Some(match state {
            LinkState::Tombstone | LinkState::Seeded => return None,
            LinkState::Deleted | LinkState::DeletedDisabled => Self::Deleted,
            LinkState::Disabled => Self::Disabled,
            LinkState::Active if expires_at.is_some_and(|at| at <= now) => Self::Expired,
            LinkState::Active if valid_since.is_some_and(|at| at > now) => Self::Scheduled,
            LinkState::Active => Self::Active,
        })
    }

    /// Whether it matters to the state how many clicks are left.
    #[must_use]
    pub fn asks_clicks(self) -> bool {
        matches!(self, Self::Active | Self::Scheduled)
    }

    /// The state of a link of which so many clicks of so many are spent.
    #[must_use]
    pub fn with_clicks(self, max_clicks: Option<u64>, spent: u64) -> Self {
        match max_clicks {
            Some(most) if self.asks_clicks() && spent >= most => Self::Exhausted,
            _ => self,
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Scheduled => "scheduled",
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::Disabled => "disabled",
            Self::Deleted => "deleted",
        }
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

    /// Whether clients repeat the request at the target as it is. With the others most make a `GET` of it.
    #[must_use]
    pub fn keeps_method(self) -> bool {
        matches!(self, Self::TemporaryRedirect | Self::PermanentRedirect)
    }
}
