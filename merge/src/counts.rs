//! Reads files of counts into the mappers' ledger.

use std::io;
use std::path::Path;

use corpus::ledger::MapperCounts;
use program::bounded;
use program::exit::{Exit, Failed};
use program::location::Location;
use program::system::Failure;
use store::{S3Options, read_existing};

use crate::Result;

/// Maximum size of the saved output of a job client, which reports progress line by line.
const COUNTS_BYTES_MAX: u64 = 64 << 20;

/// Sums the files written by `mapper --counts`. Any other file is parsed as the saved output of Hadoop's job
/// client, whose counters are already the sum of all mappers. Returns `None` if there are no files.
pub fn sum(files: &[Location], s3: &S3Options) -> Result<Option<MapperCounts>> {
    let mut sum = None;
    for file in files {
        let text = match file {
            Location::Local(path) => {
                bounded::read(path, COUNTS_BYTES_MAX).map_err(|source| unreadable(path, &source))?
            }
            Location::S3(url) => read_existing(url, s3, COUNTS_BYTES_MAX)?,
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let counts = serde_json::from_str(&text).ok().or_else(|| MapperCounts::from_job_output(&text));
        let counts: MapperCounts = counts.ok_or_else(|| {
            let expected = "a mapper's --counts file or the saved output of the Hadoop job client";
            Failed::new(Exit::MissingInput, format!("--counts {file}: found no counts, expected {expected}"))
        })?;
        *sum.get_or_insert_with(MapperCounts::default) += counts;
    }
    Ok(sum)
}

fn unreadable(path: &Path, source: &io::Error) -> Failed {
    let exit = if source.kind() == io::ErrorKind::NotFound { Exit::MissingInput } else { Exit::Io };
    let why = Failure::reading("read the counts", source);
    Failed::new(exit, format!("--counts {}: {why}", path.display()))
}
