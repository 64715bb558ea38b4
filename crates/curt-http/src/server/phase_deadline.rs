//! Deadlines of a connection that hyper serves.
//!
//! hyper's own header timeout also runs while a connection is idle, so it cannot tell five seconds for a head from a
//! minute between requests. The socket and the service report here what happens, and the connection's task asks
//! when to give up.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::body_rate::BYTES_PER_SECOND;
use crate::metrics::CutReason;
use crate::settings::ServerSettings;

const NEVER: u64 = u64::MAX;

/// What the client owes. Touched by one task at a time, so relaxed operations are enough.
#[derive(Debug)]
pub(super) struct PhaseDeadline {
    started: Instant,
    header: Duration,
    idle: Duration,
    body: Duration,
    write: Duration,
    phase: AtomicU8,
    /// Milliseconds after `started`.
    read_by: AtomicU64,
    write_by: AtomicU64,
}

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BODY: u8 = 2;
const ANSWERING: u8 = 3;

impl PhaseDeadline {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        let phase_deadline = Self {
            started: Instant::now(),
            header: settings.header_timeout,
            idle: settings.idle_timeout,
            body: settings.body_timeout,
            write: settings.write_timeout,
            phase: AtomicU8::new(IDLE),
            read_by: AtomicU64::new(NEVER),
            write_by: AtomicU64::new(NEVER),
        };
        phase_deadline.enter(IDLE, Some(phase_deadline.idle));
        phase_deadline
    }

    /// Bytes came in. The first ones after an answer are the start of a head.
    pub(super) fn note_head_bytes(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.enter(HEAD, Some(self.header));
        }
    }

    /// A head is complete.
    pub(super) fn note_request(&self, has_body: bool) {
        if has_body {
            self.enter(BODY, Some(self.body));
        } else {
            self.enter(ANSWERING, None);
        }
    }

    /// Moves the deadline of a body as [`BodyRate`](crate::body_rate::BodyRate) does.
    pub(super) fn note_body_bytes(&self, bytes: usize) {
        if self.phase.load(Ordering::Relaxed) == BODY {
            let earned = (bytes as u64).saturating_mul(1_000) / BYTES_PER_SECOND;
            let latest = self.now().saturating_add(millis(self.body));
            let by = self.read_by.load(Ordering::Relaxed).saturating_add(earned);
            self.read_by.store(by.min(latest), Ordering::Relaxed);
        }
    }

    /// The body is complete, or nobody wants the rest of it.
    pub(super) fn note_response_start(&self) {
        self.enter(ANSWERING, None);
    }

    /// The answer has been given to the socket.
    pub(super) fn note_response_end(&self) {
        self.enter(IDLE, Some(self.idle));
    }

    /// The socket takes no more for now.
    pub(super) fn note_write_blocked(&self) {
        if self.write_by.load(Ordering::Relaxed) == NEVER {
            let by = self.now().saturating_add(millis(self.write));
            self.write_by.store(by, Ordering::Relaxed);
        }
    }

    pub(super) fn note_write(&self) {
        self.write_by.store(NEVER, Ordering::Relaxed);
    }

    /// Whether every request has its answer and the socket has taken them.
    pub(super) fn owes_nothing(&self) -> bool {
        let phase = self.phase.load(Ordering::Relaxed);
        matches!(phase, IDLE | HEAD) && self.write_by.load(Ordering::Relaxed) == NEVER
    }

    /// Why the connection has to go, if it has to.
    pub(super) fn expired_phase(&self) -> Option<CutReason> {
        let now = self.now();
        if self.write_by.load(Ordering::Relaxed) <= now {
            return Some(CutReason::WriteTimeout);
        }
        if self.read_by.load(Ordering::Relaxed) > now {
            return None;
        }
        match self.phase.load(Ordering::Relaxed) {
            IDLE => Some(CutReason::Idle),
            HEAD => Some(CutReason::HeaderTimeout),
            BODY => Some(CutReason::BodyTimeout),
            _ => None,
        }
    }

    /// When to ask again. A deadline may come nearer than the present one, by no less than the shortest timeout.
    pub(super) fn next_check_at(&self) -> Instant {
        let shortest = [self.header, self.idle, self.body, self.write]
            .into_iter()
            .min()
            .unwrap_or(self.header);
        let nearest = self
            .read_by
            .load(Ordering::Relaxed)
            .min(self.write_by.load(Ordering::Relaxed));
        let latest = self.now().saturating_add(millis(shortest));
        self.started + Duration::from_millis(nearest.min(latest).saturating_add(1))
    }

    fn enter(&self, phase: u8, within: Option<Duration>) {
        self.phase.store(phase, Ordering::Relaxed);
        let by = within.map_or(NEVER, |within| self.now().saturating_add(millis(within)));
        self.read_by.store(by, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        millis(self.started.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_own_time() {
        let phase_deadline = PhaseDeadline::new(&ServerSettings::default());
        pass(59).await;
        assert_eq!(phase_deadline.expired_phase(), None);
        phase_deadline.note_head_bytes();
        pass(4).await;
        phase_deadline.note_head_bytes();
        assert_eq!(phase_deadline.expired_phase(), None);
        pass(1).await;
        assert_eq!(
            phase_deadline.expired_phase(),
            Some(CutReason::HeaderTimeout)
        );

        phase_deadline.note_request(false);
        pass(3_600).await;
        assert_eq!(phase_deadline.expired_phase(), None);
        phase_deadline.note_write_blocked();
        pass(9).await;
        phase_deadline.note_write_blocked();
        pass(1).await;
        assert_eq!(
            phase_deadline.expired_phase(),
            Some(CutReason::WriteTimeout)
        );
        phase_deadline.note_write();
        phase_deadline.note_response_end();
        pass(60).await;
        assert_eq!(phase_deadline.expired_phase(), Some(CutReason::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_earns_time_by_arriving_and_none_for_silence() {
        let phase_deadline = PhaseDeadline::new(&ServerSettings::default());
        phase_deadline.note_request(true);
        for _ in 0..60 {
            pass(1).await;
            phase_deadline.note_body_bytes(64 * 1_024);
        }
        pass(8).await;
        assert_eq!(phase_deadline.expired_phase(), None);
        phase_deadline.note_body_bytes(4 * 1_024 * 1_024);
        pass(9).await;
        phase_deadline.note_body_bytes(1);
        assert_eq!(phase_deadline.expired_phase(), None);
        pass(1).await;
        assert_eq!(phase_deadline.expired_phase(), Some(CutReason::BodyTimeout));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_sleeps_past_a_deadline() {
        let phase_deadline = PhaseDeadline::new(&ServerSettings::default());
        assert!(phase_deadline.next_check_at() <= Instant::now() + Duration::from_millis(5_001));
        phase_deadline.note_head_bytes();
        pass(2).await;
        assert!(phase_deadline.next_check_at() <= Instant::now() + Duration::from_millis(3_001));
    }
}
