use std::collections::HashSet;
use std::time::Duration;

use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_core::{Link, PortResult};

use super::record::{LinkPut, PutLink, PutRow, Stored};
use super::{WideLinks, lists};
use crate::Effect;
use crate::wide_column::{Decided, Doubt, Mark, ReadMode, pause, together};

const OP: &str = "insert links";
/// Links of a bulk that have the time of one call.
const LINKS_PER_CALL: u32 = 100;

impl WideLinks {
    pub(super) async fn insert_links(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        let mut ids = HashSet::new();
        // The first of two wins, or neither does.
        let is_first: Vec<bool> = links.iter().map(|link| ids.insert(&link.id)).collect();
        let inserted = async {
            // All at once: engines take many entries together.
            let firsts = links
                .iter()
                .zip(&is_first)
                .filter(|(_, is_first)| **is_first);
            let places = firsts.flat_map(|(link, _)| lists::places_of(link));
            self.lists.add(OP, places).await?;
            let inserts = links.iter().zip(&is_first);
            let inserts = inserts.map(|(link, is_first)| async move {
                match is_first {
                    true => self.insert_listed(link, token).await,
                    false => Ok(Inserted::Conflict),
                }
            });
            together(inserts).await
        };
        let limit = time_for(links.len(), self.deadlines.call);
        let call = self.deadlines.within(OP, limit, Effect::Unknown, inserted);
        call.await
    }

    /// Inserts a link that is in its lists.
    async fn insert_listed(
        &self,
        link: &Link,
        request: Option<RequestToken>,
    ) -> PortResult<Inserted> {
        let _turn = self.turn(&link.id).await;
        let mut insert = Insert {
            token: request.unwrap_or_else(|| RequestToken(rand::random())),
            has_request: request.is_some(),
            mark: Mark::random(),
            link: link.clone(),
            former: None,
            doubt: Doubt::default(),
        };
        loop {
            if let Some(inserted) = self.try_insert(&mut insert).await? {
                return Ok(inserted);
            }
            pause().await;
            // Again before every try: an entry must be younger than what could have it dropped.
            let listed = self.lists.add(OP, lists::places_of(&insert.link)).await;
            insert.doubt.keep(listed)?;
        }
    }

    /// One conditional insert. `None`: try again.
    async fn try_insert(&self, insert: &mut Insert) -> PortResult<Option<Inserted>> {
        let decided = self.decide_insert(insert).await;
        match insert.doubt.keep(decided)? {
            Decided::Applied => {
                return Ok(Some(Inserted::Created(LinkChange::of(&insert.link))));
            }
            Decided::Refused => {}
            // With the same token it may be tried again.
            Decided::Unknown(error) => insert.doubt.note(error),
        }
        let stored = self.find(OP, &insert.link.id, ReadMode::Decided).await;
        Ok(match insert.doubt.keep(stored)? {
            Some(Stored::Link(row)) if row.has_token(insert.token) => {
                let is_own = !insert.has_request || row.was_changed_by(insert.mark);
                Some(match is_own {
                    true => Inserted::Created(row.change()),
                    false => Inserted::CreatedBefore(row.change()),
                })
            }
            Some(Stored::Link(_)) => Some(Inserted::Conflict),
            Some(former @ Stored::Released { generation, .. }) => {
                let link = &mut insert.link;
                link.revision = link.revision.after_former(Some(generation));
                insert.former = Some(former);
                None
            }
            None => None,
        })
    }

    async fn decide_insert(&self, insert: &Insert) -> PortResult<Decided> {
        let released = insert.former.as_ref().map(Stored::released_before);
        let new = LinkPut {
            id: &insert.link.id,
            row: PutRow::Link(PutLink::new(&insert.link, insert.token)),
            released: released.unwrap_or_default(),
            mark: insert.mark,
        };
        self.rows.put(OP, &new, insert.former.as_ref()).await
    }
}

/// A link on its way into the store.
struct Insert {
    link: Link,
    token: RequestToken,
    /// Whether the token is the request's, which may come again.
    has_request: bool,
    mark: Mark,
    /// The row of a released link, which is taken.
    former: Option<Stored>,
    /// Why it is unknown whether an earlier try was applied.
    doubt: Doubt,
}

fn time_for(links: usize, call_timeout: Duration) -> Duration {
    let calls = u32::try_from(links)
        .unwrap_or(u32::MAX)
        .div_ceil(LINKS_PER_CALL);
    call_timeout.saturating_mul(calls.max(1))
}
