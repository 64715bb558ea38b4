//! Items and their attributes.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use curt_core::{Clock, PortResult, SystemClock, UnixMillis};

use crate::failure::corrupt;

pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// The partition key and the sort key of every table.
pub(crate) const PARTITION: &str = "pk";
pub(crate) const SORT: &str = "sk";
/// The second after which the engine may remove the item. It takes its time: readers look themselves.
pub(crate) const EXPIRES: &str = "expires";

const REMOVED_AFTER: Duration = Duration::from_secs(24 * 3_600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    Links,
    Lists,
    Items,
}

impl Table {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Lists => "lists",
            Self::Items => "items",
        }
    }
}

/// What an item is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) table: Table,
    pub(crate) partition: String,
    /// Never empty; `None` in a table without sort keys.
    pub(crate) sort: Option<Vec<u8>>,
}

impl Key {
    /// The only item of its partition.
    pub(crate) fn item(partition: String) -> Self {
        Self::sorted(Table::Items, partition, &[])
    }

    /// An item with a sort key, which may be empty.
    pub(crate) fn sorted(table: Table, partition: String, sort: &[u8]) -> Self {
        Self {
            table,
            partition,
            sort: Some(sort_key(sort)),
        }
    }

    pub(crate) fn to_attributes(&self) -> Attributes {
        let mut attributes = Attributes::from([(PARTITION.to_owned(), text(&self.partition))]);
        if let Some(sort) = &self.sort {
            attributes.insert(SORT.to_owned(), bytes(sort));
        }
        attributes
    }
}

/// As the engine has it: it refuses empty ones.
pub(crate) fn sort_key(sort: &[u8]) -> Vec<u8> {
    [&[1], sort].concat()
}

pub(crate) fn number(number: impl Into<i64>) -> AttributeValue {
    AttributeValue::N(number.into().to_string())
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn bytes(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

pub(crate) fn flag(flag: bool) -> AttributeValue {
    AttributeValue::Bool(flag)
}

/// When the engine is to remove what ends at `ends_at`: a day later, so that those who purge it find it first, and count
/// it. It goes by the time of day and not by what the caller takes for it.
pub(crate) fn expiry(ends_at: UnixMillis) -> AttributeValue {
    let at = SystemClock.now().max(ends_at).plus(REMOVED_AFTER);
    number(at.0.div_euclid(1_000))
}

/// An item as it was read, by the operation `op`.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    op: &'static str,
    attributes: Attributes,
}

impl Item {
    pub(crate) fn new(op: &'static str, attributes: Attributes) -> Self {
        Self { op, attributes }
    }

    pub(crate) fn number(&self, name: &'static str) -> PortResult<i64> {
        self.required(name, self.maybe_number(name)?)
    }

    pub(crate) fn maybe_number(&self, name: &'static str) -> PortResult<Option<i64>> {
        let Some(value) = self.attributes.get(name) else {
            return Ok(None);
        };
        let number = value.as_n().ok().and_then(|digits| digits.parse().ok());
        number.map(Some).ok_or_else(|| corrupt(self.op, name))
    }

    /// A number of few bits.
    pub(crate) fn small<T: TryFrom<i64>>(&self, name: &'static str) -> PortResult<T> {
        let number = self.number(name)?;
        T::try_from(number).map_err(|_| corrupt(self.op, name))
    }

    /// A number that stands for a word.
    pub(crate) fn word<T>(
        &self,
        name: &'static str,
        read: impl Fn(u8) -> Option<T>,
    ) -> PortResult<T> {
        read(self.small(name)?).ok_or_else(|| corrupt(self.op, name))
    }

    pub(crate) fn text(&self, name: &'static str) -> PortResult<&str> {
        self.required(name, self.maybe_text(name)?)
    }

    pub(crate) fn maybe_text(&self, name: &'static str) -> PortResult<Option<&str>> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(_) => Err(corrupt(self.op, name)),
        }
    }

    pub(crate) fn bytes(&self, name: &'static str) -> PortResult<&[u8]> {
        self.required(name, self.maybe_bytes(name)?)
    }

    pub(crate) fn maybe_bytes(&self, name: &'static str) -> PortResult<Option<&[u8]>> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(AttributeValue::B(blob)) => Ok(Some(blob.as_ref())),
            Some(_) => Err(corrupt(self.op, name)),
        }
    }

    /// Bytes of a fixed number.
    pub(crate) fn maybe_fixed<const N: usize>(
        &self,
        name: &'static str,
    ) -> PortResult<Option<[u8; N]>> {
        let bytes = self.maybe_bytes(name)?.map(<[u8; N]>::try_from);
        bytes.transpose().map_err(|_| corrupt(self.op, name))
    }

    pub(crate) fn fixed<const N: usize>(&self, name: &'static str) -> PortResult<[u8; N]> {
        self.required(name, self.maybe_fixed(name)?)
    }

    /// Whether the flag is there and set.
    pub(crate) fn flag(&self, name: &'static str) -> bool {
        matches!(self.attributes.get(name), Some(AttributeValue::Bool(true)))
    }

    pub(crate) fn list(&self, name: &'static str) -> &[AttributeValue] {
        match self.attributes.get(name) {
            Some(AttributeValue::L(list)) => list,
            _ => &[],
        }
    }

    pub(crate) fn map(&self, name: &'static str) -> Option<&Attributes> {
        self.attributes.get(name)?.as_m().ok()
    }

    /// The sort key, as it was given.
    pub(crate) fn sort(&self) -> PortResult<&[u8]> {
        let sort = self.bytes(SORT)?;
        self.required(SORT, sort.get(1..))
    }

    fn required<T>(&self, name: &'static str, value: Option<T>) -> PortResult<T> {
        value.ok_or_else(|| corrupt(self.op, format!("no {name}")))
    }
}
