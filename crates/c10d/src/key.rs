//! The secret with which ranks of a watch authenticate each other.
//!
//! The key itself is never sent. The leader sends a random number. The follower responds with its own random
//! number and with a code over both numbers. The leader responds with another code. Someone who reads these
//! messages on the network cannot use them to authenticate another connection. Later messages on the connection
//! are neither encrypted nor signed.

use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

const KEY_BYTES: usize = 32;

/// A secret shared by all ranks of a group.
///
/// ```
/// use c10d::Key;
/// let key = Key::of(b"a shared secret");
/// assert_eq!(key, Key::of(b"a shared secret"));
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
    /// Derives a key from a secret of any length.
    ///
    /// ```
    /// assert_ne!(c10d::Key::of(b"a"), c10d::Key::of(b"b"));
    /// ```
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// The follower's code over both numbers, its rank and its name.
    pub(crate) fn hello(&self, numbers: &Numbers, rank: usize, name: &str) -> Code {
        self.code(&format!("hello {} {} {rank} {name}", numbers.leader, numbers.follower))
    }

    /// The code with which the leader proves that it has the key.
    pub(crate) fn welcome(&self, numbers: &Numbers, leader: usize) -> Code {
        self.code(&format!("welcome {} {} {leader}", numbers.leader, numbers.follower))
    }

    fn code(&self, text: &str) -> Code {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        Code(mac)
    }
}

/// A code to send or to compare.
pub(crate) struct Code(Hmac<Sha256>);

impl Code {
    pub(crate) fn to_text(&self) -> String {
        self.0.clone().finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares in constant time.
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

/// Both random numbers of a connection, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) leader: String,
    pub(crate) follower: String,
}

/// 128 random bits as hexadecimal text.
pub(crate) fn random_text() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // Requests of up to 256 bytes are never partially filled.
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
    fn a_code_depends_on_key_connection_rank_and_side() {
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
