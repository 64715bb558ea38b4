//! From the text of a rules file to rules.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use curt_core::limits::VALUE_BYTES_MAX;
use hashbrown::HashMap;

use super::hosts::{Hosts, ReferrerGroup};
use super::{ClickRules, Condition, MARKS_MAX, Rule, Section, anywhere, at_beginning};
use crate::classify::agent::Device;

const MARK_BYTES_MAX: usize = 64;
/// Rules that one section may have: an agent that none fits is compared with all.
const RULES_MAX: usize = 4_096;
const CONDITIONS_MAX: usize = 16;

/// Why a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesProblem {
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    #[error(transparent)]
    Wrong(#[from] RulesError),
}

/// What is wrong with rules, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RulesError {
    /// Counted from 1; of what is missing, the last line.
    pub line: usize,
    pub reason: String,
}

type Parsed<T> = Result<T, String>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heading {
    Class,
    Bots,
    Browsers,
    Systems,
    Devices,
    Referrers,
}

impl Heading {
    const ALL: [(Self, &str); 6] = [
        (Self::Class, "class"),
        (Self::Bots, "bots"),
        (Self::Browsers, "browsers"),
        (Self::Systems, "systems"),
        (Self::Devices, "devices"),
        (Self::Referrers, "referrers"),
    ];
}

pub(super) fn rules(text: &str) -> Result<ClickRules, RulesError> {
    let mut draft = RulesDraft::default();
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let added = draft.add_line(line.trim());
        added.map_err(|reason| RulesError { line: last, reason })?;
    }
    draft.finish().map_err(|reason| RulesError {
        line: last.max(1),
        reason,
    })
}

/// What has been read so far.
#[derive(Default)]
struct RulesDraft {
    heading: Option<Heading>,
    seen: Vec<Heading>,
    /// Marks in lower case, by their number.
    marks: Vec<Box<str>>,
    numbers: HashMap<Box<str>, usize>,
    class: Section<bool>,
    bots: Section<Box<str>>,
    browsers: Section<Box<str>>,
    systems: Section<Box<str>>,
    devices: Section<Device>,
    referrers: Hosts,
}

impl RulesDraft {
    fn add_line(&mut self, line: &str) -> Parsed<()> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            return self.begin(name);
        }
        let (name, marks) = line
            .split_once('=')
            .ok_or("expected NAME = MARKS, [SECTION] or # COMMENT")?;
        let name = name.trim();
        if name.is_empty() || name.len() > VALUE_BYTES_MAX || name.contains(char::is_control) {
            return Err(format!("the name must have 1 to {VALUE_BYTES_MAX} bytes"));
        }
        let heading = self
            .heading
            .ok_or("a rule stands before the first [section]")?;
        if heading == Heading::Referrers {
            let group = ReferrerGroup::named(name)
                .ok_or_else(|| format!("{name:?} is no group; use search, social or mail"))?;
            let mut hosts = marks.split('|').map(str::trim);
            return hosts.try_for_each(|host| self.referrers.insert(host, group));
        }
        for conditions in self.alternatives(marks)? {
            self.add_rule(heading, name, conditions)?;
        }
        Ok(())
    }

    fn begin(&mut self, name: &str) -> Parsed<()> {
        let known = Heading::ALL.iter().find(|(_, known)| *known == name);
        let Some(&(heading, _)) = known else {
            let names = Heading::ALL.map(|(_, name)| name).join(", ");
            return Err(format!("[{name}] is no section; use one of {names}"));
        };
        if self.seen.contains(&heading) {
            return Err(format!("[{name}] stands in the file twice"));
        }
        self.seen.push(heading);
        self.heading = Some(heading);
        Ok(())
    }

    fn add_rule(
        &mut self,
        heading: Heading,
        name: &str,
        conditions: Box<[Condition]>,
    ) -> Parsed<()> {
        match heading {
            Heading::Class => push(&mut self.class, is_human(name)?, conditions),
            Heading::Bots => push(&mut self.bots, name.into(), conditions),
            Heading::Browsers => push(&mut self.browsers, name.into(), conditions),
            Heading::Systems => push(&mut self.systems, name.into(), conditions),
            Heading::Devices => push(&mut self.devices, device(name)?, conditions),
            Heading::Referrers => Ok(()),
        }
    }

    /// `A & !B | ^C`: one list of conditions for each alternative.
    fn alternatives(&mut self, text: &str) -> Parsed<Vec<Box<[Condition]>>> {
        let mut alternatives = Vec::new();
        let mut conditions = Vec::new();
        let mut rest = text.trim();
        loop {
            let (condition, after) = self.condition(rest)?;
            conditions.push(condition);
            if conditions.len() > CONDITIONS_MAX {
                return Err(format!("at most {CONDITIONS_MAX} marks go together"));
            }
            let mut following = after.chars();
            match following.next() {
                Some('&') => {}
                Some('|') => alternatives.push(std::mem::take(&mut conditions).into()),
                None => break,
                Some(other) => return Err(format!("expected & or | before {other:?}")),
            }
            rest = following.as_str().trim_start();
        }
        alternatives.push(conditions.into());
        Ok(alternatives)
    }

    /// One mark with what stands before it, and the text behind it.
    fn condition<'a>(&mut self, text: &'a str) -> Parsed<(Condition, &'a str)> {
        let unless = text.strip_prefix('!');
        let text = unless.unwrap_or(text);
        let begins = text.strip_prefix('^');
        let text = begins.unwrap_or(text);
        let (mark, rest) = match text.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote is not closed")?,
            None => text.split_at(text.find(['&', '|', '"']).unwrap_or(text.len())),
        };
        let mark = if text.starts_with('"') {
            mark
        } else {
            mark.trim()
        };
        let bit = anywhere(self.number(mark)?);
        let bit = if begins.is_some() {
            at_beginning(bit)
        } else {
            bit
        };
        let condition = Condition {
            bit: u16::try_from(bit).map_err(|_| "too many marks")?,
            is_wanted: unless.is_none(),
        };
        Ok((condition, rest.trim_start()))
    }

    fn number(&mut self, mark: &str) -> Parsed<usize> {
        let is_text = mark.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !(2..=MARK_BYTES_MAX).contains(&mark.len()) || !is_text {
            return Err(format!(
                "the mark {mark:?} must have 2 to {MARK_BYTES_MAX} characters of ASCII"
            ));
        }
        let mark: Box<str> = mark.to_ascii_lowercase().into();
        if let Some(&number) = self.numbers.get(&mark) {
            return Ok(number);
        }
        let number = self.marks.len();
        if number == MARKS_MAX {
            return Err(format!("a file may have {MARKS_MAX} different marks"));
        }
        self.marks.push(mark.clone());
        self.numbers.insert(mark, number);
        Ok(number)
    }

    fn finish(self) -> Parsed<ClickRules> {
        // A file that was cut would otherwise make everybody a bot or every browser unknown, and nobody would notice.
        for (heading, name) in Heading::ALL {
            if !self.seen.contains(&heading) {
                return Err(format!("the section [{name}] is missing"));
            }
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(self.marks.iter().map(|mark| mark.as_bytes()));
        Ok(ClickRules {
            automaton: automaton.map_err(|error| error.to_string())?,
            class: self.class,
            bots: self.bots,
            browsers: self.browsers,
            systems: self.systems,
            devices: self.devices,
            referrers: self.referrers,
        })
    }
}

fn push<T>(section: &mut Section<T>, value: T, conditions: Box<[Condition]>) -> Parsed<()> {
    if section.len() == RULES_MAX {
        return Err(format!("a section may have {RULES_MAX} alternatives"));
    }
    section.push(Rule { value, conditions });
    Ok(())
}

fn is_human(name: &str) -> Parsed<bool> {
    match name {
        "human" => Ok(true),
        "bot" => Ok(false),
        _ => Err(format!("{name:?} is no class; use human or bot")),
    }
}

fn device(name: &str) -> Parsed<Device> {
    let named = |device: &&Device| device.name() == name && **device != Device::Bot;
    let device = Device::ALL.iter().find(named).copied();
    device.ok_or_else(|| format!("{name:?} is no device; use desktop, mobile, tablet or other"))
}
