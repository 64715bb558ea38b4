//! What clicks are read by, and the files that it comes from, which are read again when they change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use curt_core::{FollowedFile, Looked, placement};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{AddressList, ClickRules};

/// Rules and lists.
#[derive(Clone)]
pub struct ReferenceData {
    pub rules: Arc<ClickRules>,
    /// Countries, and cities if it has any.
    pub countries: Arc<AddressList>,
    /// Who runs the networks.
    pub networks: Arc<AddressList>,
}

impl Default for ReferenceData {
    /// The built-in rules and no lists.
    fn default() -> Self {
        Self {
            rules: ClickRules::built_in(),
            countries: Arc::default(),
            networks: Arc::default(),
        }
    }
}

/// The reference data in force. Cheap to clone; all clones have the same.
#[derive(Clone)]
pub struct CurrentReference(watch::Receiver<Arc<ReferenceData>>);

impl CurrentReference {
    /// Data that never changes.
    #[must_use]
    pub fn fixed(reference: ReferenceData) -> Self {
        Self(watch::channel(Arc::new(reference)).1)
    }

    #[must_use]
    pub fn now(&self) -> Arc<ReferenceData> {
        Arc::clone(&self.0.borrow())
    }

    /// The data in force, if it is other than at the last call of this clone, or when it was made.
    pub(crate) fn take_changed(&mut self) -> Option<Arc<ReferenceData>> {
        let is_changed = self.0.has_changed().unwrap_or(false);
        is_changed.then(|| Arc::clone(&self.0.borrow_and_update()))
    }
}

/// The settings that name files. `None`: built-in rules, or no list.
#[derive(Clone, Debug, Default)]
pub struct ReferencePaths {
    pub rules: Option<PathBuf>,
    pub countries: Option<PathBuf>,
    pub networks: Option<PathBuf>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: could not read {}: {reason}", .path.display())]
pub struct ReferenceError {
    setting: &'static str,
    path: PathBuf,
    reason: String,
}

/// Reference data that follows its files.
pub struct ReferenceFiles {
    files: Arc<Mutex<Files>>,
    current: watch::Sender<Arc<ReferenceData>>,
}

struct Files {
    rules: Option<ReferenceFile<ClickRules>>,
    countries: Option<ReferenceFile<AddressList>>,
    networks: Option<ReferenceFile<AddressList>>,
}

/// What has changed.
struct Changes {
    /// Settings and the files that they name.
    loaded: Vec<(&'static str, PathBuf)>,
    rules: Option<Arc<ClickRules>>,
    countries: Option<Arc<AddressList>>,
    networks: Option<Arc<AddressList>>,
}

impl ReferenceFiles {
    pub const COUNTRIES: &str = "clicks.countries";
    pub const NETWORKS: &str = "clicks.networks";
    const RULES: &str = "clicks.rules";

    /// Reads the files on the calling thread: for the start.
    pub fn open(paths: ReferencePaths) -> Result<Self, ReferenceError> {
        let mut reference = ReferenceData::default();
        let addresses = AddressList::read;
        let files = Files {
            rules: follow(
                Self::RULES,
                paths.rules,
                ClickRules::read_file,
                &mut reference.rules,
            )?,
            countries: follow(
                Self::COUNTRIES,
                paths.countries,
                addresses,
                &mut reference.countries,
            )?,
            networks: follow(
                Self::NETWORKS,
                paths.networks,
                addresses,
                &mut reference.networks,
            )?,
        };
        Ok(Self {
            files: Arc::new(Mutex::new(files)),
            current: watch::Sender::new(Arc::new(reference)),
        })
    }

    #[must_use]
    pub fn current(&self) -> CurrentReference {
        CurrentReference(self.current.subscribe())
    }

    /// Looks at the files every so often until `stop`.
    pub async fn watch(self, every: Duration, stop: CancellationToken) {
        let mut looks = tokio::time::interval(every.max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = looks.tick() => self.refresh().await,
            }
        }
    }

    /// Reads the files that have changed. One that cannot be used leaves what it said before in force.
    pub async fn refresh(&self) {
        let files = Arc::clone(&self.files);
        // A list of cities takes a while, and a hundred megabytes.
        let looked = tokio::task::spawn_blocking(move || {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            files.look()
        });
        let Ok(changes) = looked.await else {
            return; // The process is going down.
        };
        if changes.loaded.is_empty() {
            return;
        }
        let loaded = changes.loaded.clone();
        self.current
            .send_modify(|reference| *reference = Arc::new(changes.apply_to(reference)));
        for (setting, path) in loaded {
            tracing::info!(
                event = event::REFERENCE_LOADED,
                setting,
                path = %path.display(),
                "reference file changed"
            );
        }
    }
}

impl Files {
    fn look(&mut self) -> Changes {
        let mut loaded = Vec::new();
        Changes {
            rules: look_at(&mut self.rules, &mut loaded),
            countries: look_at(&mut self.countries, &mut loaded),
            networks: look_at(&mut self.networks, &mut loaded),
            loaded,
        }
    }
}

fn look_at<T>(
    file: &mut Option<ReferenceFile<T>>,
    loaded: &mut Vec<(&'static str, PathBuf)>,
) -> Option<Arc<T>> {
    let file = file.as_mut()?;
    let found = file.look()?;
    loaded.push((file.setting, file.path.clone()));
    Some(found)
}

impl Changes {
    fn apply_to(self, before: &ReferenceData) -> ReferenceData {
        let before = before.clone();
        ReferenceData {
            rules: self.rules.unwrap_or(before.rules),
            countries: self.countries.unwrap_or(before.countries),
            networks: self.networks.unwrap_or(before.networks),
        }
    }
}

/// Reads what a file says from its bytes.
type Read<T> = fn(Vec<u8>) -> Result<T, String>;

struct ReferenceFile<T> {
    setting: &'static str,
    path: PathBuf,
    file: FollowedFile,
    /// Hash of the bytes that are in force: a file that was only touched costs no caches.
    hash: u64,
    read: Read<T>,
}

/// Reads a file into `value` and follows it; leaves the value as it is where there is none.
fn follow<T>(
    setting: &'static str,
    path: Option<PathBuf>,
    read: Read<T>,
    value: &mut Arc<T>,
) -> Result<Option<ReferenceFile<T>>, ReferenceError> {
    let Some(path) = path else {
        return Ok(None);
    };
    let file = FollowedFile::new(&fs::metadata(&path));
    match load(&path, None, read) {
        Ok(loaded) => {
            let (hash, loaded) = loaded.unzip();
            *value = loaded.map_or_else(|| Arc::clone(value), Arc::new);
            Ok(Some(ReferenceFile {
                setting,
                path,
                file,
                hash: hash.unwrap_or_default(),
                read,
            }))
        }
        Err(reason) => Err(ReferenceError {
            setting,
            path,
            reason,
        }),
    }
}

/// The hash of the file's bytes and what they say. `None`: they are those that are known.
fn load<T>(path: &Path, known: Option<u64>, read: Read<T>) -> Result<Option<(u64, T)>, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let hash = placement::hash(&bytes);
    match known == Some(hash) {
        true => Ok(None),
        false => Ok(Some((hash, read(bytes)?))),
    }
}

impl<T> ReferenceFile<T> {
    /// What the file says, if that is new.
    fn look(&mut self) -> Option<Arc<T>> {
        let (path, known, read) = (&self.path, Some(self.hash), self.read);
        let load = || load(path, known, read);
        match self.file.look(&fs::metadata(path), load) {
            Looked::Unchanged | Looked::Loaded(None) => None,
            Looked::Loaded(Some((hash, loaded))) => {
                self.hash = hash;
                Some(Arc::new(loaded))
            }
            Looked::Failed(error) => {
                tracing::error!(
                    event = event::REFERENCE_REFUSED,
                    setting = self.setting,
                    path = %self.path.display(),
                    error,
                    "reference file refused, keeping previous one"
                );
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = super::super::BUILT_IN;

    fn browser(reference: &ReferenceData) -> String {
        let agent = b"Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0";
        reference.rules.read(agent).browser.into()
    }

    #[tokio::test]
    async fn a_changed_file_is_in_force_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.txt");
        std::fs::write(&path, RULES).unwrap();
        let files = ReferenceFiles::open(ReferencePaths {
            rules: Some(path.clone()),
            ..ReferencePaths::default()
        });
        let files = files.unwrap();
        let mut current = files.current();
        assert_eq!(browser(&current.now()), "Firefox");
        files.refresh().await;
        assert!(current.take_changed().is_none(), "it says the same");

        std::fs::write(&path, RULES.replace("\nFirefox = ", "\nFuchs = ")).unwrap();
        files.refresh().await;
        let changed = current.take_changed().unwrap();
        assert_eq!(browser(&changed), "Fuchs");
        assert!(current.take_changed().is_none(), "told once");

        std::fs::write(&path, "no rules").unwrap();
        files.refresh().await;
        std::fs::remove_file(&path).unwrap();
        files.refresh().await;
        assert!(current.take_changed().is_none());
        assert_eq!(browser(&current.now()), "Fuchs");

        std::fs::write(&path, RULES).unwrap();
        files.refresh().await;
        assert_eq!(browser(&current.take_changed().unwrap()), "Firefox");
    }

    #[test]
    fn a_file_that_cannot_be_read_at_the_start_is_named() {
        let paths = ReferencePaths {
            networks: Some("/nowhere/networks.mmdb".into()),
            ..ReferencePaths::default()
        };
        let error = ReferenceFiles::open(paths).err().unwrap().to_string();
        assert!(error.contains("clicks.networks"), "{error}");
        assert!(error.contains("/nowhere/networks.mmdb"), "{error}");
    }
}
