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
mod connection;
mod draft;
mod failure;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::{Clock, PortResult, SystemClock};
use hdfs_native::client::FileStatus;
use hdfs_native::file::FileReader;

use self::address::HdfsAddress;
use self::connection::HdfsConnection;
use self::draft::HdfsDraft;
use crate::engine::{Engine, EngineKeyFile};
use crate::key_layout::Operation;
use crate::sealed::{DRAFT_AGE_MAX, Sealed, Source, published_name};

const DRAFT_SUFFIX: &str = ".part";

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
pub type HdfsKeyFile = EngineKeyFile<Hdfs>;

#[derive(Clone, Debug)]
pub struct Hdfs {
    connection: Arc<HdfsConnection>,
}

impl HdfsKeyFile {
    /// Reads the address. Connects with the first call, and makes the folder with the first file.
    pub fn open(address: &str, settings: HdfsSettings) -> PortResult<Self> {
        let address = HdfsAddress::parse(address)?;
        Ok(Self::new(Hdfs {
            connection: Arc::new(HdfsConnection::new(address, settings)),
        }))
    }
}

#[async_trait]
impl Engine for Hdfs {
    const NAME: &'static str = "hdfs";
    type Draft = HdfsDraft;
    type Published = Sealed<HdfsSource>;

    async fn start(&self, name: Box<str>, operation: Operation) -> PortResult<HdfsDraft> {
        if self
            .connection
            .has(&self.connection.published(&name), operation)
            .await?
        {
            return Err(operation.already_published(&name));
        }
        self.sweep_drafts(operation).await?;
        HdfsDraft::start(Arc::clone(&self.connection), name, operation).await
    }

    async fn open(
        &self,
        name: Box<str>,
        operation: Operation,
    ) -> PortResult<Option<Sealed<HdfsSource>>> {
        let client = self.connection.client(operation)?;
        let path = self.connection.published(&name);
        let opening = failure::absent_as_none(client.read(&path));
        let Some(reader) = self.connection.ask(operation, opening).await? else {
            return Ok(None);
        };
        let source = HdfsSource {
            connection: Arc::clone(&self.connection),
            reader,
            operation,
        };
        Sealed::open(source, name, operation).await.map(Some)
    }

    async fn list(&self, operation: Operation) -> PortResult<Vec<Box<str>>> {
        let files = self.files(operation).await?;
        let names = files.iter().filter_map(|file| published_name(&file.path));
        Ok(names.collect())
    }
}

impl Hdfs {
    async fn files(&self, operation: Operation) -> PortResult<Vec<FileStatus>> {
        let client = self.connection.client(operation)?;
        let listing = failure::absent_as_none(client.list_status(self.connection.folder(), false));
        let mut files = self
            .connection
            .ask(operation, listing)
            .await?
            .unwrap_or_default();
        files.retain(|file| !file.isdir);
        Ok(files)
    }

    /// Removes drafts whose writer is long gone.
    async fn sweep_drafts(&self, operation: Operation) -> PortResult<()> {
        let oldest = SystemClock.now().minus(DRAFT_AGE_MAX).0;
        for file in self.files(operation).await? {
            let written = i64::try_from(file.modification_time).unwrap_or(i64::MAX);
            if is_draft(&file.path) && written < oldest {
                let client = self.connection.client(operation)?;
                let deleting = client.delete(&file.path, false);
                self.connection.ask(operation, deleting).await?;
            }
        }
        Ok(())
    }
}

pub(crate) struct HdfsSource {
    connection: Arc<HdfsConnection>,
    reader: FileReader,
    operation: Operation,
}

#[async_trait]
impl Source for HdfsSource {
    fn length(&self) -> u64 {
        self.reader.file_length() as u64
    }

    async fn part(&self, start: u64, length: usize) -> PortResult<Vec<u8>> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let reading = self.reader.read_range(start, length);
        let bytes = self.connection.transfer(self.operation, reading).await?;
        Ok(bytes.into())
    }
}

fn operation(name: &'static str) -> Operation {
    Operation {
        backend: Hdfs::NAME,
        name,
    }
}

fn is_draft(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') && name.ends_with(DRAFT_SUFFIX)
}
