//! `sentimill fetch`: downloads a public corpus, verifies it, and leaves files that `sentimill` reads.

mod corpora;
mod download;
mod unpack;

use program::bars::ProgressBars;
use program::exit::{Exit, Failed, print};
use program::place::check_folder;
use program::system::Failure;
use store::WebFile;

use crate::Result;
use crate::arguments::Fetch;
use download::Download;

/// Downloads a corpus and prints the commands that read it. Without a name, prints the list of corpora.
pub fn fetch(arguments: &Fetch) -> Result<()> {
    let Some(name) = &arguments.name else { return printed(&corpora::list()) };
    let file = corpora::named(name)?;
    check_folder(&arguments.out, "--out")?;
    let progress = match arguments.quiet {
        true => ProgressBars::to_nobody(),
        false => ProgressBars::to_stderr("sentimill"),
    };
    let source = match &arguments.from {
        Some(mirror) => of_mirror(mirror, file.name())?,
        None => WebFile::at(&file.url)?,
    };
    let path = arguments.out.join(file.name());
    Download::new(source, &path, file.corpus.published.as_ref(), &progress).run()?;
    unpack::unpack(&path, &file.corpus.unpacked, &arguments.out, &progress)?;
    printed(&file.commands(&arguments.out))
}

/// The file with this name in a mirror.
fn of_mirror(mirror: &str, name: &str) -> Result<WebFile> {
    if let Some((folder, _)) = mirror.split_once(['?', '#']) {
        let expected = "found more than a path, expected the URL of a folder; omit what follows ? or #";
        return Err(Failed::new(Exit::Usage, format!("--from {folder}: {expected}")));
    }
    Ok(WebFile::at(&format!("{}/{name}", mirror.trim_end_matches('/')))?)
}

fn printed(text: &str) -> Result<()> {
    print(text).map_err(|error| {
        let why = Failure::writing("write the result", &error, "redirect it to another disk");
        Failed::new(Exit::Io, format!("standard output: {why}"))
    })
}
