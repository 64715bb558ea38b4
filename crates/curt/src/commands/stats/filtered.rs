//! Totals and series of clicks that have some values in common. The server counts these by rankings alone, so they are put
//! together from rankings by class: one over all days, and one for each point.

use jiff::ToSpan as _;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::commands::client::Client;

/// Points of the series: each is a request.
const POINTS_MAX: i64 = 31;
const CLASSES: [&str; 4] = ["human", "bot", "prefetch", "head"];

/// Which clicks, of which days.
pub(super) struct FilteredQuery<'a> {
    /// Of the ranking by class.
    pub(super) path: &'a [&'a str],
    /// Zone, tag and filters.
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) first: Date,
    pub(super) days: i64,
    pub(super) tz: &'a str,
}

impl FilteredQuery<'_> {
    /// The report in the form of the API's, without what is not known of a part of the clicks.
    pub(super) fn fetch(&self, client: &Client) -> anyhow::Result<Value> {
        let last = self.first.checked_add((self.days - 1).days())?;
        let step = self.days.div_euclid(POINTS_MAX) + i64::from(self.days % POINTS_MAX > 0);
        let mut series = Vec::new();
        let mut begin = self.first;
        while begin <= last {
            let end = begin.checked_add((step - 1).days())?.min(last);
            let counts = self.count(client, begin, end)?;
            series.push(json!({ "label": begin.to_string(), "counts": counts }));
            begin = end.tomorrow()?;
        }
        let bucket = match step {
            1 => "day".to_owned(),
            days => format!("{days} days"),
        };
        Ok(json!({
            "totals": self.count(client, self.first, last)?,
            "series": series, "bucket": bucket, "tz": self.tz,
        }))
    }

    fn count(&self, client: &Client, from: Date, to: Date) -> anyhow::Result<Map<String, Value>> {
        let mut query = self.query.clone();
        query.push(("from", from.to_string()));
        query.push(("to", to.to_string()));
        let ranked = client.get(self.path, &query)?;
        let values = ranked["values"].as_array().map_or(&[][..], Vec::as_slice);
        let count = |class: &str| {
            let found = values.iter().find(|value| value["value"] == class);
            found.and_then(|value| value["count"].as_u64()).unwrap_or(0)
        };
        let mut counts: Map<String, Value> = CLASSES
            .into_iter()
            .map(|class| (class.to_owned(), count(class).into()))
            .collect();
        let total: u64 = CLASSES.into_iter().map(count).sum();
        counts.insert("total".to_owned(), total.into());
        Ok(counts)
    }
}
