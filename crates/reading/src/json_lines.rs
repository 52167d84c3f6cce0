//! Converts a JSON array to lines with one element each, for readers of lines.

use std::io::{self, Chain, Cursor, Read};

use corpus::json_array::{ArrayError, ElementReader, is_array, is_space};
use corpus::lines::LineContent;

use crate::entries::is_of_array;

/// Maximum amount of white space before an array.
const SPACE_BYTES_MAX: usize = 4 << 10;
/// The line of an element that is too long. It is no object.
const TOO_LONG: &[u8] = b"?";

/// Content of JSON lines.
#[derive(Debug)]
pub struct JsonLines<R>(LinesOrElements<R>);

#[derive(Debug)]
enum LinesOrElements<R> {
    Lines(PeekedContent<R>),
    Elements { reader: ElementReader<PeekedContent<R>>, line: Vec<u8>, at: usize },
}

/// Content whose first bytes have been read for detection.
type PeekedContent<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: Read> JsonLines<R> {
    /// Detects an array, of which an element has at most `element_bytes_max` bytes. Other content is passed on as it is. Of a
    /// program that writes one line and waits for the answer, no more is read.
    pub fn of(mut content: R, element_bytes_max: usize) -> io::Result<Self> {
        let is_open = |bytes: &[u8]| {
            bytes.iter().all(|&byte| is_space(byte) || byte == b'[') && !bytes.contains(&b'\n')
        };
        let mut begun = input::beginning_while(&mut content, SPACE_BYTES_MAX, is_open)?;
        let has_array = is_array(&begun)
            && !begun.is_empty()
            && is_of_array(&mut begun, &mut content, element_bytes_max)?;
        let content = Cursor::new(begun).chain(content);
        Ok(Self(match has_array {
            true => LinesOrElements::Elements {
                reader: ElementReader::new(content, element_bytes_max),
                line: Vec::new(),
                at: 0,
            },
            false => LinesOrElements::Lines(content),
        }))
    }
}

impl<R: Read> Read for JsonLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (reader, line, at) = match &mut self.0 {
            LinesOrElements::Lines(content) => return content.read(buffer),
            LinesOrElements::Elements { reader, line, at } => (reader, line, at),
        };
        if *at == line.len() {
            line.clear();
            *at = 0;
            let element = reader.next_element().map_err(|error| match error {
                ArrayError::Read(error) => error,
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
            let Some(element) = element else { return Ok(0) };
            line.extend_from_slice(match element.content {
                LineContent::Bytes(bytes) => bytes,
                LineContent::TooLong { .. } => TOO_LONG,
            });
            // Line ends between the members of an object are white space.
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            line.push(b'\n');
        }
        let n = buffer.len().min(line.len() - *at);
        buffer[..n].copy_from_slice(&line[*at..*at + n]);
        *at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        JsonLines::of(content, 40)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn each_element_of_an_array_is_a_line() {
        let long = format!("[{{\"a\": \"{}\"}}, 7]", "x".repeat(50));
        for (content, expected) in [
            ("[{\"a\": 1}, 7,\n {\"a\":\r\n 2}]", "{\"a\": 1}\n7\n{\"a\":   2}\n"),
            ("[\n  {\"a\": 1}\n]\n", "{\"a\": 1}\n"),
            (" \u{feff}[{}]", " \u{feff}[{}]"),
            ("\u{feff}[{\"a\": 1}]", "{\"a\": 1}\n"),
            (&long, "?\n7\n"),
            // These are lines.
            ("{\"a\": 1}\n[{}]\n", "{\"a\": 1}\n[{}]\n"),
            ("[{}]\n{\"a\": 1}\n", "[{}]\n{\"a\": 1}\n"),
            ("[1, 2]\n", "[1, 2]\n"),
            ("\n{}", "\n{}"),
            ("", ""),
        ] {
            assert_eq!(lines(content.as_bytes()).unwrap(), expected, "{content:?}");
        }
    }

    #[test]
    fn an_array_without_an_end_is_an_error() {
        let error = lines(b"[{\"a\": 1}, {\"a\"").unwrap_err();
        assert!(error.to_string().starts_with("the JSON array is cut off"), "{error}");
        assert!(error.get_ref().unwrap().is::<ArrayError>());
    }
}
