use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::click_block::{BLOCK_CLICKS_MAX, Block, encode};
use curt_core::ports::{ClickFilter, ClickQuery, StreamId, StreamPartition};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Dimension, DomainId, Key, LinkId,
    OwnerId, PortResult, UnixMillis,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

mod erase;

const OWNER: OwnerId = OwnerId(7);

fn partition(number: u32) -> StreamPartition {
    StreamPartition {
        stream: StreamId(u64::MAX),
        number,
    }
}

fn link(number: u32) -> ClickOutcome {
    let key = Key::parse(&format!("key{number}")).unwrap();
    ClickOutcome::Link(LinkId::new(DomainId(0), key), 1)
}

/// A click as they come: few different texts, and some that nobody else has.
fn random_click(random: &mut StdRng, at: i64) -> Click {
    let pick = |random: &mut StdRng, from: &[&str]| from[random.random_range(0..from.len())].into();
    let outcome = match random.random_range(0..20) {
        0 => ClickOutcome::BaseUrl,
        1 => ClickOutcome::Absent("nosuch".into()),
        _ => link(random.random_range(0..50)),
    };
    let owner = matches!(outcome, ClickOutcome::Link(..)).then_some(OWNER);
    let mut details = ClickDetails::default();
    details.set(
        Dimension::ReferrerGroup,
        pick(random, &["direct", "search"]),
    );
    details.set(Dimension::City, pick(random, &["Bonn, DE", "Lyon, FR", ""]));
    details.set(Dimension::UtmSource, pick(random, &["news", "", "", ""]));
    Click {
        at: UnixMillis(at),
        owner,
        tags: match random.random_range(0..3) {
            0 => vec!["Red".into(), "blue".into()],
            _ => Vec::new(),
        },
        outcome,
        class: ClickClass::ALL[random.random_range(0..4)],
        country: pick(random, &["DE", "FR", "SE", "unknown"]),
        browser: pick(random, &["Firefox", "Chrome", "Safari"]),
        system: pick(random, &["Linux", "Windows"]),
        device: pick(random, &["desktop", "mobile"]),
        referrer: format!("{}.example", random.random_range(0..1_000)).into(),
        language: pick(random, &["de", "en", ""]),
        details,
        address: match random.random_range(0..3) {
            0 => Some([203, 0, 113, 7].into()),
            1 => Some([1; 16].into()),
            _ => None,
        },
    }
}

fn clicks_of(bytes: &[u8]) -> Result<Vec<Click>, crate::varint::Damaged> {
    let block = Block::read(bytes)?;
    let clicks = block.clicks()?;
    (0..block.places().len())
        .map(|row| clicks.get(row))
        .collect()
}

#[test]
fn clicks_are_read_as_they_were_written_in_few_bytes() {
    let mut random = StdRng::seed_from_u64(1);
    let clicks: Vec<Click> = (0..20_000)
        .map(|n| {
            let late = random.random_range(0..5);
            random_click(&mut random, 1_790_000_000_000 + n - late)
        })
        .collect();
    let blocks = encode(partition(3), 70, &clicks);
    assert_eq!(blocks.len(), 2, "as many as there are {BLOCK_CLICKS_MAX}s");
    let read: Vec<Click> = blocks
        .iter()
        .flat_map(|block| clicks_of(&block.bytes).unwrap())
        .collect();
    assert_eq!(read, clicks);
    let sizes: u32 = blocks.iter().map(NewBlock::size).sum();
    assert!(sizes < 10 * 20_000, "{sizes} bytes");
    assert_eq!(encode(partition(3), 70, &[]), []);
}

/// Stored blocks outlive versions.
#[test]
fn the_stored_form_is_fixed() {
    let mut click = random_click(&mut StdRng::seed_from_u64(1), 5);
    click.outcome = link(1);
    (click.owner, click.tags, click.address) = (Some(OWNER), vec!["t".into()], None);
    (click.class, click.referrer, click.language) = (ClickClass::Bot, "r".into(), "de".into());
    (click.country, click.browser) = ("DE".into(), "b".into());
    (click.system, click.device) = ("s".into(), "d".into());
    for (dimension, value) in Dimension::DETAILS
        .into_iter()
        .zip(["g", "", "2", "3", "4", "5", "c", "n"])
    {
        click.details.set(dimension, value);
    }
    let other = Click {
        at: UnixMillis(3),
        outcome: ClickOutcome::BaseUrl,
        owner: None,
        ..click.clone()
    };
    let partition = StreamPartition {
        stream: StreamId(9),
        number: 1,
    };
    let block = encode(partition, 300, &[click, other]).pop().unwrap();
    let mut golden = vec![2, 1, 9, 1, 0xac, 2, 0, 2, 2, 10, 3];
    golden.extend_from_slice(b"\x0c\x02\x07\x00\x00\x01key1\x01\x02\x02");
    golden.extend_from_slice(b"\x05\x02\x01\x07\x00\x02\x04\x01\x02\x01t\x03\x01\x01\x01");
    golden.extend_from_slice(b"\x04\x01\x02DE\x03\x01\x01b\x03\x01\x01s\x03\x01\x01d\x03\x01\x01r");
    golden.extend_from_slice(b"\x04\x01\x02de\x02\x01\x00");
    golden.extend_from_slice(b"\x03\x01\x01g\x02\x01\x00\x03\x01\x012\x03\x01\x013");
    golden.extend_from_slice(b"\x03\x01\x014\x03\x01\x015\x03\x01\x01c\x03\x01\x01n");
    assert_eq!(block.bytes, golden);
    assert_eq!(
        (block.first_at, block.last_at),
        (UnixMillis(3), UnixMillis(5))
    );
}

#[test]
fn mutated_blocks_are_refused_or_read_as_something() {
    let mut random = StdRng::seed_from_u64(2);
    let samples = [1, 3, 40].map(|count| {
        let clicks: Vec<Click> = (0..count).map(|n| random_click(&mut random, n)).collect();
        encode(partition(0), 5, &clicks).remove(0).bytes
    });
    let words: [&[u8]; 3] = [
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x00",
        b"\x01\x00",
    ];
    curt_testkit::fuzz::Fuzz::new("click block", samples)
        .with_words(words)
        .run(|input| {
            let Ok(clicks) = clicks_of(input) else {
                return false;
            };
            let block = Block::read(input).unwrap();
            let subject = ClickSubject::tag(OWNER, "red");
            let all = UnixMillis(i64::MIN)..UnixMillis(i64::MAX);
            let filter = ClickFilter::default();
            let matches = block.matches(&subject, &filter, all).unwrap();
            assert_eq!(matches.len(), clicks.len());
            true
        });
}

/// A table of blocks as simple as can be.
#[derive(Default)]
struct Table(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    blocks: Vec<(i64, NewBlock)>,
    last_id: i64,
    version: i64,
    /// Merges that happen while somebody reads.
    disturbances: usize,
    /// Whether small blocks are merged before the next one is read.
    merges_at_read: bool,
    aside: Vec<i64>,
}

impl Table {
    fn add(&self, new: impl IntoIterator<Item = NewBlock>) {
        let mut rows = self.0.lock().unwrap();
        for block in new {
            rows.last_id += 1;
            let id = rows.last_id;
            rows.blocks.push((id, block));
        }
    }

    fn entries(&self) -> Vec<BlockEntry> {
        let rows = self.0.lock().unwrap();
        let entry = |(id, block): &(i64, NewBlock)| BlockEntry {
            id: *id,
            first_at: block.first_at,
            last_at: block.last_at,
            clicks: block.clicks,
            bytes: block.size(),
            subjects: block.subjects.clone(),
        };
        rows.blocks.iter().map(entry).collect()
    }
}

#[async_trait]
impl ClickBlocks for Table {
    fn backend(&self) -> &'static str {
        "test"
    }

    async fn list(
        &self,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        let mut blocks = self.entries();
        blocks.retain(|entry| {
            entry.last_at >= range.from && entry.first_at < range.before && entry.place() < after
        });
        blocks.sort_by_key(|entry| std::cmp::Reverse(entry.place()));
        blocks.truncate(limit);
        let mut rows = self.0.lock().unwrap();
        let version = rows.version;
        if rows.disturbances > 0 {
            rows.disturbances -= 1;
            rows.version += 1;
        }
        Ok(BlockList { blocks, version })
    }

    async fn list_oldest(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        let mut blocks = self.entries();
        blocks.sort_by_key(|entry| (entry.first_at, entry.id));
        blocks.truncate(limit);
        Ok(blocks)
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        let mut blocks = self.entries();
        let aside = self.0.lock().unwrap().aside.clone();
        blocks.retain(|entry| entry.clicks < SMALL_CLICKS && !aside.contains(&entry.id));
        blocks.sort_by_key(|entry| std::cmp::Reverse(entry.id));
        blocks.truncate(limit);
        Ok(blocks)
    }

    async fn read(&self, ids: &[i64]) -> PortResult<Vec<(i64, Vec<u8>)>> {
        if std::mem::take(&mut self.0.lock().unwrap().merges_at_read) {
            merge_small(self).await?;
        }
        let rows = self.0.lock().unwrap();
        let asked = rows.blocks.iter().filter(|(id, _)| ids.contains(id));
        Ok(asked
            .map(|(id, block)| (*id, block.bytes.clone()))
            .collect())
    }

    async fn sum_bytes(&self) -> PortResult<u64> {
        let entries = self.entries();
        Ok(entries.iter().map(|entry| u64::from(entry.bytes)).sum())
    }

    async fn replace(&self, old: &[i64], new: Vec<NewBlock>) -> PortResult<bool> {
        {
            let mut rows = self.0.lock().unwrap();
            let is_there = |id| rows.blocks.iter().any(|(own, _)| own == id);
            if !old.iter().all(is_there) {
                return Ok(false);
            }
            rows.blocks.retain(|(id, _)| !old.contains(id));
            rows.version += 1;
        }
        self.add(new);
        Ok(true)
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.0.lock().unwrap().aside.push(id);
        Ok(())
    }
}

fn query(subject: ClickSubject, limit: usize) -> ClickQuery {
    ClickQuery {
        subject,
        from: UnixMillis(i64::MIN),
        before: UnixMillis(i64::MAX),
        filter: ClickFilter::default(),
        cursor: None,
        limit,
    }
}

async fn walk(table: &Table, mut query: ClickQuery) -> Vec<Click> {
    let mut clicks = Vec::new();
    loop {
        let page = read_page(table, &query).await.unwrap();
        clicks.extend(page.clicks);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return clicks,
        }
    }
}

/// Windows of several partitions whose times overlap, and all clicks newest first.
fn filled(windows: u64) -> (Table, Vec<Click>) {
    let mut random = StdRng::seed_from_u64(3);
    let table = Table::default();
    let mut all = Vec::new();
    for window in 0..windows {
        let number = random.random_range(0..3);
        let count = random.random_range(0..20);
        let start = i64::try_from(window).unwrap() * 5;
        let clicks: Vec<Click> = (0..count)
            .map(|_| {
                let at = start + random.random_range(0..30);
                random_click(&mut random, at)
            })
            .collect();
        table.add(encode(partition(number), window, &clicks));
        all.extend(
            clicks
                .into_iter()
                .enumerate()
                .map(|(place, click)| ((click.at, window, number, place), click)),
        );
    }
    all.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
    (table, all.into_iter().map(|(_, click)| click).collect())
}

#[tokio::test]
async fn pages_over_overlapping_blocks_leave_nothing_out_and_survive_merges() {
    let (table, all) = filled(300);
    let is_red =
        |click: &&Click| click.tags.iter().any(|tag| &**tag == "Red") && click.owner.is_some();
    let red: Vec<Click> = all.iter().filter(is_red).cloned().collect();
    let of_link: Vec<Click> = all
        .iter()
        .filter(|click| click.outcome == link(7))
        .cloned()
        .collect();
    let ClickOutcome::Link(id, _) = link(7) else {
        unreachable!()
    };
    let before = table.entries().len();
    for _ in 0..2 {
        for limit in [1, 7, 10_000] {
            assert_eq!(
                walk(&table, query(ClickSubject::Everything, limit)).await,
                all
            );
            assert_eq!(
                walk(&table, query(ClickSubject::tag(OWNER, "RED"), limit)).await,
                red
            );
            let subject = ClickSubject::Link(id.clone(), 1);
            assert_eq!(walk(&table, query(subject, limit)).await, of_link);
        }
        merge_small(&table).await.unwrap();
    }
    let after = table.entries();
    assert!(
        after.len() <= 7 * 4 && after.len() < before / 8,
        "{} of {before}",
        after.len()
    );
}

/// The second page is asked for with the cursor of the first, whose clicks are in other blocks by then.
#[tokio::test]
async fn a_cursor_outlives_the_blocks_it_was_made_from() {
    let (table, all) = filled(100);
    let mut query = query(ClickSubject::Everything, 50);
    let first = read_page(&table, &query).await.unwrap();
    merge_small(&table).await.unwrap();
    query.cursor = first.next;
    let rest = walk(&table, query).await;
    assert_eq!(
        first.clicks.into_iter().chain(rest).collect::<Vec<_>>(),
        all
    );
}

#[tokio::test]
async fn a_page_starts_again_while_clicks_are_moved() {
    let (table, all) = filled(100);
    table.0.lock().unwrap().disturbances = 3;
    assert_eq!(
        walk(&table, query(ClickSubject::Everything, 10_000)).await,
        all
    );
    table.0.lock().unwrap().disturbances = usize::MAX;
    let refused = read_page(&table, &query(ClickSubject::Everything, 10_000)).await;
    assert_eq!(refused.unwrap_err().kind, curt_core::ErrorKind::Unavailable);
}

#[tokio::test]
async fn filters_and_ranges_are_those_of_single_clicks() {
    let (table, all) = filled(100);
    let value = |dimension, value: &str| (dimension, value.into());
    let filters = [
        (Some(ClickClass::Bot), vec![]),
        (
            None,
            vec![
                value(Dimension::Country, "DE"),
                value(Dimension::Browser, "Firefox"),
            ],
        ),
        (
            None,
            vec![
                value(Dimension::Class, "human"),
                value(Dimension::Device, "mobile"),
            ],
        ),
        (None, vec![value(Dimension::Key, "nosuch")]),
        (None, vec![value(Dimension::Orphan, "base_url")]),
        (None, vec![value(Dimension::System, "none")]),
    ];
    for (class, values) in filters {
        let filter = ClickFilter { class, values };
        let (from, before) = (UnixMillis(50), UnixMillis(400));
        let is_asked = |click: &&Click| filter.takes(click) && (from..before).contains(&click.at);
        let want: Vec<Click> = all.iter().filter(is_asked).cloned().collect();
        let query = ClickQuery {
            filter: filter.clone(),
            from,
            before,
            ..query(ClickSubject::Everything, 9)
        };
        assert_eq!(walk(&table, query).await, want, "{filter:?}");
    }
}

#[tokio::test]
async fn the_oldest_go_by_time_and_by_size() {
    let (table, all) = filled(100);
    let before = UnixMillis(200);
    let old = all.iter().filter(|click| click.at < before).count();
    assert_eq!(purge(&table, before, 10).await.unwrap(), 10);
    let gone = purge(&table, before, usize::MAX).await.unwrap();
    assert_eq!(usize::try_from(gone).unwrap() + 10, old);
    let left = walk(&table, query(ClickSubject::Everything, 10_000)).await;
    assert_eq!(left, all[..all.len() - old]);
    merge_small(&table).await.unwrap();
    let size = table.sum_bytes().await.unwrap() / 2;
    let trimmed = trim(&table, size, usize::MAX).await.unwrap();
    assert!(trimmed > 0 && table.sum_bytes().await.unwrap() <= size);
    let rest = walk(&table, query(ClickSubject::Everything, 10_000)).await;
    assert_eq!(rest.len() + usize::try_from(trimmed).unwrap(), left.len());
}

#[tokio::test]
async fn a_damaged_block_is_set_aside_and_the_others_are_merged() {
    let (table, _) = filled(40);
    let damaged = {
        let mut rows = table.0.lock().unwrap();
        let (id, block) = &mut rows.blocks[3];
        block.bytes.truncate(5);
        *id
    };
    merge_small(&table).await.unwrap();
    let rows = table.0.lock().unwrap();
    assert_eq!(rows.aside, [damaged]);
    assert!(rows.blocks.iter().any(|(id, _)| *id == damaged));
    assert!(rows.blocks.len() < 20, "{} blocks", rows.blocks.len());
}
