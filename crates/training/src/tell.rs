//! Lines for the user on standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use program::exit::printable;

use crate::error::{Error, Result};

/// The program's name.
static PROGRAM: OnceLock<&str> = OnceLock::new();
/// Whether `--quiet` was passed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets the name that lines begin with.
pub fn set_program(name: &'static str) {
    // The first name stays.
    let _ = PROGRAM.set(name);
}

/// The name of this program.
pub fn program_name() -> &'static str {
    PROGRAM.get().copied().unwrap_or("sentimill")
}

/// With `true`, only errors are printed from now on.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether only errors are printed.
fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line unless only errors are printed.
pub fn tell(text: &str) {
    if !is_quiet() {
        // A failed write is ignored, because the metrics file contains the same facts.
        let _ = writeln!(io::stderr(), "{}: {}", program_name(), printable(text));
    }
}

/// A bar of this length on a terminal; elsewhere and with `--quiet` it is hidden.
pub fn bar(length: Option<u64>, template: &str) -> Result<ProgressBar> {
    let target = match io::stderr().is_terminal() && !is_quiet() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template(template).map_err(|error| Error::internal(&error))?;
    Ok(ProgressBar::with_draw_target(length, target).with_style(style))
}

/// Prints a line that stays above a bar, if there is one.
pub fn tell_above(bar: &ProgressBar, text: &str) {
    match bar.is_hidden() {
        true => tell(text),
        false => bar.println(format!("{}: {text}", program_name())),
    }
}
