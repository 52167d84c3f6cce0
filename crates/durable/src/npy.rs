//! The header of NumPy's files, mostly of 32-bit floats in two dimensions, in C order, for `numpy.load`.

use std::io::{self, Read};

/// The first bytes of a file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The array of this project's files begins here.
pub const HEADER_BYTES: usize = 128;
/// Limit of a header that another program wrote.
const HEADER_BYTES_MAX: u64 = 4096;

/// NumPy's header of an array of this shape, padded with spaces to [`HEADER_BYTES`].
pub fn header(n_rows: usize, n_columns: usize) -> Vec<u8> {
    header_of("<f4", &[n_rows as u64, n_columns as u64])
}

/// The header of an array of another type or another number of dimensions.
pub fn header_of(descr: &str, shape: &[u64]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let shape = if shape.matches(',').count() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (HEADER_BYTES - MAGIC.len() - 4) as u16;
    let mut header = [&MAGIC[..], &[1, 0], &length.to_le_bytes(), dict.as_bytes()].concat();
    header.resize(HEADER_BYTES - 1, b' ');
    header.push(b'\n');
    header
}

/// A header that was read.
#[derive(Debug)]
pub struct Header {
    /// NumPy's description of the array.
    pub dict: String,
    /// The offset of the array.
    pub bytes: u64,
}

impl Header {
    /// Reads a header of version 1, 2 or 3. `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or is too short.
    pub fn read(file: &mut impl Read) -> io::Result<Option<Self>> {
        let mut magic = [0; 8];
        file.read_exact(&mut magic)?;
        let (length, before) = match magic[6] {
            _ if !magic.starts_with(MAGIC) => return Ok(None),
            1 => {
                let mut length = [0; 2];
                file.read_exact(&mut length)?;
                (u64::from(u16::from_le_bytes(length)), 10)
            }
            2 | 3 => {
                let mut length = [0; 4];
                file.read_exact(&mut length)?;
                (u64::from(u32::from_le_bytes(length)), 12)
            }
            _ => return Ok(None),
        };
        if length > HEADER_BYTES_MAX {
            return Ok(None);
        }
        let mut dict = vec![0; length as usize];
        file.read_exact(&mut dict)?;
        Ok(String::from_utf8(dict).ok().map(|dict| Self { dict, bytes: before + length }))
    }

    /// The two dimensions of an array of 32-bit floats in C order. `None` for another array, and for an empty one.
    pub fn shape(&self) -> Option<[u64; 2]> {
        let dict: String = self.dict.chars().filter(|character| !character.is_whitespace()).collect();
        let shape = dict.strip_prefix("{'descr':'<f4','fortran_order':False,'shape':(")?;
        let (rows, columns) = shape.strip_suffix(",}")?.strip_suffix(')')?.split_once(',')?;
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        Some([number(rows)?, number(columns)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_fits_the_maximum_number_of_rows() {
        let header = header(u32::MAX as usize, 1 << 20);
        assert_eq!(header.len(), HEADER_BYTES);
        assert!(header.ends_with(b" \n"));
    }

    #[test]
    fn a_header_is_read_back() {
        let header = Header::read(&mut &header(3, 5)[..]).unwrap().unwrap();
        assert_eq!((header.bytes, header.shape()), (HEADER_BYTES as u64, Some([3, 5])));
        assert!(Header::read(&mut &b"PK\x03\x04\0\0\0\0"[..]).unwrap().is_none());
    }
}
