//! `curt plan`: what an installation needs.

use clap::{Args, ValueEnum};
use curt_plan::{CapacityPlan, Costs, SeedDocument, Workload, plan_text, seed_text};
use serde_json::json;

use crate::exit_code::{CommandError, ExitReason};

/// Work out what a number of links and clicks needs: rates, bytes, keys, machines, odds, settings
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt plan --writes-per-month 500M --reads-per-write 100 --years 5\n  curt plan --config-only --writes-per-month 2B > curt.toml\n  curt plan --seed A     the sums of a document that curt was built from, checked"
)]
pub(crate) struct PlanCommand {
    /// Links made in a month [default: 1M]
    #[arg(long, value_name = "NUMBER", value_parser = parse_amount)]
    writes_per_month: Option<f64>,
    /// Clicks for each link that is made [default: 100]
    #[arg(long, value_name = "NUMBER", value_parser = parse_amount)]
    reads_per_write: Option<f64>,
    /// How long links are added and kept [default: 5]
    #[arg(long, value_name = "YEARS", value_parser = parse_amount)]
    years: Option<f64>,
    /// What a link takes on disk [default: as measured, with a target of 60 bytes]
    #[arg(long, value_name = "BYTES", value_parser = parse_amount)]
    bytes_per_link: Option<f64>,
    /// The share of all links that caches hold, 0 to 1 [default: 0.2]
    #[arg(long, value_name = "SHARE", value_parser = parse_amount)]
    cached_share: Option<f64>,
    /// How many times the average the busiest second has [default: 3]
    #[arg(long, value_name = "FACTOR", value_parser = parse_amount)]
    peak: Option<f64>,
    /// The share of keys that may be in use at the end: the odds of a guess, too [default: 0.001]
    #[arg(long, value_name = "SHARE", value_parser = parse_amount)]
    guess_odds: Option<f64>,
    /// Disk of a machine for links [default: 2T]
    #[arg(long, value_name = "BYTES", value_parser = parse_amount)]
    disk_bytes: Option<f64>,
    /// Memory of a cache server [default: 128G]
    #[arg(long, value_name = "BYTES", value_parser = parse_amount)]
    cache_bytes: Option<f64>,
    /// Cores of a server [default: 4]
    #[arg(long, value_name = "NUMBER", value_parser = parse_amount)]
    cores: Option<f64>,
    /// Begin with what a document assumes, and check its sums
    #[arg(long, value_enum, ignore_case = true)]
    seed: Option<SeedName>,
    /// Print the settings to start from alone
    #[arg(long, conflicts_with = "json")]
    config_only: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SeedName {
    /// The key factory
    #[value(name = "A")]
    A,
    /// Requirements, API, telemetry, security
    #[value(name = "B")]
    B,
    /// Pre-seeded rows, ranges, regions
    #[value(name = "C")]
    C,
    /// Status table, key file and preload
    #[value(name = "D")]
    D,
}

impl From<SeedName> for SeedDocument {
    fn from(name: SeedName) -> Self {
        match name {
            SeedName::A => Self::A,
            SeedName::B => Self::B,
            SeedName::C => Self::C,
            SeedName::D => Self::D,
        }
    }
}

impl PlanCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let seed = self.seed.map(SeedDocument::from);
        let workload = self.workload(seed)?;
        let plan = CapacityPlan::new(workload, Costs::measured()?);
        if self.json {
            let figures = seed.map(SeedDocument::figures);
            let answer = json!({ "seed": seed, "figures": figures, "plan": plan });
            println!("{}", serde_json::to_string_pretty(&answer)?);
            return Ok(());
        }
        if self.config_only {
            print!("{}", plan.configuration);
            return Ok(());
        }
        if let Some(seed) = seed {
            println!("{}", seed_text(seed));
            println!("What the document assumes, on this build:\n");
        }
        print!("{}", plan_text(&plan));
        println!("Settings to start from (curt plan --config-only)\n");
        for line in plan.configuration.lines() {
            println!("{}", format!("  {line}").trim_end());
        }
        let costs = &plan.costs;
        println!(
            "\nCosts per unit: measured {} with {}, on {}",
            costs.date, costs.versions, costs.machine
        );
        Ok(())
    }

    fn workload(&self, seed: Option<SeedDocument>) -> anyhow::Result<Workload> {
        let mut workload = seed.map_or_else(Workload::default, SeedDocument::workload);
        for (field, given) in [
            ("writes_per_month", self.writes_per_month),
            ("reads_per_write", self.reads_per_write),
            ("years", self.years),
            ("bytes_per_link", self.bytes_per_link),
            ("cached_share", self.cached_share),
            ("peak", self.peak),
            ("guess_odds", self.guess_odds),
            ("disk_bytes", self.disk_bytes),
            ("cache_bytes", self.cache_bytes),
            ("cores", self.cores),
        ] {
            // Looking at an input that was not given would set it.
            let Some(given) = given else { continue };
            if let Some(input) = workload.field_mut(field) {
                *input = given;
            }
        }
        workload.check().map_err(|wrong| {
            let lines: Vec<String> = wrong
                .iter()
                .map(|error| format!("--{}: {}", error.field.replace('_', "-"), error.message))
                .collect();
            CommandError::new(ExitReason::Refused, lines.join("\n"))
        })?;
        Ok(workload)
    }
}

fn parse_amount(text: &str) -> Result<f64, String> {
    curt_plan::parse_amount(text).ok_or_else(|| {
        format!("{text:?} is not a number: write it as 1000000, 0.5, 500k, 500M, 2B or 2T")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ConfigArgs;
    use crate::config::Config;

    #[test]
    fn every_plan_comes_with_settings_that_a_server_takes() {
        let folder = tempfile::tempdir().unwrap();
        let costs = Costs::measured().unwrap();
        let seeds = SeedDocument::ALL.map(SeedDocument::workload);
        let sizes = [1e3, 1e6, 1e8, 1e9, 1e11].map(|writes_per_month| Workload {
            writes_per_month,
            ..Workload::default()
        });
        for workload in seeds.into_iter().chain(sizes) {
            let plan = CapacityPlan::new(workload, costs.clone());
            let file = folder.path().join("curt.toml");
            std::fs::write(&file, &plan.configuration).unwrap();
            let arguments = ConfigArgs {
                config: Some(file),
                set: Vec::new(),
            };
            let (config, mistakes) = Config::from_sources(&arguments, std::iter::empty());
            let read = mistakes.into_result();
            assert!(read.is_ok(), "{read:?}\n{}", plan.configuration);
            let config = config.unwrap();
            assert_eq!(
                u32::try_from(config.keys.length).unwrap(),
                plan.keys[0].length
            );
        }
    }
}
