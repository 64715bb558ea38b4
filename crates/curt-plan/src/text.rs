//! Plans and documents as text.

use std::fmt::Write as _;

use crate::figure::{bytes, count, odds, rate};
use crate::plan::CapacityPlan;
use crate::seeds::{SeedDocument, SumVerdict};

/// A title and rows of two columns.
pub type PlanSection = (&'static str, Vec<(String, String)>);

/// A plan as text, without its configuration.
#[must_use]
pub fn plan_text(plan: &CapacityPlan) -> String {
    let sections = sections(plan);
    let rows = sections.iter().flat_map(|(_, rows)| rows);
    let width = rows
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (title, rows) in sections {
        // Writing to a string cannot fail.
        writeln!(text, "{title}").ok();
        for (name, value) in rows {
            writeln!(text, "  {name:width$}  {value}").ok();
        }
        text.push('\n');
    }
    text
}

fn row(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

/// What a plan says, for text and for pages.
#[must_use]
pub fn sections(plan: &CapacityPlan) -> Vec<PlanSection> {
    let CapacityPlan {
        rates,
        storage,
        bandwidth,
        ..
    } = plan;
    let average =
        |average: f64, peak: f64| format!("{}, {} at the peak", rate(average), rate(peak));
    vec![
        (
            "Rates",
            vec![
                row(
                    "links made",
                    average(rates.writes_per_second, rates.writes_at_peak),
                ),
                row(
                    "clicks",
                    average(rates.reads_per_second, rates.reads_at_peak),
                ),
            ],
        ),
        (
            "Storage",
            vec![
                row("links at the end", count(storage.links)),
                row("a link", bytes(storage.bytes_per_link)),
                row("links, a month", bytes(storage.bytes_per_month)),
                row("links, all", bytes(storage.link_bytes)),
                row(
                    "clicks, all, if none is deleted",
                    bytes(storage.click_bytes),
                ),
                row("keys alone", bytes(storage.key_bytes)),
            ],
        ),
        (
            "Bandwidth",
            vec![
                row(
                    "links in",
                    format!("{}/s", bytes(bandwidth.incoming_bytes_per_second)),
                ),
                row(
                    "targets out",
                    format!("{}/s", bytes(bandwidth.outgoing_bytes_per_second)),
                ),
                row(
                    "on the wire at the peak, in",
                    format!("{}/s", bytes(bandwidth.wire_incoming_at_peak)),
                ),
                row(
                    "on the wire at the peak, out",
                    format!("{}/s", bytes(bandwidth.wire_outgoing_at_peak)),
                ),
            ],
        ),
        ("Keys", plan.keys.iter().map(key_row).collect()),
        ("Odds of the first of them", odds_rows(plan)),
        ("Machines", machine_rows(plan)),
    ]
}

fn key_row(choice: &crate::KeyChoice) -> (String, String) {
    let value = format!(
        "{} characters: {} keys, {} in use at the end",
        choice.length,
        count(choice.keys),
        odds(choice.odds.used_share)
    );
    (choice.alphabet.to_owned(), value)
}

fn odds_rows(plan: &CapacityPlan) -> Vec<(String, String)> {
    let Some(choice) = plan.keys.first() else {
        return Vec::new();
    };
    let odds_of = &choice.odds;
    vec![
        row(
            "a random key is taken, at the end",
            odds(odds_of.used_share),
        ),
        row(
            "creates that meet a taken key, in all",
            count(odds_of.conflicts),
        ),
        row("at least one does", odds(odds_of.any_conflict)),
        row(
            "guesses until one finds a link",
            count(odds_of.guesses_per_hit),
        ),
        row(
            "one address needs, by the default limit",
            match odds_of.hours_per_hit {
                days if days >= 48.0 => format!("{} days", count(days / 24.0)),
                hours if hours >= 1.0 => format!("{} hours", count(hours)),
                minutes => format!("{} minutes", count(minutes * 60.0)),
            },
        ),
    ]
}

fn machine_rows(plan: &CapacityPlan) -> Vec<(String, String)> {
    let machines = &plan.machines;
    let (disk, writes) = (&machines.shards_by_disk, &machines.shards_by_writes);
    vec![
        row(
            "links databases",
            format!(
                "{} ({} by disk, {} by creates)",
                count(machines.shards),
                count(disk.machines),
                count(writes.machines)
            ),
        ),
        row(
            "cache servers",
            format!(
                "{} for {} of memory",
                count(machines.cache.machines),
                bytes(machines.cache.needed)
            ),
        ),
        row(
            "cache servers, if links took what they take on disk",
            format!(
                "{} for {}",
                count(machines.cache_as_stored.machines),
                bytes(machines.cache_as_stored.needed)
            ),
        ),
        row(
            "servers",
            format!(
                "{} of {} cores",
                count(machines.servers.machines),
                count(plan.workload.cores)
            ),
        ),
        row(
            "all on one machine",
            if machines.fits_one { "yes" } else { "no" }.to_owned(),
        ),
    ]
}

/// A document's figures as text: what it says, what follows, and why it is wrong where it is.
#[must_use]
pub fn seed_text(seed: SeedDocument) -> String {
    let mut text = format!("Document {}: {}\n", seed.name(), seed.title());
    let mut part = "";
    for figure in seed.figures() {
        if figure.part != part {
            part = figure.part;
            writeln!(text, "\n{part}").ok();
        }
        let (mark, more) = match figure.verdict {
            SumVerdict::Right => ("right  ", String::new()),
            SumVerdict::Rounded => (
                "rounded",
                format!("exactly {}: {}", figure.value_text(), figure.note),
            ),
            SumVerdict::Wrong => (
                "WRONG  ",
                format!("it is {}: {}", figure.value_text(), figure.note),
            ),
        };
        writeln!(text, "  {mark}  {}", figure.quote).ok();
        if !more.is_empty() {
            writeln!(text, "             {more}").ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_stand_under_what_they_correct() {
        let text = seed_text(SeedDocument::A);
        let wrong = "  WRONG    (12 * 10**3) / 128 = 93.75, 94 cache servers\n             it is 100: 12 in place";
        assert!(text.contains(wrong), "{text}");
        assert!(
            text.contains("  right    64**6 = 68_719_476_736\n"),
            "{text}"
        );
    }
}
