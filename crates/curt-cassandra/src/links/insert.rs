use std::collections::HashSet;
use std::time::Duration;

use curt_adapter_kit::Effect;
use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_core::{Link, PortResult};

use super::record::{LinkWrite, Mark, Rebirth, Stored};
use super::{CassandraLinks, cql, lists};
use crate::pause::pause;
use crate::statement::{Decided, Doubt};
use crate::together::together;

const OP: &str = "insert links";
/// Links of a bulk that have the time of one call.
const LINKS_PER_CALL: u32 = 100;

impl CassandraLinks {
    pub(super) async fn insert_links(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        let mut ids = HashSet::new();
        let inserts = links
            .iter()
            // The first of two wins, or neither does.
            .map(|link| (link, ids.insert(&link.id)))
            .map(|(link, is_first)| async move {
                match is_first {
                    true => self.insert_link(link, token).await,
                    false => Ok(Inserted::Conflict),
                }
            });
        let inserted = together(inserts);
        let limit = time_for(links.len(), self.engine.settings.call_timeout);
        let call = self.engine.within(OP, limit, Effect::Unknown, inserted);
        call.await
    }

    async fn insert_link(
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
            // Again before every try: an entry must be younger than what could have it dropped.
            let listed = self.lists.add(OP, lists::places_of(&insert.link)).await;
            insert.doubt.keep(listed)?;
            if let Some(inserted) = self.try_insert(&mut insert).await? {
                return Ok(inserted);
            }
            pause().await;
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
        let stored = self.find(OP, cql::GET.serial(), &insert.link.id).await;
        Ok(match insert.doubt.keep(stored)? {
            Some(Stored::Link(row)) if row.has_token(insert.token) => {
                let is_own = !insert.has_request || row.was_changed_by(insert.mark);
                Some(match is_own {
                    true => Inserted::Created(row.change()),
                    false => Inserted::CreatedBefore(row.change()),
                })
            }
            Some(Stored::Link(_)) => Some(Inserted::Conflict),
            Some(Stored::Released { generation, .. }) => {
                let link = &mut insert.link;
                link.revision = link.revision.after_former(Some(generation));
                insert.former = Some(generation);
                None
            }
            None => None,
        })
    }

    async fn decide_insert(&self, insert: &Insert) -> PortResult<Decided> {
        let Insert {
            link, token, mark, ..
        } = insert;
        let is_over = insert.former.is_some();
        let link = LinkWrite::new(&self.namespace, link, Some(token), mark, is_over);
        match insert.former {
            None => self.engine.decide(OP, cql::INSERT, link).await,
            Some(former) => {
                let former_generation = former.into();
                let values = Rebirth {
                    link,
                    former_generation,
                };
                self.engine.decide(OP, cql::REBIRTH, values).await
            }
        }
    }
}

/// A link on its way into the store.
struct Insert {
    link: Link,
    token: RequestToken,
    /// Whether the token is the request's, which may come again.
    has_request: bool,
    mark: Mark,
    /// The generation of a released link whose row is taken.
    former: Option<u32>,
    /// Why it is unknown whether an earlier try was applied.
    doubt: Doubt,
}

fn time_for(links: usize, call_timeout: Duration) -> Duration {
    let calls = u32::try_from(links)
        .unwrap_or(u32::MAX)
        .div_ceil(LINKS_PER_CALL);
    call_timeout.saturating_mul(calls.max(1))
}
