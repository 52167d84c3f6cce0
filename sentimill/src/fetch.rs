//! `sentimill fetch`: downloads a public corpus, verifies it, and leaves files that `sentimill` reads.

mod corpora;
mod download;
mod unpack;

use program::bars::ProgressBars;
use program::exit::{Exit, Failed, print};
use program::place::check_folder;
use program::system::Failure;

use crate::Result;
use crate::arguments::Fetch;

/// Downloads a corpus and prints the commands that read it. Without a name, prints the list of corpora.
pub fn fetch(arguments: &Fetch) -> Result<()> {
    let Some(name) = &arguments.name else { return printed(&corpora::list()) };
    let file = corpora::named(name)?;
    check_folder(&arguments.out, "--out")?;
    let progress = match arguments.quiet {
        true => ProgressBars::to_nobody(),
        false => ProgressBars::to_stderr("sentimill"),
    };
    let url = match &arguments.from {
        Some(mirror) => format!("{}/{}", mirror.trim_end_matches('/'), file.name()),
        None => file.url.clone(),
    };
    let path = arguments.out.join(file.name());
    download::download(&url, &path, file.corpus.published.as_ref(), &progress)?;
    unpack::unpack(&path, &file.corpus.unpacked, &arguments.out)?;
    printed(&file.commands(&arguments.out))
}

fn printed(text: &str) -> Result<()> {
    print(text).map_err(|error| {
        let why = Failure::writing("write the result", &error, "redirect it to another disk");
        Failed::new(Exit::Io, format!("standard output: {why}"))
    })
}
