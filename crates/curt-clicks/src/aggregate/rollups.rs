//! The counts of one window.
//!
//! A click counts in one cell, its subject's hour, which is looked for once; values have numbers. What links have counts for
//! their owners, their tags and everything too, and is added up when the window is taken: once for each value of a link and
//! not for each click.

use std::borrow::Cow;
use std::sync::Arc;

use curt_core::click::OTHER;
use curt_core::click_block::{field, outcome_bytes, owner_bytes};
use curt_core::{
    Attribution, ClickClass, ClickOutcome, ClickSubject, Day, Dimension, LinkRef, Rollup,
    SubjectDay, UnixMillis,
};
use hashbrown::HashMap;

use super::fact_numbers::{AgentNumbers, FactNumbers, ReferrerNumbers};
use super::groups::Groups;
use super::subject_hours::{SubjectHours, VALUE_NUMBER_MAX, ValueCount, ValueSlot};
use super::table::{AttributedLink, AttributedRef, Attributions, Numbered, SubjectIndex};
use crate::classify::{Agent, Code, Device, Facts, Referrer};
use crate::record::ClickRecord;

#[derive(Default)]
pub(super) struct Rollups {
    links: Numbered<AttributedLink>,
    attributions: Attributions,
    texts: Numbered<Arc<str>>,
    /// By address: the classifier gives out the same agent and referrer again and again.
    agents: HashMap<usize, AgentNumbers>,
    referrers: HashMap<usize, ReferrerNumbers>,
    hours: SubjectHours,
    /// Of what grows besides the hours: texts and links.
    grown_bytes: usize,
}

/// One hour of one subject, to count in.
pub(super) struct Hour<'a> {
    rollups: &'a mut Rollups,
    number: u32,
}

/// Values that are no texts, by dimension and number.
type ValueNames = HashMap<(u8, u32), Arc<str>>;

/// The number of [`OTHER`]: no text has it, as a window is full long before.
const OTHER_NUMBER: u32 = VALUE_NUMBER_MAX;
const HOUR_MILLIS: i64 = 3_600_000;
/// What an entry of a table takes with the room that tables keep free.
const ENTRY_SHARE: usize = 2;

impl Rollups {
    /// How many rollups there are.
    pub(super) fn len(&self) -> usize {
        self.hours.counts()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let held = self.agents.len() * size_of::<(usize, AgentNumbers)>()
            + self.referrers.len() * size_of::<(usize, ReferrerNumbers)>();
        self.grown_bytes + ENTRY_SHARE * held + self.hours.memory_bytes()
    }

    /// The number of the link that was followed, as it was then; nothing for what cannot be one's key.
    pub(super) fn link(&mut self, click: &ClickRecord<'_>) -> Option<SubjectIndex> {
        let key = std::str::from_utf8(click.key).ok()?;
        let attribution = self.attribution(click.attribution);
        let (number, is_new) = self.links.number(AttributedRef {
            link: LinkRef {
                domain: click.domain,
                key,
            },
            generation: click.generation,
            attribution,
        })?;
        if is_new {
            self.grown_bytes += ENTRY_SHARE * size_of::<AttributedLink>() + click.key.len();
        }
        Some(SubjectIndex::of_link(number))
    }

    fn attribution(&mut self, attribution: Attribution<'_>) -> u32 {
        let (number, is_new) = self.attributions.number(attribution);
        if is_new {
            // The entry, the owner and three copies of the tags, each with its tables.
            self.grown_bytes += 256 + 3 * ENTRY_SHARE * attribution.tags.as_bytes().len();
        }
        number
    }

    pub(super) fn hour(&mut self, subject: SubjectIndex, at: UnixMillis) -> Hour<'_> {
        let day = Day::of(at);
        // A clock far off is clamped to the first or last day; so is its hour.
        let last = day.hour(23).0 / HOUR_MILLIS;
        let hour = (at.0.div_euclid(HOUR_MILLIS)).clamp(last - 23, last);
        let hour = u32::try_from(hour).unwrap_or_default();
        let number = self.hours.find(subject, hour, day);
        Hour {
            rollups: self,
            number,
        }
    }

    /// The number of a text.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if text == OTHER {
            return OTHER_NUMBER;
        }
        let (number, is_new) = self.texts.number(text);
        if is_new {
            self.grown_bytes += ENTRY_SHARE * size_of::<Arc<str>>() + text.len();
        }
        number
    }

    /// The numbers of what a click says about itself.
    pub(super) fn numbers_of(&mut self, facts: &Facts) -> FactNumbers {
        let (browser, system) = self.numbers_of_agent(&facts.agent);
        let (referrer, group) = self.numbers_of_referrer(&facts.referrer);
        let details = Dimension::DETAILS.map(|dimension| match dimension {
            Dimension::ReferrerGroup => Some(group),
            Dimension::City => facts.place.city.as_deref().map(|city| self.number(city)),
            Dimension::Network => facts.network.as_deref().map(|network| self.number(network)),
            utm => {
                let value = facts.utm.iter().find(|(known, _)| *known == utm);
                value.map(|(_, value)| self.number(value))
            }
        });
        FactNumbers {
            class: facts.class as u32,
            country: facts.place.country.number(),
            browser,
            system,
            device: facts.agent.device as u32,
            referrer,
            language: facts.language.number(),
            details,
        }
    }

    fn numbers_of_agent(&mut self, agent: &Arc<Agent>) -> (u32, u32) {
        let address = Arc::as_ptr(agent).addr();
        if let Some(known) = self.agents.get(&address) {
            return (known.browser, known.system);
        }
        let (browser, system) = (self.number(&agent.browser), self.number(&agent.system));
        let numbers = AgentNumbers {
            _held: Arc::clone(agent),
            browser,
            system,
        };
        self.agents.insert(address, numbers);
        (browser, system)
    }

    fn numbers_of_referrer(&mut self, referrer: &Arc<Referrer>) -> (u32, u32) {
        let address = Arc::as_ptr(referrer).addr();
        if let Some(known) = self.referrers.get(&address) {
            return (known.host, known.group);
        }
        let (host, group) = (
            self.number(&referrer.host),
            self.number(referrer.group.name()),
        );
        let numbers = ReferrerNumbers {
            _held: Arc::clone(referrer),
            host,
            group,
        };
        self.referrers.insert(address, numbers);
        (host, group)
    }

    /// The number of what was followed, for the column of a block.
    pub(super) fn outcome_number(&mut self, subject: SubjectIndex, asked: Option<&str>) -> u32 {
        match asked {
            None => subject.0 << 1,
            Some(key) => self.number(key) << 1 | 1,
        }
    }

    /// The numbers of a subject's owner and tags, for the columns of a block.
    pub(super) fn attribution_numbers(&mut self, subject: SubjectIndex) -> (u32, u32) {
        let number = match subject.link().and_then(|link| self.links.get(link)) {
            Some(link) => link.attribution,
            None => self.attribution(Attribution::default()),
        };
        let known = self.attributions.get(number);
        known.map_or((0, 0), |known| (known.owner_number, known.tags_number))
    }

    /// What a number stands for in a column of a block.
    pub(super) fn column_value(&self, column: usize, number: u32) -> Cow<'_, [u8]> {
        match column {
            field::OUTCOME => Cow::Owned(outcome_bytes(&self.outcome(number))),
            field::OWNER => Cow::Owned(owner_bytes(self.attributions.owner(number))),
            field::TAGS => Cow::Borrowed(self.attributions.tags(number)),
            field::CLASS => Cow::Owned(vec![u8::try_from(number).unwrap_or_default()]),
            field::COUNTRY => self.text(Dimension::Country, number),
            field::BROWSER => self.text(Dimension::Browser, number),
            field::SYSTEM => self.text(Dimension::System, number),
            field::DEVICE => self.text(Dimension::Device, number),
            field::REFERRER => self.text(Dimension::Referrer, number),
            field::LANGUAGE => self.text(Dimension::Language, number),
            detail => {
                let place = detail.saturating_sub(field::DETAILS);
                let dimension = Dimension::DETAILS.get(place).copied();
                self.text(dimension.unwrap_or(Dimension::Key), number)
            }
        }
    }

    fn outcome(&self, number: u32) -> ClickOutcome {
        let (of, is_key) = (number >> 1, number & 1 == 1);
        if is_key {
            let key = self.texts.get(of).map_or(OTHER, |text| text);
            return ClickOutcome::Absent(key.into());
        }
        let link = SubjectIndex(of).link();
        match link.and_then(|link| self.links.get(link)) {
            Some(link) => ClickOutcome::Link(link.id.clone(), link.generation),
            None => ClickOutcome::BaseUrl,
        }
    }

    fn text(&self, dimension: Dimension, number: u32) -> Cow<'_, [u8]> {
        Cow::Owned(self.with_value(dimension, number, |text| text.as_bytes().to_vec()))
    }

    /// Does something with what a number stands for in a dimension.
    fn with_value<T>(&self, dimension: Dimension, number: u32, with: impl FnOnce(&str) -> T) -> T {
        let place = number as usize;
        match dimension {
            Dimension::Class => with(
                ClickClass::ALL
                    .get(place)
                    .map_or(OTHER, |class| class.name()),
            ),
            Dimension::Device => with(Device::ALL.get(place).map_or(OTHER, |device| device.name())),
            Dimension::Country | Dimension::Language if number != OTHER_NUMBER => {
                with(Code::from_number(number).as_str())
            }
            _ => with(self.texts.get(number).map_or(OTHER, |text| text)),
        }
    }

    /// What a number stands for in a dimension, allocated once for all subjects.
    fn shared_value(&self, dimension: Dimension, number: u32, names: &mut ValueNames) -> Arc<str> {
        let has_name = matches!(
            dimension,
            Dimension::Class | Dimension::Device | Dimension::Country | Dimension::Language
        );
        match self.texts.get(number).filter(|_| !has_name) {
            Some(text) => Arc::clone(text),
            None => {
                let name = names.entry((dimension as u8, number));
                let allocate = || self.with_value(dimension, number, |text| text.into());
                Arc::clone(name.or_insert_with(allocate))
            }
        }
    }

    /// Gives the rollups away by subject and day, for all subjects that clicks count for. The tables keep their room: the
    /// next window is likely to need as much.
    pub(super) fn take(&mut self) -> Vec<SubjectDay> {
        let mut hours = std::mem::take(&mut self.hours);
        let mut groups = Groups::new(&self.attributions);
        let mut days = self.days_of(&mut hours, Some(&mut groups), |subject| {
            let link = subject.link().and_then(|link| self.links.get(link));
            link.map_or(ClickSubject::Orphans, AttributedLink::subject)
        });
        let Groups {
            hours: mut of_groups,
            subjects,
            ..
        } = groups;
        days.extend(self.days_of(&mut of_groups, None, |group| {
            let subject = subjects.get(group.0 as usize);
            subject.cloned().unwrap_or(ClickSubject::Everything)
        }));
        self.hours = hours;
        self.clear();
        days
    }

    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.hours.clear();
        self.links.clear();
        self.attributions.clear();
        self.texts.clear();
        self.agents.clear();
        self.referrers.clear();
        self.grown_bytes = 0;
    }

    fn days_of(
        &self,
        hours: &mut SubjectHours,
        mut groups: Option<&mut Groups>,
        subject_of: impl Fn(SubjectIndex) -> ClickSubject,
    ) -> Vec<SubjectDay> {
        let mut days: Vec<SubjectDay> = Vec::new();
        let mut names = ValueNames::new();
        let mut open = None;
        for number in hours.in_order() {
            let hour = hours.get_mut(number);
            hour.counts.sort_unstable_by_key(|count| count.slot);
            let (subject, day, of_hour) = (hour.subject, hour.day, hour.hour);
            let group = groups.as_deref_mut().map(|groups| {
                let link = subject.link().and_then(|link| self.links.get(link));
                let group = groups.of(link.map(|link| link.attribution));
                for member in &groups.members[group] {
                    groups.hours.add_hour(*member, hour);
                }
                group
            });
            if open != Some((subject, day)) {
                open = Some((subject, day));
                let visitors = hours.take_visitors(number);
                if let (Some(groups), Some(group)) = (groups.as_deref_mut(), group) {
                    for member in &groups.members[group] {
                        groups
                            .hours
                            .merge_visitors(*member, of_hour, day, &visitors);
                    }
                }
                days.push(SubjectDay {
                    subject: subject_of(subject),
                    day,
                    rollups: Vec::new(),
                    visitors,
                });
            }
            if let Some(open) = days.last_mut() {
                let counts = &hours.get_mut(number).counts;
                self.add_rollups(&mut open.rollups, of_hour, counts, &mut names);
            }
        }
        days
    }

    fn add_rollups(
        &self,
        rollups: &mut Vec<Rollup>,
        hour: u32,
        counts: &[ValueCount],
        names: &mut ValueNames,
    ) {
        let hour = UnixMillis(i64::from(hour) * HOUR_MILLIS);
        rollups.reserve(counts.len());
        for ValueCount { slot, count } in counts {
            let Some(dimension) = slot.dimension() else {
                continue;
            };
            rollups.push(Rollup {
                hour,
                dimension,
                value: self.shared_value(dimension, slot.value(), names),
                count: u64::from(*count),
            });
        }
    }
}

impl Hour<'_> {
    pub(super) fn count(&mut self, dimension: Dimension, value: u32) {
        self.rollups
            .hours
            .count(self.number, ValueSlot::new(dimension, value), 1);
    }

    /// Counts a value of a dimension that has texts.
    pub(super) fn count_text(&mut self, dimension: Dimension, text: &str) {
        let value = self.rollups.number(text);
        self.count(dimension, value);
    }

    /// Counts a visitor of the day by its hash.
    pub(super) fn came(&mut self, visitor: u64) {
        self.rollups.hours.add_visitor(self.number, visitor);
    }
}
