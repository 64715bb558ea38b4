//! The links that everything is measured over, stored through the product's own adapter.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use curt_core::ports::LinkStore;
use curt_core::{
    Clock as _, DomainId, KeyOrigin, Link, LinkId, LinkState, OwnerId, RedirectStatus, Revision,
    SystemClock, Target, UnixMillis, Visibility,
};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::fs::{Advice, fadvise};

use super::{KEY_SEED, KEY_WIDTH, say, target_of};
use crate::keys::{KeySet, Pick};

/// Links per insert while the store is filled.
const FILL_BATCH: usize = 4_000;
/// The product's default life of a link.
const LIFE: Duration = Duration::from_secs(730 * 24 * 3_600);

/// A closed data file with links in it, to be copied for each server that wants one.
#[derive(Debug)]
pub(super) struct PreparedStore {
    folder: PathBuf,
    file: PathBuf,
    pub(super) keys: Arc<KeySet>,
    /// Zipf(1.0) over all of them, made once: the table is large.
    pub(super) popularity: Pick,
    /// Size of the same file without any link.
    pub(super) empty_bytes: u64,
}

impl PreparedStore {
    pub(super) fn build(folder: &Path, links: u32) -> anyhow::Result<Self> {
        let keys = Arc::new(KeySet::generated(links, KEY_WIDTH, KEY_SEED));
        ensure!(
            keys.len() == links as usize && links > 0,
            "{links} links are too few or too many"
        );
        let file = folder.join("prepared.db");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // The file is made afresh and thrown away, so a power cut while it is filled does not matter.
        let settings = SqliteSettings {
            synchronous: Synchronous::Normal,
            ..SqliteSettings::default()
        };
        Sqlite::migrate(&file)?;
        let empty_bytes = file_bytes(&file)?;
        runtime.block_on(async {
            let database = Sqlite::open(&file, settings)?;
            let filled = fill(&*database.links(), &keys).await;
            database.close().await;
            filled
        })?;
        flush_to_disk(&file)?;
        Ok(Self {
            folder: folder.to_path_buf(),
            file,
            popularity: Pick::zipf(&keys),
            keys,
            empty_bytes,
        })
    }

    pub(super) fn bytes(&self) -> anyhow::Result<u64> {
        file_bytes(&self.file)
    }

    /// A copy of the file in a folder of its own, since the clicks database lies beside it; written through to the disk
    /// so that nothing of it is left to write later.
    pub(super) fn copy(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        let copy = folder.join("links.db");
        fs::copy(&self.file, &copy)
            .with_context(|| format!("cannot copy the data file to {}", copy.display()))?;
        flush_to_disk(&copy)?;
        Ok(copy)
    }

    /// A folder of its own for a server.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The file with its write-ahead log.
pub(super) fn file_bytes(file: &Path) -> anyhow::Result<u64> {
    let size = |path: &Path| match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    };
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    Ok(size(file)? + size(Path::new(&log))?)
}

fn flush_to_disk(file: &Path) -> anyhow::Result<()> {
    File::open(file)?.sync_all()?;
    Ok(())
}

/// Asks the system to forget its copies of the file's pages, so that the next reader goes to the disk.
pub(super) fn forget_pages(file: &Path) -> anyhow::Result<()> {
    fadvise(File::open(file)?, 0, None, Advice::DontNeed)?;
    Ok(())
}

async fn fill(store: &dyn LinkStore, keys: &KeySet) -> anyhow::Result<()> {
    say(&format!("==> storing {} links", keys.len()));
    let bar = ProgressBar::new(keys.len() as u64).with_style(
        ProgressStyle::with_template("    {bar:40} {pos}/{len} links, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let now = SystemClock.now();
    for start in (0..keys.len()).step_by(FILL_BATCH) {
        let places = start..keys.len().min(start + FILL_BATCH);
        let links: Vec<Link> = places.filter_map(|place| link(keys, place, now)).collect();
        let wanted = links.len();
        let inserted = store.insert_if_absent(links, None).await?;
        let created = inserted.iter().filter(|one| one.is_created());
        ensure!(
            created.count() == wanted,
            "a prepared key was taken already"
        );
        bar.inc(wanted as u64);
    }
    bar.finish_and_clear();
    io::stderr().flush()?;
    Ok(())
}

fn link(keys: &KeySet, place: usize, now: UnixMillis) -> Option<Link> {
    let key = keys.key(place)?;
    let target = Target::from_serialised(target_of(key.as_str())).ok()?;
    Some(Link {
        id: LinkId::new(DomainId::DEFAULT, key),
        target,
        owner: OwnerId(1),
        made_with: None,
        state: LinkState::Active,
        revision: Revision::FIRST,
        // Not from the ledger: its accounts must still add up.
        origin: KeyOrigin::Random,
        created_at: now,
        updated_at: now,
        expires_at: Some(now.plus(LIFE)),
        valid_since: None,
        max_clicks: None,
        visibility: Visibility::Public,
        password_hash: None,
        status: RedirectStatus::Found,
        forward_query: false,
        title: None,
        tags: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prepared_link_can_be_found_in_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let store = PreparedStore::build(folder.path(), 5_000).unwrap();
        assert!(store.bytes().unwrap() > store.empty_bytes);
        let copy = store.copy("again").unwrap();
        forget_pages(&copy).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let database = Sqlite::open(&copy, SqliteSettings::default()).unwrap();
            let links = database.links();
            for place in [0, 4_999] {
                let id = LinkId::new(DomainId::DEFAULT, store.keys.key(place).unwrap());
                let found = links.get(&id).await.unwrap().unwrap();
                assert_eq!(found.target.as_str(), target_of(id.key.as_str()));
            }
            assert_eq!(links.counts().await.unwrap().live, 5_000);
            database.close().await;
        });
    }
}
