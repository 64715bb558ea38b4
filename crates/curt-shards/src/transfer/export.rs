//! The merge of what the nodes have, in the order of creation.

use curt_core::ports::{LinkItem, ShardItem, TransferPart, Transferred as _};
use curt_core::{ErrorKind, LinkId, PortError, PortResult, UnixMillis};
use futures_util::future::try_join_all;

use super::position::{NodePosition, of_text, to_text};
use super::{ShardedTransfer, TransferNode, at_node, moved};
use crate::BACKEND;

/// Items of a part.
const ITEMS_AT_ONCE: usize = 1_000;
/// Parts that are read of each node for one part of all.
const PARTS_PER_NODE: usize = 4;

/// A part of a node that was read and not yet taken whole.
pub(super) struct Buffer {
    /// Where it begins.
    start: Option<Box<str>>,
    part: TransferPart<LinkItem>,
    /// Items that were taken.
    taken: usize,
}

/// Links that lists show come first, by their age; deleted ones after them, and then all else.
fn rank(item: &LinkItem) -> (u8, UnixMillis, Option<&LinkId>) {
    match &item.item {
        ShardItem::Link {
            id,
            stored: Some(row),
            ..
        } if row.link.state.is_kept() => {
            let group = u8::from(!row.link.state.is_live());
            (group, row.link.created_at, Some(id))
        }
        _ => (2, UnixMillis(0), None),
    }
}

impl ShardedTransfer {
    pub(super) async fn export(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<TransferPart<LinkItem>> {
        let mut buffers = self.buffers.lock().await;
        let mut positions = match after {
            None => {
                // What was read for an earlier export may be old.
                buffers.iter_mut().for_each(|buffer| *buffer = None);
                vec![NodePosition::FIRST; self.nodes.len()]
            }
            Some(text) => self.read_position(op, text)?,
        };
        // A call that is repeated goes on where the one before began.
        for (buffer, position) in buffers.iter_mut().zip(&positions) {
            buffer.take_if(|buffer| buffer.position() != *position);
        }
        let mut items = Vec::new();
        let mut parts_left = PARTS_PER_NODE * self.nodes.len();
        while items.len() < ITEMS_AT_ONCE && parts_left > 0 {
            let read = self.fill(&mut buffers, &mut positions).await?;
            parts_left = parts_left.saturating_sub(read);
            let heads = buffers.iter().enumerate();
            let heads = heads.filter_map(|(place, buffer)| Some((place, buffer.as_ref()?.head()?)));
            let first = heads.min_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)));
            match first.map(|(place, _)| place) {
                Some(place) => items.extend(buffers[place].as_mut().and_then(Buffer::take)),
                // Nodes without items in their parts go on with the next.
                None if positions.iter().any(|at| *at != NodePosition::Done) => {}
                None => break,
            }
        }
        for (buffer, position) in buffers.iter_mut().zip(&mut positions) {
            advance(buffer, position);
            if let Some(buffer) = buffer.as_ref().filter(|buffer| buffer.taken > 0) {
                *position = buffer.position();
            }
        }
        let is_done = positions.iter().all(|at| *at == NodePosition::Done);
        let next = (!is_done).then(|| to_text(self.map.version(), &positions));
        Ok(TransferPart { items, next })
    }

    fn read_position(&self, op: &'static str, text: &str) -> PortResult<Vec<NodePosition>> {
        match of_text(text, self.nodes.len()) {
            Some((version, positions)) if version == self.map.version() => Ok(positions),
            Some(_) => Err(moved(op)),
            None => {
                let detail = "the position is not one of these nodes";
                Err(PortError::new(ErrorKind::Invalid, BACKEND, op, detail))
            }
        }
    }

    /// Reads the next part of every node whose part was taken whole, and returns how many parts that were.
    async fn fill(
        &self,
        buffers: &mut [Option<Buffer>],
        positions: &mut [NodePosition],
    ) -> PortResult<usize> {
        let mut reads = Vec::new();
        let nodes = self.nodes.iter().zip(buffers.iter_mut());
        for ((node, buffer), position) in nodes.zip(positions.iter_mut()) {
            advance(buffer, position);
            let NodePosition::At { part, taken } = position else {
                continue;
            };
            let is_there = buffer.as_ref().is_some_and(|buffer| buffer.start == *part);
            if !is_there {
                let (part, taken) = (part.clone(), taken.clone());
                reads.push(async move {
                    let read = self.read_part(node, part, taken.as_deref()).await?;
                    *buffer = Some(read);
                    Ok::<_, PortError>(())
                });
            }
        }
        Ok(try_join_all(reads).await?.len())
    }

    async fn read_part(
        &self,
        node: &TransferNode,
        start: Option<Box<str>>,
        taken: Option<&str>,
    ) -> PortResult<Buffer> {
        let read = node.transfer.export_all(start.as_deref()).await;
        let mut part = read.map_err(at_node(node))?;
        part.items.retain(|item| self.owns(node, item));
        // One that is no longer there has changed: what was taken with it is imported again, which changes nothing.
        let last = taken.and_then(|name| part.items.iter().position(|item| *item.name() == *name));
        Ok(Buffer {
            start,
            part,
            taken: last.map_or(0, |last| last + 1),
        })
    }
}

impl Buffer {
    fn head(&self) -> Option<&LinkItem> {
        self.part.items.get(self.taken)
    }

    fn take(&mut self) -> Option<LinkItem> {
        let item = self.head()?.clone();
        self.taken += 1;
        Some(item)
    }

    /// Where to go on.
    fn position(&self) -> NodePosition {
        let last = self.taken.checked_sub(1);
        let last = last.and_then(|last| self.part.items.get(last));
        NodePosition::At {
            part: self.start.clone(),
            taken: last.map(LinkItem::name),
        }
    }
}

/// Goes on behind a part that was taken whole.
fn advance(buffer: &mut Option<Buffer>, position: &mut NodePosition) {
    let NodePosition::At { part, .. } = position else {
        return;
    };
    let Some(whole) = buffer.take_if(|buffer| buffer.start == *part && buffer.head().is_none())
    else {
        return;
    };
    *position = match whole.part.next {
        Some(next) => NodePosition::At {
            part: Some(next),
            taken: None,
        },
        None => NodePosition::Done,
    };
}
