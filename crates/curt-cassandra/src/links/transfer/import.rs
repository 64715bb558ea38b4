//! Items of another database, each put in place of what is older.

use std::collections::BTreeMap;

use curt_core::ports::{
    ImportReport, LinkItem, Replacement, ShardItem, StoredRow, Transferred as _,
};
use curt_core::{LinkId, PortResult};
use scylla::SerializeRow;
use scylla::value::MaybeUnset;

use super::{OP_IMPORT, cql, item_of, usual_former_generation};
use crate::links::lists::{LinkList, places_of};
use crate::links::record::{FORMER, LinkWrite, Mark, Stored, is_releasable};
use crate::links::{CassandraLinks, cql as links_cql};
use crate::ordered::Place;
use crate::pause::pause;
use crate::statement::Decided;
use crate::together::together;

/// A link on its way into the store.
struct Import<'a> {
    item: &'a LinkItem,
    id: &'a LinkId,
    row: Option<&'a StoredRow>,
    former_generation: Option<u32>,
    mark: Mark,
}

impl<'a> Import<'a> {
    /// `None`: the item is no link.
    fn of(item: &'a LinkItem) -> Option<Self> {
        match &item.item {
            ShardItem::Link {
                id,
                stored,
                former_generation,
            } => Some(Self {
                item,
                id,
                row: stored.as_deref(),
                former_generation: *former_generation,
                mark: Mark::random(),
            }),
            _ => None,
        }
    }

    /// The lists that the link is in.
    fn places(&self) -> Vec<Place> {
        match self.row {
            Some(row) if row.link.state.is_kept() => places_of(&row.link),
            Some(row) if is_releasable(&row.link, row.was_permanent) => {
                vec![LinkList::Tombstones.place(row.link.updated_at, self.id)]
            }
            _ => Vec::new(),
        }
    }
}

#[derive(SerializeRow)]
struct RowWrite<'a> {
    #[scylla(flatten)]
    link: LinkWrite<'a>,
    released: MaybeUnset<BTreeMap<i8, i64>>,
}

#[derive(SerializeRow)]
struct RowReplacement<'a> {
    #[scylla(flatten)]
    link: LinkWrite<'a>,
    released: BTreeMap<i8, i64>,
    seen_change: Option<&'a [u8]>,
    seen_spend: Option<&'a [u8]>,
}

/// The row of a key whose link was released.
#[derive(SerializeRow)]
struct ReleasedWrite<'a> {
    namespace: &'a str,
    domain: i64,
    key: &'a str,
    generation: i64,
    change_mark: &'a [u8],
}

#[derive(SerializeRow)]
struct ReleasedReplacement<'a> {
    #[scylla(flatten)]
    row: ReleasedWrite<'a>,
    seen_change: Option<&'a [u8]>,
    seen_spend: Option<&'a [u8]>,
}

impl CassandraLinks {
    pub(super) async fn import(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        let mut report = ImportReport::default();
        let (links, others): (Vec<_>, Vec<_>) = items
            .iter()
            .partition(|item| matches!(item.item, ShardItem::Link { .. }));
        let imports = self.import_links(&links);
        let decided = self.engine.change_much(OP_IMPORT, imports).await?;
        for (item, decided) in links.into_iter().zip(decided) {
            report.count(item, decided);
        }
        let is_sum = |item: &&&LinkItem| matches!(item.item, ShardItem::Released { .. });
        let released = match others.iter().find(is_sum) {
            Some(_) => Some(self.count_released().await?),
            None => None,
        };
        for item in others {
            let decided = match &released {
                Some(released) if is_sum(&&item) => self.import_released(item, released).await?,
                _ => {
                    let import = self.import_request(item);
                    self.engine.change(OP_IMPORT, import).await?
                }
            };
            report.count(item, decided);
        }
        Ok(report)
    }

    async fn import_links(&self, items: &[&LinkItem]) -> PortResult<Vec<Replacement>> {
        let imports: Vec<Import<'_>> = items.iter().filter_map(|item| Import::of(item)).collect();
        // Entries of lists come before what they stand for.
        let places = imports.iter().flat_map(Import::places);
        self.lists.add(OP_IMPORT, places).await?;
        together(imports.iter().map(|import| self.import_link(import))).await
    }

    async fn import_link(&self, import: &Import<'_>) -> PortResult<Replacement> {
        let _turn = self.turn(import.id).await;
        // Most are new: what is there is read when it is not so.
        let mut stored: Option<Stored> = None;
        let mut is_tried = false;
        loop {
            let there = LinkItem {
                shard: import.item.shard,
                item: item_of(import.id, stored.clone()),
            };
            match import.item.replaces(&there) {
                Replacement::Write => {}
                decided => return Ok(decided),
            }
            if is_tried {
                self.lists.add(OP_IMPORT, import.places()).await?;
            }
            if let Decided::Applied = self.write_row(import, stored.as_ref()).await? {
                return Ok(Replacement::Write);
            }
            is_tried = true;
            stored = self
                .find(OP_IMPORT, links_cql::GET.serial(), import.id)
                .await?;
            if stored
                .as_ref()
                .is_some_and(|stored| was_changed_by(stored, import.mark))
            {
                return Ok(Replacement::Write);
            }
            if stored.is_none() {
                pause().await;
            }
        }
    }

    /// Puts a row where there is none, or in place of the one that was read.
    async fn write_row(&self, import: &Import<'_>, stored: Option<&Stored>) -> PortResult<Decided> {
        let (seen_change, seen_spend) = stored.map_or((None, None), seen_columns_of);
        let is_over = stored.is_some();
        let Some(row) = import.row else {
            let row = ReleasedWrite {
                namespace: &self.namespace,
                domain: import.id.domain.0.into(),
                key: import.id.key.as_str(),
                generation: import.former_generation.unwrap_or(0).into(),
                change_mark: &import.mark.0,
            };
            if !is_over {
                return self
                    .engine
                    .decide(OP_IMPORT, cql::INSERT_RELEASED, row)
                    .await;
            }
            let values = ReleasedReplacement {
                row,
                seen_change,
                seen_spend,
            };
            return self
                .engine
                .decide(OP_IMPORT, cql::REPLACE_RELEASED, values)
                .await;
        };
        let token = row.token.as_ref();
        let mut link = LinkWrite::new(&self.namespace, &row.link, token, &import.mark, is_over);
        link.was_permanent = row.was_permanent;
        link.spent = row.clicks_spent.cast_signed();
        let mut released = stored.map_or_else(BTreeMap::new, released_of);
        released.remove(&FORMER);
        if import.former_generation != usual_former_generation(&row.link) {
            let former = import.former_generation.unwrap_or(0);
            released.insert(FORMER, former.into());
        }
        if !is_over {
            let released = match released.is_empty() {
                true => MaybeUnset::Unset,
                false => MaybeUnset::Set(released),
            };
            let values = RowWrite { link, released };
            return self.engine.decide(OP_IMPORT, cql::INSERT, values).await;
        }
        let values = RowReplacement {
            link,
            released,
            seen_change,
            seen_spend,
        };
        self.engine.decide(OP_IMPORT, cql::REPLACE, values).await
    }
}

fn was_changed_by(stored: &Stored, mark: Mark) -> bool {
    match stored {
        Stored::Link(row) => row.was_changed_by(mark),
        Stored::Released { by, .. } => *by == Some(mark),
    }
}

/// Links that had the key before and were released, by origin.
fn released_of(stored: &Stored) -> BTreeMap<i8, i64> {
    match stored {
        Stored::Link(row) => row.released.clone(),
        Stored::Released { released, .. } => released.clone(),
    }
}

/// By which the row is told from what it may become meanwhile.
fn seen_columns_of(stored: &Stored) -> (Option<&[u8]>, Option<&[u8]>) {
    match stored {
        Stored::Link(row) => (row.change_mark.as_deref(), row.spend_mark.as_deref()),
        Stored::Released { by, .. } => (by.as_ref().map(|mark| &mark.0[..]), None),
    }
}
