//! The event loop.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::answer::Answer;
use super::connection::{Connection, Received};
use super::pace::Pace;
use super::report::{Failure, Tally, new_histogram};
use super::wake_timer::{WAKE, WakeTimer};
use super::{Idle, LoadError, Plan};

/// What to ask, and whether the answer is right.
pub(super) trait Traffic {
    /// Writes the next request and returns a ticket by which its answer will be judged.
    fn compose(&mut self, out: &mut Vec<u8>) -> u64;

    /// How many things the answer did (one redirect, a thousand created links).
    fn judge(&mut self, ticket: u64, answer: &Answer<'_>) -> Result<u64, Failure>;
}

const READ_BYTES: usize = 256 * 1_024;
/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often lost connections are opened again and late answers are looked for.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How long before a request is due a generator that sleeps is woken.
const WAKE_TIME: Duration = Duration::from_micros(50);

pub(super) struct Engine<'a, T> {
    plan: &'a Plan,
    traffic: &'a mut T,
    epoll: OwnedFd,
    wake_timer: WakeTimer,
    connections: Vec<Connection>,
    /// Connections without a request in flight.
    resting: Vec<usize>,
    /// Connections that broke and could not be opened again yet.
    broken: Vec<usize>,
    in_flight: usize,
    pace: Pace,
    clock: Instant,
    read_buffer: Vec<u8>,
    tally: Tally,
}

impl<'a, T: Traffic> Engine<'a, T> {
    /// Opens every connection: a server that is not there is an error at once and not a run full of failures.
    pub(super) fn connect(plan: &'a Plan, traffic: &'a mut T) -> Result<Self, LoadError> {
        plan.check()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(events)?;
        let mut connections = Vec::with_capacity(plan.connections);
        for place in 0..plan.connections {
            let connection =
                Connection::open(plan.addr, plan.visitor(place)).map_err(|source| {
                    LoadError::Connect {
                        addr: plan.addr,
                        source,
                    }
                })?;
            watch(&epoll, &connection, place).map_err(events)?;
            connections.push(connection);
        }
        let deadline = nanos(plan.limit.duration);
        Ok(Self {
            plan,
            traffic,
            wake_timer: WakeTimer::watched_by(&epoll).map_err(events)?,
            epoll,
            resting: (0..connections.len()).rev().collect(),
            connections,
            broken: Vec::new(),
            in_flight: 0,
            pace: Pace::new(plan.limit.requests, deadline, plan.rate),
            clock: Instant::now(),
            read_buffer: vec![0; READ_BYTES],
            tally: Tally::default(),
        })
    }

    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        self.clock = Instant::now();
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(self.connections.len());
        let mut swept = 0;
        loop {
            let now = self.now();
            self.dispatch(now)?;
            if self.in_flight == 0 && self.pace.is_over(now) {
                break;
            }
            if now > self.pace.deadline() + nanos(ANSWER_TIMEOUT) {
                self.tally.fail(Failure::Timeout, self.in_flight as u64);
                break;
            }
            self.wait(&mut ready, now)?;
            for event in ready.drain(..) {
                let data = event.data;
                if data.u64() != WAKE {
                    self.progress(data.u64() as usize)?;
                }
            }
            if now - swept > nanos(SWEEP_EVERY) {
                swept = now;
                self.sweep(now)?;
            }
        }
        self.finish()
    }

    fn now(&self) -> u64 {
        nanos(self.clock.elapsed())
    }

    /// Hands requests that may leave to connections that rest. All answers that were there have been read by then:
    /// reading many and then sending many keeps either path of the kernel in the processor's cache.
    fn dispatch(&mut self, now: u64) -> Result<(), LoadError> {
        while let Some(&place) = self.resting.last() {
            let Some(from) = self.pace.take(now) else {
                break;
            };
            self.resting.pop();
            self.send(place, from)?;
        }
        Ok(())
    }

    fn send(&mut self, place: usize, from: u64) -> Result<(), LoadError> {
        let traffic = &mut *self.traffic;
        self.in_flight += 1;
        let sent = self.connections[place].send(from, |out| traffic.compose(out));
        match sent {
            Ok(true) => Ok(()),
            Ok(false) => self.watch_writes(place, true),
            Err(_) => self.broke(place, Failure::Lost),
        }
    }

    /// How long to wait for answers; not at all where the next request is due earlier than a sleeper would wake up.
    fn pause(&self, now: u64) -> Result<Duration, LoadError> {
        if self.plan.idle == Idle::Spin {
            return Ok(Duration::ZERO);
        }
        let Some(due) = self.pace.next_due().filter(|_| !self.resting.is_empty()) else {
            return Ok(SWEEP_EVERY);
        };
        let left = Duration::from_nanos(due.saturating_sub(now));
        if left <= WAKE_TIME {
            return Ok(Duration::ZERO);
        }
        self.wake_timer.set(left - WAKE_TIME).map_err(events)?;
        Ok(SWEEP_EVERY)
    }

    fn wait(&self, ready: &mut Vec<epoll::Event>, now: u64) -> Result<(), LoadError> {
        let pause = self.pause(now)?;
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(pause.subsec_nanos()),
        };
        match epoll::wait(&self.epoll, spare_capacity(ready), Some(&pause)) {
            Ok(_) => Ok(()),
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(events(error)),
        }
    }

    /// Moves one connection on: sends what is left and reads what has come.
    fn progress(&mut self, place: usize) -> Result<(), LoadError> {
        let connection = &mut self.connections[place];
        if connection.has_unsent() {
            match connection.flush() {
                Ok(true) => self.watch_writes(place, false)?,
                Ok(false) => {}
                Err(_) => return self.broke(place, Failure::Lost),
            }
        }
        let connection = &mut self.connections[place];
        let flight = connection.flight;
        let (now, verdict, closes) = match connection.receive(&mut self.read_buffer) {
            Ok(Received::Answer(answer)) => {
                let now = nanos(self.clock.elapsed());
                let ticket = flight.map_or(0, |flight| flight.ticket);
                let verdict = self.traffic.judge(ticket, &answer);
                (now, verdict, answer.closes)
            }
            Ok(Received::More | Received::Nothing) => return Ok(()),
            Err(failure) => return self.broke(place, failure),
        };
        connection.land();
        self.in_flight -= 1;
        match verdict {
            Ok(items) => {
                let from = flight.map_or(now, |flight| flight.from);
                self.tally.complete(items, now.saturating_sub(from));
            }
            Err(failure) => self.tally.fail(failure, 1),
        }
        if closes {
            self.tally.reconnects += 1;
            return self.reopen(place);
        }
        self.resting.push(place);
        Ok(())
    }

    /// The connection is of no more use. A request in flight has failed; a server may well close an idle connection.
    fn broke(&mut self, place: usize, failure: Failure) -> Result<(), LoadError> {
        if self.connections[place].flight.take().is_some() {
            self.in_flight -= 1;
            self.tally.fail(failure, 1);
        } else {
            self.resting.retain(|&resting| resting != place);
        }
        self.tally.reconnects += 1;
        self.reopen(place)
    }

    fn reopen(&mut self, place: usize) -> Result<(), LoadError> {
        match Connection::open(self.plan.addr, self.plan.visitor(place)) {
            Ok(connection) => {
                watch(&self.epoll, &connection, place).map_err(events)?;
                self.connections[place] = connection;
                self.resting.push(place);
            }
            Err(_) => {
                self.tally.fail(Failure::Connect, 1);
                // The old socket stays in place but must not wake the loop again.
                epoll::delete(&self.epoll, &self.connections[place].socket)
                    .or_else(|error| match error {
                        rustix::io::Errno::NOENT => Ok(()),
                        other => Err(other),
                    })
                    .map_err(events)?;
                self.broken.push(place);
            }
        }
        Ok(())
    }

    fn sweep(&mut self, now: u64) -> Result<(), LoadError> {
        for place in std::mem::take(&mut self.broken) {
            self.reopen(place)?;
        }
        let oldest = now.saturating_sub(nanos(ANSWER_TIMEOUT));
        let late: Vec<usize> = self
            .connections
            .iter()
            .enumerate()
            .filter(|(_, one)| one.flight.is_some_and(|flight| flight.from < oldest))
            .map(|(place, _)| place)
            .collect();
        for place in late {
            self.broke(place, Failure::Timeout)?;
        }
        Ok(())
    }

    fn watch_writes(&self, place: usize, on: bool) -> Result<(), LoadError> {
        let mut interest = epoll::EventFlags::IN;
        interest.set(epoll::EventFlags::OUT, on);
        epoll::modify(
            &self.epoll,
            &self.connections[place].socket,
            epoll::EventData::new_u64(place as u64),
            interest,
        )
        .map_err(events)
    }

    /// Requests of an open loop that never left are latency too: at least until the end of the run.
    fn finish(mut self) -> Result<Tally, LoadError> {
        self.tally.elapsed = self.clock.elapsed();
        let end = nanos(self.tally.elapsed);
        for due in self.pace.overdue() {
            self.tally.unsent += 1;
            self.tally
                .latency
                .saturating_record(end.saturating_sub(due));
        }
        Ok(self.tally)
    }
}

pub(super) fn watch(
    epoll: &OwnedFd,
    connection: &Connection,
    place: usize,
) -> rustix::io::Result<()> {
    epoll::add(
        epoll,
        &connection.socket,
        epoll::EventData::new_u64(place as u64),
        epoll::EventFlags::IN,
    )
}

pub(super) fn events(error: rustix::io::Errno) -> LoadError {
    LoadError::Events(io::Error::from(error))
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            completed: 0,
            items: 0,
            failures: Default::default(),
            latency: new_histogram(),
            elapsed: Duration::ZERO,
            reconnects: 0,
            unsent: 0,
        }
    }
}

impl Tally {
    fn complete(&mut self, items: u64, latency: u64) {
        self.completed += 1;
        self.items += items;
        let latencies: &mut Histogram<u64> = &mut self.latency;
        latencies.saturating_record(latency);
    }

    fn fail(&mut self, failure: Failure, count: u64) {
        if count > 0 {
            *self.failures.entry(failure).or_default() += count;
        }
    }
}
