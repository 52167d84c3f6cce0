//! The secret with which ranks of a watch authenticate each other.
//!
//! The key itself is never sent. The leader sends a random number. The follower responds with its own random
//! number and with a code over both numbers. The leader responds with another code. Someone who reads these
//! messages on the network cannot use them to authenticate another connection. Later messages on the connection are not
//! encrypted. Each of them is signed, with both numbers, its direction and its position: an altered, repeated, omitted or
//! added message is detected.

use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use program::hexadecimal;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

const KEY_BYTES: usize = 32;
/// HMAC-SHA-256.
pub(crate) type Signature = [u8; 32];

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

    /// The code with which a rank that wants to join proves that it has the key.
    pub(crate) fn arrival(&self, rank: usize) -> Code {
        self.code(&format!("arrival {rank}"))
    }

    /// The code over what a group trains.
    pub(crate) fn training(&self, training: &str) -> Code {
        self.code(&format!("training {training}"))
    }

    /// Signs and verifies the messages of a connection after the codes.
    pub(crate) fn session(&self, numbers: &Numbers, side: Side) -> Session {
        let direction = |from: &str| self.code(&format!("{from} {} {} ", numbers.leader, numbers.follower)).0;
        let (leaders, followers) = (direction("leader"), direction("follower"));
        match side {
            Side::Leader => Session { sends: leaders, receives: followers, n_sent: 0, n_received: 0 },
            Side::Follower => Session { sends: followers, receives: leaders, n_sent: 0, n_received: 0 },
        }
    }

    fn code(&self, text: &str) -> Code {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        Code(mac)
    }
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Leader,
    Follower,
}

/// The signatures of a connection.
pub(crate) struct Session {
    sends: Hmac<Sha256>,
    receives: Hmac<Sha256>,
    n_sent: u64,
    n_received: u64,
}

impl Session {
    /// The signature of the next message.
    pub(crate) fn sign(&mut self, message: &[u8]) -> Signature {
        self.n_sent += 1;
        let mac = self.sends.clone().chain_update(self.n_sent.to_le_bytes()).chain_update(message);
        mac.finalize().into_bytes().into()
    }

    /// Whether this is the signature of the next message, compared in constant time.
    pub(crate) fn is_next(&mut self, message: &[u8], signature: &Signature) -> bool {
        self.n_received += 1;
        let mac = self.receives.clone().chain_update(self.n_received.to_le_bytes()).chain_update(message);
        mac.verify_slice(signature).is_ok()
    }
}

/// A code to send or to compare.
pub(crate) struct Code(Hmac<Sha256>);

impl Code {
    pub(crate) fn to_text(&self) -> String {
        hexadecimal::encode(&self.0.clone().finalize().into_bytes())
    }

    /// Compares in constant time.
    pub(crate) fn is(self, text: &str) -> bool {
        hexadecimal::decode(text.as_bytes()).is_some_and(|found| self.0.verify_slice(&found).is_ok())
    }
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
    fn a_signature_depends_on_connection_direction_position_and_message() {
        let numbers = Numbers { leader: "1".to_owned(), follower: "2".to_owned() };
        let session = |side| Key::of(b"secret").session(&numbers, side);
        let (mut leader, mut follower) = (session(Side::Leader), session(Side::Follower));
        let first = leader.sign(b"first");
        let second = leader.sign(b"second");
        assert!(follower.is_next(b"first", &first) && follower.is_next(b"second", &second));
        for (message, signature) in
            [(&b"second"[..], second), (b"other", first), (b"second", leader.sign(b"third"))]
        {
            // Repeated, altered, and of another message.
            let mut follower = session(Side::Follower);
            assert!(follower.is_next(b"first", &first));
            let is_repeated = message == b"second" && signature == second;
            assert_eq!(follower.is_next(message, &signature), is_repeated);
            assert!(!follower.is_next(message, &signature));
        }
        assert!(!session(Side::Follower).is_next(b"second", &second), "the first was omitted");
        assert!(!session(Side::Leader).is_next(b"first", &first), "another direction");
        let other = Numbers { leader: "1".to_owned(), follower: "3".to_owned() };
        assert!(!Key::of(b"secret").session(&other, Side::Follower).is_next(b"first", &first));
        assert!(!Key::of(b"other").session(&numbers, Side::Follower).is_next(b"first", &first));
    }

    #[test]
    fn random_texts_differ() {
        assert_ne!(random_text().unwrap(), random_text().unwrap());
    }
}
