//! Key files on a real HDFS: the port's suite, damage of every kind, dead and silent nodes, lost answers, and
//! preloaders that are killed.

use std::fs;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::key_files::damage::{self, Raw};
use crate::key_files::{CALL_MAX, LAYOUT, failure, lossy, preloaders, publish};
use bytes::Bytes;
use curt_core::ports::KeyFile;
use curt_core::{ErrorKind, Key};
use curt_objects::{HdfsKeyFile, HdfsSettings};
use curt_testkit::engines::hdfs::Cluster;
use curt_testkit::engines::{hdfs, postgres, unique};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::keys;
use hdfs_native::client::WriteOptions;
use hdfs_native::{Client, ClientBuilder};
use tokio::sync::{Mutex, MutexGuard};

/// For tests that wait for it to be over.
const IMPATIENT: HdfsSettings = HdfsSettings {
    answer_timeout: Duration::from_secs(4),
    transfer_timeout: Duration::from_secs(8),
};
/// Longest time for a cluster whose nodes are there again to serve its files.
const BACK_MAX: Duration = Duration::from_secs(60);

fn open(address: &str) -> HdfsKeyFile {
    HdfsKeyFile::open(address, HdfsSettings::default()).unwrap()
}

pub(crate) fn open_port(address: &str) -> Arc<dyn KeyFile> {
    Arc::new(open(address))
}

/// The address of a folder that no other test has.
fn fresh(cluster: &Cluster) -> String {
    format!("{}/tests/{}", cluster.url(), unique("keys"))
}

/// A cluster for tests that hurt it, one after the other. Each leaves it sound, or fails and takes it along.
struct Breakable(MutexGuard<'static, Option<Cluster>>);

async fn breakable() -> anyhow::Result<Breakable> {
    static BREAKABLE: Mutex<Option<Cluster>> = Mutex::const_new(None);
    let mut held = BREAKABLE.lock().await;
    if held.is_none() {
        *held = Some(Cluster::start()?);
    }
    Ok(Breakable(held))
}

impl Deref for Breakable {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for Breakable {
    fn deref_mut(&mut self) -> &mut Cluster {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Breakable {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0 = None;
        }
    }
}

/// HDFS's own view of the folder at an address.
struct Folder {
    client: Client,
    path: String,
}

impl Folder {
    fn at(address: &str) -> Self {
        let (host, path) = address
            .strip_prefix("hdfs://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let client = ClientBuilder::new().with_url(format!("hdfs://{host}"));
        Self {
            client: client.build().unwrap(),
            path: format!("/{path}"),
        }
    }

    async fn write(&self, file: &str, bytes: Vec<u8>) {
        let path = format!("{}/{file}", self.path);
        self.client.delete(&path, false).await.unwrap();
        let mut writer = self
            .client
            .create(&path, WriteOptions::default())
            .await
            .unwrap();
        if !bytes.is_empty() {
            writer.write_bytes(Bytes::from(bytes)).await.unwrap();
        }
        writer.close().await.unwrap();
    }

    async fn files(&self) -> Vec<String> {
        let list = self.client.list_status(&self.path, false).await.unwrap();
        let names = list.iter().filter_map(|file| file.path.rsplit('/').next());
        names.map(str::to_owned).collect()
    }
}

impl Raw for Folder {
    async fn get(&self, name: &str) -> Vec<u8> {
        let path = format!("{}/{name}.keys", self.path);
        let reader = self.client.read(&path).await.unwrap();
        let bytes = reader.read_range(0, reader.file_length()).await.unwrap();
        bytes.into()
    }

    async fn put(&self, name: &str, bytes: Vec<u8>) {
        self.write(&format!("{name}.keys"), bytes).await;
    }
}

/// The keys of a file, when the cluster has come back to itself.
async fn read_at_last(files: &HdfsKeyFile, name: &str) -> Vec<Key> {
    let started = Instant::now();
    loop {
        match files.read(name, 0, 99).await {
            Ok(keys) => return keys,
            Err(error) => assert!(
                started.elapsed() < time_max(BACK_MAX) && error.is_transient(),
                "{error}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

curt_testkit::key_file_tests!({
    let cluster = need!(hdfs::shared());
    let files = open_port(&fresh(&cluster));
    (cluster, files)
});
curt_testkit::reopening_tests!(
    {
        let cluster = need!(hdfs::shared());
        let url = cluster.url();
        let open = async move |folder: &Path| open_port(&format!("{url}/{}", folder.display()));
        (cluster, PathBuf::from(unique("tests/reopened")), open)
    },
    key_file,
    survives_reopening
);

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_noticed() {
    let cluster = need!(hdfs::shared());
    let address = fresh(&cluster);
    damage::is_always_noticed(&open(&address), &Folder::at(&address)).await;
    damage::stays_in_its_block(&open(&address), &Folder::at(&address)).await;
}

/// HDFS notices itself what happens to its disks.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_from_a_damaged_disk() {
    let mut cluster = need!(breakable().await);
    let address = fresh(&cluster);
    let files = HdfsKeyFile::open(&address, IMPATIENT).unwrap();
    publish(&files, "a", "d", 5_000).await.unwrap();
    let first = &keys("d", 1)[0];
    let mut blocks = blocks_below(cluster.data_node_mut().folder());
    blocks.retain(|block| fs::read(block).unwrap().starts_with(first.as_bytes()));
    assert_eq!(blocks.len(), 1);
    let mut bytes = fs::read(&blocks[0]).unwrap();
    bytes[70] ^= 1;
    fs::write(&blocks[0], bytes).unwrap();
    failure("read", files.read("a", 0, 20)).await;
}

fn blocks_below(folder: &Path) -> Vec<PathBuf> {
    let mut blocks = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            blocks.extend(blocks_below(&path));
        } else if name.starts_with("blk_") && !name.ends_with(".meta") {
            blocks.push(path);
        }
    }
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn only_old_drafts_are_swept() {
    let cluster = need!(hdfs::shared());
    let address = fresh(&cluster);
    let (files, folder) = (open(&address), Folder::at(&address));
    let mut living = files.create("living", LAYOUT).await.unwrap();
    living.append(&keys("l", 5)).await.unwrap();
    folder.write(".a.0000.part", b"k000001".to_vec()).await;
    folder.write(".b.0000.part", b"k000001".to_vec()).await;
    let two_days_ago = std::time::SystemTime::now() - Duration::from_secs(2 * 24 * 3_600);
    let millis = two_days_ago
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let old = format!("{}/.a.0000.part", folder.path);
    let millis = u64::try_from(millis).unwrap();
    folder.client.set_times(&old, millis, millis).await.unwrap();
    assert_eq!(files.names().await.unwrap(), Vec::<Box<str>>::new());
    publish(&files, "a", "k", 3).await.unwrap();
    let left = folder.files().await;
    assert!(!left.contains(&".a.0000.part".to_owned()), "{left:?}");
    assert!(left.contains(&".b.0000.part".to_owned()), "{left:?}");
    living.publish().await.unwrap();
    assert_eq!(files.read("living", 0, 9).await.unwrap(), keys("l", 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_gives_up_removes_its_draft() {
    let cluster = need!(hdfs::shared());
    let address = fresh(&cluster);
    let (files, folder) = (open(&address), Folder::at(&address));
    let mut writer = files.create("a", LAYOUT).await.unwrap();
    writer.append(&keys("k", 5)).await.unwrap();
    assert_eq!(folder.files().await.len(), 1);
    drop(writer);
    let started = Instant::now();
    while !folder.files().await.is_empty() {
        assert!(started.elapsed() < time_max(CALL_MAX), "the draft stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_node_that_dies_publishes_nothing() {
    let mut cluster = need!(breakable().await);
    let files = HdfsKeyFile::open(&fresh(&cluster), IMPATIENT).unwrap();
    publish(&files, "before", "k", 25).await.unwrap();
    let mut writer = files.create("a", LAYOUT).await.unwrap();
    writer.append(&keys("k", 25)).await.unwrap();
    cluster.name_node_mut().kill().unwrap();
    tokio::join!(
        failure("publish", writer.publish()),
        failure("names", files.names()),
        failure("stat", files.stat("before")),
        failure("read", files.read("before", 0, 1)),
        failure("create", files.create("b", LAYOUT)),
    );
    cluster.name_node_mut().restart().unwrap();
    cluster.wait_until_writable().unwrap();
    assert_eq!(
        files.names().await.unwrap(),
        ["before"].map(Box::<str>::from)
    );
    assert_eq!(read_at_last(&files, "before").await, keys("k", 25));
    publish(&files, "a", "x", 3).await.unwrap();
    assert_eq!(files.read("a", 0, 9).await.unwrap(), keys("x", 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_node_that_dies_publishes_nothing() {
    let mut cluster = need!(breakable().await);
    let files = HdfsKeyFile::open(&fresh(&cluster), IMPATIENT).unwrap();
    publish(&files, "before", "k", 25).await.unwrap();
    let mut writer = files.create("a", LAYOUT).await.unwrap();
    writer.append(&keys("k", 25)).await.unwrap();
    cluster.data_node_mut().kill().unwrap();
    tokio::join!(
        failure("publish", writer.publish()),
        failure("read", files.read("before", 0, 1)),
    );
    assert_eq!(
        files.names().await.unwrap(),
        ["before"].map(Box::<str>::from)
    );
    assert_eq!(files.stat("a").await.unwrap(), None);
    cluster.data_node_mut().restart().unwrap();
    assert_eq!(read_at_last(&files, "before").await, keys("k", 25));
}

/// Neither a call without an answer nor the connection that it leaves behind keeps anybody waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_name_node_keeps_nobody_waiting() {
    let mut cluster = need!(breakable().await);
    let files = HdfsKeyFile::open(&fresh(&cluster), IMPATIENT).unwrap();
    publish(&files, "a", "k", 25).await.unwrap();
    cluster.name_node_mut().pause().unwrap();
    for what in ["first", "second"] {
        let kind = failure(what, files.names()).await;
        assert_eq!(kind, ErrorKind::Timeout, "{what}");
    }
    cluster.name_node_mut().resume().unwrap();
    assert_eq!(read_at_last(&files, "a").await, keys("k", 25));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_the_renaming_is_found_out() {
    let cluster = need!(hdfs::shared());
    let host = cluster.url().replace("hdfs://", "");
    let target: SocketAddr = host.parse().unwrap();
    let (line, has_lost) = lossy::losing_answer_to(b"rename2", target);
    let address = fresh(&cluster).replace(&host, &line.to_string());
    let files = open(&address);
    publish(&files, "a", "k", 25).await.unwrap();
    assert!(has_lost.load(Ordering::SeqCst));
    assert_eq!(files.read("a", 0, 99).await.unwrap(), keys("k", 25));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_cluster_is_unavailable() {
    let port = curt_testkit::engines::Port::free().unwrap();
    let files = HdfsKeyFile::open(&format!("hdfs://{}/keys", port.address()), IMPATIENT).unwrap();
    let kind = failure("names", files.names()).await;
    assert!(
        matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout),
        "{kind:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_preloaders_never_repeat_a_key() {
    let cluster = need!(hdfs::shared());
    let server = need!(postgres::shared());
    let database = server.database("hdfs_preloaders").unwrap();
    preloaders::never_repeat_a_key(open_port, &fresh(&cluster), &database.url()).await;
}
