//! One blocking `GET`, for readiness and metrics.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// Longer than a report takes on a saturated server.
const TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Status and body.
pub(super) fn get(addr: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    send(addr, path, "")
}

/// The same with an API key.
pub(super) fn get_with_key(
    addr: SocketAddr,
    path: &str,
    api_key: &str,
) -> anyhow::Result<(u16, String)> {
    send(addr, path, &format!("Authorization: Bearer {api_key}\r\n"))
}

fn send(addr: SocketAddr, path: &str, headers: &str) -> anyhow::Result<(u16, String)> {
    let mut socket = TcpStream::connect_timeout(&addr, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\n{headers}Connection: close\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(&bytes)? else {
        bail!("{addr}{path} answered only {} bytes", bytes.len());
    };
    let status = response.code.context("an answer without a status")?;
    Ok((status, String::from_utf8_lossy(&bytes[head..]).into_owned()))
}

/// The value of a gauge or counter without labels in a Prometheus text.
pub(super) fn metric(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let (metric, value) = line.split_once(' ')?;
        (metric == name).then(|| value.trim().parse().ok())?
    })
}

/// The sum of a counter over all its labels in a Prometheus text.
pub(super) fn counter(text: &str, name: &str) -> u64 {
    let (plain, labelled) = (format!("{name}_total "), format!("{name}_total{{"));
    let samples = text
        .lines()
        .filter(|line| line.starts_with(&plain) || line.starts_with(&labelled));
    let values = samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# HELP a_b Help.\na_bytes 7\na_b 12.5\na_b_total{x=\"y\"} 3\n";
        assert_eq!(metric(text, "a_b"), Some(12.5));
        assert_eq!(metric(text, "a_"), None);
    }

    #[test]
    fn a_counter_is_summed_over_its_labels() {
        let text = "# TYPE a counter\na_total{x=\"y\"} 3\na_total{x=\"z\"} 4\na_b_total 9\n";
        assert_eq!(counter(text, "a"), 7);
        assert_eq!(counter(text, "a_b"), 9);
        assert_eq!(counter(text, "b"), 0);
    }
}
