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

fn rows<const N: usize>(rows: [(&str, String); N]) -> Vec<(String, String)> {
    rows.map(|(name, value)| (name.to_owned(), value)).into()
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
    let made = average(rates.writes_per_second, rates.writes_at_peak);
    let clicks = average(rates.reads_per_second, rates.reads_at_peak);
    let storage = [
        ("links at the end", count(storage.links)),
        ("a link", bytes(storage.bytes_per_link)),
        ("links, a month", bytes(storage.bytes_per_month)),
        ("links, all", bytes(storage.link_bytes)),
        (
            "clicks, all, if none is deleted",
            bytes(storage.click_bytes),
        ),
        ("keys alone", bytes(storage.key_bytes)),
    ];
    let bandwidth = [
        ("links in", bandwidth.incoming_bytes_per_second),
        ("targets out", bandwidth.outgoing_bytes_per_second),
        (
            "on the wire at the peak, in",
            bandwidth.wire_incoming_at_peak,
        ),
        (
            "on the wire at the peak, out",
            bandwidth.wire_outgoing_at_peak,
        ),
    ];
    let bandwidth = bandwidth.map(|(name, flow)| (name, format!("{}/s", bytes(flow))));
    vec![
        ("Rates", rows([("links made", made), ("clicks", clicks)])),
        ("Storage", rows(storage)),
        ("Bandwidth", rows(bandwidth)),
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
    let of = &choice.odds;
    let time_per_hit = match of.hours_per_hit {
        days if days >= 48.0 => format!("{} days", count(days / 24.0)),
        hours if hours >= 1.0 => format!("{} hours", count(hours)),
        minutes => format!("{} minutes", count(minutes * 60.0)),
    };
    rows([
        ("a random key is taken, at the end", odds(of.used_share)),
        ("creates that meet a taken key, in all", count(of.conflicts)),
        ("at least one does", odds(of.any_conflict)),
        ("guesses until one finds a link", count(of.guesses_per_hit)),
        ("one address needs, by the default limit", time_per_hit),
    ])
}

fn machine_rows(plan: &CapacityPlan) -> Vec<(String, String)> {
    let machines = &plan.machines;
    let by = |cause: &crate::plan::Capacity| count(cause.machines);
    let (disk, writes) = (&machines.shards_by_disk, &machines.shards_by_writes);
    let (cache, as_stored) = (&machines.cache, &machines.cache_as_stored);
    let databases = count(machines.shards);
    let cores = count(plan.workload.cores);
    let fits_one = if machines.fits_one { "yes" } else { "no" };
    rows([
        (
            "links databases",
            format!(
                "{databases} ({} by disk, {} by creates)",
                by(disk),
                by(writes)
            ),
        ),
        (
            "cache servers",
            format!("{} for {} of memory", by(cache), bytes(cache.needed)),
        ),
        (
            "cache servers, if links took what they take on disk",
            format!("{} for {}", by(as_stored), bytes(as_stored.needed)),
        ),
        (
            "servers",
            format!("{} of {cores} cores", by(&machines.servers)),
        ),
        ("all on one machine", fits_one.to_owned()),
    ])
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
