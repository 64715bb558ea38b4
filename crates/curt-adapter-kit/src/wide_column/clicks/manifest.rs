//! What a window has written, as text.

use crate::EncodedWindow;
use crate::rollup_runs::NewRun;
use curt_core::UnixMillis;
use curt_core::click_block::NewBlock;
use data_encoding::HEXLOWER;

use super::rows::{Content, new_id};

/// The rows that are to be in the catalogues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub runs: Vec<RunRow>,
    pub blocks: Vec<BlockRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub day: i32,
    pub id: i64,
    pub bytes: i64,
    pub subjects: i64,
    /// First key and content of each chunk.
    pub chunks: Vec<(Vec<u8>, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    pub id: i64,
    pub first_at: UnixMillis,
    pub last_at: UnixMillis,
    pub clicks: i64,
    pub bytes: i64,
}

impl RunRow {
    /// The row of a run, whose chunks get ids.
    pub(super) fn new(run: &NewRun) -> Self {
        let chunk = |chunk: &crate::rollup_runs::NewChunk| (chunk.first_key.clone(), new_id());
        Self {
            day: run.day.number().cast_signed(),
            id: new_id(),
            bytes: run.bytes().cast_signed(),
            subjects: run.subjects.into(),
            chunks: run.chunks.iter().map(chunk).collect(),
        }
    }

    pub(super) fn contents<'a>(&self, run: &'a NewRun) -> Vec<Content<'a>> {
        let own = Content {
            id: self.id,
            day: Some(self.day),
            ..Content::default()
        };
        let chunks = self.chunks.iter().zip(&run.chunks);
        let chunks = chunks.map(|((_, id), chunk)| Content {
            id: *id,
            content: Some(&chunk.content),
            ..Content::default()
        });
        std::iter::once(own).chain(chunks).collect()
    }
}

impl BlockRow {
    pub(super) fn new(block: &NewBlock) -> Self {
        Self {
            id: new_id(),
            first_at: block.first_at,
            last_at: block.last_at,
            clicks: block.clicks.into(),
            bytes: block.size().into(),
        }
    }

    pub(super) fn content<'a>(&self, block: &'a NewBlock) -> Content<'a> {
        Content {
            id: self.id,
            content: Some(&block.bytes),
            subjects: Some(&block.subjects),
            ..Content::default()
        }
    }
}

impl Manifest {
    pub(super) fn of(window: &EncodedWindow) -> Self {
        Self {
            runs: window.runs.iter().map(RunRow::new).collect(),
            blocks: window.blocks.iter().map(BlockRow::new).collect(),
        }
    }

    /// The ids of everything that it names.
    pub(super) fn ids(&self) -> Vec<i64> {
        let chunks = |run: &RunRow| run.chunks.iter().map(|(_, id)| *id).collect::<Vec<_>>();
        let runs = self.runs.iter().flat_map(chunks);
        let runs = runs.chain(self.runs.iter().map(|run| run.id));
        runs.chain(self.blocks.iter().map(|block| block.id))
            .collect()
    }

    pub(super) fn to_text(&self) -> String {
        let mut lines = Vec::new();
        for run in &self.runs {
            let RunRow {
                day,
                id,
                bytes,
                subjects,
                chunks,
            } = run;
            lines.push(format!("run {day} {id} {bytes} {subjects}"));
            let chunk = |(key, id): &(Vec<u8>, i64)| format!("chunk {} {id}", HEXLOWER.encode(key));
            lines.extend(chunks.iter().map(chunk));
        }
        for block in &self.blocks {
            let BlockRow {
                id,
                first_at,
                last_at,
                clicks,
                bytes,
            } = block;
            let (first, last) = (first_at.0, last_at.0);
            lines.push(format!("block {id} {first} {last} {clicks} {bytes}"));
        }
        lines.join("\n")
    }

    /// `None`: the text is not one of [`to_text`](Self::to_text).
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let mut manifest = Self::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next()? {
                "chunk" => {
                    let key = HEXLOWER.decode(words.next()?.as_bytes()).ok()?;
                    let id = words.next()?.parse().ok()?;
                    manifest.runs.last_mut()?.chunks.push((key, id));
                }
                kind => {
                    let numbers: Vec<i64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
                    match (kind, &numbers[..]) {
                        ("run", &[day, id, bytes, subjects]) => manifest.runs.push(RunRow {
                            day: i32::try_from(day).ok()?,
                            id,
                            bytes,
                            subjects,
                            chunks: Vec::new(),
                        }),
                        ("block", &[id, first, last, clicks, bytes]) => {
                            manifest.blocks.push(BlockRow {
                                id,
                                first_at: UnixMillis(first),
                                last_at: UnixMillis(last),
                                clicks,
                                bytes,
                            });
                        }
                        _ => return None,
                    }
                }
            }
        }
        Some(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_leads_back_from_its_text() {
        let run = |day| RunRow {
            day,
            id: i64::MAX,
            bytes: 7,
            subjects: 3,
            chunks: vec![(vec![0, 255, 10], 1), (vec![1], -2)],
        };
        let block = BlockRow {
            id: 5,
            first_at: UnixMillis(-1),
            last_at: UnixMillis(i64::MAX),
            clicks: 9,
            bytes: 0,
        };
        let manifest = Manifest {
            runs: vec![run(1), run(2)],
            blocks: vec![block],
        };
        let text = manifest.to_text();
        assert_eq!(Manifest::of_text(&text), Some(manifest));
        assert_eq!(Manifest::of_text(""), Some(Manifest::default()));
        for wrong in [
            "chunk 00 1",
            "run 1 2",
            "block 1 2 3 4 5 6",
            "other",
            "run a b c d",
        ] {
            assert_eq!(Manifest::of_text(wrong), None, "{wrong}");
        }
    }
}
