//! A block.
//!
//! ```text
//! version · segments: how many · for each: stream · partition · start of its window · first number · clicks ·
//! times: bytes that follow · differences to the click before, the sign in the lowest bit ·
//! for each column: bytes that follow · see `columns`
//! ```
//! All numbers but the version are varints. A segment is what one window brought. Together with a click's number in it
//! this names the click for good, whichever block it is moved to: pages go on behind a click, not behind a row.

use std::borrow::Cow;
use std::net::IpAddr;

use super::columns::{self, ColumnWriter};
use super::field::{DETAILS, FIELDS, OUTCOME, OWNER, TAGS};
use super::{BLOCK_CLICKS_MAX, subjects};
use crate::click::{Click, ClickOutcome, Dimension};
use crate::clock::UnixMillis;
use crate::owner::OwnerId;
use crate::ports::StreamPartition;
use crate::varint::{push, read_counted};

pub(super) const VERSION: u8 = 2;

pub(super) const LINK: u8 = 0;
pub(super) const ABSENT: u8 = 1;
pub(super) const BASE_URL: u8 = 2;

/// A block that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
pub struct ClickPlace {
    pub at: UnixMillis,
    /// Where the window began in its partition.
    pub from: u64,
    pub partition: StreamPartition,
    /// In its window.
    pub number: u64,
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

/// Writes a block from whole clicks.
#[derive(Default)]
pub struct BlockWriter {
    segments: Vec<Segment>,
    times: BlockTimes,
    columns: [ColumnWriter; FIELDS],
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
    pub fn push(&mut self, place: ClickPlace, click: &Click) {
        self.push_place(place);
        self.times.push(place.at);
        let outcome = outcome_bytes(&click.outcome);
        let owner = owner_bytes(click.owner);
        let tags = tags_bytes(click.tags.iter().map(|tag| &**tag));
        let address = address_bytes(click.address);
        let class = click.class as u8;
        let values: [&[u8]; DETAILS] = [
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
        let details = Dimension::DETAILS.map(|dimension| click.details.get(dimension));
        let details = details
            .iter()
            .map(|value| value.unwrap_or_default().as_bytes());
        for (column, value) in self
            .columns
            .iter_mut()
            .zip(values.into_iter().chain(details))
        {
            column.push(value);
        }
    }

    fn push_place(&mut self, place: ClickPlace) {
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

    /// `None`: there is no click.
    #[must_use]
    pub fn finish(self) -> Option<NewBlock> {
        let columns = self.columns.each_ref().map(ColumnWriter::column);
        let rows = BlockRows::encode(&self.times, &columns)?;
        Some(rows.placed(&self.segments))
    }
}

/// The times of the clicks of a block.
#[derive(Debug, Default)]
pub struct BlockTimes {
    /// First and last.
    range: Option<(UnixMillis, UnixMillis)>,
    before: i64,
    bytes: Vec<u8>,
    clicks: u32,
}

impl BlockTimes {
    pub fn push(&mut self, at: UnixMillis) {
        let at = at.clamp(UnixMillis(0), UnixMillis::MAX);
        let (first, last) = self.range.unwrap_or((at, at));
        self.range = Some((first.min(at), last.max(at)));
        let step = at.0 - self.before;
        push(
            &mut self.bytes,
            (step << 1 ^ step >> (i64::BITS - 1)).cast_unsigned(),
        );
        self.before = at.0;
        self.clicks += 1;
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clicks as usize
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clicks == 0
    }
}

/// A column of a block that is written.
pub struct BlockColumn<'a> {
    /// The different values, by their codes; each is that of some click.
    pub values: Vec<Cow<'a, [u8]>>,
    /// By click.
    pub codes: &'a [u16],
}

/// A block that does not know yet which window its clicks are of.
#[derive(Clone, Debug)]
pub struct BlockRows {
    first_at: UnixMillis,
    last_at: UnixMillis,
    clicks: u32,
    subjects: Vec<u8>,
    bytes: Vec<u8>,
}

impl BlockRows {
    /// Up to [`BLOCK_CLICKS_MAX`] clicks. `None`: there are none.
    #[must_use]
    pub fn encode(times: &BlockTimes, columns: &[BlockColumn<'_>; FIELDS]) -> Option<Self> {
        let (first_at, last_at) = times.range?;
        let mut bytes = Vec::new();
        push(&mut bytes, times.bytes.len() as u64);
        bytes.extend_from_slice(&times.bytes);
        for column in columns {
            columns::write(column, &mut bytes);
        }
        Some(Self {
            first_at,
            last_at,
            clicks: times.clicks,
            subjects: subjects::filter_of(&hash_subjects(columns)),
            bytes,
        })
    }

    /// How many clicks it has.
    #[must_use]
    pub fn clicks(&self) -> u32 {
        self.clicks
    }

    /// Memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.subjects.len()
    }

    /// The clicks of one window, from this number on.
    #[must_use]
    pub fn of_window(self, partition: StreamPartition, from: u64, first: u64) -> NewBlock {
        let clicks = self.clicks.into();
        self.placed(&[Segment {
            partition,
            from,
            first,
            clicks,
        }])
    }

    fn placed(self, segments: &[Segment]) -> NewBlock {
        let mut bytes = vec![VERSION];
        push(&mut bytes, segments.len() as u64);
        for segment in segments {
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
        bytes.extend_from_slice(&self.bytes);
        NewBlock {
            first_at: self.first_at,
            last_at: self.last_at,
            clicks: self.clicks,
            subjects: self.subjects,
            bytes,
        }
    }
}

/// From the different values, which are far fewer than the clicks.
fn hash_subjects(columns: &[BlockColumn<'_>; FIELDS]) -> Vec<u64> {
    let (owners, tags) = (&columns[OWNER], &columns[TAGS]);
    let outcomes = columns[OUTCOME].values.iter();
    let mut hashes: Vec<u64> = outcomes
        .map(|outcome| subjects::hash_outcome(outcome))
        .collect();
    let pairs = owners.codes.iter().zip(tags.codes);
    let mut pairs: Vec<(u16, u16)> = pairs.map(|(owner, tags)| (*owner, *tags)).collect();
    // Most clicks in a row have the same.
    pairs.dedup();
    pairs.sort_unstable();
    pairs.dedup();
    for (owner, own_tags) in pairs {
        let owner = &*owners.values[usize::from(owner)];
        if owner.is_empty() {
            continue;
        }
        hashes.push(subjects::hash_owner(owner));
        let mut own_tags = &*tags.values[usize::from(own_tags)];
        while let Ok(tag) = read_counted(&mut own_tags) {
            hashes.push(subjects::hash_tag(owner, tag));
        }
    }
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// An owner as a column has it: nothing for none.
#[must_use]
pub fn owner_bytes(owner: Option<OwnerId>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(owner) = owner {
        push(&mut bytes, owner.0);
    }
    bytes
}

/// Tags as a column has them.
#[must_use]
pub fn tags_bytes<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for tag in tags {
        push(&mut bytes, tag.len() as u64);
        bytes.extend_from_slice(tag.as_bytes());
    }
    bytes
}

/// An address as a column has it: nothing for none.
#[must_use]
pub fn address_bytes(address: Option<IpAddr>) -> Vec<u8> {
    match address {
        None => Vec::new(),
        Some(IpAddr::V4(address)) => address.octets().to_vec(),
        Some(IpAddr::V6(address)) => address.octets().to_vec(),
    }
}

/// What was followed as a column has it.
#[must_use]
pub fn outcome_bytes(outcome: &ClickOutcome) -> Vec<u8> {
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
