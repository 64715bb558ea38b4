//! The comparison behind `make bench`: curt beside nginx and beside SQLite alone, in one run on one machine.
//!
//! Machines drift between runs and even between minutes, so contenders take turns, rounds run in alternating order,
//! and every ratio is formed within its round. Redirects are compared by requests per second of the *server's*
//! processor time; servers and generator have a core each.

mod contest;
mod creates;
mod curt;
mod footprint;
mod http_get;
mod nginx;
mod process;
mod redirects;
mod results;
mod rows;
mod store;
mod users;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;

use crate::machine;
use crate::pin;

pub use results::Results;
pub use verdict::{Bound, Verdict};

/// The parts of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Redirects against nginx.
    Redirect,
    /// Durable creates against SQLite alone.
    Create,
    /// Bytes on disk per link.
    Disk,
    /// Time from start to the first redirect.
    Start,
}

impl Part {
    pub const ALL: [Self; 4] = [Self::Redirect, Self::Create, Self::Disk, Self::Start];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
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
    std::fs::create_dir_all(&options.work)
        .with_context(|| format!("cannot make the folder {}", options.work.display()))?;
    let work = tempfile::Builder::new()
        .prefix("curt-bench-")
        .tempdir_in(&options.work)
        .with_context(|| format!("cannot make a folder in {}", options.work.display()))?;
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
        let found = redirects::run(options, cores, &store)?;
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
