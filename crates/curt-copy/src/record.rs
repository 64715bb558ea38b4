//! How far a copy has come, as it is noted at the destination.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use curt_core::PortResult;
use curt_core::ports::{MapNote, MapNotes};

use crate::error::{CopyError, Side};
use crate::part::{CopyResult, retried};

/// Under which the destination keeps the record, beside its shard map.
const NOTE: &str = "copy";
const IDENTITY: &str = "identity";

/// A copy that was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyRecord {
    /// The identity of the source.
    pub source: Box<str>,
    /// By which number the source remembers changes for this copy.
    pub follower: Option<u64>,
    /// Whether the destination had something before.
    pub is_into_existing: bool,
    pub is_done: bool,
    /// By the names of parts.
    pub parts: BTreeMap<Box<str>, CopyPhase>,
}

/// How far one part is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CopyPhase {
    #[default]
    New,
    /// Everything up to this position is copied.
    At(Box<str>),
    Copied,
}

impl CopyPhase {
    /// Where to go on. `None`: nowhere, it is copied.
    pub(crate) fn position(&self) -> Option<Option<Box<str>>> {
        match self {
            Self::New => Some(None),
            Self::At(position) => Some(Some(position.clone())),
            Self::Copied => None,
        }
    }
}

impl CopyRecord {
    pub(crate) fn phase(&self, part: &str) -> CopyPhase {
        self.parts.get(part).cloned().unwrap_or_default()
    }

    /// One line for each fact.
    fn to_text(&self) -> String {
        let mut text = format!("source {}\n", self.source);
        if let Some(follower) = self.follower {
            let _infallible = writeln!(text, "follower {follower}");
        }
        if self.is_into_existing {
            text.push_str("existing\n");
        }
        if self.is_done {
            text.push_str("done\n");
        }
        for (name, phase) in &self.parts {
            let _infallible = match phase {
                CopyPhase::New => writeln!(text, "new {name}"),
                CopyPhase::Copied => writeln!(text, "copied {name}"),
                CopyPhase::At(position) => writeln!(text, "at {name} {}", escaped(position)),
            };
        }
        text
    }

    /// `None`: another version wrote it.
    fn of_text(text: &str) -> Option<Self> {
        let mut record = Self::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "source" => record.source = rest.into(),
                "follower" => record.follower = Some(rest.parse().ok()?),
                "existing" => record.is_into_existing = true,
                "done" => record.is_done = true,
                "new" => drop(record.parts.insert(rest.into(), CopyPhase::New)),
                "copied" => drop(record.parts.insert(rest.into(), CopyPhase::Copied)),
                "at" => {
                    let (name, position) = rest.split_once(' ')?;
                    let phase = CopyPhase::At(unescaped(position).into());
                    record.parts.insert(name.into(), phase);
                }
                _ => return None,
            }
        }
        Some(record)
    }
}

/// A position may hold a name that a client chose, lines and all.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        plain.push(match next {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => break,
            },
            other => other,
        });
    }
    plain
}

/// The name by which a database is known from all others, kept in a note where its engine keeps none.
pub async fn identity_by_note(notes: &dyn MapNotes) -> PortResult<Box<str>> {
    let stored = notes.note(IDENTITY).await?;
    if stored.version > 0 {
        return Ok(stored.text.into());
    }
    let fresh = stored.followed_by(format!("{:032x}", rand::random::<u128>()));
    notes.put_note(IDENTITY, &fresh).await?;
    // Of two that were made at once, the first one's.
    Ok(notes.note(IDENTITY).await?.text.into())
}

/// The record at the destination. Two copies exclude each other by its version.
pub struct CopyNotes {
    notes: Arc<dyn MapNotes>,
    stored: MapNote,
    pub record: CopyRecord,
}

impl CopyNotes {
    /// `record` is empty where nothing was ever copied to the destination.
    pub async fn load(notes: Arc<dyn MapNotes>) -> Result<Self, CopyError> {
        let stored = retried(Side::Destination, async || notes.note(NOTE).await).await?;
        let record = CopyRecord::of_text(&stored.text).ok_or_else(|| {
            CopyError::Refused("another version of curt began a copy into this destination".into())
        })?;
        Ok(Self {
            notes,
            stored,
            record,
        })
    }

    /// Whether a copy was begun and did not come to its end.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !self.record.source.is_empty() && !self.record.is_done
    }

    pub async fn store(&mut self) -> Result<(), CopyError> {
        let next = self.stored.followed_by(self.record.to_text());
        let (notes, stored) = (&self.notes, &next);
        let is_stored = retried(Side::Destination, async || {
            // After a call of unknown outcome the same note may be there already.
            Ok(notes.put_note(NOTE, stored).await? || notes.note(NOTE).await? == *stored)
        });
        match is_stored.await? {
            true => self.stored = next,
            false => return Err(CopyError::TakenOver),
        }
        Ok(())
    }

    pub(crate) async fn store_phase(&mut self, part: &str, phase: CopyPhase) -> CopyResult<()> {
        self.record.parts.insert(part.into(), phase);
        self.store().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = CopyRecord {
            source: "f00d".into(),
            follower: Some(u64::MAX),
            is_into_existing: true,
            is_done: true,
            parts: [
                ("links".into(), CopyPhase::At("r7:a\nb \\n\r".into())),
                ("accounts".into(), CopyPhase::Copied),
                ("clicks".into(), CopyPhase::New),
            ]
            .into(),
        };
        assert_eq!(CopyRecord::of_text(&record.to_text()), Some(record));
        assert_eq!(CopyRecord::of_text(""), Some(CopyRecord::default()));
        assert_eq!(CopyRecord::of_text("later version"), None);
    }
}
