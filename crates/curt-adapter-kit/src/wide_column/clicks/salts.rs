use curt_core::ports::Salt;
use curt_core::{Day, PortResult};

use super::WideClicks;
use crate::wide_column::ordered::{ListPlace, Span};
use crate::wide_column::{Decided, ReadMode, pause};

const LIST: &str = "clicks/salts";
const DAYS_AT_ONCE: usize = 100;

impl WideClicks {
    /// The salt that the day has, or `fresh` from now on.
    pub(super) async fn keep_salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        const OP: &str = "read the salt of a day";
        let keep = async {
            let mut found = self.rows.get_salt(OP, day, ReadMode::Acknowledged).await?;
            loop {
                if let Some(salt) = found {
                    return Ok(salt);
                }
                self.lists.add(OP, [place(day)]).await?;
                if let Decided::Applied = self.rows.insert_salt(OP, day, &fresh).await? {
                    return Ok(fresh);
                }
                found = self.rows.get_salt(OP, day, ReadMode::Decided).await?;
                if found.is_none() {
                    pause().await;
                }
            }
        };
        self.deadlines.change(OP, keep).await
    }

    pub(super) async fn find_salts(&self, op: &'static str) -> PortResult<Vec<(Day, Salt)>> {
        let mut span = Span::all(LIST, true);
        let mut salts = Vec::new();
        loop {
            let entries = self.lists.read(op, &span, DAYS_AT_ONCE).await?;
            for entry in &entries.entries {
                span.follow(&entry.place);
                let Some(day) = day_at(&entry.place.position) else {
                    continue;
                };
                let found = self.rows.get_salt(op, day, ReadMode::Acknowledged).await?;
                salts.extend(found.map(|salt| (day, salt)));
            }
            if entries.is_all {
                return Ok(salts);
            }
        }
    }

    pub(super) async fn forget_salts_before(&self, before: Day) -> PortResult<()> {
        const OP: &str = "forget salts";
        let forget = async {
            let mut span = Span::all(LIST, true);
            span.positions.1 = place(before).position;
            loop {
                let entries = self.lists.read(OP, &span, DAYS_AT_ONCE).await?;
                for entry in &entries.entries {
                    span.follow(&entry.place);
                    let Some(day) = day_at(&entry.place.position) else {
                        continue;
                    };
                    self.rows.delete_salt(OP, day).await?.into_result()?;
                }
                self.lists.drop_entries(OP, entries.entries).await?;
                if entries.is_all {
                    return Ok(());
                }
            }
        };
        self.deadlines.change_much(OP, forget).await
    }
}

fn place(day: Day) -> ListPlace {
    ListPlace {
        list: LIST.to_owned(),
        bucket: vec![0],
        position: day.number().to_be_bytes().to_vec(),
    }
}

fn day_at(position: &[u8]) -> Option<Day> {
    let bytes = position.try_into().ok()?;
    Some(Day::numbered(u32::from_be_bytes(bytes)))
}
