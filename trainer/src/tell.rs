//! Lines for the user.

use std::io::{self, Write};

/// A line on standard error.
pub(crate) fn tell(text: &str) {
    // Where nobody listens, the metrics file has it too.
    let _ = writeln!(io::stderr(), "trainer: {text}");
}
