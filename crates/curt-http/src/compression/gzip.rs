//! Bodies in gzip.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::body::Frame;
use tokio::sync::Semaphore;

/// What a compressor is given before others may go on: a tenth of a millisecond of work.
const PART_BYTES: usize = 64 * 1_024;
/// Compressors at work at once, because each takes some 300 KiB; others wait with the text that they hold anyway.
const AT_ONCE_MAX: usize = 4;

static AT_ONCE: Semaphore = Semaphore::const_new(AT_ONCE_MAX);

/// Compresses a body that is in memory. When this returns, the compressor is gone: a client that reads slowly holds less
/// than it would without compression.
pub(super) async fn compress_body(body: Body) -> Result<Body, axum::Error> {
    let whole = body.collect().await?.to_bytes();
    // Never closed; and if it were, there would be no bound to wait for.
    let _turn = AT_ONCE.acquire().await.ok();
    let mut compressor = compressor();
    for part in whole.chunks(PART_BYTES) {
        compressor.write_all(part).map_err(axum::Error::new)?;
        tokio::task::yield_now().await;
    }
    let compressed = compressor.finish().map_err(axum::Error::new)?;
    Ok(Body::from(compressed))
}

/// Compresses a body as it is read. Only exports are so long, and few of them run at once.
pub(super) fn stream(body: Body) -> Body {
    Body::new(GzipBody {
        body,
        compressor: Some(compressor()),
    })
}

/// Compresses as well as possible what is sent many times.
pub(super) fn compress_once(whole: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut compressor = GzEncoder::new(Vec::new(), Level::best());
    compressor.write_all(whole)?;
    compressor.finish()
}

/// On lists of links, level 6 saves a fifth of the bytes that level 1 leaves, for eight times the work.
fn compressor() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Level::fast())
}

struct GzipBody {
    body: Body,
    /// `None`: the end has been sent.
    compressor: Option<GzEncoder<Vec<u8>>>,
}

impl HttpBody for GzipBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            let Self { body, compressor } = &mut *self;
            let Some(open) = compressor else {
                return Poll::Ready(None);
            };
            let compressed = match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    let Ok(part) = frame.into_data() else {
                        continue;
                    };
                    let written = open.write_all(&part);
                    written.map(|()| std::mem::take(open.get_mut()))
                }
                Some(Err(broken)) => {
                    *compressor = None;
                    return Poll::Ready(Some(Err(broken)));
                }
                None => match compressor.take() {
                    Some(last) => last.finish(),
                    None => return Poll::Ready(None),
                },
            };
            let compressed = compressed.map_err(axum::Error::new)?;
            if !compressed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(compressed.into()))));
            }
        }
    }
}
