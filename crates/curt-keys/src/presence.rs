//! What every process says about itself: that it is there, who it is, and how many keys it holds.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{Member, Roster};
use curt_core::{Key, PortResult};
use rand::Rng;

use crate::metrics::KeyMetrics;
use crate::pace::report;
use crate::supply::KeyPorts;

/// Keys of a buffer that are told to an audit at most: an entry in the roster must not grow beyond what engines take.
const TOLD_MAX: usize = 50_000;

/// How long the roster keeps what a process said that has fallen silent.
const KEPT: Duration = Duration::from_secs(15);

/// Keys in the hands of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// In its ring.
    pub ring: u64,
    /// Between a ledger and a pool.
    pub moving: u64,
}

/// A process as the roster shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub name: Box<str>,
    /// As it describes itself.
    pub who: Box<str>,
    pub held: Held,
    /// Keys that it found on links already, since its start.
    pub conflicts: u64,
    /// Keys that it made on the spot because the supply was dry, since its start.
    pub fallbacks: u64,
}

impl Process {
    /// `None` for an entry that this version cannot read.
    fn read(member: Member) -> Option<Self> {
        let mut parts = member.says.splitn(5, ' ');
        let mut number = || parts.next()?.parse().ok();
        Some(Self {
            held: Held {
                ring: number()?,
                moving: number()?,
            },
            conflicts: number()?,
            fallbacks: number()?,
            who: parts.next()?.into(),
            name: member.name,
        })
    }
}

/// This process in the roster.
#[derive(Clone)]
pub(crate) struct Presence {
    roster: Arc<dyn Roster>,
    name: Box<str>,
    who: Box<str>,
}

impl Presence {
    pub(crate) fn new(ports: &KeyPorts) -> Self {
        Self {
            roster: Arc::clone(&ports.roster),
            name: format!("{:016x}", rand::rng().next_u64()).into(),
            who: ports.who.clone(),
        }
    }

    pub(crate) async fn announce(&self, held: Held, metrics: &KeyMetrics) {
        let Held { ring, moving } = held;
        let (conflicts, fallbacks) = (metrics.conflicts.get(), metrics.fallbacks.get());
        let says = format!("{ring} {moving} {conflicts} {fallbacks} {}", self.who);
        if let Err(error) = self.roster.announce(&self.name, &says, KEPT).await {
            report(&error);
        }
    }

    /// Answers the audits that ask for it with the keys of this process's buffer, and takes the answers to former ones
    /// back. `answered` is what was answered before.
    pub(crate) async fn answer_audits(
        &self,
        asked: &[Box<str>],
        answered: &mut Vec<Box<str>>,
        buffer: impl Fn() -> Vec<Key>,
    ) {
        for over in answered.extract_if(.., |number| !asked.contains(number)) {
            if let Err(error) = self.roster.leave(&self.answer_name(&over)).await {
                report(&error);
            }
        }
        for number in asked {
            let keys = buffer();
            if keys.len() > TOLD_MAX {
                continue;
            }
            let keys: Vec<&str> = keys.iter().map(Key::as_str).collect();
            let says = format!("buffer {number} {} {}", self.name, keys.join(" "));
            let name = self.answer_name(number);
            match self.roster.announce(&name, &says, KEPT).await {
                Ok(()) if !answered.contains(number) => answered.push(number.clone()),
                Ok(()) => {}
                Err(error) => report(&error),
            }
        }
    }

    fn answer_name(&self, number: &str) -> String {
        format!("{}-{number}", self.name)
    }

    pub(crate) async fn leave(&self) {
        if let Err(error) = self.roster.leave(&self.name).await {
            report(&error);
        }
    }

    /// Puts what this process holds now in place of what it said a moment ago.
    pub(crate) fn correct(&self, processes: &mut Vec<Process>, held: Held) {
        processes.retain(|process| process.name != self.name);
        processes.push(Process {
            name: self.name.clone(),
            who: self.who.clone(),
            held,
            conflicts: 0,
            fallbacks: 0,
        });
    }
}

/// Everybody who is there.
pub(crate) async fn processes(roster: &dyn Roster) -> PortResult<Vec<Process>> {
    let members = roster.members().await?;
    Ok(members.into_iter().filter_map(Process::read).collect())
}

/// The same, and the numbers of the audits that ask for what is in the buffers.
pub(crate) async fn processes_and_audits(
    roster: &dyn Roster,
) -> PortResult<(Vec<Process>, Vec<Box<str>>)> {
    let members = roster.members().await?;
    let audits = members.iter().filter_map(|member| {
        let number = member.says.strip_prefix("audit ")?;
        Some(number.into())
    });
    let audits = audits.collect();
    let processes = members.into_iter().filter_map(Process::read);
    Ok((processes.collect(), audits))
}

/// What a process told an audit.
pub(crate) struct Told {
    /// Its name in the roster.
    pub(crate) process: Box<str>,
    pub(crate) keys: Vec<Key>,
}

/// `None` for an entry that does not answer the audit of this number.
pub(crate) fn told(member: &Member, number: &str) -> Option<Told> {
    let mut words = member.says.strip_prefix("buffer ")?.split(' ');
    if words.next()? != number {
        return None;
    }
    Some(Told {
        process: words.next()?.into(),
        keys: words.filter_map(|word| Key::parse(word).ok()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_and_nonsense_is_passed_over() {
        let read = |says: &str| {
            Process::read(Member {
                name: "a".into(),
                says: says.into(),
            })
        };
        let process = read("12 3 4 5 host/7 redirect api").unwrap();
        assert_eq!(
            process.held,
            Held {
                ring: 12,
                moving: 3
            }
        );
        assert_eq!((process.conflicts, process.fallbacks), (4, 5));
        assert_eq!(&*process.who, "host/7 redirect api");
        for nonsense in ["", "1", "1 2 3 4", "x 2 3 4 who", "-1 2 3 4 who"] {
            assert_eq!(read(nonsense), None, "{nonsense:?}");
        }
    }
}
