use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use curt_sqlite::backup::{DataFile, count_links, ensure_unused, identify};
use indicatif::HumanCount;

use super::data_files::{DataFiles, Database, copy_tree};
use super::{copy_file, refused, sync_folder, with_suffix};
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::private_files;
use crate::wiring::Part;

/// Entries of a folder that an error names.
const NAMED_MAX: usize = 3;

/// Copy a backup back into an empty data folder
///
/// Refused while a server runs, and where there is data already: move the old folder away first. Links that were made
/// after the backup are not in it, and links that were deleted after it are back.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  mv /var/lib/curt/ /var/lib/old\n  curt restore /var/backups/curt/2027-01-31 --config /etc/curt/curt.toml"
)]
pub(crate) struct Restore {
    #[command(flatten)]
    config: ConfigArgs,

    /// The folder that "curt backup" made, or a copy of the data folder of a stopped server
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        let files = DataFiles::of(&config)?;
        files.require_sqlite("restore")?;
        let found = self.find(&files)?;
        for file in &files.databases {
            ensure_unused(&file.path).map_err(|error| refused(error.to_string()))?;
        }
        refuse_data(&config, &files)?;
        let links = copy_in(&config, &files, &found)?;
        println!(
            "restored {} links from {} to {}",
            HumanCount(links),
            self.folder.display(),
            config.data_dir.display()
        );
        println!("start the server with: curt serve");
        Ok(())
    }

    /// The backup's databases, each with where it belongs.
    fn find<'a>(&self, files: &'a DataFiles) -> anyhow::Result<Vec<(PathBuf, &'a Database)>> {
        let mut found = Vec::new();
        for file in &files.databases {
            let (from, setting) = (self.folder.join(&file.name), file.part.setting());
            if !from.exists() && file.part == Part::Clicks {
                let folder = self.folder.display();
                eprintln!(
                    "curt: there is no {} in {folder}: clicks are counted from zero",
                    file.name
                );
                continue;
            }
            if !from.is_file() {
                return Err(refused(format!(
                    "there is no {}, which {setting} needs: is this the folder of a backup?",
                    from.display()
                )));
            }
            let expected = match file.part {
                Part::Clicks => DataFile::Clicks,
                _ => DataFile::Main,
            };
            if identify(&from)? != expected {
                let from = from.display();
                return Err(refused(format!("{from} is not what {setting} needs")));
            }
            found.push((from, file));
        }
        Ok(found)
    }
}

/// Nothing that is there may be mixed with what comes.
fn refuse_data(config: &Config, files: &DataFiles) -> anyhow::Result<()> {
    let own = private_files::spared(config);
    let is_own = |path: &Path| path.canonicalize().is_ok_and(|path| own.contains(&path));
    let mut there: Vec<PathBuf> = match fs::read_dir(&config.data_dir) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?,
        Err(_) => Vec::new(),
    };
    there.retain(|path| !is_own(path));
    there.extend(files.databases.iter().map(|file| file.path.clone()));
    there.extend(files.key_files.clone());
    there.retain(|path| path.exists());
    there.sort();
    there.dedup();
    let names: Vec<String> = there
        .iter()
        .take(NAMED_MAX)
        .map(|path| path.display().to_string())
        .collect();
    if there.is_empty() {
        return Ok(());
    }
    Err(refused(format!(
        "there is data already ({}{}): move it away first, or name another folder with --set data_dir=FOLDER",
        names.join(", "),
        if there.len() > NAMED_MAX { ", …" } else { "" }
    )))
}

/// Copies everything under other names first: what is interrupted is no data folder that a server would start with.
fn copy_in(
    config: &Config,
    files: &DataFiles,
    found: &[(PathBuf, &Database)],
) -> anyhow::Result<u64> {
    fs::create_dir_all(&config.data_dir)
        .with_context(|| format!("could not make {}", config.data_dir.display()))?;
    let mut copies = Vec::new();
    let copied = found.iter().try_for_each(|(from, file)| {
        let copy = with_suffix(&file.path, ".restoring");
        if let Some(folder) = file.path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("could not make {}", folder.display()))?;
        }
        copy_file(from, &copy)?;
        copies.push((copy, *file));
        anyhow::Ok(())
    });
    if copied.is_err() {
        for (copy, _) in &copies {
            if let Err(error) = fs::remove_file(copy) {
                eprintln!("curt: could not remove {}: {error}", copy.display());
            }
        }
    }
    copied?;
    if let (Some(tree), Some((from, _))) = (&files.key_files, found.first()) {
        let kept = from.with_file_name(files.tree_name());
        if kept.exists() {
            copy_tree(&kept, tree)?;
        }
    }
    let mut links = 0;
    for (copy, file) in &copies {
        fs::rename(copy, &file.path)
            .with_context(|| format!("could not make {}", file.path.display()))?;
        sync_folder(file.path.parent())?;
        if file.part == Part::Links {
            links = count_links(&file.path)?;
        }
    }
    Ok(links)
}
