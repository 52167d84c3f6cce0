//! Uploads that run beside the work whose results they store.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use program::threads::locked;

use crate::mirror::error::{MirrorError, Result};

/// Number of tries of a request that may succeed later, in addition to the retries of the store.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

/// An upload. It is called on another thread, and dropped without a call if a newer one replaces it.
pub type Upload = Box<dyn FnOnce() -> Result<()> + Send>;

/// A thread that runs one upload at a time. One more waits; a newer upload replaces the one that waits.
#[derive(Debug)]
pub struct Uploads {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct State {
    waiting: Option<Upload>,
    is_busy: bool,
    has_ended: bool,
    /// The result of the last upload, if it failed.
    failed: Option<MirrorError>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Shared")
    }
}

impl Uploads {
    /// Starts the thread. `on_failure` is called there with the error of each failed upload.
    pub fn start(on_failure: impl Fn(&MirrorError) + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("uploads".to_owned()).spawn(move || of_thread.run(&on_failure))?;
        Ok(Self { shared })
    }

    /// Queues an upload and returns at once.
    pub fn queue(&self, upload: Upload) {
        locked(&self.shared.state).waiting = Some(upload);
        self.shared.changed.notify_all();
    }

    /// Waits until no upload runs or waits. Returns the error of the last one.
    pub fn finish(&self) -> Result<()> {
        let mut state = locked(&self.shared.state);
        while state.is_busy || state.waiting.is_some() {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failed.take().map_or(Ok(()), Err)
    }

    /// Whether another process has resumed the training, as the last upload found.
    pub fn is_taken(&self) -> bool {
        matches!(locked(&self.shared.state).failed, Some(MirrorError::Taken { .. }))
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        // An upload that runs goes on until the process exits.
        let mut state = locked(&self.shared.state);
        (state.has_ended, state.waiting) = (true, None);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn run(&self, on_failure: &impl Fn(&MirrorError)) {
        loop {
            let mut state = locked(&self.state);
            let upload = loop {
                if state.has_ended {
                    return;
                }
                if let Some(upload) = state.waiting.take() {
                    break upload;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.is_busy = true;
            drop(state);
            let done = upload();
            if let Err(error) = &done {
                on_failure(error);
            }
            let mut state = locked(&self.state);
            (state.is_busy, state.failed) = (false, done.err());
            self.changed.notify_all();
        }
    }
}

/// Repeats an upload a limited number of times while the store is unavailable.
pub fn persistently(mut upload: impl FnMut() -> Result<()>) -> Result<()> {
    for _ in 1..TRIES {
        match upload() {
            Err(error) if error.is_worth_retrying() => thread::sleep(PAUSE),
            done => return done,
        }
    }
    upload()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_newer_upload_replaces_the_one_that_waits() {
        let uploads = Uploads::start(|_| ()).unwrap();
        let (began, has_begun) = channel();
        let (go_on, goes_on) = channel::<()>();
        let (done, is_done) = channel();
        let of_first = done.clone();
        uploads.queue(Box::new(move || {
            began.send(()).unwrap();
            goes_on.recv().unwrap();
            of_first.send(1).unwrap();
            Ok(())
        }));
        has_begun.recv().unwrap();
        for number in 2..=4 {
            let done = done.clone();
            uploads.queue(Box::new(move || {
                done.send(number).unwrap();
                Ok(())
            }));
        }
        go_on.send(()).unwrap();
        uploads.finish().unwrap();
        assert_eq!(is_done.try_iter().collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn the_error_of_the_last_upload_is_returned_once() {
        let uploads = Uploads::start(|_| ()).unwrap();
        let taken = || MirrorError::Taken { url: "s3://b/x".to_owned(), holder: String::new() };
        uploads.queue(Box::new(move || Err(taken())));
        let error = uploads.finish().unwrap_err();
        assert!(matches!(error, MirrorError::Taken { .. }), "{error}");
        uploads.queue(Box::new(|| Ok(())));
        uploads.finish().unwrap();
        assert!(!uploads.is_taken());
    }
}
