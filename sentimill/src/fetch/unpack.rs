//! Converts archives of corpora to files that `sentimill` reads.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use program::exit::{Exit, Failed};
use program::system::Failure;
use program::temporary::TemporaryPath;
use serde_json::json;
use tar::Archive;

use super::corpora::Unpacked;
use crate::{ExtraFile, Result};

/// A file that is being written.
struct Output {
    name: &'static str,
    file: ExtraFile,
    temporary: TemporaryPath,
    writer: BufWriter<File>,
    n_members: u64,
}

/// Writes the files of an archive that do not exist yet into a folder.
pub(super) fn unpack(archive: &Path, unpacked: &Unpacked, folder: &Path) -> Result<()> {
    let missing = unpacked.files().into_iter().filter(|name| !folder.join(name).exists());
    let mut outputs = missing.map(|name| Output::new(name, folder)).collect::<Result<Vec<_>>>()?;
    if outputs.is_empty() {
        return Ok(());
    }
    let mut read = || -> io::Result<()> {
        let mut members = Archive::new(GzDecoder::new(File::open(archive)?));
        for member in members.entries()? {
            let mut member = member?;
            let path = member.path()?.into_owned();
            let Some((name, stars)) = of_member(unpacked, &path) else { continue };
            let Some(output) = outputs.iter_mut().find(|output| output.name == name) else { continue };
            output.n_members += 1;
            match unpacked {
                Unpacked::Imdb => {
                    let mut text = Vec::new();
                    member.read_to_end(&mut text)?;
                    let text = String::from_utf8_lossy(&text);
                    let review = match stars {
                        Some(stars) => json!({"reviewText": text, "overall": stars}),
                        None => json!({"reviewText": text}),
                    };
                    writeln!(output.writer, "{review}")?;
                }
                Unpacked::Members(_) | Unpacked::AsIs => {
                    io::copy(&mut member, &mut output.writer)?;
                }
            }
        }
        Ok(())
    };
    read().map_err(|error| {
        let why = Failure::reading("unpack it", &error);
        Failed::new(Exit::Io, format!("{}: {why}", archive.display()))
    })?;
    if let Some(empty) = outputs.iter().find(|output| output.n_members == 0) {
        let found = format!("found no member for {}, expected the archive of the corpus", empty.name);
        return Err(Failed::new(
            Exit::MissingInput,
            format!("{}: {found}; fetch it again", archive.display()),
        ));
    }
    outputs.into_iter().try_for_each(Output::finish)
}

impl Output {
    fn new(name: &'static str, folder: &Path) -> Result<Self> {
        let file = ExtraFile::ready("--out", folder.join(name))?;
        let temporary = file.temporary()?;
        let created = File::create_new(&temporary).map_err(|error| file.failed(&error))?;
        Ok(Self { name, file, temporary, writer: BufWriter::new(created), n_members: 0 })
    }

    fn finish(mut self) -> Result<()> {
        let written = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        written.map_err(|error| self.file.failed(&error))?;
        self.file.publish(&self.temporary)
    }
}

/// The file of a member, and the stars of its text.
fn of_member(unpacked: &Unpacked, path: &Path) -> Option<(&'static str, Option<u8>)> {
    let path = path.to_str()?;
    match unpacked {
        Unpacked::AsIs => None,
        Unpacked::Members(members) => {
            members.iter().find(|(member, _)| *member == path).map(|(_, file)| (*file, None))
        }
        Unpacked::Imdb => {
            let parts: Vec<&str> = path.strip_prefix("aclImdb/")?.split('/').collect();
            let [split, class, name] = parts[..] else { return None };
            let stars = name.strip_suffix(".txt")?.split_once('_')?.1.parse().ok()?;
            match (split, class) {
                ("train", "pos" | "neg") => Some(("imdb-train.jsonl", Some(stars))),
                ("test", "pos" | "neg") => Some(("imdb-test.jsonl", Some(stars))),
                ("train", "unsup") => Some(("imdb-unlabelled.jsonl", None)),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    /// An archive of these files.
    fn archive(folder: &Path, files: &[(&str, &str)]) -> std::path::PathBuf {
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, content) in files {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, name, content.as_bytes()).unwrap();
        }
        let path = folder.join("archive.tar.gz");
        fs::write(&path, archive.into_inner().unwrap().finish().unwrap()).unwrap();
        path
    }

    #[test]
    fn each_text_of_imdb_is_a_line_with_its_stars() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let archive = archive(
            folder,
            &[
                ("aclImdb/README", "Large Movie Review Dataset"),
                ("aclImdb/train/pos/0_9.txt", "Great \"film\"<br />\nagain"),
                ("aclImdb/train/neg/11_2.txt", "Caf\u{e9}, no"),
                ("aclImdb/train/unsup/5_0.txt", "Seen"),
                ("aclImdb/train/urls_pos.txt", "http://"),
                ("aclImdb/test/pos/7_10.txt", "Best"),
            ],
        );
        unpack(&archive, &Unpacked::Imdb, folder).unwrap();
        assert_eq!(
            read("imdb-train.jsonl"),
            "{\"overall\":9,\"reviewText\":\"Great \\\"film\\\"<br />\\nagain\"}\n\
             {\"overall\":2,\"reviewText\":\"Caf\u{e9}, no\"}\n"
        );
        assert_eq!(read("imdb-test.jsonl"), "{\"overall\":10,\"reviewText\":\"Best\"}\n");
        assert_eq!(read("imdb-unlabelled.jsonl"), "{\"reviewText\":\"Seen\"}\n");
        // A file that exists is not written again.
        fs::write(folder.join("imdb-train.jsonl"), "mine").unwrap();
        fs::remove_file(folder.join("imdb-test.jsonl")).unwrap();
        unpack(&archive, &Unpacked::Imdb, folder).unwrap();
        assert_eq!(read("imdb-train.jsonl"), "mine");
        assert_eq!(read("imdb-test.jsonl").lines().count(), 1);
    }

    #[test]
    fn members_get_their_names_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let archive = archive(folder, &[("of/train.csv", "\"2\",\"good\"\n"), ("of/readme.txt", "about")]);
        unpack(&archive, &Unpacked::Members(&[("of/train.csv", "train.csv")]), folder).unwrap();
        assert_eq!(fs::read_to_string(folder.join("train.csv")).unwrap(), "\"2\",\"good\"\n");
        let refused =
            unpack(&archive, &Unpacked::Members(&[("of/test.csv", "test.csv")]), folder).unwrap_err();
        assert!(refused.message.contains("found no member for test.csv"), "{}", refused.message);
        assert!(!folder.join("test.csv").exists());
    }
}
