//! Clicks and what is counted about them.
//!
//! Rollups are kept per subject and UTC day, and inside a day per hour, dimension and value. An hour is the finest time
//! that reports know; days, weeks and months of any time zone are put together from hours.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::UnixMillis;
use crate::key::LinkId;
use crate::owner::OwnerId;
use crate::sketch::Sketch;

const HOUR_MILLIS: i64 = 3_600_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;

impl UnixMillis {
    /// The start of the hour that it lies in.
    #[must_use]
    pub fn hour(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(HOUR_MILLIS)))
    }
}

/// A day of UTC, by its number since 1970-01-01. Days before that and after year 9999 are not told apart from the
/// first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u32);

const _: () = assert!(Day::LAST.0 as i64 == UnixMillis::MAX.0 / DAY_MILLIS);

impl Day {
    pub const FIRST: Self = Self(0);
    pub const LAST: Self = Self(2_932_896);

    #[must_use]
    pub fn of(at: UnixMillis) -> Self {
        let day = at.0.div_euclid(DAY_MILLIS).max(0);
        Self::numbered(u32::try_from(day).unwrap_or(u32::MAX))
    }

    /// The day with this number, or the last one.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        Self(number.min(Self::LAST.0))
    }

    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    #[must_use]
    pub fn start(self) -> UnixMillis {
        UnixMillis(i64::from(self.0) * DAY_MILLIS)
    }

    /// The start of one of its hours, 0 to 23.
    #[must_use]
    pub fn hour(self, hour: u8) -> UnixMillis {
        self.start()
            .plus(Duration::from_secs(u64::from(hour) * 3_600))
    }

    /// Which of its hours an instant lies in; the nearest one for an instant of another day.
    #[must_use]
    pub fn hour_of(self, at: UnixMillis) -> u8 {
        let hours = at.0.saturating_sub(self.start().0).div_euclid(HOUR_MILLIS);
        u8::try_from(hours.clamp(0, 23)).unwrap_or_default()
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self::numbered(self.0.saturating_add(1))
    }

    #[must_use]
    pub fn minus(self, days: u32) -> Self {
        Self(self.0.saturating_sub(days))
    }
}

/// What a click is taken for. The stored number of each is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ClickClass {
    Human = 0,
    /// Says so itself, or is known to be one; previews and mail scanners too.
    Bot = 1,
    /// A browser that fetches ahead; nobody has seen the page yet.
    Prefetch = 2,
    /// Asked for the headers alone.
    Head = 3,
}

impl ClickClass {
    pub const ALL: [Self; 4] = [Self::Human, Self::Bot, Self::Prefetch, Self::Head];

    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|class| *class as u8 == number)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Bot => "bot",
            Self::Prefetch => "prefetch",
            Self::Head => "head",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// By what clicks are counted apart. The stored number of each is part of the format.
///
/// `Class` counts every click once, so its sum is the exact total; the others count humans only, but for `Orphan` and
/// `Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Dimension {
    /// Values are the names of [`ClickClass`].
    Class = 0,
    Country = 1,
    Browser = 2,
    System = 3,
    Device = 4,
    /// Host of the page that led here.
    Referrer = 5,
    Language = 6,
    /// Of orphan clicks, of every class: `not_found` or `base_url`.
    Orphan = 7,
    /// Of orphan clicks, of every class: the key that was asked for.
    Key = 8,
    /// `direct`, `search`, `social`, `mail` or `other`.
    ReferrerGroup = 9,
    /// The `utm_` parameters of the address that the visitor is sent to.
    UtmSource = 10,
    UtmMedium = 11,
    UtmCampaign = 12,
    UtmTerm = 13,
    UtmContent = 14,
    /// With the country's code: `Paris, FR`.
    City = 15,
    /// The organisation that runs the visitor's network.
    Network = 16,
}

impl Dimension {
    pub const ALL: [Self; 17] = [
        Self::Class,
        Self::Country,
        Self::Browser,
        Self::System,
        Self::Device,
        Self::Referrer,
        Self::Language,
        Self::Orphan,
        Self::Key,
        Self::ReferrerGroup,
        Self::UtmSource,
        Self::UtmMedium,
        Self::UtmCampaign,
        Self::UtmTerm,
        Self::UtmContent,
        Self::City,
        Self::Network,
    ];

    /// Those of [`ClickDetails`], in the order of their numbers. They are counted only where there is a value.
    pub const DETAILS: [Self; 8] = [
        Self::ReferrerGroup,
        Self::UtmSource,
        Self::UtmMedium,
        Self::UtmCampaign,
        Self::UtmTerm,
        Self::UtmContent,
        Self::City,
        Self::Network,
    ];

    /// The place in [`DETAILS`](Self::DETAILS).
    fn detail(self) -> Option<usize> {
        let place = usize::from(self as u8).checked_sub(usize::from(Self::DETAILS[0] as u8))?;
        (place < Self::DETAILS.len()).then_some(place)
    }

    /// Whether only clicks of humans are counted in it.
    #[must_use]
    pub fn counts_humans(self) -> bool {
        !matches!(self, Self::Class | Self::Orphan | Self::Key)
    }

    #[must_use]
    pub fn from_stored(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|dimension| *dimension as u8 == number)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Country => "country",
            Self::Browser => "browser",
            Self::System => "system",
            Self::Device => "device",
            Self::Referrer => "referrer",
            Self::Language => "language",
            Self::Orphan => "orphan",
            Self::Key => "key",
            Self::ReferrerGroup => "referrer_group",
            Self::UtmSource => "utm_source",
            Self::UtmMedium => "utm_medium",
            Self::UtmCampaign => "utm_campaign",
            Self::UtmTerm => "utm_term",
            Self::UtmContent => "utm_content",
            Self::City => "city",
            Self::Network => "network",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|dimension| dimension.name() == name)
    }
}

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClickSubject {
    /// Every click, orphans included.
    Everything,
    /// Clicks that met no link: an unknown key, a link that is gone, the base URL.
    Orphans,
    /// The links of one owner.
    Owner(OwnerId),
    /// Those of them that had the tag when they were followed; see [`tag`](Self::tag).
    Tag(OwnerId, Box<str>),
    /// A link of one generation: a key that is given away again begins anew.
    Link(LinkId, u32),
}

impl ClickSubject {
    /// Tags are compared without ASCII case, so a subject has its tag in lower case.
    #[must_use]
    pub fn tag(owner: OwnerId, tag: &str) -> Self {
        Self::Tag(owner, tag.to_ascii_lowercase().into())
    }
}

/// Clicks of one hour that share a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// Start of the hour.
    pub hour: UnixMillis,
    pub dimension: Dimension,
    /// Shared: most values are those of many subjects.
    pub value: Arc<str>,
    pub count: u64,
}

/// What is new about one subject on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectDay {
    pub subject: ClickSubject,
    pub day: Day,
    /// Of hours of this day; a value may come more than once.
    pub rollups: Vec<Rollup>,
    /// The visitors of the day, by a hash of who they are and the day's salt. The link is no part of the hash, so that
    /// the sketches of an owner's links merge into the owner's visitors.
    pub visitors: Sketch,
}

/// The value that stands for all values beyond [`VALUES_PER_DAY_MAX`](crate::limits::VALUES_PER_DAY_MAX).
pub const OTHER: &str = "other";

/// One click as it is kept, as long as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Click {
    pub at: UnixMillis,
    pub outcome: ClickOutcome,
    /// The link's owner at that time; `None` for orphans and links without one.
    pub owner: Option<OwnerId>,
    /// The link's tags at that time.
    pub tags: Vec<Box<str>>,
    pub class: ClickClass,
    pub country: Box<str>,
    pub browser: Box<str>,
    pub system: Box<str>,
    pub device: Box<str>,
    pub referrer: Box<str>,
    pub language: Box<str>,
    pub details: ClickDetails,
    /// Only where the configuration keeps addresses.
    pub address: Option<IpAddr>,
}

/// Values that not every click has, by the dimensions of [`Dimension::DETAILS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClickDetails([Box<str>; Dimension::DETAILS.len()]);

impl ClickDetails {
    /// `None` where there is no value, and for other dimensions.
    #[must_use]
    pub fn get(&self, dimension: Dimension) -> Option<&str> {
        let value = self.0.get(dimension.detail()?)?;
        (!value.is_empty()).then_some(value)
    }

    /// An empty value is none. Other dimensions than [`Dimension::DETAILS`] are left alone.
    pub fn set(&mut self, dimension: Dimension, value: impl Into<Box<str>>) {
        if let Some(own) = dimension.detail().and_then(|place| self.0.get_mut(place)) {
            *own = value.into();
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClickOutcome {
    /// A link, and its generation.
    Link(LinkId, u32),
    /// No link under the key that was asked for, cut at a key's length.
    Absent(Box<str>),
    BaseUrl,
}

impl Click {
    /// Its value in a dimension; `None` where the dimension does not apply.
    #[must_use]
    pub fn value(&self, dimension: Dimension) -> Option<&str> {
        match dimension {
            Dimension::Class => Some(self.class.name()),
            Dimension::Country => Some(&self.country),
            Dimension::Browser => Some(&self.browser),
            Dimension::System => Some(&self.system),
            Dimension::Device => Some(&self.device),
            Dimension::Referrer => Some(&self.referrer),
            Dimension::Language => Some(&self.language),
            Dimension::Orphan => self.outcome.orphan(),
            Dimension::Key => match &self.outcome {
                ClickOutcome::Absent(key) => Some(key),
                ClickOutcome::Link(..) | ClickOutcome::BaseUrl => None,
            },
            detail => self.details.get(detail),
        }
    }
}

impl ClickOutcome {
    /// The value of [`Dimension::Orphan`].
    #[must_use]
    pub fn orphan(&self) -> Option<&'static str> {
        match self {
            Self::Link(..) => None,
            Self::Absent(_) => Some("not_found"),
            Self::BaseUrl => Some("base_url"),
        }
    }
}

#[cfg(test)]
mod tests;
