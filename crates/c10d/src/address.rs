//! Determines the address of this machine on which its ranks listen. The other ranks, and as few other hosts
//! as possible, can connect to this address.

use std::io;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

/// This machine's address on the route to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The address on which this machine's ranks listen. Ranks in the store's network can reach it.
    pub own: IpAddr,
    /// The store's address, as resolved on this machine.
    pub store: IpAddr,
}

impl Route {
    /// Reads the system's routing table; sends nothing.
    pub fn to(host: &str, port: u16) -> io::Result<Self> {
        let mut last = io::Error::other("the host name has no address");
        for address in (host, port).to_socket_addrs()? {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            match UdpSocket::bind(any).and_then(|socket| {
                socket.connect(address)?;
                socket.local_addr()
            }) {
                Ok(own) => return Ok(Self { own: own.ip(), store: address.ip() }),
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
    fn loopback_is_reached_from_loopback() {
        let route = Route::to("127.0.0.1", 29500).unwrap();

        assert_eq!(route.own.to_string(), "127.0.0.1");
        assert_eq!(route.store, route.own);
    }
}
