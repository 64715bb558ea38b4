//! The comparison behind `make bench`: curt beside nginx and beside SQLite alone, in one run on one machine.
//!
//! Machines drift between runs and even between minutes, so contenders take turns, rounds run in alternating order,
//! and every ratio is formed within its round. Redirects are compared by requests per second of the *server's*
//! processor time; servers and generator have a core each.

mod ab;
mod click_tables;
mod contender;
mod contest;
mod counting;
mod creates;
mod curt;
mod field;
mod footprint;
mod http_get;
mod kept;
mod nginx;
mod page;
mod process;
mod promises;
mod redirects;
mod results;
mod rows;
mod store;
mod sustained;
mod tables;
mod users;
mod verdict;
mod yardstick;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;
use tempfile::TempDir;

use crate::machine;
use crate::pin;

pub use ab::{AbOptions, AbReport, ab};
pub use results::Results;
pub use sustained::{SustainedOptions, SustainedReport, sustained};
pub use verdict::{Bound, Skip, Standing, Verdict, are_kept};

/// The parts of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Redirects against nginx.
    Redirect,
    /// Redirects with their clicks counted, default settings.
    Count,
    /// What clicks write and keep on disk.
    Kept,
    /// One UPDATE per click in SQLite, beside which the figures of clicks stand.
    Yardstick,
    /// Durable creates against SQLite alone.
    Create,
    /// Bytes on disk per link.
    Disk,
    /// Time from start to the first redirect.
    Start,
}

impl Part {
    pub const ALL: [Self; 7] = [
        Self::Redirect,
        Self::Count,
        Self::Kept,
        Self::Yardstick,
        Self::Create,
        Self::Disk,
        Self::Start,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Count => "count",
            Self::Kept => "kept",
            Self::Yardstick => "yardstick",
            Self::Create => "create",
            Self::Disk => "disk",
            Self::Start => "start",
        }
    }
}

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// The server's executable.
    pub curt: PathBuf,
    /// nginx's executable; `None` leaves the comparisons with it out.
    pub nginx: Option<PathBuf>,
    /// A folder for databases, removed afterwards. Its file system is what creates are measured on.
    pub work: PathBuf,
    pub parts: Vec<Part>,
    pub links: u32,
    pub rounds: u32,
    /// Length of one measured run.
    pub seconds: f64,
    /// How the run was asked for, for the record.
    pub command: String,
}

/// Connections of the redirect loads and of single creates.
const CONNECTIONS: usize = 64;
/// Entries of nginx's map.
const MAP_LINKS: usize = 100_000;
/// Share of the links that the small cache holds.
const SMALL_CACHE_SHARE: f64 = 0.05;
/// Length of the targets.
const TARGET_BYTES: usize = 60;
const KEY_WIDTH: usize = 7;
const KEY_SEED: u64 = 2026;

fn target_of(key: &str) -> String {
    crate::keys::target_for(key, TARGET_BYTES)
}

/// Where servers and generator run. A machine with one core has no room for pinning.
#[derive(Clone, Copy, Debug)]
struct Cores {
    server: Option<usize>,
    generator: Option<usize>,
}

impl Cores {
    fn choose() -> anyhow::Result<Self> {
        let allowed = pin::allowed_cores().context("cannot ask which cores may be used")?;
        Ok(match allowed[..] {
            [server, generator, ..] => Self {
                server: Some(server),
                generator: Some(generator),
            },
            _ => Self {
                server: None,
                generator: None,
            },
        })
    }
}

/// Runs the comparison and removes everything it made, except for the results.
pub fn run(options: &SuiteOptions) -> anyhow::Result<Results> {
    let started = Instant::now();
    let work = work_folder(&options.work)?;
    let mut results = Results::new(options, machine::describe(work.path()), versions(options)?);
    if options.nginx.is_none() {
        results.notes.push(
            "nginx was not found, so redirects were not compared with it (Debian: apt-get install nginx-light)."
                .to_owned(),
        );
    }
    let cores = Cores::choose()?;
    if cores.generator.is_none() {
        results
            .notes
            .push("Only one core is allowed: server and generator shared it.".to_owned());
    }
    measure(options, work.path(), cores, &mut results)?;
    results.elapsed = started.elapsed();
    Ok(results)
}

/// A folder in `parent` that is removed with all that is in it.
fn work_folder(parent: &Path) -> anyhow::Result<TempDir> {
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot make the folder {}", parent.display()))?;
    tempfile::Builder::new()
        .prefix("curt-bench-")
        .tempdir_in(parent)
        .with_context(|| format!("cannot make a folder in {}", parent.display()))
}

fn measure(
    options: &SuiteOptions,
    work: &Path,
    cores: Cores,
    results: &mut Results,
) -> anyhow::Result<()> {
    let wants = |part| options.parts.contains(&part);
    let store = store::PreparedStore::build(work, options.links)?;
    if wants(Part::Disk) {
        results.disk = Some(footprint::disk(&store)?);
    }
    if wants(Part::Start) {
        results.start = Some(footprint::start(options, &store)?);
    }
    if wants(Part::Redirect) {
        let (found, io_uring) = redirects::run(options, cores, &store)?;
        results.note_io_uring(io_uring);
        let warnings = found.shapes.iter().filter_map(|shape| shape.disturbance());
        results.notes.extend(warnings);
        if found.clicks_dropped > 0 {
            results.notes.push(format!(
                "{} clicks found no room in the spool and were not counted: figures with clicks are a little too good.",
                found.clicks_dropped
            ));
        }
        results.redirect = Some(found);
    }
    if wants(Part::Count) {
        let (found, io_uring) = counting::run(options, cores, &store)?;
        results.note_io_uring(io_uring);
        results.counting = Some(found);
    }
    if wants(Part::Kept) {
        results.kept = Some(kept::run(options, cores, &store)?);
    }
    if wants(Part::Yardstick) {
        results.yardsticks = yardstick::run(options, &store)?;
    }
    if wants(Part::Create) {
        results.create = Some(creates::run(options, &store)?);
    }
    Ok(())
}

fn versions(options: &SuiteOptions) -> anyhow::Result<Vec<String>> {
    let mut versions = vec![process::version(&options.curt, "--version")?];
    if let Some(nginx) = &options.nginx {
        versions.push(process::version(nginx, "-v")?);
    }
    versions.push(format!("SQLite {}", rusqlite::version()));
    versions.push(commit());
    Ok(versions)
}

/// The commit that was checked out, and whether files had changed since.
fn commit() -> String {
    let described = Command::new("git")
        .args([
            "describe",
            "--always",
            "--dirty=, with changes",
            "--exclude=*",
        ])
        .output();
    match described {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            format!("commit {}", text.trim())
        }
        _ => "commit unknown".to_owned(),
    }
}

/// One line of progress, for the person who waits.
fn say(line: &str) {
    eprintln!("{line}");
}
