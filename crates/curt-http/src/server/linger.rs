//! Closing so that the last answer arrives.

use std::time::Duration;

use curt_core::limits::HTTP_BULK_BODY_BYTES_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long, and for how many bytes, a client is listened to after its last answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 2 * HTTP_BULK_BODY_BYTES_MAX;

/// Ends our side and drops what still comes in: closing with unread input would reset the connection, and the reset
/// may overtake the answer.
pub(crate) async fn linger(stream: &mut TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let discard = async {
        let mut buffer = vec![0; 4_096];
        let mut received = 0;
        while received < LINGER_BYTES_MAX {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(bytes) => received += bytes,
            }
        }
    };
    if tokio::time::timeout(LINGER, discard).await.is_err() {
        tracing::trace!("client open after final response");
    }
}
