//! Reading a block: what it has of a subject, and whole clicks.

use std::net::IpAddr;
use std::ops::Range;

use super::BLOCK_CLICKS_MAX;
use super::block::{
    ABSENT, BASE_URL, ClickPlace, LINK, Segment, VERSION, outcome_bytes, owner_bytes,
};
use super::columns::Column;
use super::field::{
    ADDRESS, BROWSER, CLASS, COUNTRY, DETAILS, DEVICE, FIELDS, LANGUAGE, OUTCOME, OWNER, REFERRER,
    SYSTEM, TAGS,
};
use crate::click::{Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Dimension};
use crate::clock::UnixMillis;
use crate::key::{DomainId, Key, LinkId};
use crate::owner::OwnerId;
use crate::ports::{ClickFilter, StreamId, StreamPartition};
use crate::varint::{Damaged, read, read_counted};

/// A block that is read. A column is taken apart when it is asked for.
pub struct Block<'a> {
    segments: Vec<Segment>,
    times: Vec<UnixMillis>,
    columns: [&'a [u8]; FIELDS],
}

impl<'a> Block<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let Some((&VERSION, mut rest)) = bytes.split_first() else {
            return Err(Damaged);
        };
        let segments = read_segments(&mut rest)?;
        let rows = segments.iter().map(|segment| segment.clicks);
        let rows = rows.fold(0, u64::saturating_add);
        let rows = usize::try_from(rows).map_err(|_| Damaged)?;
        if rows > BLOCK_CLICKS_MAX {
            return Err(Damaged);
        }
        let times = read_times(read_counted(&mut rest)?, rows)?;
        let mut columns: [&[u8]; FIELDS] = [&[]; FIELDS];
        for column in &mut columns {
            *column = read_counted(&mut rest)?;
        }
        match rest {
            [] => Ok(Self {
                segments,
                times,
                columns,
            }),
            _ => Err(Damaged),
        }
    }

    /// The names of all clicks, by row.
    pub fn places(&self) -> Vec<ClickPlace> {
        let numbers = self.segments.iter().flat_map(|segment| {
            (segment.first..segment.first + segment.clicks).map(move |number| (segment, number))
        });
        let place = |(at, (segment, number)): (&UnixMillis, (&Segment, u64))| ClickPlace {
            at: *at,
            from: segment.from,
            partition: segment.partition,
            number,
        };
        self.times.iter().zip(numbers).map(place).collect()
    }

    fn column(&self, field: usize) -> Result<Column<'a>, Damaged> {
        Column::read(self.columns[field], self.times.len())
    }

    /// Per row, whether it is a click of the subject in the range that the filter takes.
    pub fn matches(
        &self,
        subject: &ClickSubject,
        filter: &ClickFilter,
        range: Range<UnixMillis>,
    ) -> Result<Vec<bool>, Damaged> {
        let mut rows: Vec<bool> = self.times.iter().map(|at| range.contains(at)).collect();
        match subject {
            ClickSubject::Everything => {}
            ClickSubject::Orphans => {
                self.keep(&mut rows, OUTCOME, |value| value.first() != Some(&LINK))?
            }
            ClickSubject::Owner(owner) => self.keep_owner(&mut rows, *owner)?,
            ClickSubject::Tag(owner, tag) => {
                self.keep_owner(&mut rows, *owner)?;
                self.keep(&mut rows, TAGS, |value| has_tag(value, tag))?;
            }
            ClickSubject::Link(id, generation) => {
                let own = outcome_bytes(&ClickOutcome::Link(id.clone(), *generation));
                self.keep(&mut rows, OUTCOME, |value| value == own)?;
            }
        }
        if let Some(class) = filter.class {
            let is_of_class = |value: &[u8]| read_class(value).is_ok_and(|own| own == class);
            self.keep(&mut rows, CLASS, is_of_class)?;
        }
        for (dimension, wanted) in &filter.values {
            let field = field_of(*dimension);
            self.keep(&mut rows, field, |value| {
                text_in(*dimension, value).is_some_and(|own| own == wanted.as_bytes())
            })?;
        }
        Ok(rows)
    }

    fn keep_owner(&self, rows: &mut [bool], owner: OwnerId) -> Result<(), Damaged> {
        let own = owner_bytes(Some(owner));
        self.keep(rows, OWNER, |value| value == own)
    }

    /// Each value is judged once, however many rows have it.
    fn keep(
        &self,
        rows: &mut [bool],
        field: usize,
        mut takes: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Damaged> {
        let column = self.column(field)?;
        let taken: Vec<bool> = column.values.iter().map(|value| takes(value)).collect();
        if taken.iter().all(|is_taken| *is_taken) {
            return Ok(());
        }
        for (row, code) in rows.iter_mut().zip(&column.codes) {
            *row &= taken[usize::from(*code)];
        }
        Ok(())
    }

    /// How many of the rows have each value of a dimension; those to which it does not apply are left out.
    pub fn count_values(
        &self,
        dimension: Dimension,
        rows: &[bool],
    ) -> Result<Vec<(&'a [u8], u64)>, Damaged> {
        let column = self.column(field_of(dimension))?;
        let mut counts = vec![0_u64; column.values.len()];
        for (row, code) in rows.iter().zip(&column.codes) {
            counts[usize::from(*code)] += u64::from(*row);
        }
        let counted = column.values.into_iter().zip(counts);
        let counted = counted.filter(|(_, count)| *count > 0);
        let text = |(value, count)| Some((text_in(dimension, value)?, count));
        Ok(counted.filter_map(text).collect())
    }

    /// Takes all columns apart, for reading whole clicks.
    pub fn clicks(&self) -> Result<BlockClicks<'a>, Damaged> {
        let columns = self.columns.iter();
        let columns = columns.map(|column| Column::read(column, self.times.len()));
        Ok(BlockClicks {
            times: self.times.clone(),
            columns: columns.collect::<Result<_, _>>()?,
        })
    }
}

/// Clicks by row.
pub struct BlockClicks<'a> {
    times: Vec<UnixMillis>,
    columns: Vec<Column<'a>>,
}

impl BlockClicks<'_> {
    pub fn get(&self, row: usize) -> Result<Click, Damaged> {
        Ok(Click {
            at: self.times[row],
            outcome: read_outcome(self.value(row, OUTCOME))?,
            owner: match self.value(row, OWNER) {
                [] => None,
                mut owner => Some(OwnerId(read(&mut owner)?)),
            },
            tags: read_tags(self.value(row, TAGS))?,
            class: read_class(self.value(row, CLASS))?,
            country: self.text(row, COUNTRY)?,
            browser: self.text(row, BROWSER)?,
            system: self.text(row, SYSTEM)?,
            device: self.text(row, DEVICE)?,
            referrer: self.text(row, REFERRER)?,
            language: self.text(row, LANGUAGE)?,
            details: self.details(row)?,
            address: read_address(self.value(row, ADDRESS))?,
        })
    }

    fn value(&self, row: usize, field: usize) -> &[u8] {
        self.columns[field].value(row)
    }

    fn details(&self, row: usize) -> Result<ClickDetails, Damaged> {
        let mut details = ClickDetails::default();
        for (field, dimension) in (DETAILS..).zip(Dimension::DETAILS) {
            details.set(dimension, self.text(row, field)?);
        }
        Ok(details)
    }

    fn text(&self, row: usize, field: usize) -> Result<Box<str>, Damaged> {
        read_text(self.value(row, field))
    }
}

fn read_segments(rest: &mut &[u8]) -> Result<Vec<Segment>, Damaged> {
    let count = read(rest)?;
    let segment = |_| {
        let segment = Segment {
            partition: StreamPartition {
                stream: StreamId(read(rest)?),
                number: u32::try_from(read(rest)?).map_err(|_| Damaged)?,
            },
            from: read(rest)?,
            first: read(rest)?,
            clicks: read(rest)?,
        };
        let end = segment.first.checked_add(segment.clicks);
        end.map(|_| segment).ok_or(Damaged)
    };
    (0..count).map(segment).collect()
}

fn read_times(mut bytes: &[u8], rows: usize) -> Result<Vec<UnixMillis>, Damaged> {
    let mut at = 0_i64;
    let mut times = Vec::with_capacity(rows);
    for _ in 0..rows {
        let step = read(&mut bytes)?;
        let step = (step >> 1).cast_signed() ^ -(step & 1).cast_signed();
        at = at.checked_add(step).ok_or(Damaged)?;
        if !(0..=UnixMillis::MAX.0).contains(&at) {
            return Err(Damaged);
        }
        times.push(UnixMillis(at));
    }
    match bytes {
        [] => Ok(times),
        _ => Err(Damaged),
    }
}

fn read_outcome(value: &[u8]) -> Result<ClickOutcome, Damaged> {
    let (kind, mut rest) = value.split_first().ok_or(Damaged)?;
    match *kind {
        LINK => {
            let domain = u32::try_from(read(&mut rest)?).map_err(|_| Damaged)?;
            let generation = u32::try_from(read(&mut rest)?).map_err(|_| Damaged)?;
            let key = std::str::from_utf8(rest).map_err(|_| Damaged)?;
            let key = Key::parse(key).map_err(|_| Damaged)?;
            Ok(ClickOutcome::Link(
                LinkId::new(DomainId(domain), key),
                generation,
            ))
        }
        ABSENT => Ok(ClickOutcome::Absent(read_text(rest)?)),
        BASE_URL if rest.is_empty() => Ok(ClickOutcome::BaseUrl),
        _ => Err(Damaged),
    }
}

fn read_class(value: &[u8]) -> Result<ClickClass, Damaged> {
    match value {
        [class] => ClickClass::from_stored(*class).ok_or(Damaged),
        _ => Err(Damaged),
    }
}

fn read_text(value: &[u8]) -> Result<Box<str>, Damaged> {
    let text = std::str::from_utf8(value).map_err(|_| Damaged)?;
    Ok(text.into())
}

fn read_tags(mut value: &[u8]) -> Result<Vec<Box<str>>, Damaged> {
    let mut tags = Vec::new();
    while !value.is_empty() {
        tags.push(read_text(read_counted(&mut value)?)?);
    }
    Ok(tags)
}

fn has_tag(mut value: &[u8], wanted: &str) -> bool {
    while let Ok(tag) = read_counted(&mut value) {
        if tag.eq_ignore_ascii_case(wanted.as_bytes()) {
            return true;
        }
    }
    false
}

fn read_address(value: &[u8]) -> Result<Option<IpAddr>, Damaged> {
    if value.is_empty() {
        return Ok(None);
    }
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    let address = v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from));
    address.map(Some).map_err(|_| Damaged)
}

fn field_of(dimension: Dimension) -> usize {
    match dimension {
        Dimension::Class => CLASS,
        Dimension::Country => COUNTRY,
        Dimension::Browser => BROWSER,
        Dimension::System => SYSTEM,
        Dimension::Device => DEVICE,
        Dimension::Referrer => REFERRER,
        Dimension::Language => LANGUAGE,
        Dimension::Orphan | Dimension::Key => OUTCOME,
        detail => {
            let place = Dimension::DETAILS.iter().position(|own| *own == detail);
            DETAILS + place.unwrap_or_default()
        }
    }
}

/// The stored value as it stands in the dimension; `None`: the dimension does not apply.
fn text_in(dimension: Dimension, value: &[u8]) -> Option<&[u8]> {
    match (dimension, value) {
        (Dimension::Class, class) => read_class(class).ok().map(|class| class.name().as_bytes()),
        (Dimension::Orphan, [ABSENT, ..]) => Some(b"not_found"),
        (Dimension::Orphan, [BASE_URL]) => Some(b"base_url"),
        (Dimension::Key, [ABSENT, key @ ..]) => Some(key),
        (Dimension::Orphan | Dimension::Key, _) => None,
        (detail, []) if Dimension::DETAILS.contains(&detail) => None,
        (_, text) => Some(text),
    }
}
