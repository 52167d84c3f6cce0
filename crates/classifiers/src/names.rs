//! A list of byte strings in one allocation.

/// Byte strings, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    /// An empty list with room for this number of names and bytes.
    pub fn with_capacity(n_names: usize, n_bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(n_bytes), ends: Vec::with_capacity(n_names) }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the list has no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Total length in bytes.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The name with this number, which must be less than [`Names::len`].
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let from = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[from..self.ends[number]]
    }

    /// Adds a name with the next number.
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }

    /// All names in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|number| self.get(number as u32))
    }
}

impl<'a> FromIterator<&'a [u8]> for Names {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(names: I) -> Self {
        let mut all = Self::default();
        names.into_iter().for_each(|name| all.push(name));
        all
    }
}
