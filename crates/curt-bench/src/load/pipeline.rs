//! Redirects at a steady rate from a generator that takes as little of the machine as it can: requests leave in small
//! batches, several in flight on a connection. For servers that share their cores with it. Answers are counted and
//! judged; latencies are not measured, since a batch waits for itself.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;

use super::answer::{self, Parsed};
use super::connection::Connection;
use super::engine::{Traffic as _, events, nanos, watch};
use super::redirect::Redirects;
use super::{LoadError, RedirectLoad};
use crate::cpu;

/// Requests in one batch.
const BATCH: u64 = 16;
const READ_BYTES: usize = 64 * 1_024;
/// How long the generator sleeps at most: requests of that time leave together.
const TICK: Duration = Duration::from_millis(1);
/// How long the last answers may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a steady load found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipelineReport {
    /// Redirects as expected.
    pub answered: u64,
    /// Answers that were not, and requests without one.
    pub failed: u64,
    pub elapsed: Duration,
    /// Processor time of the generator.
    pub cpu: Duration,
}

impl PipelineReport {
    /// Redirects per second of wall time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A connection with what it waits for.
struct Pipe {
    connection: Connection,
    tickets: VecDeque<u64>,
    incoming: Vec<u8>,
}

/// Follows links at `load.plan.rate` until its limit of time. The first broken connection ends the run with an error.
pub fn pipeline(load: &RedirectLoad) -> Result<PipelineReport, LoadError> {
    let plan = &load.plan;
    plan.check()?;
    if load.keys.is_empty() {
        return Err(LoadError::NoKeys);
    }
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(events)?;
    let mut pipes = Vec::with_capacity(plan.connections);
    for place in 0..plan.connections {
        let connection = Connection::open(plan.addr, plan.visitor(place)).map_err(|source| {
            LoadError::Connect {
                addr: plan.addr,
                source,
            }
        })?;
        watch(&epoll, &connection, place).map_err(events)?;
        pipes.push(Pipe {
            connection,
            tickets: Default::default(),
            incoming: Vec::new(),
        });
    }
    let mut run = Run {
        traffic: Redirects::new(load),
        resting: (0..pipes.len()).collect(),
        pipes,
        epoll,
        buffer: vec![0; READ_BYTES],
        sent: 0,
        report: PipelineReport::default(),
    };
    run.go(plan.rate.unwrap_or(1e9), plan.limit.duration)
}

struct Run<'a> {
    traffic: Redirects<'a>,
    pipes: Vec<Pipe>,
    /// Connections that wait for nothing, in turn: the server closes one that is idle for a minute.
    resting: VecDeque<usize>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    sent: u64,
    report: PipelineReport,
}

impl Run<'_> {
    fn go(&mut self, rate: f64, duration: Duration) -> Result<PipelineReport, LoadError> {
        let (clock, spent) = (Instant::now(), cpu::thread_time());
        let all = (rate * duration.as_secs_f64()) as u64;
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(self.pipes.len());
        loop {
            let now = clock.elapsed();
            let is_over = now >= duration;
            if !is_over {
                let due = ((rate * now.as_secs_f64()) as u64).min(all);
                self.send_due(due)?;
            }
            let in_flight = self.sent - self.report.answered - self.report.failed;
            if is_over && in_flight == 0 {
                break;
            }
            if now > duration + ANSWER_TIMEOUT {
                self.report.failed += in_flight;
                break;
            }
            self.wait(&mut ready, now)?;
            for event in ready.drain(..) {
                let data = event.data;
                self.progress(data.u64() as usize)?;
            }
        }
        self.report.elapsed = clock.elapsed();
        self.report.cpu = cpu::thread_time().saturating_sub(spent);
        Ok(self.report)
    }

    /// Sends what has fallen due, as far as connections rest.
    fn send_due(&mut self, due: u64) -> Result<(), LoadError> {
        while self.sent < due
            && let Some(place) = self.resting.pop_front()
        {
            let batch = (due - self.sent).min(BATCH);
            let Pipe {
                connection,
                tickets,
                ..
            } = &mut self.pipes[place];
            let traffic = &mut self.traffic;
            connection
                .send(0, |out| {
                    tickets.extend((0..batch).map(|_| traffic.compose(out)));
                    0
                })
                .map_err(LoadError::Events)?;
            self.sent += batch;
        }
        Ok(())
    }

    fn wait(&self, ready: &mut Vec<epoll::Event>, now: Duration) -> Result<(), LoadError> {
        // Up to the next whole tick, so that sleeping late does not add up.
        let pause = nanos(TICK) - nanos(now) % nanos(TICK);
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: pause as i64,
        };
        match epoll::wait(&self.epoll, spare_capacity(ready), Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(events(error)),
        }
    }

    /// Sends what the socket did not take at once, and reads answers.
    fn progress(&mut self, place: usize) -> Result<(), LoadError> {
        let pipe = &mut self.pipes[place];
        pipe.connection.flush().map_err(LoadError::Events)?;
        let count = match pipe.connection.socket.read(&mut self.buffer) {
            Ok(0) => return Err(LoadError::Events(ErrorKind::ConnectionReset.into())),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(LoadError::Events(error)),
        };
        pipe.incoming.extend_from_slice(&self.buffer[..count]);
        let mut read = 0;
        while read < pipe.incoming.len() {
            let parsed = answer::parse_first(&pipe.incoming[read..]);
            let Ok(Parsed::Whole(answer, length)) = parsed else {
                if parsed.is_err() {
                    return Err(LoadError::Events(ErrorKind::InvalidData.into()));
                }
                break;
            };
            read += length;
            let ticket = pipe.tickets.pop_front();
            match ticket.map(|ticket| self.traffic.judge(ticket, &answer)) {
                Some(Ok(_)) => self.report.answered += 1,
                _ => self.report.failed += 1,
            }
        }
        pipe.incoming.drain(..read);
        if pipe.tickets.is_empty() && !self.resting.contains(&place) {
            pipe.connection.flight = None;
            self.resting.push_back(place);
        }
        Ok(())
    }
}
