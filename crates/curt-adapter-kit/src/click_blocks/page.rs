//! One page of clicks, newest first, over blocks whose times overlap.

use curt_core::click_block::{Block, ClickPlace, subjects};
use curt_core::ports::{ClickPage, ClickQuery, StreamId, StreamPartition};
use curt_core::{Click, ErrorKind, PortError, PortResult, UnixMillis};

use super::{
    BlockEntry, BlockLister, BlockRange, ClickBlocks, RESTARTS_MAX, damaged_block, moved_too_often,
};
use crate::page_cursor;
use crate::varint::Damaged;

const OP: &str = "list clicks";
/// Part of the cursors that clients hold.
const LIST: &str = "clicks";
/// Blocks that are listed at a time.
const BLOCKS_LISTED: usize = 64;
/// Clicks whose columns are looked at for one page at most. Then the page is short, and the next one goes on.
const CLICKS_SCANNED_MAX: usize = 1_000_000;
/// What it costs to look at a block's filter, in clicks.
const FILTER_COST: usize = 100;

/// Reads one page. A cursor of another list is `Invalid`.
pub async fn read_page(blocks: &dyn ClickBlocks, query: &ClickQuery) -> PortResult<ClickPage> {
    let end = match &query.cursor {
        None => None,
        Some(cursor) => Some(read_cursor(cursor).ok_or_else(|| {
            let detail = "the cursor is not one of this list";
            PortError::new(ErrorKind::Invalid, blocks.backend(), OP, detail)
        })?),
    };
    for _ in 0..RESTARTS_MAX {
        let reader = PageReader::new(blocks, query, end);
        if let Some(page) = reader.read().await? {
            return Ok(page);
        }
    }
    Err(moved_too_often(blocks, OP))
}

struct PageReader<'a> {
    blocks: &'a dyn ClickBlocks,
    query: &'a ClickQuery,
    /// Clicks from here on are on earlier pages.
    end: Option<ClickPlace>,
    /// Newest first; one more than the page shows, which tells that there is a next one.
    found: Vec<(ClickPlace, Click)>,
    scanned: usize,
}

impl<'a> PageReader<'a> {
    fn new(blocks: &'a dyn ClickBlocks, query: &'a ClickQuery, end: Option<ClickPlace>) -> Self {
        Self {
            blocks,
            query,
            end,
            found: Vec::new(),
            scanned: 0,
        }
    }

    /// `None`: clicks were moved meanwhile, and the page may lack some.
    async fn read(mut self) -> PortResult<Option<ClickPage>> {
        let last = self.end.map_or(UnixMillis::MAX, |end| end.at);
        let range = BlockRange {
            from: self.query.from,
            before: self.query.before.min(UnixMillis(last.0.saturating_add(1))),
        };
        let mut lister = BlockLister::new(self.blocks, range);
        while let Some(listed) = lister.next(BLOCKS_LISTED).await? {
            if listed.is_empty() {
                return Ok(Some(self.whole_page()));
            }
            for entry in &listed {
                if self.is_complete_before(entry) {
                    return Ok(Some(self.whole_page()));
                }
                if self.scanned >= CLICKS_SCANNED_MAX
                    && let Some(page) = self.short_page(entry)
                {
                    return Ok(Some(page));
                }
                if !self.scan(entry).await? {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Whether this block and all behind it are older than what the page needs.
    fn is_complete_before(&self, entry: &BlockEntry) -> bool {
        let beyond = self.found.get(self.query.limit);
        beyond.is_some_and(|(place, _)| place.at > entry.last_at)
    }

    /// Adds what the block has; says whether it was still there.
    async fn scan(&mut self, entry: &BlockEntry) -> PortResult<bool> {
        let wanted = subjects::hash_of(&self.query.subject);
        if wanted.is_some_and(|wanted| !subjects::may_have(&entry.subjects, wanted)) {
            self.scanned += FILTER_COST;
            return Ok(true);
        }
        let read = self.blocks.read(&[entry.id]).await?;
        let Some((_, bytes)) = read.first() else {
            return Ok(false);
        };
        self.scanned += entry.rows();
        let found = self.find(bytes);
        let backend = self.blocks.backend();
        let found = found.map_err(|damaged| damaged_block(backend, OP, entry.id, damaged))?;
        self.found.extend(found);
        self.found
            .sort_unstable_by_key(|(place, _)| std::cmp::Reverse(*place));
        self.found.truncate(self.query.limit.saturating_add(1));
        Ok(true)
    }

    /// The newest clicks of the block that the page could show.
    fn find(&self, bytes: &[u8]) -> Result<Vec<(ClickPlace, Click)>, Damaged> {
        let ClickQuery {
            subject,
            filter,
            from,
            before,
            ..
        } = self.query;
        let block = Block::read(bytes)?;
        let matches = block.matches(subject, filter, *from..*before)?;
        // A full page has room only for what is newer than its last click: of most blocks nothing, and nothing is decoded.
        let last = self.found.get(self.query.limit).map(|(place, _)| *place);
        let is_asked = |place: &ClickPlace| {
            self.end.is_none_or(|end| *place < end) && last.is_none_or(|last| *place > last)
        };
        let rows = block.places().into_iter().enumerate();
        let mut rows: Vec<(usize, ClickPlace)> = rows
            .filter(|(row, place)| matches[*row] && is_asked(place))
            .collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        rows.sort_unstable_by_key(|(_, place)| std::cmp::Reverse(*place));
        rows.truncate(self.query.limit.saturating_add(1));
        let clicks = block.clicks()?;
        let click = |(row, place)| Ok((place, clicks.get(row)?));
        rows.into_iter().map(click).collect()
    }

    fn whole_page(mut self) -> ClickPage {
        let has_more = self.found.len() > self.query.limit;
        self.found.truncate(self.query.limit);
        let next = self.found.last().filter(|_| has_more);
        ClickPage {
            next: next.map(|(place, _)| cursor(*place)),
            clicks: self.found.into_iter().map(|(_, click)| click).collect(),
        }
    }

    /// What is newer than everything that was not looked at. `None` if the next page would begin where this one did.
    fn short_page(&mut self, rest: &BlockEntry) -> Option<ClickPage> {
        let next = ClickPlace {
            at: UnixMillis(rest.last_at.0.saturating_add(1)),
            from: 0,
            partition: StreamPartition {
                stream: StreamId(0),
                number: 0,
            },
            number: 0,
        };
        if self.end.is_some_and(|end| next >= end) {
            return None;
        }
        let known = self.found.drain(..);
        let known = known.filter(|(place, _)| *place >= next);
        Some(ClickPage {
            clicks: known.map(|(_, click)| click).collect(),
            next: Some(cursor(next)),
        })
    }
}

fn cursor(place: ClickPlace) -> Box<str> {
    let StreamPartition { stream, number } = place.partition;
    let text = format!(
        "{}.{}.{}.{number}.{}",
        place.at.0, place.from, stream.0, place.number
    );
    page_cursor::seal(LIST, &text)
}

fn read_cursor(cursor: &str) -> Option<ClickPlace> {
    let mut parts = page_cursor::unseal(LIST, cursor)?.split('.');
    let at = UnixMillis(parts.next()?.parse().ok()?);
    let from = parts.next()?.parse().ok()?;
    let partition = StreamPartition {
        stream: StreamId(parts.next()?.parse().ok()?),
        number: parts.next()?.parse().ok()?,
    };
    let number = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some(ClickPlace {
        at,
        from,
        partition,
        number,
    })
}
