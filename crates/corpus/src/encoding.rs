//! Decodes lines of another encoding than UTF-8, guesses the encoding of lines that are not UTF-8, and says what they are.
//!
//! In all encodings but UTF-16, LF and CR are no part of another character. So lines are split first and decoded one by
//! one, and offsets stay those of the file. For other characters of the syntax of a format, see [`hides`].

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{BIG5, GB18030, GBK, ISO_2022_JP, SHIFT_JIS};
pub use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

use crate::lines::{Line, LineContent};

/// Maximum number of bytes from which an encoding is guessed. More do not change the guess.
const SAMPLE_BYTES_MAX: usize = 64 << 10;

/// Number of first lines that are searched for characters of UTF-8; as many behind one that is not UTF-8 are, too.
const SEARCHED_MIN: u64 = 1000;

/// Parses the name of an encoding, or another label of the WHATWG encoding standard, such as `latin1`.
pub fn parse_encoding(label: &str) -> Result<&'static Encoding, String> {
    Encoding::for_label_no_replacement(label.as_bytes()).ok_or_else(|| {
        "expected an encoding of the web, such as windows-1252, ISO-8859-2, GBK, Big5, Shift_JIS, EUC-KR or UTF-16LE; \
         convert others with iconv -t UTF-8"
            .to_owned()
    })
}

/// Whether a byte of this ASCII syntax may be a part of another character.
pub fn hides(encoding: &'static Encoding, syntax: &[u8]) -> bool {
    if [GBK, GB18030, BIG5, SHIFT_JIS].contains(&encoding) {
        // The second byte of a character. The digits in GB 18030 are no syntax.
        syntax.iter().any(|byte| (0x40..0x7f).contains(byte))
    } else {
        [ISO_2022_JP, UTF_16LE, UTF_16BE].contains(&encoding)
    }
}

/// Decodes lines one by one and reuses its memory.
#[derive(Debug)]
pub struct LineDecoder {
    /// `None` if the lines were decoded with their stream.
    encoding: Option<&'static Encoding>,
    line_bytes_max: usize,
    decoded: String,
    /// The lines with bytes that the encoding does not have.
    pub invalid: Invalid,
}

/// Lines that are not in their encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalid {
    /// Their number.
    pub lines: u64,
    /// The first ones.
    sample: Vec<u8>,
    /// Number of lines that were searched for other characters of UTF-8 than ASCII.
    n_searched: u64,
    /// Number of those that have such characters.
    n_utf8: u64,
}

impl LineDecoder {
    /// A decoder of lines in this encoding; `None` for UTF-8.
    pub fn of(encoding: &'static Encoding, line_bytes_max: usize) -> Option<Self> {
        (encoding != UTF_8).then(|| Self::new(Some(encoding), line_bytes_max))
    }

    /// Counts the lines of a decoded stream in which bytes were replaced.
    pub fn of_decoded() -> Self {
        Self::new(None, usize::MAX)
    }

    fn new(encoding: Option<&'static Encoding>, line_bytes_max: usize) -> Self {
        Self { encoding, line_bytes_max, decoded: String::new(), invalid: Invalid::default() }
    }

    /// Decodes a line into UTF-8. A line that is then longer than allowed is too long.
    pub fn decode<'a>(&'a mut self, line: Line<'a>) -> Line<'a> {
        let LineContent::Bytes(bytes) = line.content else { return line };
        let Some(encoding) = self.encoding else {
            if memmem::find(bytes, "\u{fffd}".as_bytes()).is_some() {
                self.invalid.lines += 1;
            }
            return line;
        };
        let (text, is_invalid) = encoding.decode_without_bom_handling(bytes);
        if is_invalid {
            self.invalid.add(bytes);
        }
        let text = match text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => {
                self.decoded = text;
                &self.decoded
            }
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let content = match text.len() <= self.line_bytes_max {
            true => LineContent::Bytes(text.as_bytes()),
            false => LineContent::TooLong { bytes: text.len() as u64, blank: false },
        };
        Line { content, ..line }
    }
}

impl Invalid {
    /// Adds a line.
    #[cold]
    pub fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        let room = SAMPLE_BYTES_MAX.saturating_sub(self.sample.len());
        self.sample.extend(line.iter().chain(b"\n").take(room));
    }

    /// Sees a line that is UTF-8.
    #[inline]
    pub fn see_utf8(&mut self, line: &str) {
        let most = if self.lines > 0 { 2 * SEARCHED_MIN } else { SEARCHED_MIN };
        if self.n_searched < most {
            self.n_searched += 1;
            self.n_utf8 += u64::from(!line.is_ascii());
        }
    }

    /// Adds the lines of others.
    pub fn merge(&mut self, other: &Self) {
        self.lines += other.lines;
        self.n_searched += other.n_searched;
        self.n_utf8 += other.n_utf8;
        let room = SAMPLE_BYTES_MAX.saturating_sub(self.sample.len());
        self.sample.extend(other.sample.iter().take(room));
    }

    /// Whether the lines are no text in any encoding: more than one byte in 50 is a control character.
    pub fn is_binary(&self) -> bool {
        let is_control = |byte: &&u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
        self.sample.iter().filter(is_control).count() * 50 > self.sample.len()
    }

    /// What the lines are, which are not in this encoding, and the remedy.
    pub fn cause(&self, encoding: &'static Encoding) -> String {
        if self.sample.is_empty() {
            return "pass the encoding of the input with --encoding".to_owned();
        }
        if self.is_binary() {
            return "they look like binary data; pass the text that they were made from".to_owned();
        }
        let (mut n_characters, mut n_invalid) = (0, 0);
        for chunk in self.sample.utf8_chunks() {
            n_characters += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
            n_invalid += usize::from(!chunk.invalid().is_empty());
        }
        // The bytes of ISO-2022-JP are ASCII, so that its lines are no invalid UTF-8.
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(&self.sample, true);
        let likely = detector.guess(None, Utf8Detection::Deny);
        // Pairs of bytes of an encoding such as GBK are often characters of UTF-8 by chance.
        let by_chance = if likely.is_single_byte() { 1 } else { 9 };
        if n_characters > by_chance * n_invalid {
            return "they look like UTF-8 with damaged characters; repair them where they are written"
                .to_owned();
        }
        let n_by_chance = if likely.is_single_byte() { 0 } else { self.lines / 9 };
        let is_mixed = encoding == UTF_8 && self.n_utf8 > n_by_chance;
        let likely = likely.name();
        if is_mixed {
            return format!(
                "the encodings are mixed, and no --encoding is right for all; convert the lines that are not UTF-8, which look like {likely}: \
                 (LC_ALL=C.UTF-8 grep -ax '.*' FILE; LC_ALL=C.UTF-8 grep -axv '.*' FILE | iconv -f {likely} -t UTF-8) > utf8.txt"
            );
        }
        format!("they look like {likely}: pass --encoding {likely}, or the name of the right encoding")
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_KR, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    fn invalid(lines: &[&[u8]]) -> Invalid {
        let mut invalid = Invalid::default();
        lines.iter().for_each(|line| invalid.add(line));
        invalid
    }

    #[test]
    fn the_encoding_of_lines_is_guessed() {
        let looks = |text: &str, encoding: &'static Encoding| {
            let bytes = encoding.encode(text).0;
            invalid(&[&bytes, &bytes]).cause(UTF_8).split(':').next().unwrap_or_default().to_owned()
        };
        assert_eq!(looks("\"café número aa naïve\",1", WINDOWS_1252), "they look like windows-1252");
        assert_eq!(looks("很好的产品,质量不错,5", GBK), "they look like GBK");
        assert_eq!(looks("很好的产品aa,1\n很好的产品bb,5", GBK), "they look like GBK");
        assert_eq!(looks("очень хороший товар", WINDOWS_1251), "they look like windows-1251");
        assert_eq!(looks("とても良い商品です。", SHIFT_JIS), "they look like Shift_JIS");
        assert_eq!(looks("아주 좋은 제품입니다", EUC_KR), "they look like EUC-KR");
        assert_eq!(
            invalid(&[b"a caf\xe9 in the na\xefve style"]).cause(UTF_8),
            "they look like windows-1252: pass --encoding windows-1252, or the name of the right encoding"
        );
    }

    #[test]
    fn damaged_utf8_and_binary_data_are_not_guessed_to_be_text() {
        let damaged = "schön, größer, cafés".as_bytes();
        assert_eq!(
            invalid(&[&damaged[..damaged.len() - 2]]).cause(UTF_8),
            "they look like UTF-8 with damaged characters; repair them where they are written"
        );
        let binary: Vec<u8> = (0..=255).collect();
        assert_eq!(
            invalid(&[&binary]).cause(UTF_8),
            "they look like binary data; pass the text that they were made from"
        );
    }

    #[test]
    fn lines_of_two_encodings_are_called_mixed() {
        let mixed = |encoding: &'static Encoding, text: &str, n_utf8: usize| {
            let mut mixed = Invalid::default();
            mixed.see_utf8("plain");
            (0..n_utf8).for_each(|_| mixed.see_utf8("très café"));
            (0..30).for_each(|_| mixed.add(&encoding.encode(text).0));
            mixed.cause(UTF_8)
        };
        let expected = "the encodings are mixed, and no --encoding is right for all; convert the lines that are not UTF-8, which look like \
                        windows-1252: (LC_ALL=C.UTF-8 grep -ax '.*' FILE; LC_ALL=C.UTF-8 grep -axv '.*' FILE | iconv -f \
                        windows-1252 -t UTF-8) > utf8.txt";
        assert_eq!(mixed(WINDOWS_1252, "a nice café", 60), expected);
        assert_eq!(mixed(WINDOWS_1252, "a nice café", 1), expected);
        assert!(
            mixed(WINDOWS_1252, "a nice café", 0).starts_with("they look like windows-1252: pass --encoding")
        );
        // A short line of GBK may be UTF-8 by chance.
        assert!(mixed(GBK, "很好的产品,质量不错,5", 3).starts_with("they look like GBK"));
        assert!(mixed(GBK, "很好的产品,质量不错,5", 20).starts_with("the encodings are mixed"));
        // The first lines are searched, and those behind one that is not UTF-8.
        let mut late = Invalid::default();
        (0..SEARCHED_MIN).for_each(|_| late.see_utf8("plain"));
        late.see_utf8("café");
        assert_eq!(late.n_utf8, 0);
        late.add(b"caf\xe9");
        late.see_utf8("café");
        assert_eq!(late.n_utf8, 1);
    }

    #[test]
    fn a_line_is_decoded_and_keeps_its_offset() {
        let mut decoder = LineDecoder::of(GBK, 12).unwrap();
        let mut decoded = |bytes: &[u8]| {
            let line = decoder.decode(Line { offset: 7, content: LineContent::Bytes(bytes) });
            assert_eq!(line.offset, 7);
            match line.content {
                LineContent::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                LineContent::TooLong { bytes, .. } => format!("{bytes} bytes"),
            }
        };
        assert_eq!(decoded(b"a,1"), "a,1");
        assert_eq!(decoded(&GBK.encode("很好,5").0), "很好,5");
        assert_eq!(decoded(&GBK.encode("很好很好很").0), "15 bytes");
        assert_eq!(decoded(b"\xff,\xba\xdc"), "\u{fffd},很");
        assert_eq!(decoded(&GB18030.encode("\u{feff}a").0), "a");
        assert_eq!(decoder.invalid, invalid(&[b"\xff,\xba\xdc"]));
        assert!(LineDecoder::of(UTF_8, 12).is_none());
        let mut counting = LineDecoder::of_decoded();
        for text in ["a\u{fffd}b", "ab"] {
            let line = Line { offset: 0, content: LineContent::Bytes(text.as_bytes()) };
            assert_eq!(counting.decode(line), line);
        }
        assert_eq!(counting.invalid.lines, 1);
    }

    #[test]
    fn encodings_have_the_names_and_labels_of_the_web() {
        let name = |label: &str| parse_encoding(label).map(Encoding::name).map_err(|_| ());
        assert_eq!(name("latin1"), Ok("windows-1252"));
        assert_eq!(name("gb2312"), Ok("GBK"));
        assert_eq!(name("utf8"), Ok("UTF-8"));
        assert_eq!([name("utf-32"), name("hz-gb-2312"), name("")], [Err(()); 3]);
    }

    /// Every character of each encoding.
    #[test]
    fn only_listed_encodings_hide_syntax_in_characters() {
        const SYNTAX: &[u8] = b"\n\r\t \",;[]{}|\\";
        let labels = [
            "windows-1252",
            "iso-8859-2",
            "koi8-r",
            "macintosh",
            "ibm866",
            "windows-874",
            "euc-jp",
            "euc-kr",
            "gbk",
            "gb18030",
            "big5",
            "shift_jis",
        ];
        for encoding in labels.map(|label| parse_encoding(label).unwrap()) {
            for character in ('\u{80}'..='\u{ffff}').chain('\u{20000}'..'\u{2a700}') {
                let mut text = [0; 4];
                let (bytes, _, is_unmappable) = encoding.encode(character.encode_utf8(&mut text));
                let is_hidden = |syntax: &&u8| bytes.contains(syntax);
                // Some characters are written as others, such as the sign of the yen as a backslash.
                let is_same =
                    !is_unmappable && encoding.decode_without_bom_handling(&bytes).0.chars().eq([character]);
                if is_same && let Some(&syntax) = SYNTAX.iter().find(is_hidden) {
                    assert!(hides(encoding, &[syntax]), "{} {character:?} {syntax:#x}", encoding.name());
                }
            }
            assert!(!hides(encoding, b"\n\r\t\",;"), "{}", encoding.name());
        }
    }
}
