//! Erasing one link's clicks on request.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ClickStore, Erasure};
use curt_core::{ErrorKind, LinkId, PortError, PortResult};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::consume::FlushRequests;

/// How long one call works before it says that something is left. Clients wait for about half a minute.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How much of it may go by before the clicks of this process are written.
const FLUSH_MAX: Duration = Duration::from_secs(5);
/// Pieces that change between two looks at the time.
const PIECES: usize = 64;

/// Removes what is kept of a link's clicks, one link at a time. Who may do so is the caller's to decide.
pub struct ClickEraser {
    store: Arc<dyn ClickStore>,
    requests: Option<FlushRequests>,
    turn: Mutex<()>,
}

/// What a call of [`ClickEraser::erase`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedClicks {
    /// Single clicks that were removed.
    pub clicks: u64,
    /// Whether nothing is left of what this process had recorded when the call began.
    pub is_complete: bool,
}

impl ClickEraser {
    #[must_use]
    pub fn new(store: Arc<dyn ClickStore>) -> Self {
        Self {
            store,
            requests: None,
            turn: Mutex::default(),
        }
    }

    /// Has these consumers write what is in the stream before anything is erased: it would come back otherwise.
    #[must_use]
    pub fn after_flush(self, requests: FlushRequests) -> Self {
        Self {
            requests: Some(requests),
            ..self
        }
    }

    /// Removes the single clicks of one generation of a link, and its counts if `with_counts`, for some seconds at most.
    /// What other processes have not written yet is not found. Called again, it goes on where it was.
    pub async fn erase(
        &self,
        link: &LinkId,
        generation: u32,
        with_counts: bool,
    ) -> PortResult<ErasedClicks> {
        let deadline = Instant::now() + TIME_MAX;
        let turn = timeout_at(Instant::now() + FLUSH_MAX, self.turn.lock());
        let _turn = turn.await.map_err(|_| {
            let detail = "clicks of another link are being erased; try again";
            PortError::new(ErrorKind::Throttled, "clicks", "erase clicks", detail)
        })?;
        let is_flushed = match &self.requests {
            Some(requests) => requests.flush_all(FLUSH_MAX).await,
            None => true,
        };
        let mut erased = ErasedClicks {
            clicks: 0,
            is_complete: is_flushed,
        };
        let clicks = || self.store.erase_clicks(link.clone(), generation, PIECES);
        let Erasure {
            erased: clicks,
            is_complete,
        } = erase_until(deadline, clicks).await?;
        erased.clicks = clicks;
        erased.is_complete &= is_complete;
        if with_counts && is_complete {
            let days = || self.store.erase_rollups(link.clone(), generation, PIECES);
            erased.is_complete &= erase_until(deadline, days).await?.is_complete;
        }
        Ok(erased)
    }
}

/// Calls until nothing is left, or the time is up.
async fn erase_until<F>(deadline: Instant, mut erase: impl FnMut() -> F) -> PortResult<Erasure>
where
    F: Future<Output = PortResult<Erasure>>,
{
    let mut sum = Erasure::default();
    loop {
        let Erasure {
            erased,
            is_complete,
        } = erase().await?;
        sum.erased += erased;
        sum.is_complete = is_complete;
        if is_complete || Instant::now() >= deadline {
            return Ok(sum);
        }
    }
}
