//! `KeyFile` on HDFS.
//!
//! A published file is `NAME.keys`: the keys, and behind them their checksums (see `sealed`). It is written under a
//! hidden name of its own, synchronised on the DataNodes, closed, and then renamed without overwriting: the NameNode
//! does that in one step and decides between writers. Readers never see a file that is being written, whose length two
//! of them may see differently.
//!
//! | crash | what is left | seen as |
//! |---|---|---|
//! | of a writer | a draft, named `.NAME.….part` | absent; a later `create` removes it when it is a day old |
//! | of the cluster, while writing | the same | absent |
//! | while renaming | draft or file | absent or published; `Timeout` where that cannot be found out |
//!
//! # Addresses
//! | address | means |
//! |---|---|
//! | `hdfs://namenode:8020/curt/keys` | one NameNode and a folder; the port may be left out |
//! | `hdfs://user@namenode/curt/keys` | as this user |
//! | `hdfs://nn1,nn2/curt/keys` | whichever of the NameNodes is active |
//! | `hdfs://service/curt/keys?conf=/etc/hadoop/conf` | a name service that `hdfs-site.xml` in this folder describes |
//!
//! Kerberos and the other settings of a client come from the folder of `conf`, or of `HADOOP_CONF_DIR`.
//!
//! # Damage
//! HDFS keeps checksums of its own and reads another replica where one is damaged. What is wrong in all of them shows
//! as `Unavailable`, since the client cannot tell it from DataNodes that are away. What HDFS holds for sound and is not
//! what was written is `Corrupt`.

mod address;
mod draft;
mod failure;
mod line;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Key, PortResult};
use hdfs_native::client::FileStatus;
use hdfs_native::file::FileReader;

use self::address::Route;
use self::draft::Draft;
use self::line::Line;
use crate::key_layout::{self, Asked, checked_name, is_name};
use crate::sealed::{Sealed, Source};

/// The adapter's name in errors.
const BACKEND: &str = "hdfs";
const PUBLISHED_SUFFIX: &str = ".keys";
const DRAFT_SUFFIX: &str = ".part";
/// Older drafts are a dead writer's. One that lives all the same is told to start anew.
const DRAFT_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long to wait for HDFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HdfsSettings {
    /// For an answer of the NameNode, the search for the active one included.
    pub answer_timeout: Duration,
    /// For a step that moves data.
    pub transfer_timeout: Duration,
}

impl Default for HdfsSettings {
    fn default() -> Self {
        Self {
            answer_timeout: Duration::from_secs(5),
            transfer_timeout: Duration::from_secs(30),
        }
    }
}

/// Key files in one folder of an HDFS cluster.
#[derive(Clone, Debug)]
pub struct HdfsKeyFile {
    line: Arc<Line>,
}

impl HdfsKeyFile {
    /// Reads the address. Connects with the first call, and makes the folder with the first file.
    pub fn open(address: &str, settings: HdfsSettings) -> PortResult<Self> {
        let route = Route::parse(address)?;
        Ok(Self {
            line: Arc::new(Line::new(route, settings)),
        })
    }

    /// The published file, its description read and checked.
    async fn published(&self, name: &str, asked: Asked) -> PortResult<Option<Sealed<HdfsSource>>> {
        let name = checked_name(name, asked)?;
        let client = self.line.client(asked)?;
        let path = self.line.published(&name);
        let opening = async {
            match client.read(&path).await {
                Err(error) if failure::is_absent(&error) => Ok(None),
                reader => reader.map(Some),
            }
        };
        let Some(reader) = self.line.ask(asked, opening).await? else {
            return Ok(None);
        };
        let source = HdfsSource {
            line: Arc::clone(&self.line),
            reader,
            asked,
        };
        Ok(Some(Sealed::open(source, &name, asked).await?))
    }

    async fn list(&self, asked: Asked) -> PortResult<Vec<FileStatus>> {
        let client = self.line.client(asked)?;
        let listing = async {
            match client.list_status(self.line.folder(), false).await {
                Err(error) if failure::is_absent(&error) => Ok(Vec::new()),
                list => list,
            }
        };
        self.line.ask(asked, listing).await
    }

    /// Removes drafts whose writer is long gone.
    async fn sweep_drafts(&self, asked: Asked) -> PortResult<()> {
        let Some(oldest) = SystemTime::now().checked_sub(DRAFT_AGE_MAX) else {
            return Ok(());
        };
        for file in self.list(asked).await? {
            let written = SystemTime::UNIX_EPOCH + Duration::from_millis(file.modification_time);
            if is_draft(&file) && written < oldest {
                let client = self.line.client(asked)?;
                self.line
                    .ask(asked, client.delete(&file.path, false))
                    .await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl KeyFile for HdfsKeyFile {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        let asked = asked("start a key file");
        let name = checked_name(name, asked)?;
        key_layout::check_layout(layout, asked)?;
        if draft::is_there(&self.line, &self.line.published(&name), asked).await? {
            return Err(asked.already_published(&name));
        }
        self.sweep_drafts(asked).await?;
        let draft = Draft::start(Arc::clone(&self.line), name, layout, asked).await?;
        Ok(Box::new(draft::HdfsKeyFileWriter::new(draft, layout)))
    }

    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        let file = self.published(name, asked("look at a key file")).await?;
        Ok(file.map(|file| file.stat()))
    }

    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let asked = asked("read keys");
        let file = self.published(name, asked).await?;
        let file = file.ok_or_else(|| asked.absent(name))?;
        file.read(first, count).await
    }

    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        let files = self.list(asked("list key files")).await?;
        let mut names: Vec<Box<str>> = files.iter().filter_map(published_name).collect();
        names.sort();
        Ok(names)
    }
}

struct HdfsSource {
    line: Arc<Line>,
    reader: FileReader,
    asked: Asked,
}

#[async_trait]
impl Source for HdfsSource {
    fn length(&self) -> u64 {
        self.reader.file_length() as u64
    }

    async fn part(&self, start: u64, length: usize) -> PortResult<Vec<u8>> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let reading = self.reader.read_range(start, length);
        let bytes = self.line.transfer(self.asked, reading).await?;
        Ok(bytes.into())
    }
}

fn asked(op: &'static str) -> Asked {
    Asked {
        backend: BACKEND,
        op,
    }
}

fn file_name(file: &FileStatus) -> Option<&str> {
    if file.isdir {
        return None;
    }
    file.path.rsplit('/').next()
}

fn published_name(file: &FileStatus) -> Option<Box<str>> {
    let name = file_name(file)?.strip_suffix(PUBLISHED_SUFFIX)?;
    is_name(name).then(|| name.into())
}

fn is_draft(file: &FileStatus) -> bool {
    file_name(file).is_some_and(|name| name.starts_with('.') && name.ends_with(DRAFT_SUFFIX))
}
