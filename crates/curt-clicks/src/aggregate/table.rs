//! Numbers for texts and links, so that a sum's key is a few words long.

use std::hash::BuildHasher;

use curt_core::{Attribution, LinkId, LinkRef, OwnerId, PackedTags};
use hashbrown::{DefaultHashBuilder, HashTable};

/// A subject within one aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SubjectIndex(pub(super) u32);

impl SubjectIndex {
    pub(super) const ORPHANS: Self = Self(0);
}

/// The number of what comes next. An aggregate is full long before there are so many.
pub(super) fn next_number<T>(things: &[T]) -> u32 {
    u32::try_from(things.len()).unwrap_or(u32::MAX)
}

/// Things that got a number each, in the order in which they came.
pub(super) struct Numbered<T> {
    things: Vec<T>,
    by_hash: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            things: Vec::new(),
            by_hash: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<T> Numbered<T> {
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.things.get(number as usize)
    }

    pub(super) fn clear(&mut self) {
        self.things.clear();
        self.by_hash.clear();
    }

    fn push(&mut self, hash: u64, thing: T, rehash: impl Fn(&T) -> u64) -> u32 {
        let number = next_number(&self.things);
        self.things.push(thing);
        let things = &self.things;
        self.by_hash
            .insert_unique(hash, number, |&number| rehash(&things[number as usize]));
        number
    }
}

impl Numbered<Box<str>> {
    /// The text's number, and whether it is new.
    pub(super) fn number(&mut self, text: &str) -> (u32, bool) {
        let hash = self.hasher.hash_one(text);
        let same = |&number: &u32| *self.things[number as usize] == *text;
        if let Some(&number) = self.by_hash.find(hash, same) {
            return (number, false);
        }
        let hasher = self.hasher.clone();
        let number = self.push(hash, text.into(), |text| hasher.hash_one(&**text));
        (number, true)
    }
}

/// A link as it was when it was followed: if its tags change, it has another number from then on.
#[derive(Clone, Debug)]
pub(super) struct AttributedLink {
    pub(super) id: LinkId,
    pub(super) generation: u32,
    pub(super) owner: OwnerId,
    tags: Box<[u8]>,
}

/// The same, with everything borrowed from a click.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AttributedRef<'a> {
    pub(super) link: LinkRef<'a>,
    pub(super) generation: u32,
    pub(super) attribution: Attribution<'a>,
}

impl AttributedLink {
    fn as_ref(&self) -> AttributedRef<'_> {
        AttributedRef {
            link: self.id.as_ref(),
            generation: self.generation,
            attribution: self.attribution(),
        }
    }

    pub(super) fn attribution(&self) -> Attribution<'_> {
        Attribution {
            owner: self.owner,
            tags: PackedTags::from_packed(&self.tags),
        }
    }
}

impl AttributedRef<'_> {
    /// Nothing for what cannot be a link's key.
    fn to_owned(self) -> Option<AttributedLink> {
        Some(AttributedLink {
            id: self.link.to_id()?,
            generation: self.generation,
            owner: self.attribution.owner,
            tags: self.attribution.tags.as_bytes().into(),
        })
    }
}

impl Numbered<AttributedLink> {
    /// The link's number, and whether it is new. Nothing for what cannot be a link's key.
    pub(super) fn number(&mut self, link: AttributedRef<'_>) -> Option<(u32, bool)> {
        let hash = self.hasher.hash_one(link);
        let same = |&number: &u32| self.things[number as usize].as_ref() == link;
        if let Some(&number) = self.by_hash.find(hash, same) {
            return Some((number, false));
        }
        let hasher = self.hasher.clone();
        let number = self.push(hash, link.to_owned()?, |link| {
            hasher.hash_one(link.as_ref())
        });
        Some((number, true))
    }
}
