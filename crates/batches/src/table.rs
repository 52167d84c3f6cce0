//! Rows in memory, stored as columns.

use dataset::{Row, TokenType};

/// The rows of one split, either of the whole dataset or of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    rows: Vec<u32>,
    tokens: Tokens,
    /// End of each row's tokens.
    ends: Vec<u64>,
    labels: Vec<u8>,
    ratings: Vec<u8>,
    n_votes: Vec<u32>,
}

/// The concatenated tokens of all rows, in the dataset's token type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// 16-bit tokens.
    U16(Vec<u16>),
    /// 32-bit tokens.
    U32(Vec<u32>),
}

/// Memory of a row without its tokens; includes its index in an [`Order`](crate::Order) and its length for the sort.
pub(crate) const ROW_BYTES: u64 = 4 + 8 + 1 + 1 + 4 + (4 + 4);

/// Bytes per token.
pub(crate) fn token_bytes(token_type: TokenType) -> u64 {
    match token_type {
        TokenType::U16 => 2,
        TokenType::U32 => 4,
    }
}

impl Table {
    /// An empty table with capacity for rows and tokens.
    pub(crate) fn with_capacity(token_type: TokenType, n_rows: usize, n_tokens: usize) -> Self {
        Self {
            rows: Vec::with_capacity(n_rows),
            tokens: match token_type {
                TokenType::U16 => Tokens::U16(Vec::with_capacity(n_tokens)),
                TokenType::U32 => Tokens::U32(Vec::with_capacity(n_tokens)),
            },
            ends: Vec::with_capacity(n_rows),
            labels: Vec::with_capacity(n_rows),
            ratings: Vec::with_capacity(n_rows),
            n_votes: Vec::with_capacity(n_rows),
        }
    }

    /// Appends a row of the dataset, with its index and the tokens to keep.
    pub(crate) fn push(&mut self, at: u32, row: &Row, tokens: &[u32]) {
        self.rows.push(at);
        match &mut self.tokens {
            Tokens::U16(all) => all.extend(tokens.iter().map(|&token| token as u16)),
            Tokens::U32(all) => all.extend_from_slice(tokens),
        }
        self.ends.push(self.tokens.len() as u64);
        self.labels.push(row.label);
        self.ratings.push(row.votes.mode());
        self.n_votes.push(u32::try_from(row.votes.total()).unwrap_or(u32::MAX));
    }

    /// Appends rows of another table with the same token type.
    pub(crate) fn extend(&mut self, other: &Self, places: impl Iterator<Item = usize>) {
        for place in places {
            let (from, to) = other.span(place);
            match (&mut self.tokens, &other.tokens) {
                (Tokens::U16(all), Tokens::U16(others)) => all.extend_from_slice(&others[from..to]),
                (Tokens::U32(all), Tokens::U32(others)) => all.extend_from_slice(&others[from..to]),
                _ => unreachable!("both tables have the same token type"),
            }
            self.rows.push(other.rows[place]);
            self.ends.push(self.tokens.len() as u64);
            self.labels.push(other.labels[place]);
            self.ratings.push(other.ratings[place]);
            self.n_votes.push(other.n_votes[place]);
        }
    }

    /// Appends all rows of another table with the same token type.
    pub(crate) fn append(&mut self, other: &Self) {
        let n_tokens = self.tokens.len() as u64;
        match (&mut self.tokens, &other.tokens) {
            (Tokens::U16(all), Tokens::U16(others)) => all.extend_from_slice(others),
            (Tokens::U32(all), Tokens::U32(others)) => all.extend_from_slice(others),
            _ => unreachable!("both tables have the same token type"),
        }
        self.rows.extend_from_slice(&other.rows);
        self.ends.extend(other.ends.iter().map(|end| n_tokens + end));
        self.labels.extend_from_slice(&other.labels);
        self.ratings.extend_from_slice(&other.ratings);
        self.n_votes.extend_from_slice(&other.n_votes);
    }

    /// Appends rows of another dataset's table with the same token type. The index of its first row is `first_row`.
    pub(crate) fn append_after(&mut self, other: &Self, places: impl Iterator<Item = usize>, first_row: u32) {
        let n_rows = self.n_rows();
        self.extend(other, places);
        self.rows[n_rows..].iter_mut().for_each(|row| *row += first_row);
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        match &mut self.tokens {
            Tokens::U16(all) => all.shrink_to_fit(),
            Tokens::U32(all) => all.shrink_to_fit(),
        }
        self.ends.shrink_to_fit();
        self.labels.shrink_to_fit();
        self.ratings.shrink_to_fit();
        self.n_votes.shrink_to_fit();
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The tokens of all rows. [`Table::span`] gives the range of one row.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Start and end of a row's tokens.
    pub fn span(&self, place: usize) -> (usize, usize) {
        let from = if place == 0 { 0 } else { self.ends[place - 1] };
        (from as usize, self.ends[place] as usize)
    }

    /// Number of tokens of a row.
    pub fn length(&self, place: usize) -> u32 {
        let (from, to) = self.span(place);
        (to - from) as u32
    }

    /// The lengths of all rows, the input of an [`Order`](crate::Order).
    pub fn lengths(&self) -> Vec<u32> {
        (0..self.n_rows()).map(|place| self.length(place)).collect()
    }

    /// Appends a row's tokens as 64-bit integers, the index type of tensors.
    pub(crate) fn append_tokens(&self, place: usize, out: &mut Vec<i64>) {
        let (from, to) = self.span(place);
        match &self.tokens {
            Tokens::U16(all) => out.extend(all[from..to].iter().map(|&token| i64::from(token))),
            Tokens::U32(all) => out.extend(all[from..to].iter().map(|&token| i64::from(token))),
        }
    }

    /// Indices of the rows in the dataset file, in the order of this table.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// 1 for a positive text, otherwise 0.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// The most frequent rating of the text's reviews, 1 to 5; the lower one on a tie.
    pub fn ratings(&self) -> &[u8] {
        &self.ratings
    }

    /// Number of reviews with the text. 4,294,967,295 means that many or more.
    pub fn n_votes(&self) -> &[u32] {
        &self.n_votes
    }
}

impl Tokens {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        match self {
            Self::U16(all) => all.len(),
            Self::U32(all) => all.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use corpus::record::Votes;

    use super::*;

    fn table(token_type: TokenType) -> Table {
        let mut table = Table::with_capacity(token_type, 2, 5);
        let row = |votes| Row { votes: Votes(votes), label: 1, ..Row::default() };
        table.push(7, &row([0, 1, 0, 0, 1]), &[5, 6, 7]);
        table.push(9, &row([0, 0, 0, u32::MAX, u32::MAX]), &[65_535, 2]);
        table
    }

    #[test]
    fn rows_keep_tokens_rating_and_votes() {
        for token_type in [TokenType::U16, TokenType::U32] {
            let table = table(token_type);
            assert_eq!(
                (table.rows(), table.labels(), table.lengths()),
                (&[7, 9][..], &[1, 1][..], vec![3, 2])
            );
            assert_eq!((table.ratings(), table.n_votes()), (&[2, 4][..], &[2, u32::MAX][..]));
            let mut tokens = Vec::new();
            table.append_tokens(1, &mut tokens);
            assert_eq!(tokens, [65_535, 2]);
        }
    }

    #[test]
    fn rows_can_be_copied_in_another_order() {
        let table = table(TokenType::U16);
        let mut other = Table::with_capacity(TokenType::U16, 0, 0);
        other.extend(&table, [1, 0].into_iter());
        assert_eq!((other.rows(), other.lengths()), (&[9, 7][..], vec![2, 3]));
        let mut back = Table::with_capacity(TokenType::U16, 0, 0);
        back.extend(&other, [1, 0].into_iter());
        assert_eq!(back, table);
        let mut after = back.clone();
        after.append_after(&other, [1].into_iter(), 10);
        assert_eq!((after.rows(), after.lengths()), (&[7, 9, 17][..], vec![3, 2, 3]));
        let (mut appended, mut extended) = (back.clone(), back);
        appended.append(&other);
        extended.extend(&other, 0..2);
        assert_eq!(appended, extended);
    }
}
