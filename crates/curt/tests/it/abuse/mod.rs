//! Attacks on what all users share: threads, queues, memory, connections, the disk.
//!
//! Each module is one attack. While it runs, a [`Bystander`] signs in, creates links and follows one, from another
//! address and another account. No request of theirs may fail, the process must be the same one afterwards, and its
//! threads and memory stay within bounds. At full length, on an optimised build, their latencies are judged too.

mod bodies;
mod connections;
mod disk;
mod feeds;
mod open_files;
mod password_links;
mod probe;
mod searches;

use std::io::ErrorKind;
use std::net::TcpStream;

pub(crate) use probe::Bystander;

/// Lets this thread yield to the server: an attacker's own work is done by other machines.
fn yield_to_server() {
    rustix::process::nice(10).unwrap();
}

/// Whether the server has answered, or closed the connection, without being asked for anything.
fn is_turned_away(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    !matches!(seen, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn a_bystander_is_served_while_nobody_attacks() {
    let bystander = Bystander::start(&[]);
    let mut api = bystander.site().api();
    bystander.withstand("nothing", 32 << 20, |_| {
        assert_eq!(api.follow("absent").unwrap().status, 404);
    });
}
