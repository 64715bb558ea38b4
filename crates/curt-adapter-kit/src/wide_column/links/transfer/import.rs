//! Items of another database, each put in place of what is older.

use curt_core::ports::{
    ImportReport, LinkItem, Replacement, ShardItem, StoredRow, Transferred as _,
};
use curt_core::{LinkId, PortResult};

use super::{OP_IMPORT, item_of, usual_former_generation};
use crate::wide_column::links::WideLinks;
use crate::wide_column::links::lists::{LinkList, places_of};
use crate::wide_column::links::record::{FORMER, LinkPut, PutLink, PutRow, Stored, is_releasable};
use crate::wide_column::ordered::ListPlace;
use crate::wide_column::{Decided, Mark, ReadMode, pause, together};

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
    fn places(&self) -> Vec<ListPlace> {
        match self.row {
            Some(row) if row.link.state.is_kept() => places_of(&row.link),
            Some(row) if is_releasable(&row.link, row.was_permanent) => {
                vec![LinkList::Tombstones.place(row.link.updated_at, self.id)]
            }
            _ => Vec::new(),
        }
    }

    /// The row that replaces what is stored.
    fn to_put(&self, stored: Option<&Stored>) -> LinkPut<'a> {
        let released = stored.map(Stored::released_before);
        let mut released = released.unwrap_or_default();
        let former = self.former_generation.unwrap_or(0);
        let row = match self.row {
            None => PutRow::Released(former),
            Some(row) => {
                if self.former_generation != usual_former_generation(&row.link) {
                    released.insert(FORMER, former.into());
                }
                PutRow::Link(PutLink {
                    link: &row.link,
                    was_permanent: row.was_permanent,
                    spent: row.clicks_spent,
                    token: row.token,
                })
            }
        };
        LinkPut {
            id: self.id,
            row,
            released,
            mark: self.mark,
        }
    }
}

impl WideLinks {
    pub(super) async fn import(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        let mut report = ImportReport::default();
        let (mut links, mut counts, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match &item.item {
                ShardItem::Link { .. } => links.push(item),
                ShardItem::Released { .. } => counts.push(item),
                ShardItem::Request { .. } => requests.push(item),
            }
        }
        let imports = self.import_links(&links);
        let decided = self.deadlines.change_much(OP_IMPORT, imports).await?;
        for (item, decided) in links.into_iter().zip(decided) {
            report.count(item, decided);
        }
        let imports = together(requests.iter().map(|item| self.import_request(item)));
        let decided = self.deadlines.change_much(OP_IMPORT, imports).await?;
        for (item, decided) in requests.into_iter().zip(decided) {
            report.count(item, decided);
        }
        if !counts.is_empty() {
            let known = self.count_released().await?;
            for item in counts {
                report.count(item, self.import_released(item, &known).await?);
            }
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
            let new = import.to_put(stored.as_ref());
            let decided = self.rows.put(OP_IMPORT, &new, stored.as_ref()).await?;
            if let Decided::Applied = decided {
                return Ok(Replacement::Write);
            }
            is_tried = true;
            stored = self.find(OP_IMPORT, import.id, ReadMode::Decided).await?;
            match &stored {
                Some(stored) if stored.was_changed_by(import.mark) => {
                    return Ok(Replacement::Write);
                }
                Some(_) => {}
                None => pause().await,
            }
        }
    }
}
