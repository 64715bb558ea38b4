//! What is known of a move under way: a note beside the shard map, so that any mover can go on with it.

use curt_core::ports::{MapNote, ShardMaps};
use curt_core::{Epoch, NodeIndex, PortResult, ShardId, UnixMillis};

use crate::node::invalid;

const NOTE: &str = "move";

/// How far a move has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovePhase {
    /// Links are copied while their owner goes on with them.
    Copy,
    /// The owner takes no more writes, and the map is about to name the next one.
    Switch,
    /// The map names the new owner.
    Settle,
    /// What is left at the former owner is removed.
    Drop,
    /// The move was given up, and the copy is removed.
    Cancel,
}

impl MovePhase {
    const ALL: [Self; 5] = [
        Self::Copy,
        Self::Switch,
        Self::Settle,
        Self::Drop,
        Self::Cancel,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Switch => "switch",
            Self::Settle => "settle",
            Self::Drop => "drop",
            Self::Cancel => "cancel",
        }
    }
}

/// A move under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRecord {
    pub shard: ShardId,
    pub from: NodeIndex,
    pub to: NodeIndex,
    /// At which the new owner will have the shard.
    pub epoch: Epoch,
    pub phase: MovePhase,
    /// Whether everything was copied once.
    pub is_copied: bool,
    /// Whether the owner may have been sealed.
    pub is_sealed: bool,
    /// Items copied so far.
    pub copied: u64,
    /// Of the mover that is at it.
    pub fence: u64,
    /// Its last sign of life; 0 when it stopped by itself.
    pub seen: UnixMillis,
    /// How it describes itself.
    pub holder: Box<str>,
    /// Where copying or dropping goes on.
    pub position: Option<Box<str>>,
}

impl MoveRecord {
    fn to_text(&self) -> String {
        let numbers = [
            u64::from(self.shard.number()),
            self.from.0.into(),
            self.to.0.into(),
            self.epoch.0,
            self.is_copied.into(),
            self.is_sealed.into(),
            self.copied,
            self.fence,
            self.seen.0.max(0).cast_unsigned(),
        ];
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let position = self
            .position
            .as_deref()
            .map_or("-".to_owned(), |at| format!("+{at}"));
        let holder = self.holder.replace('\n', " ");
        format!(
            "{}\n{}\n{holder}\n{position}",
            self.phase.name(),
            numbers.join(" ")
        )
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.splitn(4, '\n');
        let phase = lines.next()?;
        let phase = MovePhase::ALL.into_iter().find(|one| one.name() == phase)?;
        let numbers = lines.next()?.split(' ').map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        let &[
            shard,
            from,
            to,
            epoch,
            is_copied,
            is_sealed,
            copied,
            fence,
            seen,
        ] = &numbers[..]
        else {
            return None;
        };
        let node = |node| Some(NodeIndex(u32::try_from(node).ok()?));
        let holder = lines.next()?.into();
        let position = lines.next()?;
        Some(Self {
            shard: ShardId::new(u16::try_from(shard).ok()?)?,
            from: node(from)?,
            to: node(to)?,
            epoch: Epoch(epoch),
            phase,
            is_copied: is_copied != 0,
            is_sealed: is_sealed != 0,
            copied,
            fence,
            seen: UnixMillis(i64::try_from(seen).ok()?),
            holder,
            position: position.strip_prefix('+').map(Into::into),
        })
    }
}

/// The stored record, if a move is under way, and its note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredMove {
    pub(crate) record: Option<MoveRecord>,
    note: MapNote,
}

impl StoredMove {
    pub(crate) async fn load(maps: &dyn ShardMaps) -> PortResult<Self> {
        let note = maps.note(NOTE).await?;
        let record = match note.text.as_str() {
            "" => None,
            text => {
                let detail = "the note of the move under way is not one of this version";
                Some(MoveRecord::of_text(text).ok_or_else(|| invalid(detail.to_owned()))?)
            }
        };
        Ok(Self { record, note })
    }

    /// A number that no mover before had.
    pub(crate) fn next_fence(&self) -> u64 {
        self.note.version + 1
    }

    /// Stores the record, or that there is none. `false`: another mover changed it.
    pub(crate) async fn store(
        &mut self,
        maps: &dyn ShardMaps,
        record: Option<MoveRecord>,
    ) -> PortResult<bool> {
        let text = record.as_ref().map_or(String::new(), MoveRecord::to_text);
        let note = self.note.followed_by(text);
        if maps.put_note(NOTE, &note).await? {
            (self.note, self.record) = (note, record);
            return Ok(true);
        }
        // A call that timed out may have been done.
        let stored = Self::load(maps).await?;
        let is_ours = stored.note == note;
        if is_ours {
            *self = stored;
        }
        Ok(is_ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_text() {
        for (phase, position) in
            MovePhase::ALL
                .into_iter()
                .zip([None, Some("l0/a"), Some(""), None, Some("r1:a\nb")])
        {
            let record = MoveRecord {
                shard: ShardId::new(1_023).unwrap(),
                from: NodeIndex(3),
                to: NodeIndex(32),
                epoch: Epoch(7),
                phase,
                is_copied: true,
                is_sealed: false,
                copied: 12,
                fence: 5,
                seen: UnixMillis(1_700_000_000_000),
                holder: "a mover on host 1".into(),
                position: position.map(Into::into),
            };
            assert_eq!(MoveRecord::of_text(&record.to_text()), Some(record));
        }
        assert_eq!(MoveRecord::of_text("copy\n1 2 3\nx\n-"), None);
    }
}
