//! Two processes that read one key file, with a cursor in PostgreSQL between them, and are killed at random.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::link::KeyOrigin;
use curt_core::ports::{Cursor, KeyFile};
use curt_core::{OwnerId, SystemClock, Target};
use curt_keys::{FileSettings, KeyMetrics, KeyPorts, KeyRequest, KeySettings, KeySupply, Strategy};
use curt_memory::{MemoryHeartbeats, MemoryLeases};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::length::length;
use curt_testkit::process::Guarded;
use rand::RngExt;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Set in the processes of preloaders only.
const FILES: &str = "CURT_TEST_PRELOADER_FILES";
const DATABASE: &str = "CURT_TEST_PRELOADER_DATABASE";
const SERVED: &str = "CURT_TEST_PRELOADER_SERVED";

const PRELOADERS: usize = 2;

fn settings() -> KeySettings {
    KeySettings {
        strategy: Strategy::File,
        dry_wait: Duration::from_secs(2),
        tick: Duration::from_millis(100),
        file: FileSettings {
            file_keys: length(100_000, 10_000_000),
            block_keys: length(1_000, 10_000),
            refill_under: length(200, 2_000),
        },
        ..KeySettings::default()
    }
}

fn cursor(database: &str) -> Arc<dyn Cursor> {
    // A busy machine must not make a claim fail whose block would then be lost without a kill.
    let settings = PostgresSettings {
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(database, &settings).unwrap().cursor()
}

async fn supply(files: Arc<dyn KeyFile>, cursor: Arc<dyn Cursor>) -> Arc<KeySupply> {
    let clock = Arc::new(SystemClock);
    let ports = KeyPorts {
        ledgers: Vec::new(),
        pools: Vec::new(),
        links: None,
        files: Some(files),
        cursor,
        leases: Arc::new(MemoryLeases::new(clock.clone())),
        heartbeats: Arc::new(MemoryHeartbeats::new(clock.clone())),
        clock,
        who: "a preloader".into(),
    };
    KeySupply::open(settings(), ports, KeyMetrics::default())
        .await
        .unwrap()
}

/// What a preloader's process does: writes down each key that it serves, until the file is used up.
pub(crate) async fn serve(open: impl Fn(&str) -> Arc<dyn KeyFile>) {
    let Ok(files) = std::env::var(FILES) else {
        return;
    };
    let cursor = cursor(&std::env::var(DATABASE).unwrap());
    let mut served = File::create(std::env::var(SERVED).unwrap()).unwrap();
    let supply = supply(open(&files), Arc::clone(&cursor)).await;
    let target = Target::from_serialised("https://example.com/").unwrap();
    let hint = KeyRequest {
        target: &target,
        owner: OwnerId::ANONYMOUS,
        attempt: 0,
    };
    for number in 1.. {
        let key = supply.take(&hint).await;
        if key.origin != KeyOrigin::File {
            if is_used_up(&*cursor).await {
                return;
            }
            // An engine was slow to answer: creates get a random key meanwhile.
            continue;
        }
        // Straight to the system: nothing of it is lost with the process.
        writeln!(served, "{}", key.key).unwrap();
        // A short file must last until the kills are over.
        if number % length(20, u64::MAX) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn is_used_up(cursor: &dyn Cursor) -> bool {
    let settings = settings();
    let register = format!(
        "key-files/{}-{}/position",
        settings.alphabet, settings.length
    );
    let position = cursor.get(&register).await.unwrap();
    position >= settings.file.file_keys
}

/// The processes, and the files in which they write down what they serve.
struct Preloaders<'a> {
    folder: TempDir,
    files: &'a str,
    database: &'a str,
    running: Vec<Guarded>,
    started: usize,
}

impl Preloaders<'_> {
    fn start(&mut self) {
        let served = self.folder.path().join(self.started.to_string());
        self.started += 1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["preloader_process", "--exact"])
            .env(FILES, self.files)
            .env(DATABASE, self.database)
            .env(SERVED, served)
            .stdout(Stdio::null());
        self.running.push(Guarded::spawn(&mut command).unwrap());
    }

    /// Kills one and starts another in its place, unless it has come to the end of the file.
    fn replace_one(&mut self) -> bool {
        let victim = rand::rng().random_range(0..self.running.len());
        if self.running[victim].kill().is_err() {
            return false;
        }
        self.running.swap_remove(victim);
        self.start();
        true
    }

    fn wait_for_the_rest(&mut self) {
        let rest_max = Duration::from_secs(length(120, 1_200));
        let started = Instant::now();
        for child in &mut self.running {
            while child.try_wait().unwrap().is_none() {
                assert!(started.elapsed() < rest_max, "the preloaders do not end");
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(child.wait().unwrap().success());
        }
    }

    /// Every key that any of them served, in no order.
    fn served(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.iter().flat_map(|path| lines(path)).collect()
    }
}

/// Complete lines: a kill may cut the last one, and then nobody was served.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .map(str::to_owned)
        .collect()
}

/// No key is served twice, and a kill skips no more than one block.
pub(crate) async fn never_repeat_a_key(
    open: impl Fn(&str) -> Arc<dyn KeyFile>,
    files: &str,
    database: &str,
) {
    let settings = settings().file;
    let port = open(files);
    let cursor = cursor(database);
    let keygen = supply(Arc::clone(&port), Arc::clone(&cursor)).await;
    // Its own ring must not take from the file.
    keygen.close().await.unwrap();
    keygen.keygen_pass(&CancellationToken::new()).await;
    let name = port.names().await.unwrap().remove(0);
    let all = port.read(&name, 0, usize::MAX).await.unwrap();
    assert_eq!(all.len() as u64, settings.file_keys);

    let mut preloaders = Preloaders {
        folder: TempDir::new().unwrap(),
        files,
        database,
        running: Vec::new(),
        started: 0,
    };
    for _ in 0..PRELOADERS {
        preloaders.start();
    }
    let mut kills = 0;
    for _ in 0..length(8, 40) {
        let pause = rand::rng().random_range(100..600);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        kills += usize::from(preloaders.replace_one());
    }
    assert!(kills > 0, "the file did not last until the first kill");
    preloaders.wait_for_the_rest();
    assert!(is_used_up(&*cursor).await, "keys were left");

    let served = preloaders.served();
    let distinct: HashSet<&str> = served.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), served.len(), "a key was served twice");
    let written: HashSet<&str> = all.iter().map(|key| key.as_str()).collect();
    assert!(distinct.is_subset(&written), "a key of no file was served");
    let skipped = written.len() - served.len();
    println!(
        "{} of {} keys served, {kills} kills skipped {skipped}",
        served.len(),
        written.len()
    );
    assert!(
        skipped <= kills * settings.block_keys,
        "{skipped} keys skipped"
    );
}
