//! Damage in the spool costs what is damaged and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Kind, PATIENCE, metric, new_link, visits_of};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const VISITS: u64 = 2_000;
/// Of a segment's file.
const HEADER_BYTES: usize = 64;
const WORD_BYTES: usize = 8;

#[test]
fn one_percent_of_poison_is_kept_aside_and_all_others_are_counted() {
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=1h"]);
    let key = new_link(&site, &json!({}));
    let mut api = Api::new(site.http(), "");
    for _ in 0..VISITS {
        let answer = api.send(&Kind::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
    // A stop would count them first.
    site.kill();
    let spool = site.folder().join("data/spool");
    let damaged = damage_every_hundredth(&spool);
    assert_eq!(damaged, VISITS / 100);

    site.change_settings(&["server.workers=2", "clicks.flush_every=50ms"]);
    for start in ["first", "second"] {
        site.restart();
        let mut api = site.api();
        eventually(PATIENCE, || match visits_of(&mut api, &key).total() {
            counted if counted == VISITS - damaged => Ok(()),
            counted => Err(format!("{counted} visits are counted at the {start} start")),
        });
        let expected = if start == "first" { damaged } else { 0 };
        assert_eq!(metric(&site, "curt_clicks_poisoned_total"), expected);
        assert!(site.terminate().success(), "{start}");
    }
    let letters = fs::read_to_string(spool.join("dead-letters")).unwrap();
    assert_eq!(letters.lines().count() as u64, damaged);
    for letter in letters.lines() {
        let letter: serde_json::Value = serde_json::from_str(letter).unwrap();
        assert_eq!(letter["reason"], "checksum", "{letter}");
        assert!(letter["bytes"].is_null(), "who came stands in {letter}");
    }
}

/// Turns a bit in the middle of every hundredth record; says how many that were.
fn damage_every_hundredth(spool: &Path) -> u64 {
    let (mut seen, mut damaged) = (0, 0);
    for path in segments(spool) {
        let mut bytes = fs::read(&path).unwrap();
        let mut at = HEADER_BYTES;
        while let Some(length) = payload_length(&bytes, at) {
            seen += 1;
            if seen % 100 == 50 {
                bytes[at + WORD_BYTES + length / 2] ^= 1;
                damaged += 1;
            }
            at += (WORD_BYTES + length).next_multiple_of(WORD_BYTES);
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(seen, VISITS, "every visit is in the spool");
    damaged
}

/// Of the record whose first word is here; the lowest three bytes of it tell.
fn payload_length(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<WORD_BYTES>()?;
    let word = u64::from_le_bytes(*word);
    (word != 0).then_some((word & 0xff_ffff) as usize)
}

fn segments(spool: &Path) -> Vec<PathBuf> {
    let partitions = fs::read_dir(spool)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = partitions
        .filter(|path| path.is_dir())
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect()
}
