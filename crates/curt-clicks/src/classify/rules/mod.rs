//! The rules by which user agents and referrers are read.
//!
//! All marks of all rules are found in one pass over the agent, by an automaton, and the rules then ask which were
//! there. So the time is linear in the length of the agent plus one step per rule, whatever a stranger sends. Expressions
//! were measured and left: uap-core's six hundred take half a millisecond for each new agent and 150 MB.

mod hosts;
mod parse;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;

pub use hosts::ReferrerGroup;
pub use parse::{RulesError, RulesProblem};

use super::UNKNOWN;
use super::agent::{Agent, Device};
use hosts::Hosts;

/// The rules that are compiled in; `clicks.rules` names a file in the same form.
pub const BUILT_IN: &str = include_str!("../../../data/rules.txt");

/// Distinct marks that a file may have: room for four times the built-in ones.
const MARKS_MAX: usize = 2_048;
/// Every mark is asked for in two ways: anywhere, and at the beginning.
const WORDS: usize = 2 * MARKS_MAX / u64::BITS as usize;

/// Ordered rules for classes, names of bots, browsers, systems and devices, and the groups of referring hosts.
#[derive(Debug)]
pub struct ClickRules {
    automaton: AhoCorasick,
    /// Whether the agent is a person's.
    class: Section<bool>,
    bots: Section<Box<str>>,
    browsers: Section<Box<str>>,
    systems: Section<Box<str>>,
    devices: Section<Device>,
    referrers: Hosts,
}

/// Rules in the order in which they are asked.
type Section<T> = Vec<Rule<T>>;

#[derive(Debug)]
struct Rule<T> {
    value: T,
    /// All of them must hold.
    conditions: Box<[Condition]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    /// Place in [`Found`].
    bit: u16,
    is_wanted: bool,
}

/// The marks that an agent has: two bits for each, anywhere and at the beginning.
struct Found([u64; WORDS]);

impl Found {
    fn insert(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn holds(&self, condition: Condition) -> bool {
        let bit = usize::from(condition.bit);
        (self.0[bit / 64] >> (bit % 64) & 1 == 1) == condition.is_wanted
    }

    fn first<'a, T>(&self, section: &'a Section<T>) -> Option<&'a T> {
        let holds = |rule: &&Rule<T>| rule.conditions.iter().all(|&one| self.holds(one));
        section.iter().find(holds).map(|rule| &rule.value)
    }

    fn name(&self, section: &Section<Box<str>>) -> Box<str> {
        self.first(section).map_or(UNKNOWN.into(), Clone::clone)
    }
}

impl ClickRules {
    /// The rules that came with this release.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a constant, which tests read")]
    pub fn built_in() -> Arc<Self> {
        static RULES: LazyLock<Arc<ClickRules>> = LazyLock::new(|| {
            let rules = ClickRules::parse(BUILT_IN);
            Arc::new(rules.expect("the rules that are compiled in are sound"))
        });
        Arc::clone(&RULES)
    }

    /// Reads a file of rules. Errors name the line and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, RulesProblem> {
        Ok(Self::parse(&std::fs::read_to_string(path)?)?)
    }

    /// Reads the bytes of a file of rules, with what is wrong as a text.
    pub(super) fn read_file(bytes: Vec<u8>) -> Result<Self, String> {
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Self::parse(&text).map_err(|error| error.to_string())
    }

    pub fn parse(text: &str) -> Result<Self, RulesError> {
        parse::rules(text)
    }

    /// Returns what a user agent says.
    #[must_use]
    pub fn read(&self, agent: &[u8]) -> Agent {
        let found = self.find(agent);
        let is_human = self.says_human(&found);
        let browsers = if is_human { &self.browsers } else { &self.bots };
        let device = match self.first_device(&found) {
            _ if !is_human => Device::Bot,
            device => device,
        };
        Agent {
            browser: found.name(browsers),
            system: found.name(&self.systems),
            device,
        }
    }

    /// The group of a referring host in lower case.
    #[must_use]
    pub fn referrer_group(&self, host: &str) -> ReferrerGroup {
        self.referrers.group(host)
    }

    #[must_use]
    pub(super) fn is_human(&self, agent: &[u8]) -> bool {
        self.says_human(&self.find(agent))
    }

    fn says_human(&self, found: &Found) -> bool {
        found.first(&self.class).copied().unwrap_or(false)
    }

    fn first_device(&self, found: &Found) -> Device {
        let device = found.first(&self.devices).copied();
        device.unwrap_or(Device::Other)
    }

    fn find(&self, agent: &[u8]) -> Found {
        let mut found = Found([0; WORDS]);
        for mark in self.automaton.find_overlapping_iter(agent) {
            let bit = anywhere(mark.pattern().as_usize());
            found.insert(bit);
            if mark.start() == 0 {
                found.insert(at_beginning(bit));
            }
        }
        found
    }
}

fn anywhere(mark: usize) -> usize {
    2 * mark
}

fn at_beginning(bit: usize) -> usize {
    bit + 1
}
