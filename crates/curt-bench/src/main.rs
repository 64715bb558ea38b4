//! `curt-bench`: the comparison behind `make bench`.

mod command;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use curt_bench::suite::{self, Part, Skip, Standing, SuiteOptions, Verdict};

/// Measure curt against nginx and against SQLite alone, in one run on this machine; fails on a broken promise
#[derive(Debug, Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Examples:\n  curt-bench                          everything, about a quarter of an hour\n  curt-bench --quick                  a smoke run of two minutes; its figures mean nothing\n  curt-bench --only redirect --rounds 5\n  curt-bench redirect --api-key KEY --seconds 5 --pid $(pgrep -x curt)\n  curt-bench create --api-key KEY --bulk 1000\n  curt-bench sustained --rate 60000 --seconds 300\n  curt-bench ab --a OLD/curt --b target/release/curt"
)]
struct Arguments {
    #[command(subcommand)]
    load: Option<Load>,

    /// The server to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/curt")]
    curt: PathBuf,

    /// The nginx to compare with; found by itself in the usual places
    #[arg(long, value_name = "FILE")]
    nginx: Option<PathBuf>,

    /// Only these parts: redirect, count, kept, yardstick, create, disk, start
    #[arg(long, value_delimiter = ',', value_parser = part, value_name = "PART,…")]
    only: Vec<Part>,

    /// Rounds; each contender runs once in each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Length of one run
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// Links in the store
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=200_000_000))]
    links: u32,

    /// A smoke run: few links, one short round
    #[arg(long, conflicts_with_all = ["rounds", "seconds", "links"])]
    quick: bool,

    /// Folder for databases, on the file system to be measured; emptied afterwards
    #[arg(long, value_name = "FOLDER", default_value = "bench/work")]
    work: PathBuf,

    /// Where the table is written; "-" prints it only, as runs of some parts and smoke runs do unless told
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Load {
    Redirect(command::Redirect),
    Create(command::Create),
    Sustained(command::Sustained),
    Ab(command::Ab),
}

fn part(name: &str) -> Result<Part, String> {
    Part::ALL
        .into_iter()
        .find(|part| part.name() == name)
        .ok_or_else(|| format!("use {}", Part::ALL.map(Part::name).join(", ")))
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.05..=60.0).contains(seconds))
        .ok_or_else(|| "use a number from 0.05 to 60".to_owned())
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(load) = arguments.load {
        return match load {
            Load::Redirect(redirect) => redirect.run().map(|()| ExitCode::SUCCESS),
            Load::Create(create) => create.run().map(|()| ExitCode::SUCCESS),
            Load::Sustained(sustained) => Ok(report(&sustained.run()?, &[])),
            Load::Ab(ab) => Ok(report(&ab.run()?, &[])),
        };
    }
    let options = options(&arguments)?;
    let results = suite::run(&options)?;
    let page = results.to_markdown();
    match arguments.results_file() {
        Some(file) => write_page(file, &page)?,
        None => print!("{page}"),
    }
    Ok(report(&results.verdicts(), &results.skips()))
}

impl Arguments {
    /// The file for the table: a run that measures a part of it does not replace the whole.
    fn results_file(&self) -> Option<&Path> {
        match &self.results {
            Some(file) => Some(&**file).filter(|file| *file != Path::new("-")),
            None if self.only.is_empty() && !self.quick => Some(Path::new("bench/RESULTS.md")),
            None => None,
        }
    }
}

fn options(arguments: &Arguments) -> anyhow::Result<SuiteOptions> {
    if !arguments.curt.is_file() {
        bail!(
            "{} is not there: build it with `cargo build --release -p curt`, or name it with --curt",
            arguments.curt.display()
        );
    }
    let nginx = match &arguments.nginx {
        Some(named) => Some(named.clone()),
        None => find_nginx(),
    };
    if nginx.is_none() {
        eprintln!(
            "==> nginx is NOT installed: every comparison with it is left out (Debian: apt-get install nginx-light)"
        );
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    Ok(SuiteOptions {
        curt: arguments.curt.clone(),
        nginx,
        work: arguments.work.clone(),
        parts: match arguments.only.is_empty() {
            true => Part::ALL.to_vec(),
            false => arguments.only.clone(),
        },
        links: if arguments.quick {
            20_000
        } else {
            arguments.links
        },
        rounds: if arguments.quick { 1 } else { arguments.rounds },
        seconds: if arguments.quick {
            0.3
        } else {
            arguments.seconds
        },
        command: format!("curt-bench {}", words.join(" "))
            .trim_end()
            .to_owned(),
    })
}

fn find_nginx() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Debian keeps it where the path of ordinary users does not lead.
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join("nginx"))
        .find(|file| file.is_file())
}

fn write_page(file: &Path, page: &str) -> anyhow::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("==> written: {}", file.display());
    Ok(())
}

/// Prints the verdicts. A promise that is broken or likely to be is a failure, and so is a run that shows none to be kept.
fn report(verdicts: &[Verdict], skips: &[Skip]) -> ExitCode {
    for verdict in verdicts {
        println!("{verdict}");
    }
    for skip in skips {
        println!("{skip}");
    }
    let count = |standing| {
        let these = verdicts.iter().filter(|one| one.standing() == standing);
        these.count()
    };
    let (passed, noisy, failed) = (
        count(Standing::Pass),
        count(Standing::TooNoisy),
        count(Standing::Fail),
    );
    println!(
        "==> {passed} passed, {noisy} too noisy, {failed} failed, {} skipped",
        skips.len()
    );
    match suite::are_kept(verdicts) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
