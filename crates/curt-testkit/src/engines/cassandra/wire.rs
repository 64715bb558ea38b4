//! As much of Cassandra's protocol as it takes to ask whether a node serves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Result;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// What do you support? In version 4 of the protocol, without a body.
const OPTIONS: [u8; 9] = [4, 0, 0, 0, 5, 0, 0, 0, 0];
/// The first byte of an answer in version 4, and the kind of answer to the question.
const ANSWER: u8 = 0x84;
const SUPPORTED: u8 = 6;

/// Whether the node says what it supports. It listens only once it has joined the others.
pub(super) fn is_supported(address: SocketAddr) -> Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(&OPTIONS)?;
    let mut head = OPTIONS;
    stream.read_exact(&mut head)?;
    Ok(head[0] == ANSWER && head[4] == SUPPORTED)
}
