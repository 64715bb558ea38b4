//! Numbers for texts, links and attributions, so that a sum's key is a word.

use std::hash::BuildHasher;
use std::sync::Arc;

use curt_core::click_block::tags_bytes;
use curt_core::{Attribution, ClickSubject, LinkId, LinkRef, OwnerId, PackedTags};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

/// A subject within one aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SubjectIndex(pub(super) u32);

impl SubjectIndex {
    pub(super) const ORPHANS: Self = Self(0);

    pub(super) fn of_link(number: u32) -> Self {
        Self(number + 1)
    }

    /// The number of the link; nothing for orphans.
    pub(super) fn link(self) -> Option<u32> {
        self.0.checked_sub(1)
    }
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

impl Numbered<Arc<str>> {
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
    /// Number of its attribution.
    pub(super) attribution: u32,
}

/// The same, with everything borrowed from a click.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AttributedRef<'a> {
    pub(super) link: LinkRef<'a>,
    pub(super) generation: u32,
    pub(super) attribution: u32,
}

impl AttributedLink {
    fn as_ref(&self) -> AttributedRef<'_> {
        AttributedRef {
            link: self.id.as_ref(),
            generation: self.generation,
            attribution: self.attribution,
        }
    }

    pub(super) fn subject(&self) -> ClickSubject {
        ClickSubject::Link(self.id.clone(), self.generation)
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
        let new = AttributedLink {
            id: link.link.to_id()?,
            generation: link.generation,
            attribution: link.attribution,
        };
        let hasher = self.hasher.clone();
        let number = self.push(hash, new, |link| hasher.hash_one(link.as_ref()));
        Some((number, true))
    }
}

/// The owners and tags that links had, with numbers for what they are in the columns of blocks.
#[derive(Default)]
pub(super) struct Attributions {
    known: Numbered<KnownAttribution>,
    owners: HashMap<Option<OwnerId>, u32>,
    tag_sets: HashMap<Box<[u8]>, u32>,
    /// By number.
    owners_by_number: Vec<Option<OwnerId>>,
    tags_by_number: Vec<Box<[u8]>>,
}

#[derive(Clone, Debug)]
pub(super) struct KnownAttribution {
    owner: OwnerId,
    tags: Box<[u8]>,
    pub(super) owner_number: u32,
    pub(super) tags_number: u32,
}

impl KnownAttribution {
    fn attribution(&self) -> Attribution<'_> {
        Attribution {
            owner: self.owner,
            tags: PackedTags::from_packed(&self.tags),
        }
    }

    /// Subjects that its clicks count for beside their own.
    pub(super) fn subjects(&self) -> Vec<ClickSubject> {
        let attribution = self.attribution();
        let mut subjects = vec![ClickSubject::Everything];
        if let Some(owner) = attribution.reported_owner() {
            subjects.push(ClickSubject::Owner(owner));
            subjects.extend(
                attribution
                    .tags
                    .iter()
                    .map(|tag| ClickSubject::tag(owner, tag)),
            );
        }
        // A link may have a tag in two spellings.
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }
}

impl Attributions {
    /// The number of an attribution, and whether it is new.
    pub(super) fn number(&mut self, attribution: Attribution<'_>) -> (u32, bool) {
        let hash = self.known.hasher.hash_one(attribution);
        let same = |&number: &u32| self.known.things[number as usize].attribution() == attribution;
        if let Some(&number) = self.known.by_hash.find(hash, same) {
            return (number, false);
        }
        let owner = attribution.reported_owner();
        let owners = &mut self.owners_by_number;
        let owner_number = *self.owners.entry(owner).or_insert_with(|| {
            owners.push(owner);
            next_number(owners) - 1
        });
        let tags = tags_bytes(attribution.tags.iter()).into_boxed_slice();
        let tag_sets = &mut self.tags_by_number;
        let tags_number = *self.tag_sets.entry(tags.clone()).or_insert_with(|| {
            tag_sets.push(tags);
            next_number(tag_sets) - 1
        });
        let new = KnownAttribution {
            owner: attribution.owner,
            tags: attribution.tags.as_bytes().into(),
            owner_number,
            tags_number,
        };
        let hasher = self.known.hasher.clone();
        let number = self
            .known
            .push(hash, new, |known| hasher.hash_one(known.attribution()));
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> Option<&KnownAttribution> {
        self.known.get(number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &KnownAttribution> {
        self.known.things.iter()
    }

    /// The owner that has the number in the column of owners.
    pub(super) fn owner(&self, number: u32) -> Option<OwnerId> {
        self.owners_by_number.get(number as usize).copied()?
    }

    /// The tags that have the number in the column of tags, as it has them.
    pub(super) fn tags(&self, number: u32) -> &[u8] {
        self.tags_by_number
            .get(number as usize)
            .map_or(&[], |tags| tags)
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.owners.clear();
        self.tag_sets.clear();
        self.owners_by_number.clear();
        self.tags_by_number.clear();
    }
}
