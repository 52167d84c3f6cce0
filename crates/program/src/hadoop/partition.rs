//! The reduce partition of a text, computed exactly as Hadoop does.

/// The partition, from 0, of a key among `partitions`: `HashPartitioner` over `Text`.
///
/// `Text.hashCode` is `WritableComparator.hashBytes`: h = 1, then h = 31 h + (signed byte), in wrapping
/// 32-bit arithmetic. The partitioner clears the sign bit and takes the remainder.
pub fn partition(key: &[u8], partitions: u32) -> u32 {
    if partitions == 1 {
        return 0;
    }
    let hash = key.iter().fold(1i32, |hash, &byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte as i8)));
    (hash & i32::MAX) as u32 % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_equal_those_of_java() {
        // 31 + 97 = 128; (31 + 97) * 31 + 98 = 4066; é is the bytes -61, -87: (31 - 61) * 31 - 87 = -1017.
        assert_eq!(partition(b"", 7), 1);
        assert_eq!(partition(b"a", 1000), 128);
        assert_eq!(partition(b"ab", 10_000), 4066);
        assert_eq!(partition("é".as_bytes(), 1 << 31), (-1017i32 & i32::MAX) as u32);
    }

    #[test]
    fn one_partition_takes_every_key() {
        for key in ["", "a", "great product", "日本語"] {
            assert_eq!(partition(key.as_bytes(), 1), 0);
        }
    }
}
