//! Messages between ranks: numbers, sorted positions of rows, and floats. All are little-endian.
//!
//! Positions are a list of differences or one bit per row, whichever is shorter, so a message about all rows is hardly
//! longer than their weights.

/// Writes a message.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

/// Kinds of lists of positions.
const GAPS: u8 = 0;
const BITS: u8 = 1;

impl Writer {
    pub fn number(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// A list of bytes with its length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub fn floats(&mut self, floats: &[f32]) {
        let from = self.bytes.len();
        self.bytes.resize(from + 4 * floats.len(), 0);
        let (chunks, _) = self.bytes[from..].as_chunks_mut();
        chunks.iter_mut().zip(floats).for_each(|(bytes, float)| *bytes = float.to_le_bytes());
    }

    /// Increasing positions below `n`.
    pub fn positions(&mut self, positions: &[u32], n: usize) {
        self.number(positions.len() as u64);
        let kind_at = self.bytes.len();
        self.bytes.push(GAPS);
        let bits_bytes = n.div_ceil(8);
        let mut next = 0;
        for &position in positions {
            let mut gap = position - next;
            next = position + 1;
            // Seven bits per byte; the highest bit says that another byte follows.
            while gap >= 0x80 {
                self.bytes.push(gap as u8 | 0x80);
                gap >>= 7;
            }
            self.bytes.push(gap as u8);
            if self.bytes.len() - kind_at - 1 > bits_bytes {
                self.bytes.truncate(kind_at);
                self.bytes.push(BITS);
                self.bytes.resize(kind_at + 1 + bits_bytes, 0);
                let bits = &mut self.bytes[kind_at + 1..];
                positions.iter().for_each(|&position| bits[position as usize / 8] |= 1 << (position % 8));
                return;
            }
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads a message. Every function returns `None` if the message is not what was expected.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub fn floats(&mut self, n: usize) -> Option<Floats<'a>> {
        let (chunks, _) = self.take(n.checked_mul(4)?)?.as_chunks();
        Some(Floats { left: chunks.iter() })
    }

    pub fn positions(&mut self, n: usize) -> Option<Vec<u32>> {
        let length = usize::try_from(self.number()?).ok().filter(|&length| length <= n)?;
        let mut positions = Vec::with_capacity(length);
        match self.take(1)? {
            [GAPS] => {
                let mut next = 0_u64;
                for _ in 0..length {
                    let mut gap = 0_u64;
                    for shift in (0..35).step_by(7) {
                        let (&byte, rest) = self.bytes.split_first()?;
                        self.bytes = rest;
                        gap |= u64::from(byte & 0x7f) << shift;
                        if byte & 0x80 == 0 {
                            break;
                        }
                    }
                    let position = u32::try_from(next + gap).ok().filter(|&at| (at as usize) < n)?;
                    positions.push(position);
                    next = u64::from(position) + 1;
                }
            }
            [BITS] => {
                for (byte, &bits) in (0_u32..).zip(self.take(n.div_ceil(8))?) {
                    let mut bits = bits;
                    while bits != 0 {
                        positions.push(8 * byte + bits.trailing_zeros());
                        bits &= bits - 1;
                    }
                }
                let is_valid =
                    positions.len() == length && positions.last().is_none_or(|&last| (last as usize) < n);
                is_valid.then_some(())?;
            }
            _ => return None,
        }
        Some(positions)
    }

    /// The end of the message.
    pub fn end(&self) -> Option<()> {
        self.bytes.is_empty().then_some(())
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }
}

/// Floats of a message.
#[derive(Clone, Debug)]
pub(crate) struct Floats<'a> {
    left: std::slice::Iter<'a, [u8; 4]>,
}

impl Iterator for Floats<'_> {
    type Item = f32;

    #[inline]
    fn next(&mut self) -> Option<f32> {
        self.left.next().map(|&bytes| f32::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(positions: &[u32], n: usize) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.positions(positions, n);
        writer.finish()
    }

    proptest! {
        #[test]
        fn positions_are_read_as_they_were_written(
            gaps in proptest::collection::vec(prop_oneof![0_u32..3, 0_u32..70_000], 0..200),
            more in 1_usize..1000,
        ) {
            let mut next = 0;
            let positions: Vec<u32> = gaps.iter().map(|gap| { next += gap + 1; next - 1 }).collect();
            let n = next as usize + more;
            let bytes = written(&positions, n);
            prop_assert!(bytes.len() <= 9 + n.div_ceil(8));
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.positions(n), Some(positions));
            prop_assert_eq!(reader.end(), Some(()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60), n in 0_usize..200) {
            if let Some(positions) = Reader::new(&bytes).positions(n) {
                prop_assert!(positions.is_sorted_by(|one, other| one < other));
                prop_assert!(positions.iter().all(|&at| (at as usize) < n));
            }
        }
    }

    #[test]
    fn many_rows_have_a_bit_each_and_few_rows_their_differences() {
        let all: Vec<u32> = (0..8000).collect();
        assert_eq!(written(&all, 8000).len(), 9 + 1000);
        assert_eq!(written(&[5, 300, 7999], 8000).len(), 9 + 1 + 2 + 2);
    }

    #[test]
    fn a_cut_message_is_refused() {
        let mut writer = Writer::default();
        writer.number(7);
        writer.bytes(b"kettle");
        writer.positions(&[1, 5, 900], 1000);
        writer.floats(&[0.5, -1.0]);
        let whole = writer.finish();
        let read = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            let read = (reader.number()?, reader.bytes()?.to_vec(), reader.positions(1000)?);
            let floats: Vec<f32> = reader.floats(2)?.collect();
            reader.end()?;
            Some((read, floats))
        };
        assert_eq!(read(&whole), Some(((7, b"kettle".to_vec(), vec![1, 5, 900]), vec![0.5, -1.0])));
        assert!((0..whole.len()).all(|length| read(&whole[..length]).is_none()));
    }
}
