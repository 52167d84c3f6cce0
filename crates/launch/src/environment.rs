//! The place of a rank among the others, from the environment variables that torchrun and [`crate::run`] set.

use std::env;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use program::exit::{Exit, Failed};

const START: &str = "start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";

/// A rank of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// This process, from 0.
    pub rank: u32,
    /// Number of ranks.
    pub n_ranks: u32,
    /// The host of rank 0.
    pub host: String,
    /// The port at which rank 0 listens for programs without PyTorch: `MASTER_PORT`, or the one beside it if torchrun's agent
    /// has `MASTER_PORT` (`TORCHELASTIC_USE_AGENT_STORE`).
    pub port: u16,
}

impl Environment {
    /// Reads the environment; `None` of a single process.
    ///
    /// # Errors
    /// If a variable is missing or invalid.
    pub fn of_ranks() -> Result<Option<Self>, Failed> {
        Self::of_variables(|name| env::var(name).ok())
    }

    fn of_variables(variable: impl Fn(&'static str) -> Option<String>) -> Result<Option<Self>, Failed> {
        if variable("RANK").is_none() || variable("WORLD_SIZE").as_deref() == Some("1") {
            return Ok(None);
        }
        let needed = |name| variable(name).ok_or_else(|| invalid(name, "not set", START));
        let number = |name| {
            let text = needed(name)?;
            text.parse::<u32>()
                .map_err(|_| invalid(name, &format!("{text:?}"), "expected a non-negative integer"))
        };
        let (rank, n_ranks, port) = (number("RANK")?, number("WORLD_SIZE")?, number("MASTER_PORT")?);
        if rank >= n_ranks {
            let expected = format!("expected less than WORLD_SIZE, which is {n_ranks}");
            return Err(invalid("RANK", &rank.to_string(), &expected));
        }
        let port: u16 = port
            .try_into()
            .map_err(|_| invalid("MASTER_PORT", &port.to_string(), "expected a port, at most 65535"))?;
        let is_taken = variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|text| text == "True");
        let port = if is_taken { port.checked_add(1).unwrap_or(port - 1) } else { port };
        let environment = Self { rank, n_ranks, host: needed("MASTER_ADDR")?, port };
        let n_here: Option<u32> = variable("LOCAL_WORLD_SIZE").and_then(|text| text.parse().ok());
        if n_here.is_some_and(|n_here| n_here < n_ranks) && environment.is_local() {
            let expected = "a loopback address, which ranks on other machines cannot reach; expected an address of rank \
                            0's machine in their network";
            return Err(invalid("MASTER_ADDR", &format!("{:?}", environment.host), expected));
        }
        Ok(Some(environment))
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        (&*self.host, self.port).to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect)
    }

    /// Whether only processes of this machine can connect to rank 0.
    fn is_local(&self) -> bool {
        let addresses = self.addresses();
        !addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback())
    }

    /// The address at which rank 0 listens: that of its host, if this machine has it, or else all of this machine.
    pub fn listen(&self) -> SocketAddr {
        let is_here = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
        let found = self.addresses().into_iter().find(is_here);
        found.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, self.port).into())
    }

    /// The address to which ranks connect, as HOST:PORT.
    pub fn server(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

fn invalid(name: &str, found: &str, remedy: &str) -> Failed {
    Failed::new(Exit::Settings, format!("{name} is {found}: {remedy}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(changed: &[(&'static str, &str)]) -> Result<Option<Environment>, Failed> {
        let mut all =
            vec![("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")];
        all.extend_from_slice(changed);
        Environment::of_variables(|name| {
            all.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_port_of_torchruns_agent_is_left_to_it() {
        let agent = ("TORCHELASTIC_USE_AGENT_STORE", "True");
        assert_eq!(of(&[]).unwrap().unwrap().server(), "127.0.0.1:29500");
        assert_eq!(of(&[agent]).unwrap().unwrap().port, 29501);
        assert_eq!(of(&[agent, ("MASTER_PORT", "65535")]).unwrap().unwrap().port, 65534);
        assert_eq!(of(&[("WORLD_SIZE", "1")]).unwrap(), None);
    }

    #[test]
    fn rank_0_listens_at_its_address() {
        let listen = |host| of(&[("MASTER_ADDR", host), ("RANK", "0")]).unwrap().unwrap();
        assert_eq!(listen("127.0.0.1").listen().to_string(), "127.0.0.1:29500");
        assert_eq!(listen("192.0.2.1").listen().to_string(), "0.0.0.0:29500");
        assert_eq!(of(&[("MASTER_ADDR", "2001:db8::1")]).unwrap().unwrap().server(), "[2001:db8::1]:29500");
        let told = of(&[("LOCAL_WORLD_SIZE", "2")]).unwrap_err().to_string();
        assert!(
            told.starts_with("MASTER_ADDR is \"127.0.0.1\": a loopback address, which ranks on other"),
            "{told}"
        );
        assert!(of(&[("LOCAL_WORLD_SIZE", "4")]).is_ok());
    }

    #[test]
    fn an_invalid_variable_is_named() {
        let told = |changed| of(&[changed]).unwrap_err().to_string();
        assert_eq!(told(("RANK", "one")), "RANK is \"one\": expected a non-negative integer");
        assert_eq!(told(("RANK", "4")), "RANK is 4: expected less than WORLD_SIZE, which is 4");
        assert_eq!(told(("MASTER_PORT", "70000")), "MASTER_PORT is 70000: expected a port, at most 65535");
    }
}
