//! Many answers, one system call.
//!
//! A round of answers goes to the kernel as one submission to an io_uring, instead of one `send` each. Nothing about
//! them is asynchronous: every send is told not to wait for room in its socket, so the kernel completes it, with a
//! count or with an error, before the call returns. Where the kernel has no io_uring, or forbids it, or the
//! configuration does, the same sends are made one by one.
//!
//! # Why `unsafe`
//! The submission queue takes addresses, and the compiler cannot see how long the kernel uses them. This module
//! says `unsafe` for the one call that writes an entry. The measurement that pays for it
//! (one core, 64 connections, Zipf over a million links, interleaved): 6.65 µs of CPU per redirect with single sends,
//! 5.98 with this, for requests of the size that browsers send 6.66 and 5.95. `make bench` measures the whole.
//!
//! What makes it sound:
//! - [`ResponseSender::send`] borrows sockets and bytes until it returns, and returns only when every entry that the
//!   kernel took has been completed. Only a completed entry is forgotten.
//! - If the ring fails, it is closed before [`ResponseSender::send`] returns, with whatever entries the kernel did not take.
//! - Should the kernel ever hold on to an entry after an error, the process ends rather than free the bytes under it.

#![expect(unsafe_code, reason = "see the module's documentation")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, squeue, types};
use socket2::SockRef;

/// Entries in the submission queue.
const BATCH_MAX: usize = 256;
const NOT_SENT: i32 = i32::MIN;

/// Sends messages for the thread that made it.
#[derive(Default)]
pub(crate) struct ResponseSender {
    ring: Option<IoUring>,
    /// What became of each message: bytes sent, or an error number below zero.
    outcomes: Vec<i32>,
}

impl ResponseSender {
    /// With a ring if the system gives one.
    pub(crate) fn new() -> Self {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_submit_all()
            .build(u32::try_from(BATCH_MAX).unwrap_or(u32::MAX));
        if let Err(error) = &ring {
            tracing::debug!(%error, "io_uring unavailable, sending singly");
        }
        Self {
            ring: ring.ok(),
            outcomes: Vec::new(),
        }
    }

    /// Sends each message as far as its socket, which must not block, takes it at once, and says in order how far that
    /// was. Of two messages for one socket the second may come first: the caller gives one at a time.
    pub(crate) fn send<S: AsFd>(
        &mut self,
        messages: &[(S, &[u8])],
    ) -> impl Iterator<Item = io::Result<usize>> + use<'_, S> {
        self.outcomes.clear();
        self.outcomes.resize(messages.len(), NOT_SENT);
        let batches = messages.chunks(BATCH_MAX);
        for (batch, outcomes) in batches.zip(self.outcomes.chunks_mut(BATCH_MAX)) {
            // A single send is cheaper without the ring.
            if batch.len() > 1
                && let Some(ring) = &mut self.ring
                && let Err(error) = submit_batch(ring, batch, outcomes)
            {
                tracing::warn!(%error, "io_uring failed, sending singly");
                self.ring = None;
            }
            for ((socket, bytes), outcome) in batch.iter().zip(outcomes) {
                if *outcome == NOT_SENT {
                    *outcome = send_singly(socket, bytes);
                }
            }
        }
        self.outcomes.iter().map(|outcome| {
            usize::try_from(*outcome).map_err(|_| io::Error::from_raw_os_error(-outcome))
        })
    }
}

fn send_singly(socket: &impl AsFd, bytes: &[u8]) -> i32 {
    match SockRef::from(socket).send(bytes) {
        Ok(sent) => i32::try_from(sent).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Fills in the outcome of every message that was sent. After an error the ring must not be used again.
fn submit_batch<S: AsFd>(
    ring: &mut IoUring,
    batch: &[(S, &[u8])],
    outcomes: &mut [i32],
) -> io::Result<()> {
    for ((socket, bytes), number) in batch.iter().zip(0..) {
        let entry = send_entry(socket.as_fd(), bytes, number);
        // SAFETY: the entry's address and length are those of `bytes`, which outlives this call; the caller closes the
        // ring on any error of this function, and without one the kernel has completed the entry.
        unsafe { ring.submission().push(&entry) }
            .map_err(|_| io::Error::other("the submission queue is full"))?;
    }
    let mut awaited = batch.len();
    while awaited > 0 {
        let entered = ring.submit_and_wait(awaited);
        for completion in ring.completion() {
            let place = usize::try_from(completion.user_data()).ok();
            if let Some(outcome) = place.and_then(|place| outcomes.get_mut(place)) {
                *outcome = completion.result();
                awaited -= 1;
            }
        }
        match entered {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                if awaited > ring.submission().len() {
                    tracing::error!(%error, awaited, "io_uring entries in flight after error");
                    std::process::abort();
                }
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

fn send_entry(socket: BorrowedFd<'_>, bytes: &[u8], number: u64) -> squeue::Entry {
    let socket = types::Fd(socket.as_raw_fd());
    // What does not fit is left over, as after any short send.
    let length = u32::try_from(bytes.len()).unwrap_or(i32::MAX as u32);
    opcode::Send::new(socket, bytes.as_ptr(), length)
        .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        .build()
        .user_data(number)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use curt_testkit::skipped;

    use super::*;

    const MUCH: usize = 16 * 1_024 * 1_024;

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, theirs)
    }

    fn ways() -> [ResponseSender; 2] {
        let ringed = ResponseSender::new();
        if ringed.ring.is_none() {
            skipped::say(
                "post",
                "this machine gives no io_uring; only single sends were tested",
            );
        }
        [ringed, ResponseSender::default()]
    }

    #[test]
    fn every_message_reaches_its_own_socket_whatever_the_number() {
        for mut response_sender in ways() {
            for count in [0, 1, 2, BATCH_MAX, 2 * BATCH_MAX + 1] {
                let pairs: Vec<_> = (0..count).map(|_| pair()).collect();
                let texts: Vec<_> = (0..count)
                    .map(|number| format!("answer {number}"))
                    .collect();
                let messages: Vec<_> = pairs
                    .iter()
                    .zip(&texts)
                    .map(|((ours, _), text)| (ours, text.as_bytes()))
                    .collect();
                let sent: Vec<_> = response_sender
                    .send(&messages)
                    .map(Result::unwrap)
                    .collect();
                assert_eq!(sent, texts.iter().map(String::len).collect::<Vec<_>>());
                for ((ours, mut theirs), text) in pairs.into_iter().zip(texts) {
                    drop(ours);
                    let mut received = String::new();
                    theirs.read_to_string(&mut received).unwrap();
                    assert_eq!(received, text);
                }
            }
        }
    }

    #[test]
    fn a_full_socket_and_a_closed_one_hold_nobody_up() {
        for mut response_sender in ways() {
            let ((full, mut reader), (closed, gone), (open, mut other)) = (pair(), pair(), pair());
            drop(gone);
            let much = vec![b'a'; MUCH];
            let round: [(_, &[u8]); 3] =
                [(&full, &much), (&closed, b"nobody"), (&open, b"somebody")];
            let sent: Vec<_> = response_sender.send(&round).collect();
            let taken = *sent[0].as_ref().unwrap();
            assert!(taken > 0 && taken < MUCH, "{taken}");
            assert_eq!(
                sent[1].as_ref().unwrap_err().kind(),
                io::ErrorKind::BrokenPipe
            );
            assert_eq!(*sent[2].as_ref().unwrap(), 8);
            let round: [(_, &[u8]); 2] = [(&full, b"more"), (&open, b"!")];
            let sent: Vec<_> = response_sender.send(&round).collect();
            assert_eq!(
                sent[0].as_ref().unwrap_err().kind(),
                io::ErrorKind::WouldBlock
            );
            assert_eq!(*sent[1].as_ref().unwrap(), 1);
            drop((full, open));
            let (mut first, mut second) = (Vec::new(), String::new());
            reader.read_to_end(&mut first).unwrap();
            other.read_to_string(&mut second).unwrap();
            assert_eq!((first.len(), &*second), (taken, "somebody!"));
        }
    }

    #[test]
    fn a_ring_that_fails_is_given_up_and_nothing_is_sent_twice() {
        let mut response_sender = ResponseSender::new();
        if response_sender.ring.is_none() {
            return skipped::say("post", "this machine gives no io_uring");
        }
        // A ring belongs to the thread that made it: from another, the kernel refuses every submission.
        let (ours, mut theirs) = pair();
        let (also_ours, mut also_theirs) = pair();
        let response_sender = std::thread::spawn(move || {
            let round = [(&ours, &b"once"[..]), (&also_ours, b"once")];
            assert!(response_sender.send(&round).all(|sent| sent.unwrap() == 4));
            response_sender
        });
        assert!(response_sender.join().unwrap().ring.is_none());
        for end in [&mut theirs, &mut also_theirs] {
            let mut received = String::new();
            end.read_to_string(&mut received).unwrap();
            assert_eq!(received, "once");
        }
    }
}
