//! Counts the bytes of a request body as they are sent, so that a slow upload shows progress.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use program::progress::Progress;

const PIECE_BYTES: usize = 64 << 10;

struct Counted {
    rest: Bytes,
    progress: Progress,
}

/// The bytes as a body that can be resent.
pub(super) fn counted(bytes: Bytes, progress: &Progress) -> ByteStream {
    let progress = progress.clone();
    ByteStream::new(SdkBody::retryable(move || {
        SdkBody::from_body_1_x(Counted { rest: bytes.clone(), progress: progress.clone() })
    }))
}

impl Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let counted = self.get_mut();
        if counted.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = counted.rest.split_to(counted.rest.len().min(PIECE_BYTES));
        counted.progress.advance(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
