//! How long workers have been silent, as far as the server could hear them.

use std::time::{Duration, Instant};

/// A longer time between two looks is a suspension of the server, such as by SIGSTOP.
const PAUSE: Duration = Duration::from_secs(2);

/// Since when the server listens without a suspension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    listens_since: Instant,
    looked: Instant,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self { listens_since: now, looked: now }
    }

    /// Takes note that the server runs.
    pub(super) fn look(&mut self, now: Instant) {
        if now.duration_since(self.looked) > PAUSE {
            self.listens_since = now;
        }
        self.looked = now;
    }

    /// The silence of a worker since its last request. What it sent during a suspension may not have been read yet.
    pub(super) fn since(&self, heard: Instant) -> Duration {
        self.looked.saturating_duration_since(heard.max(self.listens_since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_of_the_server_is_no_silence_of_workers() {
        let began = Instant::now();
        let after = |s| began + Duration::from_secs(s);
        let mut silence = Silence::new(began);
        (1..=5).for_each(|s| silence.look(after(s)));
        assert_eq!(silence.since(after(1)), Duration::from_secs(4));
        silence.look(after(1000));
        assert_eq!(silence.since(after(1)), Duration::ZERO);
        silence.look(after(1001));
        assert_eq!(silence.since(after(1)), Duration::from_secs(1));
        assert_eq!(silence.since(after(2000)), Duration::ZERO);
    }
}
