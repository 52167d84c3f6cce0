//! Writes the man pages and shell completions of the trainer and its commands: `trainer-pages FOLDER`.

use std::io;
use std::path::PathBuf;

use clap::CommandFactory;

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: trainer-pages FOLDER"))?;
    tests::manual::write(&trainer::arguments::Arguments::command(), &PathBuf::from(folder))
}
