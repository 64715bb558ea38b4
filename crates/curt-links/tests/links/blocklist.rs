//! Blocked targets: refused at the door, and not served by links that were there before.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use curt_core::Visibility;
use curt_core::limits::BLOCKLIST_BYTES_MAX;
use curt_links::{Blocklist, BlocklistError, BlocklistFile, EditLink, NewLink, Resolution};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::world::*;

const EVIL: &str = "https://www.evil.example/path";
const GOOD: &str = "https://good.example/";

fn list(text: &str) -> Blocklist {
    Blocklist::parse(text.as_bytes()).unwrap()
}

/// A file in a folder of its own.
struct Listed {
    _folder: TempDir,
    path: PathBuf,
}

impl Listed {
    fn new(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let listed = Self {
            path: folder.path().join("blocklist.txt"),
            _folder: folder,
        };
        listed.write(text);
        listed
    }

    fn write(&self, text: &str) {
        fs::write(&self.path, text).unwrap();
    }

    /// As if it had been written long ago, at another moment for each number.
    fn write_aged(&self, text: &str, number: u64) {
        self.write(text);
        let then = SystemTime::now() - Duration::from_secs(3_600 - number);
        let file = fs::File::options().write(true).open(&self.path).unwrap();
        file.set_modified(then).unwrap();
    }
}

#[tokio::test]
async fn a_blocked_target_is_refused_at_the_door_h1() {
    let world = World::new();
    world.alias("a", GOOD).await;
    assert!(world.policy.block(list("evil.example")));
    let refused = world.links.create(ANN, new(EVIL), None).await;
    assert_eq!(codes(refused), ["target_blocked"]);
    let many = vec![new(EVIL), new(GOOD)];
    let made = world.links.create_many(ANN, many, None).await.unwrap();
    assert!(made[0].is_err() && made[1].is_ok());
    let retarget = EditLink {
        target: Some(EVIL.into()),
        ..EditLink::default()
    };
    let refused = world.links.edit(own(ANN), "a", None, retarget).await;
    assert_eq!(codes(refused), ["target_blocked"]);
}

#[tokio::test]
async fn links_that_are_there_stop_at_once_and_come_back_h1() {
    let world = World::new();
    world.alias("evil", EVIL).await;
    world.alias("good", GOOD).await;
    world.resolve("evil").await;
    assert!(world.cached("evil").is_some());
    world.policy.block(list("evil.example"));
    assert_eq!(world.cached("evil"), None);
    assert_eq!(world.resolve("evil").await, Resolution::Blocked);
    assert_eq!(location(&world.resolve("good").await), Some(GOOD));
    let gets = world.store.gets();
    assert_eq!(world.resolve("evil").await, Resolution::Blocked);
    assert_eq!(world.store.gets(), gets, "remembered for a moment");

    // Its owner may still change the rest of it.
    let titled = EditLink {
        title: Some(Some("blocked".into())),
        ..EditLink::default()
    };
    world
        .links
        .edit(own(ANN), "evil", None, titled)
        .await
        .unwrap();
    assert_eq!(world.resolve("evil").await, Resolution::Blocked);

    world.policy.block(Blocklist::default());
    assert_eq!(location(&world.resolve("evil").await), Some(EVIL));
}

#[tokio::test]
async fn the_same_list_again_drops_no_copies() {
    let world = World::new();
    world.alias("good", GOOD).await;
    world.policy.block(list("a.example\nb.example"));
    world.resolve("good").await;
    assert!(!world.policy.block(list("# sorted\nb.example\na.example")));
    assert!(world.cached("good").is_some());
}

#[tokio::test]
async fn a_blocked_link_is_blocked_for_those_who_may_see_it_too() {
    let world = World::new();
    world.policy.block(list("/secret/"));
    world.alias("a", GOOD).await;
    let private = NewLink {
        alias: Some("b".into()),
        visibility: Some(Visibility::Private),
        ..new("https://good.example/hidden")
    };
    world.links.create(ANN, private, None).await.unwrap();
    world.policy.block(list("/hidden/"));
    assert_eq!(world.resolve("b").await, Resolution::Blocked);
    assert_eq!(location(&world.resolve("a").await), Some(GOOD));
}

#[tokio::test]
async fn a_blocked_link_that_waits_for_its_hour_is_not_kept() {
    let world = World::new();
    let waiting = NewLink {
        alias: Some("a".into()),
        valid_since: Some(START.plus(DAY)),
        ..new(EVIL)
    };
    world.links.create(ANN, waiting, None).await.unwrap();
    world.policy.block(list("evil.example"));
    assert_eq!(world.resolve("a").await, Resolution::Scheduled);
    world.clock.set(START.plus(DAY));
    assert_eq!(world.cached("a"), None);
    assert_eq!(world.resolve("a").await, Resolution::Blocked);
}

#[tokio::test]
async fn a_reader_paused_over_a_new_list_goes_by_it() {
    let world = World::new();
    world.alias("a", EVIL).await;
    world.store.shut_gate();
    let resolver = Arc::clone(&world.resolver);
    let slow = tokio::spawn(async move { resolver.resolve(named("a")).await });
    world.store.paused(1).await;
    world.store.open_gate();
    world.policy.block(list("evil.example"));
    world.store.let_through(1);
    assert_eq!(slow.await.unwrap().unwrap(), Resolution::Blocked);
    assert_eq!(world.cached("a"), None);
}

#[tokio::test]
async fn a_changed_file_takes_effect_and_a_bad_one_does_not() {
    let world = World::new();
    world.alias("evil", EVIL).await;
    world.alias("good", GOOD).await;
    let listed = Listed::new("other.example\n");
    let mut file = BlocklistFile::open(&listed.path, world.policy.clone()).unwrap();
    let blocks = async |file: &mut BlocklistFile| {
        file.refresh().await;
        let mut blocked = Vec::new();
        for key in ["evil", "good"] {
            if world.resolve(key).await == Resolution::Blocked {
                blocked.push(key);
            }
        }
        blocked
    };
    assert!(blocks(&mut file).await.is_empty());

    // Of the same length and, on a coarse clock, of the same moment.
    listed.write("=evil.example");
    listed.write("evil.example\n");
    assert_eq!(blocks(&mut file).await, ["evil"]);
    listed.write_aged("good.example\n", 1);
    assert_eq!(blocks(&mut file).await, ["good"]);
    assert_eq!(blocks(&mut file).await, ["good"]);

    listed.write_aged("evil.example\n/(/\n", 2);
    assert_eq!(blocks(&mut file).await, ["good"], "the list before holds");
    fs::remove_file(&listed.path).unwrap();
    assert_eq!(blocks(&mut file).await, ["good"], "without a file too");
    listed.write_aged("evil.example\n", 3);
    assert_eq!(blocks(&mut file).await, ["evil"]);
    listed.write_aged("", 4);
    assert!(blocks(&mut file).await.is_empty());
}

#[tokio::test]
async fn an_unchanged_file_is_not_read_again() {
    let world = World::new();
    let listed = Listed::new("");
    listed.write_aged("evil.example\n", 0);
    let mut file = BlocklistFile::open(&listed.path, world.policy.clone()).unwrap();
    // Something that only a look into the file would undo.
    world.policy.block(Blocklist::default());
    file.refresh().await;
    assert!(world.policy.blocklist().is_empty());
    listed.write_aged("evil.example\n", 1);
    file.refresh().await;
    assert!(!world.policy.blocklist().is_empty());
}

#[tokio::test]
async fn the_file_is_watched_until_the_end() {
    let world = World::new();
    world.alias("evil", EVIL).await;
    let listed = Listed::new("");
    let file = BlocklistFile::open(&listed.path, world.policy.clone()).unwrap();
    let stop = CancellationToken::new();
    let watch = tokio::spawn(file.watch(Duration::from_millis(5), stop.clone()));
    listed.write("evil.example");
    let blocked = async {
        while world.resolve("evil").await != Resolution::Blocked {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, blocked).await.unwrap();
    stop.cancel();
    watch.await.unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_an_error_at_the_start() {
    let world = World::new();
    let listed = Listed::new("good.example\nhttps://evil.example/\n");
    let open = || BlocklistFile::open(&listed.path, world.policy.clone()).map(|_| ());
    let malformed = open().unwrap_err().to_string();
    assert!(malformed.contains("blocklist.txt, line 2: "), "{malformed}");
    assert!(world.policy.blocklist().is_empty(), "half a list is none");

    let file = fs::File::create(&listed.path).unwrap();
    file.set_len(BLOCKLIST_BYTES_MAX + 1).unwrap();
    assert!(matches!(open(), Err(BlocklistError::TooLarge(_))));
    fs::remove_file(&listed.path).unwrap();
    assert!(matches!(open(), Err(BlocklistError::Unreadable { .. })));
}
