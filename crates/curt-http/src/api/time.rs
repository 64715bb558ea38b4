//! Instants as clients write them: RFC 3339.
//!
//! The grammar is RFC 3339's own and nothing wider, so that what is accepted is what the OpenAPI document says. The
//! calendar is `jiff`'s, in civil time: its timestamps end a day before the year 9999 does.

use std::fmt;

use curt_core::UnixMillis;
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Span, ToSpan};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// An instant that is written as RFC 3339 date and time, in UTC, always with milliseconds: so that texts sort like
/// instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rfc3339(pub UnixMillis);

/// Why a text is not an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeError {
    #[error("Write date and time as in 2030-12-31T23:59:59Z (RFC 3339).")]
    Syntax,
    #[error("There is no such date or time.")]
    Calendar,
}

impl Rfc3339 {
    pub(crate) fn parse(text: &str) -> Result<Self, TimeError> {
        let bytes = text.as_bytes();
        let (date, rest) = bytes.split_at_checked(10).ok_or(TimeError::Syntax)?;
        let date = parse_date(date)?;
        let rest = match rest {
            [b'T' | b't' | b' ', rest @ ..] => rest,
            _ => return Err(TimeError::Syntax),
        };
        let (time, offset) = parse_time(rest)?;
        let local = date.to_datetime(time);
        let millis = local.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
        let utc = millis - SignedDuration::from_secs(offset);
        let millis =
            i64::try_from(utc.as_nanos().div_euclid(1_000_000)).map_err(|_| TimeError::Calendar)?;
        Ok(Self(UnixMillis(millis)))
    }

    /// A whole day, `YYYY-MM-DD`: the instant at which it ends, in UTC.
    pub(crate) fn parse_end_of_day(text: &str) -> Result<Self, TimeError> {
        let date = parse_date(text.as_bytes())?;
        let begun = Self::parse(&format!("{date}T00:00:00Z"))?;
        let ends = begun.0.0.saturating_add(24 * 3_600 * 1_000);
        Ok(Self(UnixMillis(ends.min(UnixMillis::MAX.0))))
    }
}

/// `YYYY-MM-DD` and nothing else.
pub(crate) fn parse_day(text: &str) -> Result<Date, TimeError> {
    parse_date(text.as_bytes())
}

fn parse_date(bytes: &[u8]) -> Result<Date, TimeError> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else {
        return Err(TimeError::Syntax);
    };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let month = number(&[*m1, *m2])?;
    let day = number(&[*d1, *d2])?;
    Date::new(year, small(month)?, small(day)?).map_err(|_| TimeError::Calendar)
}

/// The time of day and the offset from UTC in seconds.
fn parse_time(bytes: &[u8]) -> Result<(Time, i64), TimeError> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = bytes else {
        return Err(TimeError::Syntax);
    };
    let hour = number(&[*h1, *h2])?;
    let minute = number(&[*m1, *m2])?;
    // A leap second is read as the second before it: the clock of the product has none.
    let second = match number(&[*s1, *s2])? {
        60 => 59,
        second => second,
    };
    let (nanos, rest) = parse_fraction(rest)?;
    let offset = parse_offset(rest)?;
    let time = Time::new(small(hour)?, small(minute)?, small(second)?, nanos);
    Ok((time.map_err(|_| TimeError::Calendar)?, offset))
}

fn parse_fraction(bytes: &[u8]) -> Result<(i32, &[u8]), TimeError> {
    let [b'.', digits @ ..] = bytes else {
        return Ok((0, bytes));
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0 {
        return Err(TimeError::Syntax);
    }
    let (digits, rest) = digits.split_at(count);
    let nanos = (0..9).fold(0_i32, |sum, place| {
        let digit = digits.get(place).map_or(0, |digit| i32::from(digit - b'0'));
        sum * 10 + digit
    });
    Ok((nanos, rest))
}

fn parse_offset(bytes: &[u8]) -> Result<i64, TimeError> {
    let (sign, h1, h2, m1, m2) = match bytes {
        [b'Z' | b'z'] => return Ok(0),
        [b'+', h1, h2, b':', m1, m2] => (1, h1, h2, m1, m2),
        [b'-', h1, h2, b':', m1, m2] => (-1, h1, h2, m1, m2),
        _ => return Err(TimeError::Syntax),
    };
    let hours = i64::from(number(&[*h1, *h2])?);
    let minutes = i64::from(number(&[*m1, *m2])?);
    if hours > 23 || minutes > 59 {
        return Err(TimeError::Calendar);
    }
    Ok(sign * (hours * 3_600 + minutes * 60))
}

fn number(digits: &[u8]) -> Result<i16, TimeError> {
    digits.iter().try_fold(0_i16, |sum, digit| match digit {
        b'0'..=b'9' => Ok(sum * 10 + i16::from(digit - b'0')),
        _ => Err(TimeError::Syntax),
    })
}

fn small(number: i16) -> Result<i8, TimeError> {
    i8::try_from(number).map_err(|_| TimeError::Calendar)
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span: Span = self.0.0.milliseconds();
        match DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(span) {
            Ok(civil) => write!(f, "{civil:.3}Z"),
            Err(_) => f.write_str("9999-12-31T23:59:59.999Z"),
        }
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rfc3339 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Rfc3339;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a date and time as in 2030-12-31T23:59:59Z (RFC 3339)")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Rfc3339, E> {
                Rfc3339::parse(text)
                    .map_err(|_| E::invalid_value(Unexpected::Other("this text"), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

fn text(format: KnownFormat, about: &str, example: &str) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(format)))
        .description(Some(about))
        .examples([example])
        .into()
}

impl PartialSchema for Rfc3339 {
    fn schema() -> RefOr<Schema> {
        let about = "An instant, as RFC 3339 writes it. Answers are in UTC and always have three decimals, so that they sort as texts.";
        text(KnownFormat::DateTime, about, "2030-12-31T23:59:59Z").into()
    }
}

impl ToSchema for Rfc3339 {
    fn name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
}

/// The `expire_date` of `createURL`: an instant, or a whole day.
pub(crate) struct DateOrTime;

impl PartialSchema for DateOrTime {
    fn schema() -> RefOr<Schema> {
        Schema::AnyOf(
            AnyOfBuilder::new()
                .item(text(
                    KnownFormat::Date,
                    "The last day, in UTC.",
                    "2030-12-31",
                ))
                .item(text(
                    KnownFormat::DateTime,
                    "The instant of expiry.",
                    "2030-12-31T23:59:59Z",
                ))
                .build(),
        )
        .into()
    }
}

impl ToSchema for DateOrTime {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_and_written() {
        for (text, millis, written) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z"),
            (
                "2030-12-31T23:59:59Z",
                1_924_991_999_000,
                "2030-12-31T23:59:59.000Z",
            ),
            (
                "2030-12-31t23:59:59.5z",
                1_924_991_999_500,
                "2030-12-31T23:59:59.500Z",
            ),
            (
                "2031-01-01 01:59:59+02:00",
                1_924_991_999_000,
                "2030-12-31T23:59:59.000Z",
            ),
            (
                "2024-02-29T12:00:00-00:30",
                1_709_209_800_000,
                "2024-02-29T12:30:00.000Z",
            ),
            (
                "2016-12-31T23:59:60Z",
                1_483_228_799_000,
                "2016-12-31T23:59:59.000Z",
            ),
            (
                "9999-12-31T23:59:59.999Z",
                UnixMillis::MAX.0,
                "9999-12-31T23:59:59.999Z",
            ),
            (
                "1969-12-31T23:59:59.999999Z",
                -1,
                "1969-12-31T23:59:59.999Z",
            ),
        ] {
            let parsed = Rfc3339::parse(text);
            assert_eq!(parsed, Ok(Rfc3339(UnixMillis(millis))), "{text}");
            assert_eq!(parsed.unwrap().to_string(), written);
        }
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "now",
            "2030-12-31",
            "2030-12-31T23:59Z",
            "2030-12-31T23:59:59",
            "2030-12-31T23:59:59.Z",
            "20301231T235959Z",
            "2030-12-31T23:59:59Z[UTC]",
            "2030-02-30T00:00:00Z",
            "2030-13-01T00:00:00Z",
            "2030-12-31T24:00:00Z",
            "2030-12-31T23:59:61Z",
            "2030-12-31T23:59:59+24:00",
            "-2030-12-31T23:59:59Z",
            "2030-12-31T23:59:59Z\r\n",
            "２０３０-12-31T23:59:59Z",
        ] {
            assert!(Rfc3339::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_day_ends_where_the_next_begins() {
        assert_eq!(
            Rfc3339::parse_end_of_day("2024-02-28").unwrap().to_string(),
            "2024-02-29T00:00:00.000Z"
        );
        let last = Rfc3339::parse_end_of_day("9999-12-31").unwrap();
        assert_eq!(last.0, UnixMillis::MAX);
        assert!(Rfc3339::parse_end_of_day("2023-02-29").is_err());
    }
}
