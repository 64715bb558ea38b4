//! Where a feed is: what it has told, as the id of its events.
//!
//! A feed tells differences between rollups, so its position is what it has told, and from when on that counts. It
//! goes out with every event and comes back with `Last-Event-ID`: no server has to remember it, and any server can go on
//! from it, also after a restart.

use std::str::FromStr;
use std::time::Duration;

use curt_clicks::report::Counts;
use curt_core::limits::LIVE_FEED_RESUMES_WITHIN;
use curt_core::ports::HourRange;
use curt_core::{ClickSubject, PortResult, UnixMillis};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::subject::Subject;

/// What a click that is counted late may be old.
const LATE: Duration = Duration::from_secs(24 * 3_600);
const HOUR_MILLIS: i64 = 3_600_000;

/// What a feed has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The first hour that counts.
    from: UnixMillis,
    told: Counts,
}

/// How a feed begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumed {
    /// At the present.
    Fresh,
    /// With what was counted since the event that its client saw last.
    Missed(Counts),
    /// At the present, and what was counted before cannot be told.
    Gap(Gap),
}

/// Why a feed cannot go on where it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// The id is none of this feed's.
    UnknownId,
    TooOld,
    /// There are fewer clicks than were told: counts were deleted, or an older backup is in use.
    CountsReset,
}

impl Gap {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::UnknownId => "unknown_id",
            Self::TooOld => "too_old",
            Self::CountsReset => "counts_reset",
        }
    }
}

impl Position {
    /// Finds where to begin: behind the event with the id that the client saw last, if it names one.
    pub(super) async fn find(
        subject: &Subject,
        last_id: Option<&str>,
        now: UnixMillis,
    ) -> PortResult<(Self, Resumed)> {
        let from = hour_of(now.minus(LATE));
        let seen = last_id.map(|id| Self::read(id, &subject.clicks, from));
        let totals = async |from, before| {
            let hours = HourRange { from, before };
            subject.reports.totals(&subject.clicks, hours).await
        };
        let seen = match seen {
            Some(Ok(seen)) => seen,
            Some(Err(gap)) => {
                let told = totals(from, UnixMillis::MAX).await?;
                return Ok((Self { from, told }, Resumed::Gap(gap)));
            }
            None => {
                let told = totals(from, UnixMillis::MAX).await?;
                return Ok((Self { from, told }, Resumed::Fresh));
            }
        };
        // A clock that stepped back begins no earlier than before.
        let from = from.max(seen.from);
        // Hours that count no more first: what comes in between is told by the second sum.
        let mut all = match seen.from < from {
            true => totals(seen.from, from).await?,
            false => Counts::default(),
        };
        let told = totals(from, UnixMillis::MAX).await?;
        all += told;
        let resumed = if is_within(&seen.told, &all) {
            Resumed::Missed(all.since(&seen.told))
        } else {
            Resumed::Gap(Gap::CountsReset)
        };
        Ok((Self { from, told }, resumed))
    }

    /// Moves on to the rollups of now, and returns what is new.
    pub(super) async fn advance(&mut self, subject: &Subject) -> PortResult<Counts> {
        let hours = HourRange {
            from: self.from,
            before: UnixMillis::MAX,
        };
        let totals = subject.reports.totals(&subject.clicks, hours).await?;
        let new = totals.since(&self.told);
        self.told = totals;
        Ok(new)
    }

    pub(super) fn id(&self, subject: &ClickSubject) -> String {
        let Counts {
            human,
            bot,
            prefetch,
            head,
        } = self.told;
        let (subject, hour) = (fingerprint(subject), self.from.0.div_euclid(HOUR_MILLIS));
        format!("{subject}-{hour}-{human}-{bot}-{prefetch}-{head}")
    }

    fn read(id: &str, subject: &ClickSubject, from: UnixMillis) -> Result<Self, Gap> {
        let mut parts = id.split('-');
        if parts.next() != Some(fingerprint(subject).as_str()) {
            return Err(Gap::UnknownId);
        }
        let hour: i64 = number(parts.next())?;
        let [human, bot, prefetch, head] = [(); 4].map(|()| number(parts.next()));
        let told = Counts {
            human: human?,
            bot: bot?,
            prefetch: prefetch?,
            head: head?,
        };
        let seen = Self {
            from: UnixMillis(hour.saturating_mul(HOUR_MILLIS)),
            told,
        };
        // From the future: not given out by this server, or by a clock that was far ahead.
        if parts.next().is_some() || seen.from > UnixMillis(from.0.saturating_add(millis(LATE))) {
            return Err(Gap::UnknownId);
        }
        if seen.from < from.minus(LIVE_FEED_RESUMES_WITHIN) {
            return Err(Gap::TooOld);
        }
        Ok(seen)
    }
}

fn number<T: FromStr>(part: Option<&str>) -> Result<T, Gap> {
    part.and_then(|text| text.parse().ok())
        .ok_or(Gap::UnknownId)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn hour_of(at: UnixMillis) -> UnixMillis {
    UnixMillis(at.0.div_euclid(HOUR_MILLIS).saturating_mul(HOUR_MILLIS))
}

fn is_within(part: &Counts, whole: &Counts) -> bool {
    part.human <= whole.human
        && part.bot <= whole.bot
        && part.prefetch <= whole.prefetch
        && part.head <= whole.head
}

/// Tells the ids of one subject from those of another: a client may send any id to any feed.
fn fingerprint(subject: &ClickSubject) -> String {
    let digest = Sha256::digest(format!("{subject:?}"));
    HEXLOWER.encode(&digest[..8])
}

#[cfg(test)]
mod tests {
    use curt_core::OwnerId;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

    #[test]
    fn an_id_leads_back_to_its_position_and_to_no_other_feed() {
        let (own, other) = (
            ClickSubject::Owner(OwnerId(1)),
            ClickSubject::Owner(OwnerId(2)),
        );
        let position = Position {
            from: NOW,
            told: Counts {
                human: 1,
                bot: 2,
                prefetch: 3,
                head: u64::MAX,
            },
        };
        let id = position.id(&own);
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert_eq!(Position::read(&id, &own, NOW), Ok(position));
        assert_eq!(Position::read(&id, &other, NOW), Err(Gap::UnknownId));
        let day = LIVE_FEED_RESUMES_WITHIN;
        let later = UnixMillis(NOW.0 + millis(day));
        assert_eq!(Position::read(&id, &own, later), Ok(position));
        let too_late = UnixMillis(later.0 + HOUR_MILLIS);
        assert_eq!(Position::read(&id, &own, too_late), Err(Gap::TooOld));
        let hash = fingerprint(&own);
        for wrong in [
            String::new(),
            "7".to_owned(),
            hash.clone(),
            format!("{hash}-1-2-3-4"),
            format!("{id}-5"),
            format!("{hash}-x-1-2-3-4"),
            format!("{hash}-{}-1-2-3-4", i64::MAX),
            format!("{hash}-490896-1-2-3-99999999999999999999"),
        ] {
            assert_eq!(
                Position::read(&wrong, &own, NOW),
                Err(Gap::UnknownId),
                "{wrong}"
            );
        }
    }
}
