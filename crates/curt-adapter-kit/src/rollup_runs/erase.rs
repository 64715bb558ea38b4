//! Removing what was counted for one subject.
//!
//! Unlike everything else, this changes runs: a run of a busy day takes megabytes, and only the chunk that has the subject
//! is written again. The number of such edits tells those who have read the run before that it is another one now.

use curt_core::ports::Erasure;
use curt_core::{ClickSubject, Day, PortError, PortResult};

use super::chunk::{EntryReader, RunWriter};
use super::read::corrupt;
use super::subject_key::subject_key;
use super::{ChunkEdit, FoundChunk, RollupRuns};
use crate::off_runtime;
use crate::varint::Damaged;

const OP: &str = "erase counts";
/// Days whose chunks are in memory together.
const DAYS_READ: usize = 64;
/// How often the same days are looked at: others may merge or edit their runs meanwhile.
const TRIES_MAX: usize = 10;

/// Removes the subject from up to `chunks_max` chunks.
pub async fn erase(
    runs: &dyn RollupRuns,
    subject: &ClickSubject,
    chunks_max: usize,
) -> PortResult<Erasure> {
    let mut eraser = RunEraser {
        runs,
        key: subject_key(subject),
        left: chunks_max.max(1),
        erased: 0,
        damage: None,
    };
    let is_complete = eraser.erase_all().await?;
    match eraser.damage {
        Some(error) if is_complete => Err(error),
        _ => Ok(Erasure {
            erased: eraser.erased,
            is_complete,
        }),
    }
}

struct RunEraser<'a> {
    runs: &'a dyn RollupRuns,
    key: Vec<u8>,
    /// How many chunks may still change.
    left: usize,
    erased: u64,
    /// The first chunk that could not be read.
    damage: Option<PortError>,
}

impl RunEraser<'_> {
    /// Says whether nothing is left.
    async fn erase_all(&mut self) -> PortResult<bool> {
        let mut from = Day::FIRST;
        let mut tries = 0;
        loop {
            let found = self
                .runs
                .find(&self.key, from, Day::LAST, DAYS_READ)
                .await?;
            let Some(end) = found.last().map(|chunk| chunk.day) else {
                return Ok(true);
            };
            let edits = self.find_edits(found).await?;
            if edits.is_empty() {
                if end >= Day::LAST {
                    return Ok(true);
                }
                (from, tries) = (end.next(), 0);
                continue;
            }
            // What is merged meanwhile is found again.
            tries += 1;
            if tries > TRIES_MAX || !self.apply(edits).await? {
                return Ok(false);
            }
        }
    }

    /// Says whether more chunks may change.
    async fn apply(&mut self, edits: Vec<ChunkEdit>) -> PortResult<bool> {
        for edit in edits {
            if self.left == 0 {
                return Ok(false);
            }
            if self.runs.edit_chunk(edit).await? {
                self.left -= 1;
                self.erased += 1;
            }
        }
        Ok(true)
    }

    /// What has to change in the chunks.
    async fn find_edits(&mut self, found: Vec<FoundChunk>) -> PortResult<Vec<ChunkEdit>> {
        let (key, backend) = (self.key.clone(), self.runs.backend());
        let (edits, damaged) = off_runtime(backend, OP, move || {
            let (mut edits, mut damaged) = (Vec::new(), None);
            for chunk in &found {
                match edit_of(&key, chunk) {
                    Ok(edit) => edits.extend(edit),
                    Err(error) => drop(damaged.get_or_insert((chunk.day, error))),
                }
            }
            Ok((edits, damaged))
        })
        .await?;
        if let Some((day, error)) = damaged {
            self.damage
                .get_or_insert_with(|| corrupt(backend, OP, day, error));
        }
        Ok(edits)
    }
}

/// The chunk without the key; `None`: it does not have it.
fn edit_of(key: &[u8], found: &FoundChunk) -> Result<Option<ChunkEdit>, Damaged> {
    let Some(content) = &found.content else {
        return Ok(None);
    };
    let mut entries = EntryReader::new(std::slice::from_ref(content));
    entries.advance()?;
    let first_key = entries.key().unwrap_or_default().to_vec();
    let mut has_key = false;
    let mut rest = RunWriter::in_one_chunk(found.day);
    while let (Some(own), Some(day)) = (entries.key(), entries.day()) {
        match own == key {
            true => has_key = true,
            false => rest.push(own, day),
        }
        entries.advance()?;
    }
    Ok(has_key.then(|| ChunkEdit {
        run: found.run,
        edits: found.edits,
        bytes_before: (first_key.len() + content.len()) as u64,
        first_key,
        rest: rest.finish().chunks.pop(),
    }))
}
