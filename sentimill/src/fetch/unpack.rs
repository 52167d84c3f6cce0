//! Converts archives of corpora to files that `sentimill` reads.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use program::bars::ProgressBars;
use program::exit::{Exit, Failed};
use program::system::Failure;
use program::temporary::TemporaryPath;
use serde_json::json;
use tar::Archive;

use super::corpora::Unpacked;
use crate::{ExtraFile, Result};

/// Bytes of a member that are copied at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A file that is being written.
struct Output {
    name: &'static str,
    file: ExtraFile,
    temporary: TemporaryPath,
    writer: BufWriter<File>,
    n_members: u64,
}

/// Writes the files of an archive that do not exist yet into a folder.
pub(super) fn unpack(
    archive: &Path,
    unpacked: &Unpacked,
    folder: &Path,
    progress: &ProgressBars,
) -> Result<()> {
    let (kept, missing): (Vec<_>, Vec<_>) =
        unpacked.files().into_iter().partition(|name| folder.join(name).symlink_metadata().is_ok());
    for name in kept {
        let path = folder.join(name);
        progress.notice(&format!("{} exists and is kept; remove it to make it again", path.display()));
    }
    let mut outputs =
        missing.into_iter().map(|name| Output::new(name, folder)).collect::<Result<Vec<_>>>()?;
    if outputs.is_empty() {
        return Ok(());
    }
    let unread = |error: io::Error| {
        let why = Failure::reading("unpack it", &error);
        Failed::new(Exit::Io, format!("{}: {why}", archive.display()))
    };
    let file = progress.counting(File::open(archive).map_err(unread)?);
    let mut members = Archive::new(MultiGzDecoder::new(file));
    let mut buffer = vec![0; BUFFER_BYTES];
    for member in members.entries().map_err(unread)? {
        let mut member = member.map_err(unread)?;
        let path = member.path().map_err(unread)?.into_owned();
        let Some((name, stars)) = of_member(unpacked, &path) else { continue };
        let Some(output) = outputs.iter_mut().find(|output| output.name == name) else { continue };
        output.n_members += 1;
        match unpacked {
            Unpacked::Imdb => {
                let mut text = Vec::new();
                member.read_to_end(&mut text).map_err(unread)?;
                let text = String::from_utf8_lossy(&text);
                let review = match stars {
                    Some(stars) => json!({"reviewText": text, "overall": stars}),
                    None => json!({"reviewText": text}),
                };
                output.write(format!("{review}\n").as_bytes())?;
            }
            Unpacked::Members(_) | Unpacked::AsIs => loop {
                match member.read(&mut buffer).map_err(unread)? {
                    0 => break,
                    n => output.write(&buffer[..n])?,
                }
            },
        }
    }
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

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(|error| self.file.failed(&error))
    }

    fn finish(mut self) -> Result<()> {
        let written = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        written.map_err(|error| self.file.failed(&error))?;
        self.file.publish(&self.temporary)
    }
}

/// The file of a member, and the stars of its text.
fn of_member(unpacked: &Unpacked, path: &Path) -> Option<(&'static str, Option<u8>)> {
    let path = path.strip_prefix(".").unwrap_or(path).to_str()?;
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

    fn quiet() -> ProgressBars {
        ProgressBars::to_nobody()
    }

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
                ("./aclImdb/test/pos/7_10.txt", "Best"),
            ],
        );
        unpack(&archive, &Unpacked::Imdb, folder, &quiet()).unwrap();
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
        unpack(&archive, &Unpacked::Imdb, folder, &quiet()).unwrap();
        assert_eq!(read("imdb-train.jsonl"), "mine");
        assert_eq!(read("imdb-test.jsonl").lines().count(), 1);
    }

    #[test]
    fn members_get_their_names_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let archive = archive(folder, &[("of/train.csv", "\"2\",\"good\"\n"), ("of/readme.txt", "about")]);
        unpack(&archive, &Unpacked::Members(&[("of/train.csv", "train.csv")]), folder, &quiet()).unwrap();
        assert_eq!(fs::read_to_string(folder.join("train.csv")).unwrap(), "\"2\",\"good\"\n");
        let refused = unpack(&archive, &Unpacked::Members(&[("of/test.csv", "test.csv")]), folder, &quiet())
            .unwrap_err();
        assert!(refused.message.contains("found no member for test.csv"), "{}", refused.message);
        assert!(!folder.join("test.csv").exists());
    }
}
