//! Ends a wait for events at an instant: `epoll_wait` itself waits in whole milliseconds.

use std::time::Duration;

use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// What its event carries, which is no place of a connection.
pub(super) const WAKE: u64 = u64::MAX;

pub(super) struct WakeTimer(OwnedFd);

impl WakeTimer {
    pub(super) fn watched_by(epoll: &OwnedFd) -> Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        // Told once each time, so that nobody has to read it.
        let told_once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(epoll, &timer, epoll::EventData::new_u64(WAKE), told_once)?;
        Ok(Self(timer))
    }

    /// Sets it anew; what it was set to before is forgotten.
    pub(super) fn set(&self, after: Duration) -> Result<()> {
        const NEVER: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let timing = Itimerspec {
            it_interval: NEVER,
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(after.subsec_nanos()),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &timing).map(drop)
    }
}
