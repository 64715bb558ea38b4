//! Key files on a real MinIO: the port's suite, damage of every kind, a dead and a silent store, lost answers, and
//! preloaders that are killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::key_files::damage::{self, Raw};
use crate::key_files::{LAYOUT, failure, lossy, preloaders, publish};
use curt_core::ErrorKind;
use curt_core::ports::{KeyFile, KeyFileLayout};
use curt_objects::{S3KeyFile, S3Settings};
use curt_testkit::engines::minio::Server;
use curt_testkit::engines::{minio, postgres, unique};
use curt_testkit::need;
use curt_testkit::sample::keys;
use rusty_s3::{Credentials, S3Action, UrlStyle};

/// For tests that wait for it to be over.
const IMPATIENT: S3Settings = S3Settings {
    connect_timeout: Duration::from_secs(2),
    request_timeout: Duration::from_secs(5),
};
const SIGNED: Duration = Duration::from_secs(60);
/// Goes up in several parts.
const LARGE_KEYS: usize = 1_300_000;
const LARGE_LAYOUT: KeyFileLayout = KeyFileLayout {
    width: 22,
    block_keys: 10_000,
};

fn open(address: &str) -> S3KeyFile {
    S3KeyFile::open(address, S3Settings::default()).unwrap()
}

pub(crate) fn open_port(address: &str) -> Arc<dyn KeyFile> {
    Arc::new(open(address))
}

fn address(server: &Server, endpoint: &str, bucket: &str, prefix: &str) -> String {
    let (access_key, secret_key) = server.credentials();
    format!("s3://{access_key}:{secret_key}@{bucket}/{prefix}?endpoint={endpoint}")
}

/// The address of a bucket that no other test has.
fn fresh(server: &Server) -> String {
    let bucket = server.bucket("keys").unwrap();
    address(server, &server.endpoint(), &bucket, "some/folder")
}

/// The store's own view of the bucket.
struct Bucket {
    bucket: rusty_s3::Bucket,
    credentials: Credentials,
}

impl Bucket {
    fn new(server: &Server, name: String) -> Self {
        let endpoint = server.endpoint().parse().unwrap();
        let (access_key, secret_key) = server.credentials();
        Self {
            bucket: rusty_s3::Bucket::new(endpoint, UrlStyle::Path, name, "us-east-1").unwrap(),
            credentials: Credentials::new(access_key, secret_key),
        }
    }
}

impl Raw for Bucket {
    async fn get(&self, name: &str) -> Vec<u8> {
        let object = format!("some/folder/{name}.keys");
        let get = self.bucket.get_object(Some(&self.credentials), &object);
        let mut answer = ureq::get(get.sign(SIGNED).as_str()).call().unwrap();
        answer.body_mut().read_to_vec().unwrap()
    }

    async fn put(&self, name: &str, bytes: Vec<u8>) {
        let object = format!("some/folder/{name}.keys");
        let put = self.bucket.put_object(Some(&self.credentials), &object);
        ureq::put(put.sign(SIGNED).as_str()).send(bytes).unwrap();
    }
}

/// 22 symbols each, so that a million fill several parts.
fn long_keys(count: usize) -> Vec<curt_core::Key> {
    let key = |number: usize| curt_core::Key::parse(&format!("k{number:021}")).unwrap();
    (0..count).map(key).collect()
}

curt_testkit::key_file_tests!({
    let server = need!(minio::shared());
    let files = open_port(&fresh(&server));
    (server, files)
});
curt_testkit::reopening_tests!(
    {
        let server = need!(minio::shared());
        let bucket = server.bucket("reopened").unwrap();
        let at = address(&server, &server.endpoint(), &bucket, "PREFIX");
        let open = async move |folder: &Path| {
            open_port(&at.replace("PREFIX", &folder.display().to_string()))
        };
        (server, PathBuf::from(unique("folder")), open)
    },
    key_file,
    survives_reopening
);

#[tokio::test(flavor = "multi_thread")]
async fn prefixes_keep_files_apart() {
    let server = need!(minio::shared());
    let bucket = server.bucket("apart").unwrap();
    let at = |prefix: &str| open(&address(&server, &server.endpoint(), &bucket, prefix));
    let (outer, inner, beside) = (at(""), at("in%20ner/a"), at("in%20ner/ab"));
    publish(&outer, "a", "o", 3).await.unwrap();
    publish(&inner, "a", "i", 3).await.unwrap();
    publish(&beside, "b", "b", 3).await.unwrap();
    for (files, prefix, name) in [(&outer, "o", "a"), (&inner, "i", "a"), (&beside, "b", "b")] {
        assert_eq!(files.names().await.unwrap(), [name].map(Box::<str>::from));
        assert_eq!(files.read(name, 0, 9).await.unwrap(), keys(prefix, 3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_noticed() {
    let server = need!(minio::shared());
    let name = server.bucket("damage").unwrap();
    let files = open(&address(&server, &server.endpoint(), &name, "some/folder"));
    let bucket = Bucket::new(&server, name);
    damage::is_always_noticed(&files, &bucket).await;
    damage::stays_in_its_block(&files, &bucket).await;
}

/// A file of several parts, and two writers of it at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_up_in_parts() {
    let server = need!(minio::shared());
    let files = open(&fresh(&server));
    let all = long_keys(LARGE_KEYS);
    let mut writers = Vec::new();
    for _ in 0..2 {
        let mut writer = files.create("a", LARGE_LAYOUT).await.unwrap();
        for part in all.chunks(10_000) {
            writer.append(part).await.unwrap();
        }
        writers.push(writer);
    }
    assert_eq!(files.stat("a").await.unwrap(), None);
    assert_eq!(files.names().await.unwrap(), Vec::<Box<str>>::new());
    let second = writers.pop().unwrap();
    let stat = writers.pop().unwrap().publish().await.unwrap();
    assert_eq!(stat.keys, LARGE_KEYS as u64);
    let refused = second.publish().await.map_err(|error| error.kind);
    assert_eq!(refused, Err(ErrorKind::Invalid));
    for first in [0, 9_999, 380_000, 381_300, LARGE_KEYS - 5] {
        let read = files.read("a", first as u64, 10_000).await.unwrap();
        let end = LARGE_KEYS.min(first + 10_000);
        assert!(read == all[first..end], "from {first}");
    }
    assert!(files.read("a", 0, usize::MAX).await.unwrap() == all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_dies_publishes_nothing() {
    let mut server = need!(Server::start());
    let files = S3KeyFile::open(&fresh(&server), IMPATIENT).unwrap();
    publish(&files, "before", "k", 25).await.unwrap();
    let mut small = files.create("small", LAYOUT).await.unwrap();
    small.append(&keys("k", 25)).await.unwrap();
    let mut large = files.create("large", LARGE_LAYOUT).await.unwrap();
    large.append(&long_keys(LARGE_KEYS / 2)).await.unwrap();
    server.kill().unwrap();
    failure("publish", small.publish()).await;
    failure("publish in parts", large.publish()).await;
    failure("names", files.names()).await;
    failure("stat", files.stat("before")).await;
    failure("read", files.read("before", 0, 1)).await;
    failure("create", files.create("b", LAYOUT)).await;
    server.restart().unwrap();
    assert_eq!(
        files.names().await.unwrap(),
        ["before"].map(Box::<str>::from)
    );
    assert_eq!(files.read("before", 0, 99).await.unwrap(), keys("k", 25));
    publish(&files, "large", "x", 3).await.unwrap();
    assert_eq!(files.read("large", 0, 9).await.unwrap(), keys("x", 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_store_keeps_nobody_waiting() {
    let server = need!(Server::start());
    let files = S3KeyFile::open(&fresh(&server), IMPATIENT).unwrap();
    publish(&files, "a", "k", 25).await.unwrap();
    server.pause().unwrap();
    assert_eq!(failure("names", files.names()).await, ErrorKind::Timeout);
    server.resume().unwrap();
    assert_eq!(files.read("a", 0, 99).await.unwrap(), keys("k", 25));
}

/// By the answer to a small file's one request, and to the last of a large one's.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_the_publication_is_found_out() {
    let server = need!(minio::shared());
    let target = server.endpoint().replace("http://", "").parse().unwrap();
    let bucket = server.bucket("lost").unwrap();
    for (name, layout, all, marker) in [
        ("small", LAYOUT, keys("k", 25), &b"PUT "[..]),
        (
            "large",
            LARGE_LAYOUT,
            long_keys(LARGE_KEYS / 2),
            &b"<CompleteMultipartUpload>"[..],
        ),
    ] {
        let (line, has_lost) = lossy::losing_answer_to(marker, target);
        let files = open(&address(&server, &format!("http://{line}"), &bucket, ""));
        let mut writer = files.create(name, layout).await.unwrap();
        writer.append(&all).await.unwrap();
        let stat = writer.publish().await.unwrap();
        assert!(has_lost.load(Ordering::SeqCst), "{name}");
        assert_eq!(stat.keys, all.len() as u64, "{name}");
        assert!(
            files.read(name, 0, usize::MAX).await.unwrap() == all,
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_and_buckets_are_the_operators_to_mend() {
    let server = need!(minio::shared());
    let endpoint = server.endpoint();
    let bucket = server.bucket("mend").unwrap();
    for wrong in [
        format!("s3://nobody:wrong@{bucket}/a?endpoint={endpoint}"),
        format!("s3://curt:wrong@{bucket}/a?endpoint={endpoint}"),
        address(&server, &endpoint, "no-such-bucket", "a"),
    ] {
        let files = open(&wrong);
        let names = files.names().await.map_err(|error| error.kind);
        assert_eq!(names, Err(ErrorKind::Invalid), "{wrong}");
        let read = files.read("a", 0, 1).await.map_err(|error| error.kind);
        assert_eq!(read, Err(ErrorKind::Invalid), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_preloaders_never_repeat_a_key() {
    let store = need!(minio::shared());
    let server = need!(postgres::shared());
    let database = server.database("s3_preloaders").unwrap();
    preloaders::never_repeat_a_key(open_port, &fresh(&store), &database.url()).await;
}
