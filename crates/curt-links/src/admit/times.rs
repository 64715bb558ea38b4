//! From when until when a link redirects.

use curt_core::clock::UnixMillis;
use curt_core::{Field, FieldError};

use super::Expiry;
use crate::settings::LinkSettings;

pub(super) fn expiry(
    settings: &LinkSettings,
    asked: Expiry,
    valid_since: Option<UnixMillis>,
    now: UnixMillis,
) -> Result<Option<UnixMillis>, FieldError> {
    match asked {
        Expiry::Never => Ok(None),
        // The default time is time of use: it runs from the moment at which the link begins to redirect.
        Expiry::Default => Ok(settings.default_expiry.map(|after| {
            let begins = valid_since.map_or(now, |since| since.max(now));
            begins.plus(after).min(UnixMillis::MAX)
        })),
        Expiry::At(at) if at <= now => Err(FieldError::new(
            Field::ExpiresAt,
            "expiry_past",
            "The expiry must be in the future.",
        )),
        Expiry::At(at) if at > UnixMillis::MAX => Err(FieldError::new(
            Field::ExpiresAt,
            "expiry_too_late",
            "The expiry must not be later than the year 9999.",
        )),
        Expiry::At(at) => Ok(Some(at)),
    }
}

pub(super) fn valid_since(asked: Option<UnixMillis>) -> Result<Option<UnixMillis>, FieldError> {
    match asked {
        Some(at) if at < UnixMillis(0) || at > UnixMillis::MAX => Err(FieldError::new(
            Field::ValidSince,
            "valid_since_range",
            "The start must lie between the years 1970 and 9999.",
        )),
        asked => Ok(asked),
    }
}

pub(super) fn in_order(
    valid_since: Option<UnixMillis>,
    expires_at: Option<UnixMillis>,
) -> Result<(), FieldError> {
    match (valid_since, expires_at) {
        (Some(since), Some(until)) if since >= until => Err(FieldError::new(
            Field::ValidSince,
            "valid_since_after_expiry",
            "The start must be before the expiry.",
        )),
        _ => Ok(()),
    }
}
