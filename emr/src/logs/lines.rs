//! The lines of a log, plain or gzip-compressed, of bounded length and number of bytes.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Maximum number of bytes of a line. The rest of a longer line is skipped.
pub const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of decompressed bytes of a log. The rest is not read.
pub const LOG_BYTES_MAX: u64 = 128 << 20;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The lines of a log, with their numbers from 1.
pub struct LogLines {
    reader: Box<dyn BufRead>,
    line: u64,
    /// Number of bytes read so far.
    pub bytes: u64,
    /// Why the log was not read to its end.
    pub cut: Option<String>,
}

impl LogLines {
    /// The lines of these bytes. Compression is recognised by content, because EMR and users rename files.
    pub fn new(bytes: impl Read + 'static) -> io::Result<Self> {
        let mut reader = BufReader::new(bytes);
        let reader: Box<dyn BufRead> = if reader.fill_buf()?.starts_with(&GZIP) {
            Box::new(BufReader::new(MultiGzDecoder::new(reader)))
        } else {
            Box::new(reader)
        };
        Ok(Self { reader, line: 0, bytes: 0, cut: None })
    }

    fn read_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let limit = LINE_BYTES_MAX as u64;
        if self.reader.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        self.bytes += line.len() as u64;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() == LINE_BYTES_MAX {
            self.bytes += self.reader.skip_until(b'\n')? as u64;
        }
        Ok(Some(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()))
    }
}

impl Iterator for LogLines {
    type Item = (u64, String);

    /// The next line. A log that cannot be read to its end is cut there: EMR may be replacing it.
    fn next(&mut self) -> Option<(u64, String)> {
        if self.cut.is_some() {
            return None;
        }
        if self.bytes > LOG_BYTES_MAX {
            self.cut = Some(format!("only its first {} MiB were read", LOG_BYTES_MAX >> 20));
            return None;
        }
        match self.read_line() {
            Ok(line) => {
                self.line += 1;
                line.map(|line| (self.line, line))
            }
            Err(error) => {
                self.cut = Some(format!(
                    "it cannot be read after line {}: {}",
                    self.line,
                    program::system::cause(&error)
                ));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).and_then(|()| encoder.finish()).unwrap()
    }

    fn read(bytes: Vec<u8>) -> (Vec<String>, Option<String>) {
        let mut lines = LogLines::new(io::Cursor::new(bytes)).unwrap();
        let read = lines.by_ref().map(|(_, line)| line).collect();
        (read, lines.cut)
    }

    #[test]
    fn plain_and_compressed_logs_have_the_same_lines() {
        let text = b"one\r\ntwo\n\nfour".to_vec();
        let expected = (["one", "two", "", "four"].map(str::to_owned).to_vec(), None);
        assert_eq!(read(text.clone()), expected);
        assert_eq!(read(gzip(&text)), expected);
        // EMR appends a member per upload.
        assert_eq!(read([gzip(&text[..5]), gzip(&text[5..])].concat()), expected);
        assert_eq!(read(Vec::new()), (Vec::new(), None));
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = [vec![b'x'; 100_000], b"\nnext\n".to_vec()].concat();
        let (lines, _) = read(text);
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [LINE_BYTES_MAX, 4]);
    }

    #[test]
    fn a_log_that_is_cut_off_yields_its_first_lines() {
        let text: Vec<u8> =
            (0..20_000).flat_map(|n| format!("line {n} {}\n", n * 7919 % 10_007).into_bytes()).collect();
        let mut packed = gzip(&text);
        packed.truncate(packed.len() / 2);
        let (lines, cut) = read(packed);
        assert_eq!(lines[0], "line 0 0");
        assert!(lines.len() > 100, "{}", lines.len());
        assert!(cut.unwrap().starts_with("it cannot be read after line "));
    }
}
