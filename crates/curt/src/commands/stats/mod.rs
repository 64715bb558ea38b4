//! Reports on clicks, in the terminal.

mod filtered;
mod show;
mod spark;
mod watch;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Map, Value, json};

use self::filtered::FilteredQuery;
use super::client::{Client, ServerArgs};
use super::link::input::parse_key;
use crate::exit_code::{CommandError, ExitReason};

const DIMENSIONS: [&str; 15] = [
    "class",
    "country",
    "browser",
    "system",
    "device",
    "referrer",
    "language",
    "referrer_group",
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "utm_term",
    "utm_content",
    "city",
    "network",
];
/// Dimensions of the overview.
const USUAL: [&str; 3] = ["country", "referrer", "browser"];
const USUAL_VALUES: u32 = 5;
const VALUES: u32 = 20;
const DAYS_MAX: i64 = 3_650;

/// Show who followed a link, or all links, and when
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  export CURT_API_KEY=curt_…\n  curt stats                     all your links, the last 30 days\n  curt stats spring-sale --days 7 --by referrer\n  curt stats spring-sale --where country=DE --by browser\n  curt stats spring-sale --watch"
)]
pub(crate) struct Stats {
    /// The link's key or short URL; all your links when none is given
    #[arg(value_parser = parse_key)]
    key: Option<String>,

    /// How many days, today included
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(i64).range(1..=DAYS_MAX))]
    days: i64,

    /// The time zone in which days begin, as in Europe/Berlin
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    tz: String,

    /// Only links with this tag
    #[arg(long, conflicts_with = "key")]
    tag: Option<String>,

    /// List the most frequent values: class, country, city, network, browser, system, device, language, referrer,
    /// referrer_group, utm_source, utm_medium, utm_campaign, utm_term or utm_content
    #[arg(long, value_name = "DIMENSION", value_parser = parse_dimension)]
    by: Option<&'static str>,

    /// Only clicks with this value, as in country=DE, in everything that is shown. May be repeated
    #[arg(long = "where", value_name = "DIMENSION=VALUE", conflicts_with = "watch", value_parser = filter)]
    filters: Vec<(&'static str, String)>,

    /// Print clicks as they are counted, until stopped
    #[arg(long, conflicts_with = "by")]
    watch: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl Stats {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.server.client()?;
        if self.watch {
            let path = self.request_path(&["live"]);
            return watch::follow(&client, &path, &self.tag_parameter(), self.server.json);
        }
        let first = self.first_day()?;
        let query = self.range(first);
        let stats = self.fetch_totals(&client, first)?;
        let (dimensions, limit) = match &self.by {
            Some(dimension) => (vec![*dimension], VALUES),
            None => (USUAL.to_vec(), USUAL_VALUES),
        };
        let top = self.fetch_top(&client, &dimensions, limit, &query)?;
        if self.server.json {
            let all = json!({ "stats": stats, "top": top });
            println!("{}", serde_json::to_string_pretty(&all)?);
        } else {
            print!("{}", show::report(&stats, &dimensions, &top));
        }
        Ok(())
    }

    /// Totals and series, of all clicks or of those with the values asked for.
    fn fetch_totals(&self, client: &Client, first: Date) -> anyhow::Result<Value> {
        if self.filters.is_empty() {
            let mut query = self.range(first);
            query.push(("bucket", choose_bucket(self.days).to_owned()));
            return client.get(&self.request_path(&["stats"]), &query);
        }
        let mut query = self.tag_parameter();
        query.push(("tz", self.tz.clone()));
        query.extend(self.filters.iter().cloned());
        let filtered = FilteredQuery {
            path: &self.request_path(&["stats", "class"]),
            query,
            first,
            days: self.days,
            tz: &self.tz,
        };
        filtered.fetch(client)
    }

    fn fetch_top(
        &self,
        client: &Client,
        dimensions: &[&str],
        limit: u32,
        query: &[(&'static str, String)],
    ) -> anyhow::Result<Map<String, Value>> {
        let mut query = query.to_vec();
        query.push(("limit", limit.to_string()));
        query.extend(self.filters.iter().cloned());
        let mut top = Map::new();
        for dimension in dimensions {
            let values = client.get(&self.request_path(&["stats", dimension]), &query)?;
            top.insert((*dimension).to_owned(), values);
        }
        Ok(top)
    }

    fn request_path<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        let mut path = Vec::new();
        if let Some(key) = &self.key {
            path.extend(["links", key]);
        }
        path.extend(rest);
        path
    }

    fn tag_parameter(&self) -> Vec<(&'static str, String)> {
        self.tag.iter().map(|tag| ("tag", tag.clone())).collect()
    }

    fn range(&self, first: Date) -> Vec<(&'static str, String)> {
        let mut query = self.tag_parameter();
        query.push(("from", first.to_string()));
        query.push(("tz", self.tz.clone()));
        query
    }

    fn first_day(&self) -> anyhow::Result<Date> {
        let zone = TimeZone::get(&self.tz).map_err(|_| {
            let message = format!(
                "--tz: {:?} is not a time zone of the IANA database, such as Europe/Berlin",
                self.tz
            );
            CommandError::new(ExitReason::Refused, message)
        })?;
        let today = Timestamp::now().to_zoned(zone).date();
        Ok(today.checked_sub((self.days - 1).days())?)
    }
}

fn parse_dimension(name: &str) -> Result<&'static str, String> {
    let known = DIMENSIONS.into_iter().find(|known| *known == name);
    known.ok_or_else(|| {
        format!(
            "clicks are not counted by it: use {}",
            DIMENSIONS.join(", ")
        )
    })
}

/// A dimension and the value that clicks must have in it.
fn filter(text: &str) -> Result<(&'static str, String), String> {
    let found = text
        .split_once('=')
        .and_then(|(name, value)| Some((parse_dimension(name).ok()?, value)));
    found
        .map(|(name, value)| (name, value.to_owned()))
        .ok_or_else(|| {
            format!(
                "write DIMENSION=VALUE, where DIMENSION is one of {}",
                DIMENSIONS.join(", ")
            )
        })
}

/// Points that fit into a line.
fn choose_bucket(days: i64) -> &'static str {
    match days {
        ..=3 => "hour",
        4..=92 => "day",
        93..=730 => "week",
        _ => "month",
    }
}
