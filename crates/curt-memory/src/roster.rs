use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{Member, Roster};
use curt_core::{Clock, PortResult, UnixMillis};

use super::locked;

/// The roster of one process: whoever shares this object.
pub struct MemoryRoster {
    clock: Arc<dyn Clock>,
    members: Mutex<BTreeMap<Box<str>, Said>>,
}

#[derive(Debug)]
struct Said {
    text: Box<str>,
    until: UnixMillis,
}

impl MemoryRoster {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            members: Mutex::default(),
        }
    }
}

impl fmt::Debug for MemoryRoster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRoster")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Roster for MemoryRoster {
    async fn announce(&self, member: &str, says: &str, ttl: Duration) -> PortResult<()> {
        let said = Said {
            text: says.into(),
            until: self.clock.now().plus(ttl),
        };
        locked(&self.members).insert(member.into(), said);
        Ok(())
    }

    async fn leave(&self, member: &str) -> PortResult<()> {
        locked(&self.members).remove(member);
        Ok(())
    }

    async fn members(&self) -> PortResult<Vec<Member>> {
        let now = self.clock.now();
        let mut members = locked(&self.members);
        members.retain(|_, said| said.until > now);
        let there = members.iter().map(|(name, said)| Member {
            name: name.clone(),
            says: said.text.clone(),
        });
        Ok(there.collect())
    }
}
