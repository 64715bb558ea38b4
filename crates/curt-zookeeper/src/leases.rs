use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{Lease, Leases};
use tokio::sync::oneshot;
use tokio::time::Instant;
use zookeeper_client::{Client, CreateMode, Error, Stat};

use super::ZooKeeper;
use super::failure::is_interrupted;
use super::nodes::{read, segment};

/// Leases as ephemeral nodes. The data is the holder's token, a space and the holder's description.
///
/// A lease has two ends. While its process lives and has its session, it ends when it is not renewed within its `ttl`:
/// we delete the node then. When the process dies or is cut off, it ends with the session, whatever the `ttl` says.
pub(super) struct ZooKeeperLeases {
    zookeeper: Arc<ZooKeeper>,
    holder: Box<str>,
    held: Arc<Mutex<HashMap<Box<str>, Held>>>,
}

/// A lease that was given out and has not ended yet, by its token.
struct Held {
    client: Client,
    until: Instant,
}

impl ZooKeeperLeases {
    pub(super) fn new(zookeeper: Arc<ZooKeeper>, holder: &str) -> Self {
        Self {
            zookeeper,
            holder: holder.into(),
            held: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> String {
        let parts = name.split('/').map(segment);
        parts.fold(self.zookeeper.root.clone(), |path, part| path + "/" + &part)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Box<str>, Held>> {
        locked(&self.held)
    }

    /// The session of a lease that has not ended as far as we know.
    fn session_of(&self, lease: &Lease) -> Option<Client> {
        let held = self.held();
        let held = held.get(&lease.token)?;
        let is_over = held.until <= Instant::now() || held.client.state().is_terminated();
        (!is_over).then(|| held.client.clone())
    }
}

#[async_trait]
impl Leases for ZooKeeperLeases {
    async fn acquire(&self, name: &str, ttl: Duration) -> PortResult<Option<Lease>> {
        const OP: &str = "acquire a lease";
        let until = Instant::now() + ttl;
        let client = self.zookeeper.session(OP).await?;
        let node = Node {
            zookeeper: Arc::clone(&self.zookeeper),
            client,
            path: self.path(name),
            token: format!("{:032x}", rand::random::<u128>()).into(),
        };
        let lease = |stat: Stat| Lease {
            name: name.into(),
            token: node.token.clone(),
            fencing_token: stat.czxid.unsigned_abs(),
        };
        let (answer, answered) = oneshot::channel();
        let data = format!("{} {}", node.token, self.holder);
        #[expect(
            clippy::disallowed_methods,
            reason = "keeps the lease until it is freed or over"
        )]
        tokio::spawn(
            node.clone()
                .keep(data, until, Arc::clone(&self.held), answer),
        );
        let answered = async { answered.await.unwrap_or(Err(Error::Timeout)) };
        let made = self.zookeeper.in_time(OP, answered).await?;
        Ok(made.map(lease))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> PortResult<bool> {
        let until = Instant::now() + ttl;
        let Some(client) = self.session_of(lease) else {
            return Ok(false);
        };
        let path = self.path(&lease.name);
        let found = read(&client, &path);
        let found = match self.zookeeper.in_time("renew a lease", found).await {
            Err(_) if client.state().is_terminated() => return Ok(false),
            found => found?,
        };
        if !found.is_some_and(|(data, _)| is_of(&data, &lease.token)) {
            self.held().remove(&lease.token);
            return Ok(false);
        }
        // It may have ended while we asked.
        let mut held = self.held();
        let held = held.get_mut(&lease.token);
        Ok(held.map(|held| held.until = until).is_some())
    }

    async fn release(&self, lease: Lease) -> PortResult<()> {
        let held = self.held().remove(&lease.token);
        let Some(Held { client, .. }) = held else {
            return Ok(());
        };
        let node = Node {
            zookeeper: Arc::clone(&self.zookeeper),
            client,
            path: self.path(&lease.name),
            token: lease.token,
        };
        // Goes on when the caller does not wait for it: nobody else could free the lease while our session lives.
        #[expect(clippy::disallowed_methods, reason = "must not end with its caller")]
        let deleted = tokio::spawn(async move { node.delete().await });
        let deleted = async { deleted.await.unwrap_or(Err(Error::Timeout)) };
        self.zookeeper.in_time("release a lease", deleted).await
    }

    async fn holder(&self, name: &str) -> PortResult<Option<Box<str>>> {
        const OP: &str = "look at a lease";
        let client = self.zookeeper.session(OP).await?;
        let path = self.path(name);
        let found = self.zookeeper.in_time(OP, read(&client, &path)).await?;
        Ok(found.map(|(data, _)| {
            let text = String::from_utf8_lossy(&data);
            let description = text
                .split_once(' ')
                .map_or("", |(_, description)| description);
            description.into()
        }))
    }
}

/// The node of a lease, in the session that it belongs to.
#[derive(Clone)]
struct Node {
    zookeeper: Arc<ZooKeeper>,
    client: Client,
    path: String,
    token: Box<str>,
}

impl Node {
    /// Makes the node, answers, and deletes it when its time is over. A task of its own: a request that the caller no
    /// longer waits for may still be carried out, and its node would stay for as long as the session.
    async fn keep(
        self,
        data: String,
        until: Instant,
        held: Arc<Mutex<HashMap<Box<str>, Held>>>,
        answer: oneshot::Sender<Result<Option<Stat>, Error>>,
    ) {
        let made = self.make(&data).await;
        let is_made = matches!(made, Ok(Some(_)));
        if is_made {
            let client = self.client.clone();
            locked(&held).insert(self.token.clone(), Held { client, until });
        }
        let is_heard = answer.send(made).is_ok();
        if !is_made {
            return;
        }
        if is_heard {
            self.wait_for_the_end(&held).await;
        }
        if locked(&held).remove(&self.token).is_some() {
            // The session ends it where this cannot.
            self.delete().await.ok();
        }
    }

    /// Creates the node. `None`: somebody else has it.
    async fn make(&self, data: &str) -> Result<Option<Stat>, Error> {
        let mut is_in_doubt = false;
        loop {
            let made = self.zookeeper.create(
                &self.client,
                &self.path,
                data.as_bytes(),
                CreateMode::Ephemeral,
            );
            match made.await {
                Ok(stat) => return Ok(Some(stat)),
                Err(Error::NodeExists) if !is_in_doubt => return Ok(None),
                Err(Error::NodeExists) => match self.find().await {
                    Ok(found) => return Ok(found),
                    Err(error) if is_interrupted(&error) => {}
                    Err(error) => return Err(error),
                },
                // It may be there without our having heard of it (ZOOKEEPER-1262).
                Err(error) if is_interrupted(&error) => is_in_doubt = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// The node, if it is ours.
    async fn find(&self) -> Result<Option<Stat>, Error> {
        let found = read(&self.client, &self.path).await?;
        let ours = found.filter(|(data, _)| is_of(data, &self.token));
        Ok(ours.map(|(_, stat)| stat))
    }

    /// Waits until the lease was released, lost or not renewed in time.
    async fn wait_for_the_end(&self, held: &Mutex<HashMap<Box<str>, Held>>) {
        loop {
            let until = locked(held).get(&self.token).map(|held| held.until);
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }

    async fn delete(&self) -> Result<(), Error> {
        loop {
            let deleted = match self.find().await {
                Ok(None) => return Ok(()),
                Ok(Some(stat)) => self.client.delete(&self.path, Some(stat.version)).await,
                Err(error) => Err(error),
            };
            match deleted {
                Ok(()) | Err(Error::NoNode | Error::BadVersion) => return Ok(()),
                // The node has gone with its session.
                Err(Error::SessionExpired | Error::ClientClosed) => return Ok(()),
                Err(error) if is_interrupted(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_of(data: &[u8], token: &str) -> bool {
    data.strip_prefix(token.as_bytes())
        .is_some_and(|rest| rest.first() == Some(&b' '))
}

fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
