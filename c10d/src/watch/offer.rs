//! What the leader of the watch puts into the store, so that the others find it.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use super::frame::Token;
use crate::store::TcpStore;

/// Where the leader can be reached, and the token that shows a connection to come from a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) rank: usize,
    /// None: on the store's host, whatever name each rank has for it.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
    pub(super) token: Token,
}

impl Offer {
    pub(super) fn make(store: &TcpStore, listener: &TcpListener, rank: usize) -> io::Result<Self> {
        let (own, of_store) = own_address_towards(store)?;
        // By loopback only this machine is reached, so the store is on it. A host whose name stands for 127.0.1.1
        // talks to that from 127.0.0.1.
        let address = (own != of_store && !own.is_loopback()).then_some(own);
        Ok(Self { rank, address, port: listener.local_addr()?.port(), token: Token::random()? })
    }

    pub(super) fn to_text(&self) -> String {
        let address = self.address.map_or_else(|| "store".to_owned(), |address| address.to_string());
        format!("{} {address} {} {}", self.rank, self.port, self.token.to_text())
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let rank = words.next()?.parse().ok()?;
        let address = match words.next()? {
            "store" => None,
            address => Some(address.parse().ok()?),
        };
        let port = words.next()?.parse().ok()?;
        let token = Token::from_text(words.next()?)?;
        words.next().is_none().then_some(Self { rank, address, port, token })
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
        let mut last = io::Error::other("its name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// This machine's address on the way to the store, and the store's. Nothing is sent.
fn own_address_towards(store: &TcpStore) -> io::Result<(IpAddr, IpAddr)> {
    let mut last = io::Error::other("the store's name has no address");
    for address in (store.host(), store.port()).to_socket_addrs()? {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        match UdpSocket::bind(any).and_then(|socket| {
            socket.connect(address)?;
            socket.local_addr()
        }) {
            Ok(own) => return Ok((own.ip(), address.ip())),
            Err(error) => last = error,
        }
    }
    Err(last)
}
