//! What is left of a body when the answer is ready.
//!
//! An answer may be known before the body has been read: wrong method, no credentials, too long. If the connection
//! were closed on the unread rest, the client could lose the answer, or send its next request into a closed
//! connection. So a short rest is read and dropped, and over a long one the answer says that the connection closes.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use curt_core::limits::HTTP_BODY_BYTES_MAX;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

/// How long an answer waits for the rest of a body.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A body that its handler and the layer around it both hold.
#[derive(Clone)]
pub(super) struct SharedBody(Arc<Mutex<Body>>);

impl SharedBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// Reads what is left, if that is short and comes soon. Says whether the end was reached.
    pub(super) async fn drain(mut self) -> bool {
        let unread = self.size_hint().lower();
        if unread > HTTP_BODY_BYTES_MAX as u64 {
            return false;
        }
        let reading = async {
            let mut dropped = 0;
            while let Some(frame) = self.frame().await {
                let Ok(frame) = frame else { return false };
                dropped += frame.data_ref().map_or(0, Bytes::len);
                if dropped > HTTP_BODY_BYTES_MAX {
                    return false;
                }
            }
            true
        };
        timeout(TIMEOUT, reading).await.unwrap_or(false)
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.size_hint()
    }
}
