//! Thrift's compact protocol, without allocation and with a limit of nesting.

/// Maximum nesting of Thrift structures, that of the library.
pub(super) const NESTING_MAX: u8 = 64;

pub(super) const BOOL: u8 = 2;
pub(super) const BYTE: u8 = 3;
pub(super) const I32: u8 = 5;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// The rest of a structure in Thrift's compact protocol. All functions return `None` if it is truncated, or if the library
/// would read it differently.
pub(super) struct Scan<'a>(pub(super) &'a [u8]);

impl Scan<'_> {
    pub(super) fn pass(&mut self, n_bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(n_bytes).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number of 32 bits that must not be negative.
    pub(super) fn number(&mut self) -> Option<u64> {
        let zigzag = self.varint()?;
        (zigzag & 1 == 0 && zigzag >> 1 <= i32::MAX as u64).then_some(zigzag >> 1)
    }

    /// Visits the fields of a structure by number and type. The first fields, which the library knows, must have these types.
    /// `visit` passes the value.
    pub(super) fn fields(
        &mut self,
        types: &[u8],
        mut visit: impl FnMut(&mut Self, u64, u8) -> Option<()>,
    ) -> Option<()> {
        let mut field = 0;
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.number()?,
                step => field + u64::from(step),
            };
            if field > i16::MAX as u64 {
                return None;
            }
            let (kind, known) = (head & 0xf, types.get((field as usize).wrapping_sub(1)));
            if known.is_some_and(|&known| known != kind && (known, kind) != (BOOL, 1)) {
                return None;
            }
            visit(self, field, kind)?;
        }
    }

    pub(super) fn pass_field(&mut self, _: u64, kind: u8) -> Option<()> {
        self.skip(kind, NESTING_MAX)
    }

    /// Length and type of a list.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let n = match head >> 4 {
            15 => self.varint()?,
            n => u64::from(n),
        };
        // Each element has a byte at least.
        (n <= self.0.len() as u64).then_some((n, head & 0xf))
    }

    pub(super) fn skip(&mut self, kind: u8, nesting: u8) -> Option<()> {
        let nesting = nesting.checked_sub(1)?;
        match kind {
            1 | BOOL => Some(()),
            BYTE => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            BINARY => self.varint().and_then(|n_bytes| self.pass(n_bytes)),
            LIST | 10 => {
                let (n, kind) = self.list()?;
                (0..n).try_for_each(|_| self.skip_element(kind, nesting))
            }
            11 => {
                let n = self.varint()?;
                let kinds = if n > 0 { self.byte()? } else { 0 };
                (0..n).try_for_each(|_| {
                    self.skip_element(kinds >> 4, nesting)?;
                    self.skip_element(kinds & 0xf, nesting)
                })
            }
            STRUCT => self.fields(&[], |scan, _, kind| scan.skip(kind, nesting)),
            13 => self.pass(16),
            _ => None,
        }
    }

    /// Skips an element of a list or map, in which a boolean has a byte.
    fn skip_element(&mut self, kind: u8, nesting: u8) -> Option<()> {
        self.skip(if kind <= BOOL { BYTE } else { kind }, nesting)
    }
}
