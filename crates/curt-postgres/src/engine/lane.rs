//! A pool of connections for one kind of work.
//!
//! A connection whose call was given up, at its deadline or because its caller went away, is neither used again nor
//! closed while the engine still works on the call: the next call would wait behind it, and a closed connection leaves
//! its process behind in the engine, where a commit that waits for a standby cannot be stopped. It keeps its place in the
//! pool until the engine has answered. So calls that do not come to an end take no more of the engine than this pool.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::sync::{Notify, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::hosts::Unreachable;
use super::route::{Connection, Route};

pub(super) struct Lane {
    route: Arc<Route>,
    size: usize,
    places: Arc<Semaphore>,
    connections: Mutex<Connections>,
    /// Wakes calls that wait for the connection of another one.
    returned: Notify,
    /// Places that are held by calls which were given up.
    abandoned: AtomicUsize,
    /// Run on every new connection.
    setup: String,
    timeout: Duration,
}

/// Under one lock, so that a connection that is taken or given back is always in one of the two.
#[derive(Default)]
struct Connections {
    idle: Vec<Connection>,
    /// Those that calls use, without those of calls that were given up.
    in_use: usize,
}

/// What there is for a call without a login.
enum Found {
    Idle(OwnedMutexGuard<ClientWrapper>, Connection),
    /// Nothing idle, but connections of other calls that may come back.
    InUse,
    Nothing,
}

/// Why there is no connection for a call. Nothing was asked of the engine.
pub(super) enum NoConnection {
    Busy,
    Unreachable(Unreachable),
    /// No login came to an end before the deadline.
    Late,
}

impl Lane {
    /// `timeout`: of a whole call. The engine ends a statement by itself somewhat earlier, so that its clear answer
    /// comes first.
    pub(super) fn new(route: Arc<Route>, size: usize, timeout: Duration) -> Arc<Self> {
        // Set here and not at start-up: poolers between us and the engine refuse start-up options.
        let setup = format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = 10000",
            (timeout * 5 / 6).as_millis().max(1)
        );
        Arc::new(Self {
            route,
            size,
            places: Arc::new(Semaphore::new(size)),
            connections: Mutex::default(),
            returned: Notify::new(),
            abandoned: AtomicUsize::new(0),
            setup,
            timeout,
        })
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn route(&self) -> &Arc<Route> {
        &self.route
    }

    pub(super) async fn session(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<Session, NoConnection> {
        let place = self.place(deadline).await?;
        loop {
            // Before the look at what is idle, so that a connection that comes back in between is noticed.
            let returned = self.returned.notified();
            if let Found::Idle(client, connection) = self.take_idle() {
                return Ok(self.session_of(client, connection, place));
            }
            let login = timeout_at(deadline, self.route.connect()).await;
            let why = match login.map_err(|_| NoConnection::Late)? {
                Ok(connection) => return self.set_up(connection, place, deadline).await,
                Err(why) => why,
            };
            // A host that refuses logins may still answer on the connections that it has: too many of them, or too busy
            // to log in.
            match self.take_idle() {
                Found::Idle(client, connection) => {
                    return Ok(self.session_of(client, connection, place));
                }
                Found::InUse if timeout_at(deadline, returned).await.is_ok() => {}
                Found::InUse | Found::Nothing => return Err(NoConnection::Unreachable(why)),
            }
        }
    }

    async fn set_up(
        self: &Arc<Self>,
        connection: Connection,
        place: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<Session, NoConnection> {
        let client = connection.lock().ok_or(NoConnection::Late)?;
        match timeout_at(deadline, client.batch_execute(&self.setup)).await {
            Ok(Ok(())) => {
                self.lock().in_use += 1;
                Ok(self.session_of(client, connection, place))
            }
            _ => Err(NoConnection::Late),
        }
    }

    async fn place(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, NoConnection> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        // Nothing to wait for: the engine answers nobody.
        if self.route.is_down()
            && self.abandoned.load(Ordering::Relaxed) == self.size
            && let Some(reason) = self.route.down()
        {
            return Err(NoConnection::Unreachable(reason));
        }
        let place = Arc::clone(&self.places).acquire_owned();
        match timeout_at(deadline, place).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(NoConnection::Busy),
        }
    }

    /// Takes the connection that was used last: those beyond what is needed stay idle.
    fn take_idle(&self) -> Found {
        let epoch = self.route.epoch();
        let mut connections = self.lock();
        while let Some(connection) = connections.idle.pop() {
            match connection.lock() {
                Some(client) if connection.epoch == epoch && !client.is_closed() => {
                    connections.in_use += 1;
                    return Found::Idle(client, connection);
                }
                _ => {}
            }
        }
        match connections.in_use {
            0 => Found::Nothing,
            _ => Found::InUse,
        }
    }

    /// For a connection that is counted as in use.
    fn session_of(
        self: &Arc<Self>,
        client: OwnedMutexGuard<ClientWrapper>,
        connection: Connection,
        place: OwnedSemaphorePermit,
    ) -> Session {
        Session {
            client,
            ticket: Ticket {
                lane: Arc::clone(self),
                held: Some((connection, place)),
            },
        }
    }

    /// Keeps the connection of a call that was given up.
    fn keep(&self, connection: Connection) {
        self.lock().idle.push(connection);
        self.returned.notify_waiters();
    }

    /// Notes that a call has no connection any more, and keeps the one that it gives back. All that wait look again: the
    /// last one that they could have waited for may be gone.
    fn end_use(&self, given_back: Option<Connection>) {
        let mut connections = self.lock();
        connections.in_use -= 1;
        connections.idle.extend(given_back);
        drop(connections);
        self.returned.notify_waiters();
    }

    /// Waits for the engine's answer to a call that was given up, behind the back of everybody.
    fn abandon(self: &Arc<Self>, connection: Connection, place: OwnedSemaphorePermit) {
        let Some(client) = connection.lock() else {
            return;
        };
        if client.is_closed() || connection.epoch != self.route.epoch() {
            return;
        }
        let abandoned = Abandoned::count(self);
        self.route.runtime().spawn(async move {
            let is_answered = tokio::select! {
                // Comes after everything that was sent before, and ends a transaction that was left open.
                ended = client.batch_execute("ROLLBACK") => ended.is_ok(),
                // Another host took over, and nobody waits for this one.
                () = abandoned.0.route.leave(connection.epoch) => false,
            };
            drop(client);
            if is_answered {
                abandoned.0.keep(connection);
            }
            drop(abandoned);
            drop(place);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is held by a call which was given up.
struct Abandoned(Arc<Lane>);

impl Abandoned {
    fn count(lane: &Arc<Lane>) -> Self {
        lane.abandoned.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(lane))
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandoned.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection for one call. One that is dropped before [`release`](Self::release) was in the middle of it.
pub(crate) struct Session {
    // First: the ticket, which goes after it, takes it again.
    client: OwnedMutexGuard<ClientWrapper>,
    ticket: Ticket,
}

struct Ticket {
    lane: Arc<Lane>,
    /// `None` when the call has come to an end.
    held: Option<(Connection, OwnedSemaphorePermit)>,
}

impl Session {
    /// Gives the connection back: everything that was sent has been answered.
    pub(crate) fn release(self) {
        let Self { client, mut ticket } = self;
        drop(client);
        if let Some((connection, _place)) = ticket.held.take() {
            ticket.lane.end_use(Some(connection));
        }
    }

    /// Closes the connection: it is not to be trusted.
    pub(crate) fn close(mut self) {
        self.ticket.held = None;
        self.ticket.lane.end_use(None);
    }
}

impl Deref for Session {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut ClientWrapper {
        &mut self.client
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((connection, place)) = self.held.take() {
            self.lane.abandon(connection, place);
            self.lane.end_use(None);
        }
    }
}
