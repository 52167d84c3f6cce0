//! The secret by which the ranks of a watch know each other, and what each side shows of it.
//!
//! Neither side sends the key. The leader sends a random number, the follower answers with one of its own and a code
//! over both, and the leader with another code; so a stranger who listens in place of a rank learns nothing that
//! opens another connection. What follows on a connection is neither encrypted nor signed.

use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

const KEY_BYTES: usize = 32;

/// What all ranks of a group know and nobody else does.
///
/// ```
/// use c10d::Key;
/// let key = Key::of(b"what no stranger can read");
/// assert_eq!(key, Key::of(b"what no stranger can read"));
/// assert_ne!(key, Key::of(b"something else"));
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The key that a secret of any length stands for.
    ///
    /// ```
    /// assert_ne!(c10d::Key::of(b"a"), c10d::Key::of(b"b"));
    /// ```
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// The code of the rank that connects, over both numbers and what it says of itself.
    pub(crate) fn hello(&self, numbers: &Numbers, rank: usize, name: &str) -> Code {
        self.code(&format!("hello {} {} {rank} {name}", numbers.leader, numbers.follower))
    }

    /// The code by which the leader shows that it knows the key too.
    pub(crate) fn welcome(&self, numbers: &Numbers, leader: usize) -> Code {
        self.code(&format!("welcome {} {} {leader}", numbers.leader, numbers.follower))
    }

    fn code(&self, text: &str) -> Code {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        Code(mac)
    }
}

/// A code, to be sent or to be compared.
pub(crate) struct Code(Hmac<Sha256>);

impl Code {
    pub(crate) fn to_text(&self) -> String {
        self.0.clone().finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares in a time that does not depend on where they differ.
    pub(crate) fn is(self, text: &str) -> bool {
        from_hex(text).is_some_and(|found| self.0.verify_slice(&found).is_ok())
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// The random numbers of one connection, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) leader: String,
    pub(crate) follower: String,
}

/// 128 random bits as hexadecimal text.
pub(crate) fn random_text() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // 16 bytes come whole or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn the_code_is_hmac_sha_256() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");

        let code = Code(mac);

        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(code.to_text(), expected);
        assert!(code.is(expected));
    }

    #[test]
    fn a_code_is_of_one_key_one_connection_one_rank_and_one_side() {
        let key = Key::of(b"secret");
        let numbers = |leader: &str, follower: &str| Numbers {
            leader: leader.to_owned(),
            follower: follower.to_owned(),
        };
        let code = key.hello(&numbers("1", "2"), 1, "host").to_text();

        assert!(key.hello(&numbers("1", "2"), 1, "host").is(&code));
        assert!(!Key::of(b"other").hello(&numbers("1", "2"), 1, "host").is(&code));
        assert!(!key.hello(&numbers("3", "2"), 1, "host").is(&code));
        assert!(!key.hello(&numbers("1", "3"), 1, "host").is(&code));
        assert!(!key.hello(&numbers("1", "2"), 2, "host").is(&code));
        assert!(!key.welcome(&numbers("1", "2"), 1).is(&code));
        for wrong in ["", "0", "xx", &code[2..], &format!("{code}00")] {
            assert!(!key.hello(&numbers("1", "2"), 1, "host").is(wrong), "{wrong}");
        }
    }

    #[test]
    fn random_texts_differ() {
        assert_ne!(random_text().unwrap(), random_text().unwrap());
    }
}
