//! As much of Kafka's protocol as it takes to ask whether a broker serves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Longer than any answer that names brokers and no topics.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// Metadata, version 1, with a correlation id of 7, no client name and an empty list of topics.
const REQUEST: [u8; 18] = [
    0, 0, 0, 14, // how many bytes follow
    0, 3, 0, 1, // which question, in which version
    0, 0, 0, 7, // repeated in the answer
    0xFF, 0xFF, // no name
    0, 0, 0, 0, // about no topic
];

/// How many brokers this one knows.
pub(super) fn count_brokers(address: SocketAddr) -> Result<usize> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(&REQUEST)?;
    let length = usize::try_from(read_number(&mut stream)?)?;
    ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
    ensure!(
        read_number(&mut stream)? == 7,
        "an answer to another question"
    );
    let count = read_number(&mut stream)?;
    usize::try_from(count).context("a number of brokers below zero")
}

fn read_number(stream: &mut TcpStream) -> Result<i32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(i32::from_be_bytes(bytes))
}
