//! Backups of the embedded databases: `curt backup` copies them out of a running server, `curt restore` back.
//!
//! A backup is a folder with the data files under their own names. It can be opened as a data folder, too.

mod data_files;
mod restore;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use curt_sqlite::backup::{back_up, count_links};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;

use self::data_files::{CopiedTree, DataFiles, copy_tree};
pub(crate) use self::restore::Restore;
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::data;
use crate::exit_code::{CommandError, ExitReason};
use crate::wiring::Part;

/// Copy the databases into a new folder, while the server runs
///
/// Every link that was acknowledged before the backup began is in it. The copies are checked, synced to the disk and for
/// this user alone. Clicks that still wait in the spool are not in it (clicks.flush_every says how many that may be).
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt backup /var/backups/curt/monday --config /etc/curt/curt.toml\n  curt restore /var/backups/curt/2027-01-31 --config /etc/curt/curt.toml"
)]
pub(crate) struct Backup {
    #[command(flatten)]
    config: ConfigArgs,

    /// The folder to make; one that holds something is refused
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Print what was copied as JSON
    #[arg(long)]
    json: bool,
}

/// What was copied.
#[derive(Serialize)]
struct Copied {
    folder: PathBuf,
    links: u64,
    files: Vec<CopiedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_files: Option<CopiedTree>,
}

#[derive(Serialize)]
struct CopiedFile {
    setting: &'static str,
    file: String,
    bytes: u64,
}

impl Backup {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        let files = DataFiles::of(&config)?;
        files.require_sqlite("back up")?;
        data::require(&config)?;
        let folder = &self.folder;
        if !is_absent_or_empty(folder)? {
            return Err(refused(format!(
                "{} exists and is not empty: name a new folder",
                folder.display()
            )));
        }
        // Complete or not there: a backup that was interrupted keeps another name.
        let partial = with_suffix(folder, ".partial");
        fs::create_dir(&partial).with_context(|| {
            format!(
                "could not make {}: the folder above it must exist, and what an interrupted backup left must be deleted",
                partial.display()
            )
        })?;
        let copied = copy_out(&files, &partial).and_then(|copied| {
            fs::rename(&partial, folder)
                .with_context(|| format!("could not make {}", folder.display()))?;
            sync_folder(folder.parent())?;
            Ok(copied)
        });
        let copied = copied.inspect_err(|_| remove_tree(&partial))?;
        self.print(Copied {
            folder: folder.clone(),
            ..copied
        })
    }

    fn print(&self, copied: Copied) -> anyhow::Result<()> {
        if self.json {
            println!("{}", serde_json::to_string(&copied)?);
            return Ok(());
        }
        for file in &copied.files {
            println!("{:20} {}", file.file, HumanBytes(file.bytes));
        }
        if let Some(tree) = copied.key_files {
            println!("{:20} {}", "key files", HumanBytes(tree.bytes));
        }
        println!(
            "backed up {} links to {}",
            HumanCount(copied.links),
            copied.folder.display()
        );
        Ok(())
    }
}

fn copy_out(files: &DataFiles, folder: &Path) -> anyhow::Result<Copied> {
    let (mut links, mut copies) = (0, Vec::new());
    for file in &files.databases {
        // A server that never counted clicks has none.
        if file.part == Part::Clicks && !file.path.exists() {
            continue;
        }
        let to = folder.join(&file.name);
        copy_file(&file.path, &to)?;
        if file.part == Part::Links {
            links = count_links(&to)?;
        }
        copies.push(CopiedFile {
            setting: file.part.setting(),
            file: file.name.clone(),
            bytes: fs::metadata(&to)?.len(),
        });
    }
    let key_files = match &files.key_files {
        Some(tree) if tree.exists() => Some(copy_tree(tree, &folder.join(files.tree_name()))?),
        _ => None,
    };
    Ok(Copied {
        folder: folder.to_owned(),
        links,
        files: copies,
        key_files,
    })
}

/// Copies one database with a progress bar, which only a terminal shows.
fn copy_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    let style = ProgressStyle::with_template("{msg:20} {bar:40} {bytes} of {total_bytes}");
    let bar = ProgressBar::new(0)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(file_name(from));
    let shown = bar.clone();
    let copied = back_up(from, to, move |done, whole| {
        shown.set_length(whole);
        shown.set_position(done);
    });
    bar.finish_and_clear();
    Ok(copied?)
}

fn refused(message: String) -> anyhow::Error {
    CommandError::new(ExitReason::Refused, message).into()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_absent_or_empty(folder: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("could not read {}", folder.display())),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    // A slash at the end would make it a file within.
    let mut name = path.components().collect::<PathBuf>().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes names in a folder survive a power cut.
fn sync_folder(folder: Option<&Path>) -> anyhow::Result<()> {
    let folder = folder.filter(|path| !path.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("could not sync {}", folder.display()))
}

fn remove_tree(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        eprintln!("curt: could not remove {}: {error}", folder.display());
    }
}
