//! Heartbeats: each instance says that it is there, who it is, and how many keys it holds.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::Heartbeats;
use curt_core::{Key, PortResult};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::metrics::KeyMetrics;
use crate::pace::report;
use crate::ports::KeyPorts;

/// Keys of a buffer that are told to an audit at most: a record must not grow beyond what engines take.
const TOLD_MAX: usize = 50_000;

/// How long the registry keeps the record of an instance that has fallen silent.
const TTL: Duration = Duration::from_secs(15);

/// Keys that a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// In its buffer.
    pub buffered: u64,
    /// Between a ledger and a pool.
    pub in_transit: u64,
}

/// A process as its heartbeat shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub name: Box<str>,
    /// As it describes itself.
    pub who: Box<str>,
    #[serde(flatten)]
    pub holdings: Holdings,
    /// Keys that it found on links already, since its start.
    pub conflicts: u64,
    /// Keys that it made on the spot because the supply was dry, since its start.
    pub fallbacks: u64,
}

/// The keys in the buffer of one instance, as it told an audit.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditAnswer {
    audit: Box<str>,
    pub(crate) instance: Box<str>,
    keys: Vec<Box<str>>,
}

impl AuditAnswer {
    pub(crate) fn answers(&self, audit: &str) -> bool {
        *self.audit == *audit
    }

    pub(crate) fn into_keys(self) -> impl Iterator<Item = Key> {
        let keys = self.keys.into_iter();
        keys.filter_map(|key| Key::parse(&key).ok())
    }
}

/// What is written under a name in the registry.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    Instance(Instance),
    AuditRequest { audit: Box<str> },
    AuditAnswer(AuditAnswer),
}

impl Record {
    pub(crate) async fn write(
        &self,
        heartbeats: &dyn Heartbeats,
        name: &str,
        ttl: Duration,
    ) -> PortResult<()> {
        // Records are plain structs of texts and numbers, which always can be written as JSON.
        let text = serde_json::to_string(self).unwrap_or_default();
        heartbeats.beat(name, &text, ttl).await
    }
}

/// All records at one moment. Those that this version cannot read are left out.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) instances: Vec<Instance>,
    /// Audits that ask for what is in the buffers.
    pub(crate) audits: Vec<Box<str>>,
    pub(crate) answers: Vec<AuditAnswer>,
}

impl Registry {
    pub(crate) async fn read(heartbeats: &dyn Heartbeats) -> PortResult<Self> {
        let mut registry = Self::default();
        for record in heartbeats.records().await? {
            match serde_json::from_str(&record.text) {
                Ok(Record::Instance(instance)) => registry.instances.push(instance),
                Ok(Record::AuditRequest { audit }) => registry.audits.push(audit),
                Ok(Record::AuditAnswer(answer)) => registry.answers.push(answer),
                Err(_) => {}
            }
        }
        Ok(registry)
    }
}

/// The heartbeat of this process.
pub(crate) struct Heartbeat {
    heartbeats: Arc<dyn Heartbeats>,
    name: Box<str>,
    who: Box<str>,
}

impl Heartbeat {
    pub(crate) fn new(ports: &KeyPorts) -> Self {
        Self {
            heartbeats: Arc::clone(&ports.heartbeats),
            name: format!("{:016x}", rand::rng().next_u64()).into(),
            who: ports.who.clone(),
        }
    }

    pub(crate) async fn beat(&self, holdings: Holdings, metrics: &KeyMetrics) {
        let record = Record::Instance(self.instance(holdings, metrics));
        if let Err(error) = record.write(&*self.heartbeats, &self.name, TTL).await {
            report(&error);
        }
    }

    fn instance(&self, holdings: Holdings, metrics: &KeyMetrics) -> Instance {
        Instance {
            name: self.name.clone(),
            who: self.who.clone(),
            holdings,
            conflicts: metrics.conflicts.get(),
            fallbacks: metrics.fallbacks.get(),
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
        for over in answered.extract_if(.., |audit| !asked.contains(audit)) {
            if let Err(error) = self.heartbeats.remove(&self.answer_name(&over)).await {
                report(&error);
            }
        }
        for audit in asked {
            let keys = buffer();
            if keys.len() > TOLD_MAX {
                continue;
            }
            let answer = Record::AuditAnswer(AuditAnswer {
                audit: audit.clone(),
                instance: self.name.clone(),
                keys: keys.iter().map(|key| key.as_str().into()).collect(),
            });
            let name = self.answer_name(audit);
            match answer.write(&*self.heartbeats, &name, TTL).await {
                Ok(()) if !answered.contains(audit) => answered.push(audit.clone()),
                Ok(()) => {}
                Err(error) => report(&error),
            }
        }
    }

    fn answer_name(&self, audit: &str) -> String {
        format!("{}-{audit}", self.name)
    }

    pub(crate) async fn leave(&self) {
        if let Err(error) = self.heartbeats.remove(&self.name).await {
            report(&error);
        }
    }

    /// Puts what this process holds now in place of its last heartbeat.
    pub(crate) fn correct(
        &self,
        instances: &mut Vec<Instance>,
        holdings: Holdings,
        metrics: &KeyMetrics,
    ) {
        instances.retain(|instance| instance.name != self.name);
        instances.push(self.instance(holdings, metrics));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_nonsense_is_passed_over() {
        let instance = Record::Instance(Instance {
            name: "a".into(),
            who: "host/7 redirect api".into(),
            holdings: Holdings {
                buffered: 12,
                in_transit: 3,
            },
            conflicts: 4,
            fallbacks: 5,
        });
        let request = Record::AuditRequest {
            audit: "f00d".into(),
        };
        let answer = Record::AuditAnswer(AuditAnswer {
            audit: "f00d".into(),
            instance: "a".into(),
            keys: vec!["k-1".into(), "k.2".into()],
        });
        for record in [instance, request, answer] {
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        }
        for nonsense in [
            "",
            "1 2 3 4 who",
            "{}",
            r#"{"record":"instance"}"#,
            r#"{"record":"x"}"#,
        ] {
            assert!(
                serde_json::from_str::<Record>(nonsense).is_err(),
                "{nonsense:?}"
            );
        }
    }
}
