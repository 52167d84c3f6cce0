//! Bytes as hexadecimal digits, and back.

/// Two lower-case digits per byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits; `None` for any other text.
pub fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |&[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_and_other_text_is_refused() {
        assert_eq!(encode(&[0, 0xaf, 255]), "00afff");
        assert_eq!(decode(b"00aFff"), Some(vec![0, 0xaf, 255]));
        for text in ["0", "0g", "+1", " 1", "é"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
