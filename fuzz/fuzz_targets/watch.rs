//! Frames of the ranks' watch: pieces of any size give the same frames, and a frame is written as it was read.
//!
//! The first byte of the input is the size of the first piece.
#![no_main]

use libfuzzer_sys::fuzz_target;

// Its crate requires PyTorch.
#[path = "../../crates/c10d/src/watch/frame.rs"]
#[allow(dead_code, reason = "the crate uses the rest")]
mod frame;

fuzz_target!(|data: &[u8]| {
    let Some((&first, stream)) = data.split_first() else { return };
    let mut whole = stream.to_vec();
    let expected = frame::take_all(&mut whole);
    let (begin, end) = stream.split_at(usize::from(first).min(stream.len()));
    let mut received = begin.to_vec();
    let mut found = frame::take_all(&mut received);
    if let Some(frames) = &mut found {
        received.extend_from_slice(end);
        found = frame::take_all(&mut received)
            .map(|more| std::mem::take(frames).into_iter().chain(more).collect());
    }
    // An invalid frame may follow valid ones.
    assert_eq!(found, expected);
    let Some(frames) = expected else { return };
    let mut written = Vec::new();
    for (frame, signature) in frames {
        written.extend(frame.to_bytes());
        written.extend(signature.iter().flatten());
    }
    written.extend(whole);
    assert!(written == stream);
});
