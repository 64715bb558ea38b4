//! A link store whose calls are intercepted, for tests that count calls, slow them down or make them fail.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    BeginReply, ChangeReply, CreationOutcome, CreationPlan, Idempotency, IdempotentRequest,
    Inserted, LinkChange, LinkCounts, LinkIndex, LinkStore, LinkTotals, ListOrder, ListPage,
    ListQuery, RequestToken, SeededDatabase, SeededLinks, SpendReply,
};
use curt_core::{Link, LinkId, OwnerId, PortResult, Revision, UnixMillis};

/// The operations of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Insert,
    Get,
    Update,
    Delete,
    List,
    Ended,
    Purge,
    Release,
    Seed,
    Claim,
    SpendClick,
    ClicksSpent,
    Counts,
    Ping,
    Begin,
    ReplacePlan,
    Finish,
    Cancel,
    Forget,
}

/// Who stands at the door. Waiting delays the call; an error is the caller's answer.
#[async_trait]
pub trait Interceptor: Send + Sync {
    /// Before the store hears of the call.
    async fn before(&self, _call: Call) -> PortResult<()> {
        Ok(())
    }

    /// After the store has answered, before the caller hears of it.
    async fn after(&self, _call: Call) -> PortResult<()> {
        Ok(())
    }
}

/// `inner`, with every call passing `interceptor` on the way in and on the way out. Tests reach the interceptor through
/// the store.
pub struct InterceptedLinks<A> {
    inner: Arc<dyn SeededDatabase>,
    interceptor: A,
    writes_one_at_a_time: bool,
}

impl<A: Interceptor> InterceptedLinks<A> {
    pub fn new(inner: Arc<dyn SeededDatabase>, interceptor: A) -> Arc<Self> {
        let writes_one_at_a_time = false;
        Arc::new(Self {
            inner,
            interceptor,
            writes_one_at_a_time,
        })
    }

    /// The same over an engine that writes a single link with each call.
    pub fn one_at_a_time(inner: Arc<dyn SeededDatabase>, interceptor: A) -> Arc<Self> {
        let writes_one_at_a_time = true;
        Arc::new(Self {
            inner,
            interceptor,
            writes_one_at_a_time,
        })
    }

    async fn pass<T>(
        &self,
        call: Call,
        reply: impl Future<Output = PortResult<T>> + Send,
    ) -> PortResult<T> {
        self.interceptor.before(call).await?;
        let reply = reply.await;
        self.interceptor.after(call).await?;
        reply
    }
}

impl<A> Deref for InterceptedLinks<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.interceptor
    }
}

macro_rules! intercept {
    ($port:ident: $({ $($by_hand:tt)* })? $(fn $method:ident($($name:ident: $type:ty),*) -> $reply:ty = $call:ident;)+) => {
        #[async_trait]
        impl<A: Interceptor> $port for InterceptedLinks<A> {
            $($($by_hand)*)?
            $(async fn $method(&self, $($name: $type),*) -> PortResult<$reply> {
                self.pass(Call::$call, self.inner.$method($($name),*)).await
            })+
        }
    };
}

intercept!(LinkStore:
    {
        async fn insert_if_absent(
            &self,
            links: Vec<Link>,
            token: Option<RequestToken>,
        ) -> PortResult<Vec<Inserted>> {
            let size = if self.writes_one_at_a_time { 1 } else { links.len().max(1) };
            let mut inserted = Vec::with_capacity(links.len());
            for part in links.chunks(size) {
                let insert = self.inner.insert_if_absent(part.to_vec(), token);
                inserted.extend(self.pass(Call::Insert, insert).await?);
            }
            Ok(inserted)
        }
    }
    fn get(id: &LinkId) -> Option<Link> = Get;
    fn update_at(link: Link, seen: Revision) -> ChangeReply = Update;
    fn hand_over_at(id: &LinkId, seen: Revision, owner: OwnerId, now: UnixMillis) -> ChangeReply = Update;
    fn delete_at(id: &LinkId, seen: Revision, now: UnixMillis) -> ChangeReply = Delete;
    fn spend_click(id: &LinkId, seen: Revision) -> SpendReply = SpendClick;
    fn clicks_spent(id: &LinkId) -> u64 = ClicksSpent;
    fn ping() -> () = Ping;
);

intercept!(LinkIndex:
    fn list(query: &ListQuery) -> ListPage = List;
    fn cursor_behind(link: &Link, order: ListOrder) -> Option<Box<str>> = List;
    fn ended(before: UnixMillis, limit: usize) -> Vec<(LinkId, Revision)> = Ended;
    fn purge(batch: &[(LinkId, Revision)], before: UnixMillis, now: UnixMillis) -> Vec<LinkChange> = Purge;
    fn release(before: UnixMillis, limit: usize) -> Vec<LinkChange> = Release;
);

intercept!(LinkTotals:
    fn counts() -> LinkCounts = Counts;
);

intercept!(Idempotency:
    fn begin(request: &IdempotentRequest, plan: &CreationPlan) -> BeginReply = Begin;
    fn replace_plan(request: &IdempotentRequest, plan: &CreationPlan) -> CreationPlan = ReplacePlan;
    fn finish(
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome
    ) -> CreationOutcome = Finish;
    fn cancel(request: &IdempotentRequest, token: RequestToken) -> bool = Cancel;
    fn forget_before(before: UnixMillis, limit: usize) -> usize = Forget;
);

intercept!(SeededLinks:
    fn seed(ids: &[LinkId]) -> u64 = Seed;
    fn claim(links: Vec<Link>) -> Vec<Link> = Claim;
);
