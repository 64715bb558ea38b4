//! What an aggregate has counted, as [`ClickCounters`](curt_core::ports::ClickCounters) keep it.
//!
//! Counts are sums under a name; visitors and single clicks, which a fast store cannot add up, are pieces.
//!
//! ```text
//! name   subject: bytes that follow · subject · hour since 1970 · dimension · value
//! piece  version · visitors: how many · for each: subject: bytes that follow · subject · day · sketch: bytes that follow ·
//!        sketch · blocks to the end, each: bytes that follow · block
//! ```
//! All numbers but version and dimension are varints. Windows live for hours: bytes that another version wrote are
//! [`Damaged`], and their clicks are read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use curt_core::click_block::{BLOCK_CLICKS_MAX, Block, BlockWriter, ClickPlace, NewBlock};
use curt_core::ports::{Counted, CounterWindow, StreamPartition};
use curt_core::varint::{Damaged, push, read, read_counted};
use curt_core::{
    ClickSubject, Day, Dimension, DomainId, Key, LinkId, OwnerId, Rollup, Sketch, SubjectDay,
    UnixMillis,
};

use super::Aggregated;

const VERSION: u8 = 1;
const HOUR_MILLIS: i64 = 3_600_000;

impl Aggregated {
    /// The sums by their names.
    #[must_use]
    pub fn counts(&self) -> Vec<Counted> {
        let mut counts = Vec::new();
        for day in &self.days {
            let mut subject = Vec::new();
            push_counted(&mut subject, &subject_bytes(&day.subject));
            counts.extend(day.rollups.iter().map(|rollup| {
                let mut name = subject.clone();
                push(&mut name, (rollup.hour.0 / HOUR_MILLIS).cast_unsigned());
                name.push(rollup.dimension as u8);
                name.extend_from_slice(rollup.value.as_bytes());
                Counted {
                    name: name.into(),
                    count: rollup.count,
                }
            }));
        }
        counts
    }

    /// Visitors and single clicks.
    #[must_use]
    pub fn piece(&self) -> Vec<u8> {
        let mut piece = vec![VERSION];
        let has_visitors = |day: &&SubjectDay| !day.visitors.is_empty();
        let days: Vec<_> = self.days.iter().filter(has_visitors).collect();
        push(&mut piece, days.len() as u64);
        for day in days {
            push_counted(&mut piece, &subject_bytes(&day.subject));
            push(&mut piece, day.day.number().into());
            push_counted(&mut piece, &day.visitors.to_bytes());
        }
        for block in &self.blocks {
            push_counted(&mut piece, &block.bytes);
        }
        piece
    }

    /// Reads a partition's window.
    pub fn from_counters(
        partition: StreamPartition,
        window: &CounterWindow,
    ) -> Result<Self, Damaged> {
        let mut days = Days::default();
        for counted in &window.counts {
            days.add_count(counted)?;
        }
        let mut blocks = MergedBlocks {
            partition,
            from: window.from,
            clicks: 0,
            open: BlockWriter::default(),
            full: Vec::new(),
        };
        for piece in &window.pieces {
            let mut rest = days.add_visitors(piece)?;
            while !rest.is_empty() {
                blocks.add(read_counted(&mut rest)?)?;
            }
        }
        Ok(Self {
            clicks: days.clicks(),
            days: days.0.into_values().collect(),
            blocks: blocks.finish(),
        })
    }
}

#[derive(Default)]
struct Days(BTreeMap<(ClickSubject, Day), SubjectDay>);

impl Days {
    fn day(&mut self, subject: ClickSubject, day: Day) -> &mut SubjectDay {
        let known = self.0.entry((subject, day));
        known.or_insert_with_key(|(subject, day)| SubjectDay {
            subject: subject.clone(),
            day: *day,
            rollups: Vec::new(),
            visitors: Sketch::new(),
        })
    }

    fn add_count(&mut self, counted: &Counted) -> Result<(), Damaged> {
        let mut rest = &counted.name[..];
        let subject = read_subject(read_counted(&mut rest)?)?;
        let hour = i64::try_from(read(&mut rest)?).map_err(|_| Damaged)?;
        let hour = UnixMillis(hour.checked_mul(HOUR_MILLIS).ok_or(Damaged)?);
        let (&dimension, value) = rest.split_first().ok_or(Damaged)?;
        let rollup = Rollup {
            hour,
            dimension: Dimension::from_stored(dimension).ok_or(Damaged)?,
            value: Arc::from(read_text(value)?),
            count: counted.count,
        };
        self.day(subject, Day::of(hour)).rollups.push(rollup);
        Ok(())
    }

    /// Returns what comes behind the visitors.
    fn add_visitors<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], Damaged> {
        let Some((&VERSION, mut rest)) = piece.split_first() else {
            return Err(Damaged);
        };
        for _ in 0..read(&mut rest)? {
            let subject = read_subject(read_counted(&mut rest)?)?;
            let day = Day::numbered(read_u32(&mut rest)?);
            let visitors = Sketch::from_bytes(read_counted(&mut rest)?).map_err(|_| Damaged)?;
            self.day(subject, day).visitors.merge(&visitors);
        }
        Ok(rest)
    }

    /// Every click counts once for everything.
    fn clicks(&self) -> u64 {
        let days = self.0.values();
        let of_all = days.filter(|day| day.subject == ClickSubject::Everything);
        let rollups = of_all.flat_map(|day| &day.rollups);
        let classes = rollups.filter(|rollup| rollup.dimension == Dimension::Class);
        classes.map(|rollup| rollup.count).sum()
    }
}

/// Single clicks, numbered through the window: each addition brought a block of its own.
struct MergedBlocks {
    partition: StreamPartition,
    from: u64,
    clicks: usize,
    open: BlockWriter,
    full: Vec<NewBlock>,
}

impl MergedBlocks {
    fn add(&mut self, block: &[u8]) -> Result<(), Damaged> {
        let block = Block::read(block)?;
        let clicks = block.clicks()?;
        for (row, place) in block.places().into_iter().enumerate() {
            let place = ClickPlace {
                at: place.at,
                from: self.from,
                partition: self.partition,
                number: self.clicks as u64,
            };
            self.open.push(place, &clicks.get(row)?);
            self.clicks += 1;
            if self.clicks.is_multiple_of(BLOCK_CLICKS_MAX) {
                self.end_block();
            }
        }
        Ok(())
    }

    fn end_block(&mut self) {
        self.full.extend(std::mem::take(&mut self.open).finish());
    }

    fn finish(mut self) -> Vec<NewBlock> {
        self.end_block();
        self.full
    }
}

fn push_counted(bytes: &mut Vec<u8>, value: &[u8]) {
    push(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn subject_bytes(subject: &ClickSubject) -> Vec<u8> {
    let mut bytes = Vec::new();
    match subject {
        ClickSubject::Everything => bytes.push(0),
        ClickSubject::Orphans => bytes.push(1),
        ClickSubject::Owner(owner) => {
            bytes.push(2);
            push(&mut bytes, owner.0);
        }
        ClickSubject::Tag(owner, tag) => {
            bytes.push(3);
            push(&mut bytes, owner.0);
            bytes.extend_from_slice(tag.as_bytes());
        }
        ClickSubject::Link(id, generation) => {
            bytes.push(4);
            push(&mut bytes, id.domain.0.into());
            push(&mut bytes, (*generation).into());
            bytes.extend_from_slice(id.key.as_bytes());
        }
    }
    bytes
}

fn read_subject(bytes: &[u8]) -> Result<ClickSubject, Damaged> {
    let (kind, mut rest) = bytes.split_first().ok_or(Damaged)?;
    match (*kind, rest) {
        (0, []) => Ok(ClickSubject::Everything),
        (1, []) => Ok(ClickSubject::Orphans),
        (2, _) => {
            let owner = OwnerId(read(&mut rest)?);
            rest.is_empty()
                .then_some(ClickSubject::Owner(owner))
                .ok_or(Damaged)
        }
        (3, _) => {
            let owner = OwnerId(read(&mut rest)?);
            Ok(ClickSubject::Tag(owner, read_text(rest)?.into()))
        }
        (4, _) => {
            let (domain, generation) = (read_u32(&mut rest)?, read_u32(&mut rest)?);
            let key = Key::parse(read_text(rest)?).map_err(|_| Damaged)?;
            let id = LinkId::new(DomainId(domain), key);
            Ok(ClickSubject::Link(id, generation))
        }
        _ => Err(Damaged),
    }
}

fn read_u32(bytes: &mut &[u8]) -> Result<u32, Damaged> {
    u32::try_from(read(bytes)?).map_err(|_| Damaged)
}

fn read_text(bytes: &[u8]) -> Result<&str, Damaged> {
    str::from_utf8(bytes).map_err(|_| Damaged)
}
