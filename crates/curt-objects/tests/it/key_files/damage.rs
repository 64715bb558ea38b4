//! Files that are whole to their engine and not what was written.

use curt_core::ErrorKind;
use curt_core::ports::KeyFile;
use curt_testkit::sample::keys;

use super::publish;

const KEYS: usize = 35;
const KEY_BYTES: usize = KEYS * 7;

/// The engine's own way to a file, past the adapter.
pub(crate) trait Raw {
    async fn get(&self, name: &str) -> Vec<u8>;
    async fn put(&self, name: &str, bytes: Vec<u8>);
}

/// Changes a file; the second one is another file of the same shape.
type Damage = fn(&mut Vec<u8>, &[u8]);

/// Each with the position of a key in the damaged block.
const DAMAGES: &[(&str, u64, Damage)] = &[
    ("one byte cut", 0, |b, _| b.truncate(b.len() - 1)),
    ("a key's length cut", 0, |b, _| b.truncate(b.len() - 7)),
    ("a block's length cut", 0, |b, _| b.truncate(b.len() - 70)),
    ("the description cut", 0, |b, _| b.truncate(KEY_BYTES)),
    ("all but a block cut", 0, |b, _| b.truncate(70)),
    ("all but seven bytes cut", 0, |b, _| b.truncate(7)),
    ("cut to nothing", 0, |b, _| b.clear()),
    ("a byte at the end", 0, |b, _| b.push(b'x')),
    ("a newline at the end", 0, |b, _| b.push(b'\n')),
    ("a key at the end", 0, |b, _| b.extend(b"k000099")),
    ("zeros at the end", 0, |b, _| b.resize(b.len() + 70, 0)),
    ("a byte order mark", 0, |b, _| {
        drop(b.splice(0..0, *b"\xEF\xBB\xBF"))
    }),
    ("a byte inserted", 0, |b, _| b.insert(3, b'x')),
    ("a key inserted", 0, |b, _| {
        drop(b.splice(0..0, *b"k000099"))
    }),
    ("a byte removed", 0, |b, _| drop(b.drain(3..4))),
    ("a key removed", 0, |b, _| drop(b.drain(..7))),
    ("CRLF after each key", 0, |b, _| {
        *b = b
            .chunks(7)
            .flat_map(|key| [key, b"\r\n"].concat())
            .collect()
    }),
    ("LF after each key, the length kept", 0, |b, _| {
        let lines: Vec<u8> = b.chunks(7).flat_map(|key| [key, b"\n"].concat()).collect();
        b[..KEY_BYTES].copy_from_slice(&lines[..KEY_BYTES]);
    }),
    ("the lowest bit of the first byte", 0, |b, _| b[0] ^= 1),
    ("the highest bit of a byte", 12, |b, _| b[13 * 7] ^= 0x80),
    ("a bit of the last key", 34, |b, _| b[KEY_BYTES - 1] ^= 4),
    ("the case of one letter", 20, |b, _| b[25 * 7] = b'K'),
    ("two keys exchanged", 0, |b, _| {
        let (first, second) = b.split_at_mut(7);
        first.swap_with_slice(&mut second[..7]);
    }),
    ("two blocks exchanged", 10, |b, _| {
        let (first, second) = b.split_at_mut(70);
        first.swap_with_slice(&mut second[..70]);
    }),
    ("a block of zeros", 10, |b, _| b[70..140].fill(0)),
    ("a block repeated", 10, |b, _| b.copy_within(0..70, 70)),
    ("another file's keys", 0, |b, other| {
        b[..KEY_BYTES].copy_from_slice(&other[..KEY_BYTES])
    }),
    ("another file's description", 0, |b, other| {
        b[KEY_BYTES..].copy_from_slice(&other[KEY_BYTES..])
    }),
    ("a bit of the description's header", 0, |b, _| {
        b[KEY_BYTES + 25] ^= 2
    }),
    ("a bit of a checksum", 0, |b, _| b[KEY_BYTES + 33] ^= 2),
    ("a bit of the length at the end", 0, |b, _| {
        *b.last_mut().unwrap() ^= 1
    }),
    ("an impossible length at the end", 0, |b, _| {
        let end = b.len() - 8;
        b[end..].fill(0xFF);
    }),
    ("the file twice", 0, |b, _| b.extend_from_within(..)),
    ("the description twice", 0, |b, _| {
        b.extend_from_within(KEY_BYTES..)
    }),
    ("text in its place", 0, |b, _| {
        *b = b"width=7\nkeys=35\n".to_vec()
    }),
    ("zeros in its place", 0, |b, _| b.fill(0)),
];

/// Damage of every kind is `Corrupt`, and nothing of the block is returned.
pub(crate) async fn is_always_noticed(files: &dyn KeyFile, raw: &impl Raw) {
    publish(files, "a", "k", KEYS).await.unwrap();
    publish(files, "b", "x", KEYS).await.unwrap();
    let (sound, other) = (raw.get("a").await, raw.get("b").await);
    for (what, position, damage) in DAMAGES {
        let mut bytes = sound.clone();
        damage(&mut bytes, &other);
        assert_ne!(bytes, sound, "{what}");
        raw.put("a", bytes).await;
        for (first, count) in [(*position, 1), (*position, 3), (0, KEYS)] {
            let read = files.read("a", first, count).await;
            let kind = read.map_err(|error| error.kind);
            assert_eq!(
                kind,
                Err(ErrorKind::Corrupt),
                "{what}, {count} keys from {first}"
            );
        }
    }
    let read = files.read("b", 0, KEYS).await.unwrap();
    assert_eq!(read, keys("x", KEYS), "the other file");
    raw.put("a", sound).await;
    let read = files.read("a", 0, KEYS).await.unwrap();
    assert_eq!(read, keys("k", KEYS), "put back");
}

/// A damaged block leaves the others readable.
pub(crate) async fn stays_in_its_block(files: &dyn KeyFile, raw: &impl Raw) {
    publish(files, "c", "k", KEYS).await.unwrap();
    let mut bytes = raw.get("c").await;
    bytes[75] ^= 1;
    raw.put("c", bytes).await;
    let all = keys("k", KEYS);
    assert_eq!(files.read("c", 0, 10).await.unwrap(), all[..10]);
    assert_eq!(files.read("c", 20, 15).await.unwrap(), all[20..]);
    for (first, count) in [(9, 2), (10, 1), (19, 1), (19, 2)] {
        let kind = files
            .read("c", first, count)
            .await
            .map_err(|error| error.kind);
        assert_eq!(kind, Err(ErrorKind::Corrupt), "{count} keys from {first}");
    }
}
