//! Passwords: slow to guess, and never hashed on a thread that serves requests.

use std::sync::Arc;

use argon2::password_hash::phc::{Output, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use curt_core::{ErrorKind, PortError, PortResult, spawn_low_priority};
use rand::RngExt;
use tokio::sync::oneshot;

use crate::bulkhead::{Bulkhead, BulkheadSettings, CallerId, Place, Turn};
use crate::settings::PasswordSettings;
use crate::token;

/// Requests that may wait for a free hasher. More are refused: whoever waits behind these has given up before.
const WAITING_MAX: usize = 64;
/// Of one user or address, with those that are being hashed. Many people may come from one address.
const PER_CALLER_MAX: usize = 16;
const GENERATED_SYMBOLS: usize = 20;

/// The cost of a guess is outside of what Argon2 can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("passwords cannot be hashed at this cost: {0}")]
pub struct PasswordCostError(String);

/// Hashes passwords with Argon2id, a few at a time. Passwords that must not wait for each other have one of these each.
pub struct Passwords {
    argon2: Argon2<'static>,
    /// A hash of no password, at the same cost as a true one.
    nobody: Box<str>,
    hashers: Arc<Bulkhead>,
    priority: HashPriority,
}

/// Which threads hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashPriority {
    /// Threads for blocking work.
    Normal,
    /// Threads that yield to those that serve requests.
    Low,
}

impl Passwords {
    pub fn new(
        settings: PasswordSettings,
        priority: HashPriority,
    ) -> Result<Arc<Self>, PasswordCostError> {
        let wrong = |problem: argon2::Error| PasswordCostError(problem.to_string());
        let params = Params::new(settings.memory_kib, settings.passes, 1, None).map_err(wrong)?;
        Ok(Arc::new(Self {
            nobody: nobody(&params).map_err(|problem| PasswordCostError(problem.to_string()))?,
            argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params),
            hashers: Bulkhead::new(BulkheadSettings {
                running: settings.hashers.max(1),
                waiting: WAITING_MAX,
                per_caller: PER_CALLER_MAX,
            }),
            priority,
        }))
    }

    /// Gives a caller room for a request, however many passwords it brings. [`ErrorKind::Throttled`] when they, or all
    /// callers together, have too many of them under way.
    pub fn admit(&self, caller: CallerId) -> PortResult<Place> {
        let detail = "too many passwords are being hashed: try again later";
        let place = self.hashers.admit(caller);
        place.ok_or_else(|| failed(ErrorKind::Throttled, detail))
    }

    /// Returns the password's hash, in the PHC string form. Fails as [`admit`](Self::admit) does.
    pub async fn hash(&self, caller: CallerId, password: &str) -> PortResult<Box<str>> {
        self.hash_in(&self.admit(caller)?, password).await
    }

    /// Returns the password's hash, for a request that was [admitted](Self::admit) here.
    pub async fn hash_in(&self, place: &Place, password: &str) -> PortResult<Box<str>> {
        let argon2 = self.argon2.clone();
        let password = password.to_owned();
        self.run(place.turn().await, move || {
            let hash: PasswordHash = argon2
                .hash_password(password.as_bytes())
                .map_err(|problem| failed(ErrorKind::Bug, problem))?;
            Ok(hash.to_string().into())
        })
        .await
    }

    /// Whether the password has that hash. `None` is the hash of nobody: the answer is no, after the same work.
    pub async fn verify(
        &self,
        caller: CallerId,
        password: &str,
        hash: Option<&str>,
    ) -> PortResult<bool> {
        let place = self.admit(caller)?;
        let argon2 = self.argon2.clone();
        let password = password.to_owned();
        let is_somebody = hash.is_some();
        let hash = hash.unwrap_or(&self.nobody).to_owned();
        self.run(place.turn().await, move || {
            let hash =
                PasswordHash::new(&hash).map_err(|problem| failed(ErrorKind::Corrupt, problem))?;
            let matches = argon2.verify_password(password.as_bytes(), &hash).is_ok();
            Ok(matches && is_somebody)
        })
        .await
    }

    /// Runs `work` off the runtime. The turn goes with the work, which nothing can stop.
    async fn run<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> PortResult<T> + Send + 'static,
    ) -> PortResult<T> {
        let (sender, done) = oneshot::channel();
        let work = move || {
            let result = work();
            // Before the result: whoever gets it may have the next turn.
            drop(turn);
            // The client may have left.
            let _sent = sender.send(result);
        };
        match self.priority {
            HashPriority::Normal => drop(tokio::task::spawn_blocking(work)),
            HashPriority::Low => spawn_low_priority("curt-hash", work)
                .map_err(|problem| failed(ErrorKind::Unavailable, problem))?,
        }
        done.await
            .map_err(|problem| failed(ErrorKind::Bug, problem))?
    }

    /// Whether the hash was made at another cost than today's.
    #[must_use]
    pub fn is_outdated(&self, hash: &str) -> bool {
        let cost = |hash: &str| {
            let hash = PasswordHash::new(hash).ok()?;
            let params = Params::try_from(&hash).ok()?;
            Some((
                hash.algorithm,
                hash.version,
                params.m_cost(),
                params.t_cost(),
            ))
        };
        cost(hash) != cost(&self.nobody)
    }
}

/// A password that nobody has to think of.
#[must_use]
pub fn generate_password() -> String {
    token::symbols(GENERATED_SYMBOLS)
}

fn nobody(params: &Params) -> Result<Box<str>, argon2::password_hash::Error> {
    let (salt, random): ([u8; 16], [u8; Params::DEFAULT_OUTPUT_LEN]) = rand::rng().random();
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: params.try_into()?,
        salt: Some(Salt::new(&salt)?),
        hash: Some(Output::new(&random)?),
    };
    Ok(hash.to_string().into())
}

fn failed(kind: ErrorKind, problem: impl ToString) -> PortError {
    PortError::new(kind, "passwords", "hash a password", problem.to_string())
}
