use curt_core::ports::Salt;
use curt_core::{Day, PortResult};

use super::CassandraClicks;
use crate::failure::corrupt;
use crate::ordered::{Place, Span};
use crate::pause::pause;
use crate::statement::{Cql, Decided};

const GET: Cql = Cql::read("SELECT salt FROM KEYSPACE.click_salts WHERE namespace = ? AND day = ?");
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_salts (namespace, day, salt) VALUES (?, ?, ?) IF NOT EXISTS",
);
const DELETE: Cql =
    Cql::conditional("DELETE FROM KEYSPACE.click_salts WHERE namespace = ? AND day = ? IF EXISTS");

const LIST: &str = "clicks/salts";
const DAYS_AT_ONCE: usize = 100;

impl CassandraClicks {
    /// The salt that the day has, or `fresh` from now on.
    pub(super) async fn keep_salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        const OP: &str = "read the salt of a day";
        let keep = async {
            let number = day.number().cast_signed();
            let values = (&*self.namespace, number);
            let mut found: Option<(Vec<u8>,)> = self.engine.first(OP, GET, values).await?;
            loop {
                if let Some((salt,)) = found {
                    return salt.try_into().map_err(|_| corrupt(OP, "a salt"));
                }
                self.lists.add(OP, [place(day)]).await?;
                let values = (&*self.namespace, number, &fresh[..]);
                if let Decided::Applied = self.engine.decide(OP, INSERT, values).await? {
                    return Ok(fresh);
                }
                let values = (&*self.namespace, number);
                found = self.engine.first(OP, GET.serial(), values).await?;
                if found.is_none() {
                    pause().await;
                }
            }
        };
        self.engine.change(OP, keep).await
    }

    pub(super) async fn find_salts(&self, op: &'static str) -> PortResult<Vec<(Day, Salt)>> {
        let mut span = Span {
            list: LIST.to_owned(),
            buckets: (Vec::new(), vec![u8::MAX]),
            positions: (Vec::new(), vec![u8::MAX; 8]),
            is_rising: true,
        };
        let mut salts = Vec::new();
        loop {
            let entries = self.lists.read(op, &span, DAYS_AT_ONCE).await?;
            for entry in &entries.entries {
                span.follow(&entry.place);
                let Ok(day) = <[u8; 4]>::try_from(&entry.place.position[..]) else {
                    continue;
                };
                let day = u32::from_be_bytes(day);
                let values = (&*self.namespace, day.cast_signed());
                let found: Option<(Vec<u8>,)> = self.engine.first(op, GET, values).await?;
                if let Some((salt,)) = found {
                    let salt = salt.try_into().map_err(|_| corrupt(op, "a salt"))?;
                    salts.push((Day::numbered(day), salt));
                }
            }
            if entries.is_all {
                return Ok(salts);
            }
        }
    }

    pub(super) async fn forget_salts_before(&self, before: Day) -> PortResult<()> {
        const OP: &str = "forget salts";
        let forget = async {
            let mut span = Span {
                list: LIST.to_owned(),
                buckets: (Vec::new(), vec![u8::MAX]),
                positions: (Vec::new(), place(before).position),
                is_rising: true,
            };
            loop {
                let entries = self.lists.read(OP, &span, DAYS_AT_ONCE).await?;
                for entry in &entries.entries {
                    span.follow(&entry.place);
                    let Ok(day) = <[u8; 4]>::try_from(&entry.place.position[..]) else {
                        continue;
                    };
                    let day = u32::from_be_bytes(day).cast_signed();
                    let values = (&*self.namespace, day);
                    if let Decided::Unknown(error) = self.engine.decide(OP, DELETE, values).await? {
                        return Err(error);
                    }
                }
                self.lists.drop_entries(OP, entries.entries).await?;
                if entries.is_all {
                    return Ok(());
                }
            }
        };
        self.engine.change_much(OP, forget).await
    }
}

fn place(day: Day) -> Place {
    Place {
        list: LIST.to_owned(),
        bucket: vec![0],
        position: day.number().to_be_bytes().to_vec(),
    }
}
