//! Long reads: lists, searches, reports and exports. A few run at a time, a few more wait, and no user has more than a
//! share of both, whatever store answers them.

use std::sync::Arc;

use curt_accounts::{Bulkhead, BulkheadSettings, CallerId, Place};
use curt_core::OwnerId;

use crate::problem::{Problem, ProblemCode};
use crate::tasks::run_to_completion;

/// How many long reads there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanSettings {
    pub reads: BulkheadSettings,
    /// Files that are sent page by page, for as long as the client takes. None waits.
    pub exports: BulkheadSettings,
    pub abandoned: AbandonedReads,
}

/// What becomes of a read whose client has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbandonedReads {
    /// The store ends it, and others have its turn at once.
    #[default]
    End,
    /// It goes on in an engine that runs elsewhere, and keeps its turn until it is done: otherwise as many would go on
    /// there as clients leave.
    GoOn,
}

impl Default for ScanSettings {
    fn default() -> Self {
        Self {
            reads: BulkheadSettings {
                running: 4,
                waiting: 60,
                per_caller: 8,
            },
            exports: BulkheadSettings {
                running: 16,
                waiting: 0,
                per_caller: 2,
            },
            abandoned: AbandonedReads::default(),
        }
    }
}

/// The long reads of this process.
#[derive(Debug)]
pub struct Scans {
    reads: Arc<Bulkhead>,
    exports: Arc<Bulkhead>,
    abandoned: AbandonedReads,
}

impl Scans {
    #[must_use]
    pub fn new(settings: ScanSettings) -> Arc<Self> {
        Arc::new(Self {
            reads: Bulkhead::new(settings.reads),
            exports: Bulkhead::new(settings.exports),
            abandoned: settings.abandoned,
        })
    }

    /// Runs a user's read when it is its turn; 503 when they, or all users together, have too many under way.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        user: OwnerId,
        read: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let place = self.reads.admit(CallerId::User(user)).ok_or_else(|| {
            Problem::new(ProblemCode::Overloaded).detail(
                "Too many lists, searches and reports are under way, yours or everybody's. Ask for fewer at the same \
                 time, and try again after the time in Retry-After.",
            )
        })?;
        let turn = place.turn().await;
        self.run(turn, read).await
    }

    /// Begins an export. Between its pages it holds no read of others up.
    pub(crate) fn begin_export(self: &Arc<Self>, user: OwnerId) -> Result<Export, Problem> {
        let place = self.exports.admit(CallerId::User(user)).ok_or_else(|| {
            Problem::new(ProblemCode::Overloaded).detail(
                "Too many exports are under way, yours or everybody's. Let one of them end, and try again after the \
                 time in Retry-After.",
            )
        })?;
        Ok(Export {
            _place: place,
            scans: Arc::clone(self),
        })
    }

    /// Runs the read, which holds its turn for as long as the store is at it.
    async fn run<T: Send + 'static>(
        &self,
        turn: impl Send + 'static,
        read: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let read = async move {
            let done = read.await;
            drop(turn);
            done
        };
        match self.abandoned {
            AbandonedReads::End => Ok(read.await),
            AbandonedReads::GoOn => run_to_completion(async { Ok::<_, Problem>(read.await) }).await,
        }
    }
}

/// A file that is being sent.
#[derive(Debug)]
pub(crate) struct Export {
    _place: Place,
    scans: Arc<Scans>,
}

impl Export {
    /// Reads a page when it is its turn. It is not refused: the file may have begun, and there are few.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.scans.reads.turn_of_admitted().await;
        self.scans.run(turn, read).await
    }
}
