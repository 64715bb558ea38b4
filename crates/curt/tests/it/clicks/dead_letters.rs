//! Damage in the spool costs what is damaged and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;

use curt_clicks::record;
use curt_core::ports::SplitRecord;
use curt_core::{Attribution, DomainId, UnixMillis};
use curt_spool::{Spool, SpoolMetrics, SpoolSettings};
use serde_json::json;

use super::{Class, DROPPED, WAIT_MAX, clicks_of, metric, new_link};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const CLICKS: u64 = 2_000;
const VISITORS: u64 = 2;
/// Of a segment's file.
const HEADER_BYTES: usize = 64;
const WORD_BYTES: usize = 8;
/// Where in its first word a frame says what it is. Others hold texts that records share.
const MARK_AT: usize = 3;
const RECORD_MARK: u8 = 0xc1;

#[test]
fn dead_letters_are_kept_aside_while_redirects_go_on_and_all_others_are_counted() {
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=1h"]);
    let key = new_link(&site, &json!({}));
    click(site.http(), &key, CLICKS);
    // A stop would count them first.
    site.kill();
    let spool = site.folder().join("data/spool");
    let damaged = damage_every_hundredth(&spool);
    assert_eq!(damaged, CLICKS / 100);
    let foreign = append_foreign_records(&spool);

    site.change_settings(&["server.workers=2", "clicks.flush_every=50ms"]);
    let mut expected = CLICKS - damaged;
    for start in ["first", "second"] {
        site.restart();
        // Redirects are answered, and counted, beside the dead letters.
        thread::scope(|scope| {
            for _ in 0..VISITORS {
                scope.spawn(|| click(site.http(), &key, CLICKS / 4));
            }
        });
        expected += VISITORS * (CLICKS / 4);
        let mut api = site.api();
        eventually(WAIT_MAX, || match clicks_of(&mut api, &key).total() {
            counted if counted == expected => Ok(()),
            counted => Err(format!(
                "{counted} of {expected} clicks are counted at the {start} start"
            )),
        });
        for (reason, count) in foreign.iter().chain([&("checksum", damaged)]) {
            let sample = format!("curt_click_dead_letters_total{{reason=\"{reason}\"}}");
            let expected = if start == "first" { *count } else { 0 };
            assert_eq!(metric(&site, &sample), expected, "{reason}");
        }
        assert_eq!(metric(&site, DROPPED), 0);
        assert!(site.terminate().success(), "{start}");
    }
    let letters = fs::read_to_string(spool.join("dead-letters")).unwrap();
    let dead_letters = damaged + foreign.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(letters.lines().count() as u64, dead_letters);
    for letter in letters.lines() {
        let letter: serde_json::Value = serde_json::from_str(letter).unwrap();
        assert!(letter["reason"].is_string(), "{letter}");
        assert!(letter["bytes"].is_null(), "who came stands in {letter}");
    }
}

fn click(http: SocketAddr, key: &str, clicks: u64) {
    let mut api = Api::new(http, "");
    for _ in 0..clicks {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}

/// Whole frames with records that are no clicks, as a newer release or a bug would leave them; says how many of which.
fn append_foreign_records(spool: &Path) -> Vec<(&'static str, u64)> {
    let whole = encoded_click();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut record = whole.clone();
        change(&mut record);
        record.into_boxed_slice()
    };
    let records = [
        ("version", changed(&|record| record[0] = 99)),
        ("version", changed(&|record| record[0] = 0)),
        (
            "short",
            changed(&|record| record.truncate(record.len() / 2)),
        ),
        ("short", Box::default()),
        ("long", changed(&|record| record.extend([0; 9]))),
        ("range", changed(&|record| record[1] |= 0b1100_0000)),
    ];
    let settings = SpoolSettings {
        writers: 3,
        ..SpoolSettings::default()
    };
    let now = UnixMillis(jiff::Timestamp::now().as_millisecond());
    let opened = Spool::open(spool, &settings, now, &SpoolMetrics::default()).unwrap();
    let mut writer = opened.take_writer(0).unwrap();
    let mut foreign = BTreeMap::<&'static str, u64>::new();
    for (reason, record) in records {
        assert!(writer.write(SplitRecord::whole(&record)));
        *foreign.entry(reason).or_default() += 1;
    }
    foreign.into_iter().collect()
}

fn encoded_click() -> Vec<u8> {
    let mut bytes = Vec::new();
    let click = record::ClickRecord {
        at: UnixMillis(1_800_000_000_000),
        domain: DomainId::DEFAULT,
        key: b"abc",
        generation: 1,
        outcome: record::Outcome::Redirected,
        method: record::Method::Get,
        prefetch: false,
        address: [203, 0, 113, 7].into(),
        agent: b"agent",
        referrer: b"",
        language: b"de",
        utm: record::UtmText::default(),
        attribution: Attribution::default(),
    };
    record::encode(&click, &mut bytes);
    bytes
}

/// Turns a bit in the middle of every hundredth record; says how many that were.
fn damage_every_hundredth(spool: &Path) -> u64 {
    let (mut seen, mut damaged) = (0, 0);
    for path in segments(spool) {
        let mut bytes = fs::read(&path).unwrap();
        let mut at = HEADER_BYTES;
        while let Some(length) = payload_length(&bytes, at) {
            let is_record = bytes[at + MARK_AT] == RECORD_MARK;
            seen += u64::from(is_record);
            if is_record && seen % 100 == 50 {
                bytes[at + WORD_BYTES + length / 2] ^= 1;
                damaged += 1;
            }
            at += (WORD_BYTES + length).next_multiple_of(WORD_BYTES);
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(seen, CLICKS, "every click is in the spool");
    damaged
}

/// Of the frame whose first word is here; the lowest three bytes of it tell.
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
