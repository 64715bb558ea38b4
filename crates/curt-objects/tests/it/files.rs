//! The key files on disk: the port's suite, damage of every kind, and what crashes leave behind.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use curt_core::ErrorKind;
use curt_core::ports::{KeyFile, KeyFileLayout};
use curt_objects::DiskKeyFile;
use curt_testkit::sample::keys;
use tempfile::TempDir;

const LAYOUT: KeyFileLayout = KeyFileLayout {
    width: 7,
    block_keys: 10,
};
const KEYS: usize = 35;

curt_testkit::key_file_tests!({
    let folder = TempDir::new().unwrap();
    let files = Arc::new(DiskKeyFile::open(folder.path()).unwrap());
    (folder, files)
});
curt_testkit::reopening_tests!(
    {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_path_buf();
        let open = async |folder: &Path| Arc::new(DiskKeyFile::open(folder).unwrap()) as _;
        (folder, path, open)
    },
    key_file,
    survives_reopening
);

/// A folder with the published file `a`, and a `b` of the same shape with other keys.
struct Sample {
    folder: TempDir,
    files: DiskKeyFile,
}

impl Sample {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let files = DiskKeyFile::open(folder.path()).unwrap();
        for (name, prefix) in [("a", "k"), ("b", "x")] {
            let mut writer = files.create(name, LAYOUT).await.unwrap();
            writer.append(&keys(prefix, KEYS)).await.unwrap();
            writer.publish().await.unwrap();
        }
        Self { folder, files }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn rewrite<R>(&self, file: &str, change: impl FnOnce(&mut Vec<u8>) -> R) {
        let mut bytes = fs::read(self.path(file)).unwrap();
        change(&mut bytes);
        fs::write(self.path(file), bytes).unwrap();
    }

    fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).unwrap();
    }

    /// Flips a bit in place, which is much faster than writing the file anew.
    fn flip(&self, file: &str, place: usize, bit: u32) {
        let byte = fs::read(self.path(file)).unwrap()[place] ^ (1 << bit);
        let file = fs::OpenOptions::new()
            .write(true)
            .open(self.path(file))
            .unwrap();
        file.write_all_at(&[byte], place as u64).unwrap();
    }
}

type Damage = fn(&Sample);

/// Each way to damage the file `a`, with a position in the damaged block.
const DAMAGES: &[(&str, u64, Damage)] = &[
    ("keys cut by one byte", 0, |s| {
        s.rewrite("a.keys", |b| b.pop())
    }),
    ("keys cut by one key", 0, |s| {
        s.rewrite("a.keys", |b| b.truncate(b.len() - 7))
    }),
    ("keys cut by a block", 0, |s| {
        s.rewrite("a.keys", |b| b.truncate(b.len() - 70))
    }),
    ("keys cut to nothing", 0, |s| {
        s.rewrite("a.keys", Vec::clear)
    }),
    ("a byte at the end", 0, |s| {
        s.rewrite("a.keys", |b| b.push(b'x'))
    }),
    ("a newline at the end", 0, |s| {
        s.rewrite("a.keys", |b| b.push(b'\n'))
    }),
    ("a key at the end", 0, |s| {
        s.rewrite("a.keys", |b| b.extend(b"k000099"))
    }),
    ("a zero block at the end", 0, |s| {
        s.rewrite("a.keys", |b| b.resize(b.len() + 70, 0))
    }),
    ("a byte order mark", 0, |s| {
        s.rewrite("a.keys", |b| drop(b.splice(0..0, *b"\xEF\xBB\xBF")))
    }),
    ("a byte inserted", 0, |s| {
        s.rewrite("a.keys", |b| b.insert(3, b'x'))
    }),
    ("a byte removed", 0, |s| {
        s.rewrite("a.keys", |b| b.remove(3))
    }),
    ("CRLF after each key", 0, |s| {
        s.rewrite("a.keys", |b| {
            *b = b
                .chunks(7)
                .flat_map(|key| [key, b"\r\n"].concat())
                .collect();
        })
    }),
    ("LF after each key, the length kept", 0, |s| {
        s.rewrite("a.keys", |b| {
            let length = b.len();
            *b = b.chunks(7).flat_map(|key| [key, b"\n"].concat()).collect();
            b.truncate(length);
        })
    }),
    ("the lowest bit of the first byte", 0, |s| {
        s.rewrite("a.keys", |b| b[0] ^= 1)
    }),
    ("the highest bit of a byte", 12, |s| {
        s.rewrite("a.keys", |b| b[13 * 7] ^= 0x80)
    }),
    ("one bit of the last byte", 34, |s| {
        s.rewrite("a.keys", |b| b[KEYS * 7 - 1] ^= 4)
    }),
    ("the case of one letter", 20, |s| {
        s.rewrite("a.keys", |b| b[25 * 7] = b'K')
    }),
    ("two keys exchanged", 0, |s| {
        s.rewrite("a.keys", |b| {
            let (first, second) = b.split_at_mut(7);
            first.swap_with_slice(&mut second[..7]);
        })
    }),
    ("two blocks exchanged", 10, |s| {
        s.rewrite("a.keys", |b| {
            let (first, second) = b.split_at_mut(70);
            first.swap_with_slice(&mut second[..70]);
        })
    }),
    ("a block of zeros", 10, |s| {
        s.rewrite("a.keys", |b| b[70..140].fill(0))
    }),
    ("a block repeated", 10, |s| {
        s.rewrite("a.keys", |b| b.copy_within(0..70, 70))
    }),
    ("another file's keys", 0, |s| s.copy("b.keys", "a.keys")),
    ("another file's side file", 0, |s| {
        s.copy("b.sums", "a.sums")
    }),
    ("no keys", 0, |s| fs::remove_file(s.path("a.keys")).unwrap()),
    ("an empty side file", 0, |s| s.rewrite("a.sums", Vec::clear)),
    ("a side file cut", 0, |s| s.rewrite("a.sums", |b| b.pop())),
    ("a side file extended", 0, |s| {
        s.rewrite("a.sums", |b| b.push(0))
    }),
    ("a bit of the side file's header", 0, |s| {
        s.rewrite("a.sums", |b| b[25] ^= 2)
    }),
    ("a bit of a checksum", 0, |s| {
        s.rewrite("a.sums", |b| b[33] ^= 2)
    }),
    ("text in place of the side file", 0, |s| {
        fs::write(s.path("a.sums"), "width=7\n").unwrap()
    }),
    ("the keys in place of the side file", 0, |s| {
        s.copy("a.keys", "a.sums")
    }),
];

#[tokio::test]
async fn damage_of_every_kind_is_corrupt_and_nothing_of_the_block_is_returned() {
    assert!(DAMAGES.len() >= 20);
    for (what, position, damage) in DAMAGES {
        let sample = Sample::new().await;
        damage(&sample);
        for (first, count) in [(*position, 1), (*position, 3), (0, KEYS)] {
            let kind = sample
                .files
                .read("a", first, count)
                .await
                .map_err(|error| error.kind);
            assert_eq!(
                kind,
                Err(ErrorKind::Corrupt),
                "{what}, {count} keys from {first}"
            );
        }
        let other = sample.files.read("b", 0, KEYS).await.unwrap();
        assert_eq!(other, keys("x", KEYS), "{what}: the other file");
    }
}

#[tokio::test]
async fn every_flipped_bit_is_noticed() {
    let sample = Sample::new().await;
    for file in ["a.keys", "a.sums"] {
        let length = fs::read(sample.path(file)).unwrap().len();
        for place in 0..length {
            for bit in [0, 5, 7] {
                sample.flip(file, place, bit);
                let kind = sample
                    .files
                    .read("a", 0, KEYS)
                    .await
                    .map_err(|error| error.kind);
                assert_eq!(
                    kind,
                    Err(ErrorKind::Corrupt),
                    "bit {bit} of byte {place} of {file}"
                );
                sample.flip(file, place, bit);
            }
        }
    }
    assert_eq!(
        sample.files.read("a", 0, KEYS).await.unwrap(),
        keys("k", KEYS)
    );
}

#[tokio::test]
async fn damage_in_one_block_leaves_the_others_readable() {
    let sample = Sample::new().await;
    sample.rewrite("a.keys", |bytes| bytes[75] ^= 1);
    let all = keys("k", KEYS);
    assert_eq!(sample.files.read("a", 0, 10).await.unwrap(), all[..10]);
    assert_eq!(sample.files.read("a", 20, 15).await.unwrap(), all[20..]);
    for (first, count) in [(9, 2), (10, 1), (19, 1), (19, 2)] {
        let kind = sample
            .files
            .read("a", first, count)
            .await
            .map_err(|error| error.kind);
        assert_eq!(kind, Err(ErrorKind::Corrupt), "{count} keys from {first}");
    }
}

#[tokio::test]
async fn a_damaged_length_is_seen_by_stat() {
    let sample = Sample::new().await;
    sample.rewrite("a.keys", |bytes| bytes.push(b'\n'));
    let kind = sample.files.stat("a").await.map_err(|error| error.kind);
    assert_eq!(kind, Err(ErrorKind::Corrupt));
}

#[tokio::test]
async fn keys_lie_one_after_the_other_without_separators() {
    let sample = Sample::new().await;
    let bytes = fs::read(sample.path("a.keys")).unwrap();
    let want: String = keys("k", KEYS).iter().map(ToString::to_string).collect();
    assert_eq!(String::from_utf8(bytes).unwrap(), want);
}

/// What is in the folder after a crash between each two steps of a publication.
#[tokio::test]
async fn a_crash_in_publication_leaves_the_name_absent_and_free() {
    type Crash = fn(&Sample);
    let crashes: [(&str, Crash); 3] = [
        ("before any renaming", |s| {
            fs::write(s.path(".c.999-0.part"), "k000001").unwrap();
            fs::write(s.path(".c.999-1.part"), "half a side file").unwrap();
        }),
        ("after the keys were renamed", |s| {
            s.copy("a.keys", "c.keys");
            s.copy("a.sums", ".c.999-1.part");
        }),
        ("after the keys were renamed, cut short", |s| {
            fs::write(s.path("c.keys"), "k0000").unwrap();
        }),
    ];
    for (when, crash) in crashes {
        let sample = Sample::new().await;
        crash(&sample);
        let files = DiskKeyFile::open(sample.folder.path()).unwrap();
        assert_eq!(files.stat("c").await.unwrap(), None, "{when}");
        assert_eq!(
            files.names().await.unwrap(),
            ["a", "b"].map(Box::<str>::from),
            "{when}"
        );
        let mut writer = files.create("c", LAYOUT).await.unwrap();
        writer.append(&keys("n", 3)).await.unwrap();
        writer.publish().await.unwrap();
        assert_eq!(files.read("c", 0, 9).await.unwrap(), keys("n", 3), "{when}");
        let left = fs::read_dir(sample.folder.path()).unwrap();
        let drafts = left.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".part")
        });
        assert_eq!(drafts.count(), 0, "{when}: drafts left behind");
    }
}

#[tokio::test]
async fn a_sweep_spares_the_drafts_of_living_writers() {
    let sample = Sample::new().await;
    let mut slow = sample.files.create("slow", LAYOUT).await.unwrap();
    slow.append(&keys("s", 5)).await.unwrap();
    let other = DiskKeyFile::open(sample.folder.path()).unwrap();
    let quick = other.create("quick", LAYOUT).await.unwrap();
    drop(quick);
    slow.append(&keys("t", 5)).await.unwrap();
    slow.publish().await.unwrap();
    let read = other.read("slow", 0, 99).await.unwrap();
    assert_eq!(read, [keys("s", 5), keys("t", 5)].concat());
}

#[tokio::test]
async fn no_name_leaves_the_folder() {
    let sample = Sample::new().await;
    let outside = sample.folder.path().parent().unwrap().join("outside.sums");
    for name in [
        "../outside",
        "..",
        ".",
        "",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a\0",
        ".lock",
        "a b",
    ] {
        let create = sample.files.create(name, LAYOUT).await.map(|_| ());
        let stat = sample.files.stat(name).await.map(|_| ());
        let read = sample.files.read(name, 0, 1).await.map(|_| ());
        for refused in [create, stat, read] {
            let kind = refused.map_err(|error| error.kind);
            assert_eq!(kind, Err(ErrorKind::Invalid), "{name:?}");
        }
    }
    assert!(!outside.exists());
}

#[tokio::test]
async fn a_folder_that_is_gone_is_unavailable() {
    let sample = Sample::new().await;
    fs::remove_dir_all(sample.folder.path()).unwrap();
    let kind = sample.files.names().await.map_err(|error| error.kind);
    assert_eq!(kind, Err(ErrorKind::Unavailable));
    let created = sample.files.create("c", LAYOUT).await.map(|_| ());
    assert_eq!(
        created.map_err(|error| error.kind),
        Err(ErrorKind::Unavailable)
    );
}
