//! The way to the host that serves us now, shared by all pools that need the same one.
//!
//! Logins cost the engine more than look-ups do, so that those which fail must not come with every request. A few run at
//! a time; after the first that fails, callers get its reason at once, and one task tries again, with backoff, until a
//! login succeeds.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Instant;

use super::hosts::{Access, Hosts, Login, Receive, Unreachable};

/// Logins of one route that are under way at once.
const LOGINS_AT_ONCE: usize = 2;
/// Pauses between retries: short at first, because most outages are restarts and failovers.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_millis(500);
/// How often a host that stopped answering makes us look for another one.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Route {
    hosts: Arc<Hosts>,
    access: Access,
    /// The way to the primary, of a way to the other hosts.
    primary: Option<Arc<Self>>,
    /// The only host that this way leads to.
    fixed: Option<usize>,
    runtime: Arc<OwnRuntime>,
    turns: Arc<Semaphore>,
    state: Mutex<State>,
    /// Whether the state says why it is down.
    is_down: AtomicBool,
    /// Where the last login succeeded: most likely still the right host.
    host: AtomicUsize,
    /// Grows when another host takes over, or none; connections from before are not used any more.
    epoch: watch::Sender<u64>,
    /// When the last search began, in milliseconds of `clock`.
    searched: AtomicU64,
    clock: Instant,
}

#[derive(Default)]
struct State {
    /// Why the latest login failed, while a task tries again.
    down: Option<Unreachable>,
    /// A login that nobody waited for.
    spare: Option<Connection>,
}

/// A connection, and the epoch of the route that it was made in.
pub(super) struct Connection {
    client: Arc<tokio::sync::Mutex<ClientWrapper>>,
    pub(super) epoch: u64,
}

impl Connection {
    /// `None` while somebody uses it.
    pub(super) fn lock(&self) -> Option<OwnedMutexGuard<ClientWrapper>> {
        Arc::clone(&self.client).try_lock_owned().ok()
    }
}

/// What is thought of the connections that are there when somebody logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    None,
    /// A call got no answer.
    Silent,
}

/// The runtime that connections live on: they die with it, and a caller's may end earlier than the engine, as that of a
/// redirect worker does.
#[derive(Default)]
pub(super) struct OwnRuntime(OnceLock<Handle>);

impl OwnRuntime {
    /// The current runtime or, outside of any, that of the first caller.
    pub(super) fn current() -> Self {
        Self(Handle::try_current().map_or_else(|_| OnceLock::new(), OnceLock::from))
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.get_or_init(Handle::current).spawn(task);
    }
}

impl Route {
    /// The way to the host that takes writes.
    pub(super) fn to_primary(hosts: Arc<Hosts>) -> Arc<Self> {
        let runtime = Arc::new(OwnRuntime::current());
        Self::new(hosts, Access::ReadWrite, (None, None), runtime)
    }

    /// The way to any host but the one that takes writes.
    pub(super) fn to_standby(primary: &Arc<Self>) -> Arc<Self> {
        let (hosts, runtime) = (Arc::clone(&primary.hosts), Arc::clone(&primary.runtime));
        let primary = Some(Arc::clone(primary));
        Self::new(hosts, Access::ReadOnly, (primary, None), runtime)
    }

    /// The way to one host, whatever it is.
    pub(super) fn to_host(primary: &Arc<Self>, host: usize) -> Arc<Self> {
        let (hosts, runtime) = (Arc::clone(&primary.hosts), Arc::clone(&primary.runtime));
        Self::new(hosts, Access::ReadOnly, (None, Some(host)), runtime)
    }

    fn new(
        hosts: Arc<Hosts>,
        access: Access,
        (primary, fixed): (Option<Arc<Self>>, Option<usize>),
        runtime: Arc<OwnRuntime>,
    ) -> Arc<Self> {
        Arc::new(Self {
            hosts,
            access,
            primary,
            fixed,
            runtime,
            turns: Arc::new(Semaphore::new(LOGINS_AT_ONCE)),
            state: Mutex::default(),
            is_down: AtomicBool::new(false),
            host: AtomicUsize::new(fixed.unwrap_or(0)),
            epoch: watch::Sender::new(0),
            searched: AtomicU64::new(0),
            clock: Instant::now(),
        })
    }

    pub(super) fn host(&self) -> usize {
        self.host.load(Ordering::Relaxed)
    }

    /// Grows when another host takes over here or, for the way to the others, as the primary.
    pub(super) fn epoch(&self) -> u64 {
        let own = *self.epoch.borrow();
        own + self.primary.as_ref().map_or(0, |primary| primary.epoch())
    }

    /// Logs in beside all pools, for what the engine tells unasked.
    pub(super) async fn log_in_listening(
        &self,
        receive: &Receive,
    ) -> Result<ClientWrapper, Unreachable> {
        let login = self.log_in_with(Some(receive)).await?;
        Ok(login.client)
    }

    async fn log_in(&self) -> Result<Login, Unreachable> {
        self.log_in_with(None).await
    }

    async fn log_in_with(&self, receive: Option<&Receive>) -> Result<Login, Unreachable> {
        let (count, first) = (self.hosts.count(), self.host());
        let primary = self.primary.as_ref().map(|primary| primary.host());
        let order = (first..first + count).map(|host| host % count);
        let order = order.filter(|host| Some(*host) != primary);
        let order = order.filter(|host| self.fixed.is_none_or(|fixed| fixed == *host));
        let mut order: Vec<usize> = order.collect();
        // A standby in the own region answers soonest, and when the others are cut off.
        if self.access == Access::ReadOnly {
            order.sort_by_key(|host| self.hosts.is_far(*host));
        }
        let order = order.into_iter();
        self.hosts.log_in(order, self.access, receive).await
    }

    /// Resolves when connections of the epoch are not used any more.
    pub(super) async fn leave(&self, epoch: u64) {
        let mut changes = self.epoch.subscribe();
        while self.epoch() == epoch && changes.changed().await.is_ok() {}
    }

    pub(super) fn runtime(&self) -> &OwnRuntime {
        &self.runtime
    }

    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Why no login succeeds at the moment.
    pub(super) fn down(&self) -> Option<Unreachable> {
        self.lock().down.clone()
    }

    /// Logs in, or says at once why that does not work at the moment.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<Connection, Unreachable> {
        if let Some(known) = self.known() {
            return known;
        }
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else {
            return std::future::pending().await;
        };
        // Those who had the turns before have found out meanwhile.
        if let Some(known) = self.known() {
            return known;
        }
        let (reply, answer) = oneshot::channel();
        let attempt = Arc::clone(self).log_in_once(turn, reply, Doubt::None);
        self.runtime.spawn(attempt);
        match answer.await {
            Ok(outcome) => outcome,
            // The runtime ends, and the process with it: the caller's deadline answers.
            Err(_) => std::future::pending().await,
        }
    }

    fn known(&self) -> Option<Result<Connection, Unreachable>> {
        let mut state = self.lock();
        let spare = state.spare.take();
        let is_open = |spare: &Connection| spare.lock().is_some_and(|client| !client.is_closed());
        if let Some(connection) = spare.filter(is_open) {
            return Some(Ok(connection));
        }
        state.down.clone().map(Err)
    }

    /// Goes on when its caller has given up, so that others learn what became of it.
    async fn log_in_once(
        self: Arc<Self>,
        turn: OwnedSemaphorePermit,
        reply: oneshot::Sender<Result<Connection, Unreachable>>,
        doubt: Doubt,
    ) {
        let outcome = match self.log_in().await {
            Ok(login) => Ok(self.arrive(login)),
            Err(reason) => {
                let is_silent = doubt == Doubt::Silent && !reason.is_answer;
                // One late login is no proof: a busy host takes as long. With others to change to it is worth the risk;
                // calls on the only host wait for a second one.
                let has_others = self.hosts.count() > 1 && self.fixed.is_none();
                if is_silent && has_others {
                    self.give_up_connections();
                }
                self.go_down(&reason, is_silent && !has_others);
                Err(reason)
            }
        };
        if let Err(Ok(connection)) = reply.send(outcome) {
            self.lock().spare = Some(connection);
        }
        drop(turn);
    }

    /// Looks for another host behind the back of calls that get no answer, at most once a second. If none lets us in,
    /// nobody waits for the connections of before any longer.
    pub(super) fn search(self: &Arc<Self>) {
        let now = u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(SEARCH_EVERY.as_millis()).unwrap_or(u64::MAX);
        let is_due = self
            .searched
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                (now.saturating_sub(last) >= every || last == 0).then_some(now.max(1))
            });
        if is_due.is_err() || self.is_down() {
            return;
        }
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return;
        };
        let (reply, _) = oneshot::channel();
        let attempt = Arc::clone(self).log_in_once(turn, reply, Doubt::Silent);
        self.runtime.spawn(attempt);
    }

    /// Notes where a login succeeded.
    fn arrive(&self, login: Login) -> Connection {
        let former = self.host.swap(login.host, Ordering::Relaxed);
        if former != login.host {
            tracing::debug!(former, host = login.host, "host took over");
            self.give_up_connections();
        }
        Connection {
            client: Arc::new(tokio::sync::Mutex::new(login.client)),
            epoch: self.epoch(),
        }
    }

    /// Ends the calls that are under way, and the use of their connections.
    fn give_up_connections(&self) {
        self.epoch.send_modify(|epoch| *epoch += 1);
    }

    fn go_down(self: &Arc<Self>, reason: &Unreachable, is_silent: bool) {
        let was_up = self.lock().down.replace(reason.clone()).is_none();
        self.is_down.store(true, Ordering::Relaxed);
        if was_up {
            let retry = Retry {
                route: Arc::downgrade(self),
                is_silent,
                is_done: false,
            };
            self.runtime.spawn(retry.run());
        }
    }

    fn come_up(&self, spare: Option<Connection>) {
        *self.lock() = State { down: None, spare };
        self.is_down.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one task that logs in while nobody else may. Ends with the route.
struct Retry {
    route: Weak<Route>,
    /// Whether calls get no answer on the connections that are there, and the host's silence is still to be proved.
    is_silent: bool,
    is_done: bool,
}

impl Retry {
    async fn run(mut self) {
        let mut backoff = BACKOFF_FIRST;
        loop {
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
            let Some(route) = self.route.upgrade() else {
                return;
            };
            match route.log_in().await {
                Ok(login) => {
                    let connection = route.arrive(login);
                    self.is_done = true;
                    route.come_up(Some(connection));
                    return;
                }
                Err(reason) => {
                    if std::mem::take(&mut self.is_silent) && !reason.is_answer {
                        route.give_up_connections();
                    }
                    route.lock().down = Some(reason);
                }
            }
        }
    }
}

impl Drop for Retry {
    /// Cut off by a panic or with its runtime: the next caller starts over.
    fn drop(&mut self) {
        if let (false, Some(route)) = (self.is_done, self.route.upgrade()) {
            route.come_up(None);
        }
    }
}
