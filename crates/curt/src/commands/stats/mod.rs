//! Reports on clicks, in the terminal.

mod show;
mod spark;
mod watch;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Map, Value, json};

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
    after_help = "Example:\n  export CURT_API_KEY=curt_…\n  curt stats                     all your links, the last 30 days\n  curt stats spring-sale --days 7 --by referrer\n  curt stats spring-sale --by browser --where country=DE\n  curt stats spring-sale --watch"
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

    /// Only clicks with this value, as in country=DE. May be repeated
    #[arg(long = "where", value_name = "DIMENSION=VALUE", requires = "by", value_parser = filter)]
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
        let query = self.range()?;
        let mut series = query.clone();
        series.push(("bucket", choose_bucket(self.days).to_owned()));
        let stats = client.get(&self.request_path(&["stats"]), &series)?;
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

    fn range(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let zone = TimeZone::get(&self.tz).map_err(|_| {
            let message = format!(
                "--tz: {:?} is not a time zone of the IANA database, such as Europe/Berlin",
                self.tz
            );
            CommandError::new(ExitReason::Refused, message)
        })?;
        let today = Timestamp::now().to_zoned(zone).date();
        let first = today.checked_sub((self.days - 1).days())?;
        let mut query = self.tag_parameter();
        query.push(("from", first.to_string()));
        query.push(("tz", self.tz.clone()));
        Ok(query)
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
