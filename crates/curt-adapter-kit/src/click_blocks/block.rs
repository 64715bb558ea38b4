//! A block.
//!
//! ```text
//! version · segments: how many · for each: stream · partition · start of its window · first number · clicks ·
//! times: bytes that follow · differences to the click before, the sign in the lowest bit ·
//! for each column: bytes that follow · see `columns`
//! ```
//! All numbers but the version are varints. A segment is what one window brought. Together with a click's number in it
//! this names the click for good, whichever block it is moved to: pages go on behind a click, not behind a row.

use std::collections::HashSet;
use std::net::IpAddr;

use curt_core::ports::StreamPartition;
use curt_core::{Click, ClickOutcome, OwnerId, UnixMillis};

use super::columns::ColumnWriter;
use super::{BLOCK_CLICKS_MAX, subjects};
use crate::varint::{push, take_counted};

pub(super) const VERSION: u8 = 1;

/// The columns, by their place.
pub(super) const OUTCOME: usize = 0;
pub(super) const OWNER: usize = 1;
pub(super) const TAGS: usize = 2;
pub(super) const CLASS: usize = 3;
pub(super) const COUNTRY: usize = 4;
pub(super) const BROWSER: usize = 5;
pub(super) const SYSTEM: usize = 6;
pub(super) const DEVICE: usize = 7;
pub(super) const REFERRER: usize = 8;
pub(super) const LANGUAGE: usize = 9;
pub(super) const ADDRESS: usize = 10;
pub(super) const FIELDS: usize = 11;

pub(super) const LINK: u8 = 0;
pub(super) const ABSENT: u8 = 1;
pub(super) const BASE_URL: u8 = 2;

/// A block that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBlock {
    pub first_at: UnixMillis,
    pub last_at: UnixMillis,
    pub clicks: u32,
    pub subjects: Vec<u8>,
    pub bytes: Vec<u8>,
}

impl NewBlock {
    /// What it takes, without the engine's own.
    #[must_use]
    pub fn size(&self) -> u32 {
        u32::try_from(self.bytes.len() + self.subjects.len()).unwrap_or(u32::MAX)
    }
}

/// The name of a click, in the order of time. Clicks of one instant follow each other as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClickPlace {
    pub(super) at: UnixMillis,
    /// Where the window began in its partition.
    pub(super) from: u64,
    pub(super) partition: StreamPartition,
    /// In its window.
    pub(super) number: u64,
}

/// The blocks of a window.
#[must_use]
pub fn encode(partition: StreamPartition, from: u64, clicks: &[Click]) -> Vec<NewBlock> {
    let mut blocks = Vec::new();
    let mut number = 0;
    for clicks in clicks.chunks(BLOCK_CLICKS_MAX) {
        let mut writer = BlockWriter::default();
        for click in clicks {
            let at = click.at;
            writer.push(
                ClickPlace {
                    at,
                    from,
                    partition,
                    number,
                },
                click,
            );
            number += 1;
        }
        blocks.extend(writer.finish());
    }
    blocks
}

#[derive(Default)]
pub(super) struct BlockWriter {
    segments: Vec<Segment>,
    /// First and last.
    range: Option<(UnixMillis, UnixMillis)>,
    before: i64,
    times: Vec<u8>,
    columns: [ColumnWriter; FIELDS],
    rows: u32,
}

/// What one window brought.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) partition: StreamPartition,
    pub(super) from: u64,
    pub(super) first: u64,
    pub(super) clicks: u64,
}

impl BlockWriter {
    pub(super) fn push(&mut self, place: ClickPlace, click: &Click) {
        self.push_place(place);
        let outcome = outcome_bytes(&click.outcome);
        let owner = owner_bytes(click.owner);
        let mut tags = Vec::new();
        for tag in &click.tags {
            push(&mut tags, tag.len() as u64);
            tags.extend_from_slice(tag.as_bytes());
        }
        let address = match click.address {
            None => Vec::new(),
            Some(IpAddr::V4(address)) => address.octets().to_vec(),
            Some(IpAddr::V6(address)) => address.octets().to_vec(),
        };
        let class = click.class as u8;
        let values: [&[u8]; FIELDS] = [
            &outcome,
            &owner,
            &tags,
            &[class],
            click.country.as_bytes(),
            click.browser.as_bytes(),
            click.system.as_bytes(),
            click.device.as_bytes(),
            click.referrer.as_bytes(),
            click.language.as_bytes(),
            &address,
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
        self.rows += 1;
    }

    fn push_place(&mut self, place: ClickPlace) {
        let at = place.at.clamp(UnixMillis(0), UnixMillis::MAX);
        let (first, last) = self.range.unwrap_or((at, at));
        self.range = Some((first.min(at), last.max(at)));
        let step = at.0 - self.before;
        push(
            &mut self.times,
            (step << 1 ^ step >> (i64::BITS - 1)).cast_unsigned(),
        );
        self.before = at.0;
        let goes_on = |segment: &&mut Segment| {
            (segment.partition, segment.from) == (place.partition, place.from)
                && segment.first + segment.clicks == place.number
        };
        match self.segments.last_mut().filter(goes_on) {
            Some(segment) => segment.clicks += 1,
            None => self.segments.push(Segment {
                partition: place.partition,
                from: place.from,
                first: place.number,
                clicks: 1,
            }),
        }
    }

    /// From the different values, which are far fewer than the clicks.
    fn hash_subjects(&self) -> HashSet<u64> {
        let (owners, tags) = (&self.columns[OWNER], &self.columns[TAGS]);
        let outcomes = self.columns[OUTCOME].values();
        let mut hashes: HashSet<u64> = outcomes.into_iter().map(subjects::hash_outcome).collect();
        let pairs: HashSet<(u16, u16)> = owners.codes().zip(tags.codes()).collect();
        let (owners, tags) = (owners.values(), tags.values());
        for (owner, tags) in pairs
            .iter()
            .map(|(owner, own)| (owners[usize::from(*owner)], tags[usize::from(*own)]))
            .filter(|(owner, _)| !owner.is_empty())
        {
            hashes.insert(subjects::hash_owner(owner));
            let mut tags = tags;
            while let Ok(tag) = take_counted(&mut tags) {
                hashes.insert(subjects::hash_tag(owner, tag));
            }
        }
        hashes
    }

    /// `None`: there is no click.
    pub(super) fn finish(self) -> Option<NewBlock> {
        let (first_at, last_at) = self.range?;
        let mut bytes = vec![VERSION];
        push(&mut bytes, self.segments.len() as u64);
        for segment in &self.segments {
            let StreamPartition { stream, number } = segment.partition;
            for number in [
                stream.0,
                u64::from(number),
                segment.from,
                segment.first,
                segment.clicks,
            ] {
                push(&mut bytes, number);
            }
        }
        push(&mut bytes, self.times.len() as u64);
        bytes.extend_from_slice(&self.times);
        for column in &self.columns {
            column.write_to(&mut bytes);
        }
        Some(NewBlock {
            first_at,
            last_at,
            clicks: self.rows,
            subjects: subjects::filter_of(&self.hash_subjects()),
            bytes,
        })
    }
}

/// Nothing for none.
pub(super) fn owner_bytes(owner: Option<OwnerId>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(owner) = owner {
        push(&mut bytes, owner.0);
    }
    bytes
}

pub(super) fn outcome_bytes(outcome: &ClickOutcome) -> Vec<u8> {
    let mut bytes = Vec::new();
    match outcome {
        ClickOutcome::Link(id, generation) => {
            bytes.push(LINK);
            push(&mut bytes, id.domain.0.into());
            push(&mut bytes, (*generation).into());
            bytes.extend_from_slice(id.key.as_bytes());
        }
        ClickOutcome::Absent(key) => {
            bytes.push(ABSENT);
            bytes.extend_from_slice(key.as_bytes());
        }
        ClickOutcome::BaseUrl => bytes.push(BASE_URL),
    }
    bytes
}
