//! When a link ends, as the start page offers it.

use std::time::Duration;

use curt_core::UnixMillis;
use curt_links::Expiry;

use crate::state::App;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// One entry of a list in a form.
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: String,
}

/// Returns when a link of this choice ends; `None` if there is no such choice.
pub(super) fn parse_choice(value: &str, now: UnixMillis) -> Option<Expiry> {
    match value {
        "" | "default" => Some(Expiry::Default),
        "never" => Some(Expiry::Never),
        "hour" => Some(Expiry::At(now.plus(HOUR))),
        "day" => Some(Expiry::At(now.plus(DAY))),
        "week" => Some(Expiry::At(now.plus(DAY * 7))),
        "month" => Some(Expiry::At(now.plus(DAY * 30))),
        "year" => Some(Expiry::At(now.plus(DAY * 365))),
        _ => None,
    }
}

pub(super) fn choices(app: &App) -> Vec<Choice> {
    let usual = match app.links.settings().default_expiry {
        Some(after) => format!("{} from now", in_words(after)),
        None => "Never".to_owned(),
    };
    let mut choices = vec![
        choice("default", &usual),
        choice("hour", "1 hour from now"),
        choice("day", "1 day from now"),
        choice("week", "1 week from now"),
        choice("month", "30 days from now"),
        choice("year", "1 year from now"),
    ];
    if app.links.settings().default_expiry.is_some() {
        choices.push(choice("never", "Never"));
    }
    choices
}

pub(super) fn choice(value: &'static str, label: &str) -> Choice {
    Choice {
        value,
        label: label.to_owned(),
    }
}

fn in_words(after: Duration) -> String {
    let days = after.as_secs() / DAY.as_secs();
    match (days, days % 365) {
        (0, _) => format!("{} hours", after.as_secs() / HOUR.as_secs()),
        (365, _) => "1 year".to_owned(),
        (_, 0) => format!("{} years", days / 365),
        _ => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_expiries_are_readable() {
        for (days, words) in [(730, "2 years"), (365, "1 year"), (90, "90 days")] {
            assert_eq!(in_words(DAY * days), words);
        }
        assert_eq!(in_words(HOUR * 5), "5 hours");
    }
}
