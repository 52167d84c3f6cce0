//! Writes the man pages and shell completions of all programs that need no PyTorch: `pages FOLDER`.

use std::io;
use std::path::PathBuf;

use clap::CommandFactory;

fn main() -> io::Result<()> {
    let folder =
        PathBuf::from(std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: pages FOLDER"))?);
    let commands = [
        mapper::arguments::Arguments::command(),
        combiner::arguments::Arguments::command(),
        reducer::arguments::Arguments::command(),
        merge::arguments::Arguments::command(),
        sentimill::arguments::Arguments::command(),
        emr::arguments::Arguments::command(),
        ngrams::arguments::Arguments::command(),
        vectors::arguments::Arguments::command(),
    ];
    commands.iter().try_for_each(|command| tests::manual::write(command, &folder))
}
