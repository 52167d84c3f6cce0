//! Messages for the user.

use std::io::{self, Write};

/// Prints a line on standard error.
pub(crate) fn tell(text: &str) {
    // Errors are ignored: the metrics file contains the same information.
    let _ = writeln!(io::stderr(), "trainer: {text}");
}
