//! The format of inputs by the extensions of their files.

use std::path::Path;

use corpus::format::FormatName;
use program::exit::{Exit, Failed};
use store::S3Options;

use crate::error::Error;
use crate::source::{Listing, find_followed, unpacked};

/// What a file is whose extension tells no format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherExtension {
    /// Of the format of the other files, such as `part-00000`.
    Same,
    /// Of a format of its own: text.
    Text,
}

/// The format that the extensions of the files of inputs tell, if any does. A folder is listed, and so is an input whose
/// own name tells none, such as a pattern or a prefix. What is missing is left to the reader.
///
/// Errors: an input that cannot be listed, and two files of different formats.
pub fn format_of(
    inputs: &[String],
    s3: &S3Options,
    other: OtherExtension,
) -> Result<Option<FormatName>, Error> {
    let mut names = Vec::new();
    for input in inputs {
        let is_listed = of_extension(input).is_none() || input.ends_with('/') || Path::new(input).is_dir();
        if is_listed {
            let found = find_followed(std::slice::from_ref(input), s3, Listing::Later)?;
            names.extend(found.into_iter().map(|source| source.name));
        } else {
            names.push(input.clone());
        }
    }
    let formats = names.iter().map(|name| (name, of_extension(name)));
    let formats = formats.filter(|(_, format)| format.is_some() || other == OtherExtension::Text);
    let formats: Vec<_> = formats.collect();
    let Some(&(first, format)) = formats.first() else { return Ok(None) };
    if let Some((second, _)) = formats.iter().find(|(_, other)| *other != format) {
        let found = "found files whose extensions are of different formats, expected one format";
        let remedy = match is_table_name(first) || is_table_name(second) {
            true => "pass the files of one format",
            false => "pass --format if both have the same, or pass the files of one format",
        };
        return Err(Failed::new(Exit::Usage, format!("{first} and {second}: {found}; {remedy}")).into());
    }
    Ok(format)
}

/// The format of a file with this name, if its extension tells.
pub fn of_extension(name: &str) -> Option<FormatName> {
    match &extension(name)?[..] {
        "csv" => Some(FormatName::Csv),
        "tsv" => Some(FormatName::Tsv),
        "json" | "jsonl" | "ndjson" => Some(FormatName::Json),
        // Fields name the columns of Parquet and Arrow files.
        _ => is_table_name(name).then_some(FormatName::Json),
    }
}

/// Whether a file with this name is a Parquet or Arrow file.
pub fn is_table_name(name: &str) -> bool {
    extension(name).is_some_and(|extension| ["parquet", "arrow", "feather"].contains(&&extension[..]))
}

/// The extension of a name, without that of a compression. A URL of a web server may have a query and a digest.
fn extension(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let is_url = name.starts_with("https://") || name.starts_with("http://");
    let path = if is_url { name.split(['?', '#']).next()? } else { &name };
    let plain = unpacked(Path::new(path)).unwrap_or_else(|| path.into());
    Some(plain.extension()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use FormatName::{Csv, Json, Tsv};

    use super::*;

    #[test]
    fn an_extension_tells_the_format_also_of_compressed_files_and_urls() {
        for (name, expected) in [
            ("films.csv", Some(Csv)),
            ("A.CSV.GZ", Some(Csv)),
            ("a.tsv.zst", Some(Tsv)),
            ("a.jsonl.bz2", Some(Json)),
            ("a.feather", Some(Json)),
            ("s3://bucket/a.csv", Some(Csv)),
            ("https://host/a.csv?key=a.json#sha256=00", Some(Csv)),
            ("a.gz", None),
            ("train.txt", None),
            ("csv", None),
            ("-", None),
        ] {
            assert_eq!(of_extension(name), expected, "{name}");
        }
    }

    #[test]
    fn a_folder_has_the_format_of_its_files_if_all_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in [
            "tables/2023/a.csv",
            "tables/b.csv.gz",
            "mixed/a.csv",
            "mixed/b.jsonl",
            "texts/a.json",
            "texts/b",
            "spark.csv/part-0.json",
            "spark.csv/README.md",
            "lake/a.parquet",
        ] {
            std::fs::create_dir_all(Path::new(&path(name)).parent().unwrap()).unwrap();
            std::fs::write(path(name), "").unwrap();
        }
        let format = |inputs: &[&str]| {
            let inputs: Vec<_> = inputs.iter().map(|input| path(input)).collect();
            format_of(&inputs, &S3Options::default(), OtherExtension::Same)
        };
        assert_eq!(format(&["tables"]).unwrap(), Some(Csv));
        assert_eq!(format(&["tables/*.gz"]).unwrap(), Some(Csv));
        assert_eq!(format(&["texts/a.json"]).unwrap(), Some(Json));
        assert_eq!(format(&["texts"]).unwrap(), Some(Json), "b is of the same format");
        assert_eq!(format(&["tables", "texts/b"]).unwrap(), Some(Csv));
        assert_eq!(format(&["spark.csv"]).unwrap(), Some(Json));
        assert_eq!(format(&["texts/b"]).unwrap(), None);
        assert_eq!(format(&["missing"]).unwrap(), None);
        assert_eq!(format(&["lake", "texts"]).unwrap(), Some(Json));
        let of = |input: String, other| format_of(&[input], &S3Options::default(), other);
        assert_eq!(of("-".to_owned(), OtherExtension::Same).unwrap(), None);
        assert_eq!(of(path("texts/b"), OtherExtension::Text).unwrap(), None);
        let told = of(path("texts"), OtherExtension::Text).unwrap_err().to_string();
        assert!(told.starts_with(&format!("{} and {}: ", path("texts/a.json"), path("texts/b"))), "{told}");
        let told = format(&["mixed/a.csv", "lake"]).unwrap_err().to_string();
        assert!(!told.contains("--format"), "{told}");
        for inputs in [&["mixed"][..], &["mixed/a.csv", "mixed/b.jsonl"], &["mixed/a.csv", "texts"]] {
            let told = format(inputs).unwrap_err().to_string();
            let start = format!("{} and ", path("mixed/a.csv"));
            assert!(told.starts_with(&start) && told.contains("pass --format"), "{told}");
        }
    }
}
