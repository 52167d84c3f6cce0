//! Datasets as the commands open them, and notes about their rows.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use batches::{Division, Part, Reading, Rows, Smallest};
use corpus::format::FormatName;
use corpus::sample::Sample;
use program::exit::{Failed, Fails};
use program::location::Location;
use report::whole;
use runs::saved::CONFIG;
use runs::training::SETTINGS;

use store::S3Options;

use crate::arguments::Storage;
use crate::error::{Error, Result};
use crate::places;

/// Bytes at the beginning of a file that show what it is.
const HEAD_BYTES: u64 = 512;

/// How a command reads datasets.
pub struct Reader {
    tokens: u32,
    memory_bytes: u64,
    s3: S3Options,
}

impl Reader {
    /// The first `tokens` of each row; 0 for all.
    pub fn new(tokens: u32, memory_bytes: u64, storage: &Storage) -> Self {
        Self { tokens, memory_bytes, s3: storage.options() }
    }

    /// Opens a dataset. One in S3 is fetched into the cache.
    pub fn open(&self, dataset: &Location, division: Division, known: &Smallest) -> Result<Rows> {
        let path = places::dataset(dataset, &self.s3)?;
        check_dataset(&path, dataset)?;
        let reading = Reading { division, tokens_max: self.tokens, memory_bytes: self.memory_bytes };
        let rows = Rows::open_knowing(&path, &reading, known).map_err(Error::from);
        match dataset {
            Location::Local(_) => rows,
            Location::S3(url) => rows
                .map(|rows| rows.from_url(url.to_string()))
                .map_err(|found| Failed::new(found.exit(), format!("{url}, fetched as {found}")).into()),
        }
    }
}

/// Refuses local files that are not datasets, by their first bytes.
pub fn check<'a>(datasets: impl IntoIterator<Item = &'a Location>) -> Result<()> {
    datasets.into_iter().try_for_each(|dataset| match dataset {
        Location::Local(path) => check_dataset(path, dataset),
        Location::S3(_) => Ok(()),
    })
}

/// Refuses a file whose first bytes show that it is not a dataset. The error contains the command that makes
/// a dataset.
fn check_dataset(path: &Path, named: &Location) -> Result<()> {
    let refused = |found: &str, expected: String| Err(Error::unexpected(named, found, expected));
    let dataset = "a dataset written by sentimill or merge";
    if path.is_dir() {
        let hint = if path.join(SETTINGS).exists() || path.join(CONFIG).exists() {
            format!("{dataset}; pass the dataset first, and a model by --init-from")
        } else {
            dataset.to_owned()
        };
        return refused("a folder", hint);
    }
    let mut begin = Vec::new();
    match File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut begin)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return refused("no such file", format!("{dataset}; check the path"));
        }
        // Other errors are reported by the reader of datasets.
        Err(_) => return Ok(()),
        Ok(0) => return refused("an empty file", format!("{dataset}; check the program that wrote it")),
        Ok(_) => {}
    }
    match kind_of_lines(&begin) {
        None => Ok(()),
        Some(kind) => {
            let is_delimited =
                reading::of_extension(&named.to_string()).is_some_and(FormatName::is_delimited);
            let fields = if is_delimited { " --text-field COLUMN --rating-field COLUMN" } else { "" };
            let make = format!("sentimill {named}{fields} --out reviews.h5");
            refused(kind, format!("{dataset}; make one with `{make}`"))
        }
    }
}

/// The kind of a file of raw lines, by its first bytes; `None` for HDF5 and for files that do not contain
/// lines.
fn kind_of_lines(begin: &[u8]) -> Option<&'static str> {
    const PACKED: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "a gzip-compressed file"),
        (b"BZh", "a bzip2-compressed file"),
        (b"\x28\xb5\x2f\xfd", "a zstd-compressed file"),
        (b"\xfd7zXZ\0", "an xz-compressed file"),
    ];
    if let Some((_, kind)) = PACKED.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Some(kind);
    }
    let is_text = !begin.contains(&0) && *begin.first()? < 0x80;
    match begin.trim_ascii_start().first()? {
        b'{' | b'[' if is_text => Some("a JSON file"),
        _ if is_text => Some("a text file"),
        _ => None,
    }
}

/// A warning about an evaluation on training rows. `known` is the number of rows that are known to be
/// training rows.
pub fn trained_on_warning(evaluated: &Path, known: u64) -> Option<String> {
    (known > 0).then(|| {
        format!(
            "warning: {}: at least {known} of these rows are training rows of the model, so its metrics are too high; \
             evaluate the test split (--test-fraction, as passed to fit) or other texts",
            evaluated.display()
        )
    })
}

/// A warning about a validation dataset, `shared` of whose rows are texts of the training split.
pub fn validation_warning(validation: &Rows, training: &Rows, shared: u64) -> Option<String> {
    let all = validation.census(Part::Validation).rows;
    let (name, training) = (validation.name(), training.name());
    (shared > 0).then(|| {
        format!(
            "warning: {}: {shared} of {all} rows are texts of the training split, so the validation loss is too low; \
             remove them with --without {} of sentimill or merge",
            name.display(),
            training.display()
        )
    })
}

/// A note about the number of rows in a sample.
pub fn sampled(rows: &Rows, sample: Sample) -> Option<String> {
    let (n_sampled, n_rows) = (whole(rows.n_sampled()), whole(rows.n_rows_of_file()));
    (!sample.is_all()).then(|| format!("sample {sample}: {n_sampled} of {n_rows} rows are used"))
}

/// A note if rows can be longer than --tokens.
pub fn cut(rows: &Rows, tokens: u32) -> Option<String> {
    let kept = rows.settings().rows.max_tokens;
    let is_cut = tokens > 0 && (kept == 0 || kept > tokens);
    let kept = if kept == 0 { "all".to_owned() } else { format!("up to {kept}") };
    is_cut.then(|| {
        format!(
            "reading the first {tokens} tokens of each row; rows have {kept} tokens, and --tokens 0 reads all"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_lines_are_told_from_datasets_by_their_first_bytes() {
        for (begin, expected) in [
            (&b"\x89HDF\r\n\x1a\n"[..], None),
            (b"\0\0\0\0", None),
            (b"", None),
            (b"\x1f\x8b\x08\0", Some("a gzip-compressed file")),
            (b"BZh9", Some("a bzip2-compressed file")),
            (b"\x28\xb5\x2f\xfd", Some("a zstd-compressed file")),
            (b"{\"reviewText\": 1}", Some("a JSON file")),
            (b"\n[1]", Some("a JSON file")),
            (b"\"1\",\"title\",\"text\"", Some("a text file")),
        ] {
            assert_eq!(kind_of_lines(begin), expected, "{begin:?}");
        }
    }
}
