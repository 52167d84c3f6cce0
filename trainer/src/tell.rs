//! Lines for the user on standard error.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use program::exit::printable;

/// Whether `--quiet` was passed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// With `true`, only errors are printed from now on.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether only errors are printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line unless only errors are printed.
pub(crate) fn tell(text: &str) {
    if !is_quiet() {
        // A failed write is ignored, because the metrics file contains the same facts.
        let _ = writeln!(io::stderr(), "trainer: {}", printable(text));
    }
}
