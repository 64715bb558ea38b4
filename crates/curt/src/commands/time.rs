//! Times as people write them on the command line.

use curt_core::UnixMillis;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::config::units;
use crate::wiring;

/// A time that was named, or `None` for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at: Option<UnixMillis>,
}

impl From<Moment> for Value {
    fn from(moment: Moment) -> Self {
        moment.at.map(wiring::rfc3339).into()
    }
}

/// When something ends: a date lasts to its end.
pub(super) fn parse_end(text: &str) -> Result<Moment, String> {
    parse(text, Day::End)
}

/// When something begins: a date begins with its first moment.
pub(super) fn parse_begin(text: &str) -> Result<Moment, String> {
    parse(text, Day::Begin)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Day {
    Begin,
    End,
}

fn parse(text: &str, day: Day) -> Result<Moment, String> {
    if text == "never" {
        return Ok(Moment { at: None });
    }
    let instant = instant(text, day).ok_or_else(|| {
        format!(
            "{text:?} is not a time: write 7d (from now), 2027-01-31 (a day in UTC), 2027-01-31T12:00:00Z, or never"
        )
    })?;
    let at = Some(UnixMillis(instant.as_millisecond()));
    Ok(Moment { at })
}

/// A time from now, a date or an instant.
fn instant(text: &str, day: Day) -> Option<Timestamp> {
    if let Ok(ahead) = units::duration(text) {
        let ahead = SignedDuration::try_from(ahead).ok()?;
        return Timestamp::now().checked_add(ahead).ok();
    }
    if text.len() != "2027-01-31".len() {
        return text.parse().ok();
    }
    let date: Date = text.parse().ok()?;
    let date = match day {
        Day::Begin => date,
        Day::End => date.tomorrow().ok()?,
    };
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_four_ways() {
        let written = |moment: Result<Moment, String>| Value::from(moment.unwrap());
        assert_eq!(written(parse_end("never")), Value::Null);
        let end = written(parse_end("2027-01-31"));
        assert_eq!(end, "2027-02-01T00:00:00.000Z");
        let begin = written(parse_begin("2027-01-31"));
        assert_eq!(begin, "2027-01-31T00:00:00.000Z");
        let offset = written(parse_end("2027-01-31T12:00:00+01:00"));
        assert_eq!(offset, "2027-01-31T11:00:00.000Z");
        let week = parse_end("7d").unwrap().at.unwrap().0;
        let ahead = week - Timestamp::now().as_millisecond();
        assert!((604_790_000..=604_800_000).contains(&ahead), "{ahead}");
        for text in [
            "",
            "tomorrow",
            "7",
            "31.01.2027",
            "2027-13-01",
            "2027-01-31T12:00:00",
            "99999999999999d",
        ] {
            let why = parse_end(text).unwrap_err();
            assert!(why.contains("7d") && why.contains("never"), "{text}: {why}");
        }
    }
}
