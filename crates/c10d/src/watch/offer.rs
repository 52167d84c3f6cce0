//! The leader's entry in the store, with which the others find the watch.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::address::Route;
use crate::key::{Key, random_text};
use crate::store::TcpStore;

/// Replaces the token if the ranks have a key, which must not be in the store.
const KEYED: &str = "keyed";

/// Address of the leader, and whether ranks authenticate with a key or with a token in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) rank: usize,
    /// None if the leader is on the store's host; each rank may have another name for it.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
    /// The token from which the key is derived. Anyone who can read the store can read it. None if the ranks have a
    /// key.
    token: Option<String>,
}

impl Offer {
    /// The offer of a rank that listens only on the interface through which it reaches the store.
    pub(super) fn make(
        rank: usize,
        route: Route,
        listener: &TcpListener,
        key: Option<&Key>,
    ) -> io::Result<Self> {
        let Route { own, store } = route;
        // On loopback, the store is on this machine. A host whose name resolves to 127.0.1.1 connects to it from
        // 127.0.0.1.
        let address = (own != store && !own.is_loopback()).then_some(own);
        let token = if key.is_none() { Some(random_text()?) } else { None };
        Ok(Self { rank, address, port: listener.local_addr()?.port(), token })
    }

    pub(super) fn to_text(&self) -> String {
        let address = self.address.map_or_else(|| "store".to_owned(), |address| address.to_string());
        format!("{} {address} {} {}", self.rank, self.port, self.token.as_deref().unwrap_or(KEYED))
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let rank = words.next()?.parse().ok()?;
        let address = match words.next()? {
            "store" => None,
            address => Some(address.parse().ok()?),
        };
        let port = words.next()?.parse().ok()?;
        let token = Some(words.next()?).filter(|&word| word != KEYED).map(str::to_owned);
        words.next().is_none().then_some(Self { rank, address, port, token })
    }

    /// The key of this offer's watch for a rank with the key `own`. None if only one of the two has a key, because an
    /// offer without a key may come from an attacker.
    pub(super) fn key(&self, own: Option<&Key>) -> Option<Key> {
        match (own, &self.token) {
            (Some(key), None) => Some(key.clone()),
            (None, Some(token)) => Some(Key::of(token.as_bytes())),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    pub(super) fn shown(&self, store: &TcpStore) -> String {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).to_string(),
            None => format!("{}:{}", store.host(), self.port),
        }
    }

    pub(super) fn connect(&self, store: &TcpStore, limit: Duration) -> io::Result<TcpStream> {
        let addresses: Vec<SocketAddr> = match self.address {
            Some(address) => vec![SocketAddr::new(address, self.port)],
            None => (store.host(), self.port).to_socket_addrs()?.collect(),
        };
        let mut last = io::Error::other("the host name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_offer_round_trips_through_text() {
        for text in ["3 store 4711 keyed", "0 10.0.3.9 80 00ff", "1 ::1 80 keyed"] {
            assert_eq!(Offer::from_text(text).unwrap().to_text(), text);
        }
        for text in
            ["", "0 store", "0 store 80", "0 store 80 keyed more", "x store 80 keyed", "0 name 80 keyed"]
        {
            assert_eq!(Offer::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn keys_and_tokens_are_not_interchangeable() {
        let own = Key::of(b"own");
        let keyed = Offer::from_text("0 store 80 keyed").unwrap();
        let open = Offer::from_text("0 store 80 00ff").unwrap();

        assert_eq!(keyed.key(Some(&own)), Some(own.clone()));
        assert_eq!(open.key(None), Some(Key::of(b"00ff")));
        assert_eq!(open.key(Some(&own)), None, "an attacker may have written the offer");
        assert_eq!(keyed.key(None), None);
    }
}
