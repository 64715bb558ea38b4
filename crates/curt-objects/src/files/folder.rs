use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use curt_core::{ErrorKind, PortError, PortResult};

use crate::key_layout::{Operation, is_name};

const CHECKSUMS_SUFFIX: &str = ".sums";
const DRAFT_SUFFIX: &str = ".part";
const LOCK_NAME: &str = ".lock";

/// Where the files are: their paths, the lock between processes, and what makes a renaming durable.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// The right to start and publish files in the folder; the system takes it back when the process dies.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl Folder {
    pub(super) fn open(path: &Path, operation: Operation) -> PortResult<Self> {
        let folder = Self {
            path: path.to_owned(),
        };
        let failed = |error| folder.failed(operation, ".", error);
        if !path.is_dir() {
            fs::create_dir_all(path).map_err(failed)?;
            if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("")) {
                File::open(parent)
                    .and_then(|parent| parent.sync_all())
                    .map_err(failed)?;
            }
        }
        folder.sync().map_err(failed)?;
        Ok(folder)
    }

    pub(super) fn keys_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.keys"))
    }

    pub(super) fn checksums_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{CHECKSUMS_SUFFIX}"))
    }

    /// Waits for the lock. Its holders only create, rename and sync small things.
    pub(super) fn lock(&self) -> io::Result<FolderLock> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path.join(LOCK_NAME))?;
        file.lock()?;
        Ok(FolderLock { _file: file })
    }

    /// Makes what was renamed in the folder durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// A new draft that only its writer knows. The writer's lock on it tells it from one that a crash left behind.
    pub(super) fn start_draft(
        &self,
        name: &str,
        _lock: &FolderLock,
    ) -> io::Result<(PathBuf, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let draft = format!(".{name}.{process}-{number}{DRAFT_SUFFIX}");
            let path = self.path.join(draft);
            match File::create_new(&path) {
                Ok(file) => {
                    file.lock()?;
                    return Ok((path, file));
                }
                Err(error) if error.kind() == IoKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes drafts whose writer is gone.
    pub(super) fn sweep_drafts(&self, _lock: &FolderLock) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with('.') || !name.ends_with(DRAFT_SUFFIX) {
                continue;
            }
            let draft = match File::open(entry.path()) {
                Ok(draft) => draft,
                Err(error) if error.kind() == IoKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match draft.try_lock() {
                Ok(()) => remove_if_there(&entry.path())?,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn published_names(&self, operation: Operation) -> PortResult<Vec<Box<str>>> {
        let failed = |error| self.failed(operation, ".", error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let name = file
                .to_str()
                .and_then(|file| file.strip_suffix(CHECKSUMS_SUFFIX));
            if let Some(name) = name.filter(|name| is_name(name)) {
                names.push(name.into());
            }
        }
        Ok(names)
    }

    /// What an error of the file system means to the caller.
    pub(super) fn failed(&self, operation: Operation, name: &str, error: io::Error) -> PortError {
        let way_out = match error.kind() {
            IoKind::StorageFull | IoKind::QuotaExceeded => "; make room on that disk",
            IoKind::PermissionDenied => "; let this user write there",
            IoKind::ReadOnlyFilesystem => "; mount it for writing",
            _ => "",
        };
        let path = self.path.join(name);
        let detail = format!("{}: {error}{way_out}", path.display());
        let error_kind = ErrorKind::Unavailable;
        operation.error(error_kind, detail).with_source(error)
    }
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != IoKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
