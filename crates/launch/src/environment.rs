//! The place of a rank among the others, from the environment variables that torchrun and [`crate::run`] set.

use std::env;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use program::exit::{Exit, Failed};

const START: &str = "start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";

/// Environment variables that [`crate::run_surviving`] sets.
pub(crate) const SURVIVES: &str = "SENTIMILL_SURVIVES";
pub(crate) const JOINS: &str = "SENTIMILL_JOINS";

/// The settings that torchrun passes to each process.
///
/// ```
/// let of_two = |name: &str| match name {
///     "RANK" | "LOCAL_RANK" => Some("1".to_owned()),
///     "WORLD_SIZE" => Some("2".to_owned()),
///     "MASTER_ADDR" => Some("10.0.3.9".to_owned()),
///     "MASTER_PORT" => Some("29500".to_owned()),
///     _ => None,
/// };
/// let launch = launch::Launch::from_variables(of_two)?;
/// assert_eq!((launch.rank, launch.world_size, launch.master_port), (1, 2, 29500));
/// # Ok::<(), program::exit::Failed>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// This process's rank in the group, from 0. It can change after a restart.
    pub rank: usize,
    /// Number of ranks.
    pub world_size: usize,
    /// This process's rank on its machine, which selects the GPU. Default: 0.
    pub local_rank: usize,
    /// Number of ranks on this machine (`LOCAL_WORLD_SIZE`), if known.
    pub local_world_size: Option<usize>,
    /// Host of PyTorch's store: that of rank 0 or of torchrun's agent.
    pub master_addr: String,
    /// Port of the store. 0 selects a free port, for a group of one rank.
    pub master_port: u16,
    /// Whether torchrun's agent (`TORCHELASTIC_USE_AGENT_STORE`) or [`crate::run_surviving`] serves the store. Otherwise
    /// rank 0 serves it.
    pub agent_store: bool,
    /// Whether the ranks go on without a lost one ([`crate::run_surviving`]).
    pub survives: bool,
    /// Whether this rank joins a training that has begun.
    pub joins: bool,
    /// Number of restarts of the group by torchrun (`TORCHELASTIC_RESTART_COUNT`).
    pub restarts: usize,
}

impl Launch {
    /// Reads the environment; `None` of a single process.
    ///
    /// # Errors
    /// If a variable is missing or invalid, or other ranks cannot reach rank 0.
    pub fn of_ranks() -> Result<Option<Self>, Failed> {
        Self::ranks_of(|name| env::var(name).ok())
    }

    fn ranks_of(variable: impl Fn(&'static str) -> Option<String>) -> Result<Option<Self>, Failed> {
        if variable("RANK").is_none() || variable("WORLD_SIZE").as_deref() == Some("1") {
            return Ok(None);
        }
        let launch = Self::from_variables(variable)?;
        launch.check_reach()?;
        Ok(Some(launch))
    }

    /// Reads the environment. Errors: a variable is missing or invalid.
    ///
    /// ```
    /// // Not started with torchrun: a group of this process alone.
    /// let launch = launch::Launch::from_env().unwrap_or_else(|_| launch::Launch::alone());
    /// assert!(launch.rank < launch.world_size);
    /// ```
    pub fn from_env() -> Result<Self, Failed> {
        Self::from_variables(|name| env::var(name).ok())
    }

    /// Reads the variables from a function.
    ///
    /// ```
    /// let missing = launch::Launch::from_variables(|name| (name == "RANK").then(|| "0".to_owned())).unwrap_err();
    /// assert!(missing.to_string().starts_with("WORLD_SIZE is not set: start the program with torchrun"));
    /// ```
    pub fn from_variables(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, Failed> {
        let needed = |name| variable(name).ok_or_else(|| invalid(name, "not set", START));
        let optional = |name| {
            let number = variable(name).map(|text| {
                let expected = "expected a non-negative integer";
                text.parse::<u32>().map_err(|_| invalid(name, &format!("{text:?}"), expected))
            });
            number.transpose().map(|number| number.map(|number| number as usize))
        };
        let number = |name| optional(name)?.ok_or_else(|| invalid(name, "not set", START));

        let (rank, world_size, port) = (number("RANK")?, number("WORLD_SIZE")?, number("MASTER_PORT")?);
        if rank >= world_size {
            let expected = format!("expected less than WORLD_SIZE, which is {world_size}");
            return Err(invalid("RANK", &rank.to_string(), &expected));
        }
        let survives = variable(SURVIVES).is_some();
        Ok(Self {
            rank,
            world_size,
            local_rank: optional("LOCAL_RANK")?.unwrap_or(0),
            local_world_size: optional("LOCAL_WORLD_SIZE")?,
            master_addr: needed("MASTER_ADDR")?,
            master_port: port
                .try_into()
                .map_err(|_| invalid("MASTER_PORT", &port.to_string(), "expected a port, at most 65535"))?,
            agent_store: survives
                || variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|text| text == "True"),
            survives,
            joins: variable(JOINS).is_some(),
            restarts: optional("TORCHELASTIC_RESTART_COUNT")?.unwrap_or(0),
        })
    }

    /// A group of one rank, with a store on a free port of this machine.
    ///
    /// ```
    /// assert_eq!(launch::Launch::alone().world_size, 1);
    /// ```
    pub fn alone() -> Self {
        Self {
            rank: 0,
            world_size: 1,
            local_rank: 0,
            local_world_size: Some(1),
            master_addr: "127.0.0.1".to_owned(),
            master_port: 0,
            agent_store: false,
            survives: false,
            joins: false,
            restarts: 0,
        }
    }

    /// Refuses a loopback address if ranks are on several machines. Ranks listen only on the interface of that address, so
    /// ranks on other machines would wait in vain.
    pub fn check_reach(&self) -> Result<(), Failed> {
        let addresses = self.addresses();
        let is_local = !addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback());
        if !is_local || self.local_world_size.is_none_or(|here| here >= self.world_size) {
            return Ok(());
        }
        let expected = "a loopback address, which ranks on other machines cannot reach; expected an address of rank 0's \
                        machine in their network";
        Err(invalid("MASTER_ADDR", &format!("{:?}", self.master_addr), expected))
    }

    /// The port at which rank 0 listens for programs without PyTorch: `MASTER_PORT`, or the one beside it if torchrun's agent
    /// has `MASTER_PORT`.
    fn port(&self) -> u16 {
        let port = self.master_port;
        if self.agent_store { port.checked_add(1).unwrap_or(port - 1) } else { port }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        (&*self.master_addr, self.port()).to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect)
    }

    /// The address at which rank 0 listens: that of its host, if this machine has it, or else all of this machine.
    pub fn listen(&self) -> SocketAddr {
        let is_here = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
        let found = self.addresses().into_iter().find(is_here);
        found.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, self.port()).into())
    }

    /// The address to which ranks connect, as HOST:PORT.
    pub fn server(&self) -> String {
        let (host, port) = (&self.master_addr, self.port());
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

    fn of(changed: &[(&'static str, &str)]) -> Result<Launch, Failed> {
        let mut all =
            vec![("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")];
        all.extend_from_slice(changed);
        Launch::from_variables(|name| {
            all.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn torchruns_environment_is_read() {
        let launch = of(&[
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
            ("RANK", "3"),
            ("LOCAL_RANK", "1"),
        ])
        .unwrap();
        assert_eq!((launch.rank, launch.local_rank, launch.world_size, launch.restarts), (3, 1, 4, 2));
        assert_eq!((launch.local_world_size, launch.agent_store), (None, true));
    }

    #[test]
    fn one_process_is_no_group_of_ranks() {
        let size = |size: &'static str| {
            let launch = Launch::ranks_of(|name| match name {
                "WORLD_SIZE" => Some(size.to_owned()),
                "MASTER_ADDR" => Some("127.0.0.1".to_owned()),
                "RANK" | "MASTER_PORT" => Some("0".to_owned()),
                _ => None,
            });
            launch.unwrap().map(|launch| launch.world_size)
        };
        assert_eq!((size("1"), size("2")), (None, Some(2)));
        assert_eq!(Launch::ranks_of(|_| None).unwrap(), None);
    }

    #[test]
    fn the_port_of_torchruns_agent_is_left_to_it() {
        let agent = ("TORCHELASTIC_USE_AGENT_STORE", "True");
        let server = |changed: &[(&'static str, &str)]| of(changed).unwrap().server();
        assert_eq!(server(&[]), "127.0.0.1:29500");
        assert_eq!(server(&[agent]), "127.0.0.1:29501");
        assert_eq!(server(&[agent, ("MASTER_PORT", "65535")]), "127.0.0.1:65534");
    }

    #[test]
    fn rank_0_listens_at_its_address() {
        let launch = |host| of(&[("MASTER_ADDR", host), ("RANK", "0")]).unwrap();
        assert_eq!(launch("127.0.0.1").listen().to_string(), "127.0.0.1:29500");
        assert_eq!(launch("192.0.2.1").listen().to_string(), "0.0.0.0:29500");
        assert_eq!(launch("2001:db8::1").server(), "[2001:db8::1]:29500");
    }

    #[test]
    fn loopback_is_refused_for_several_machines() {
        let on = |address, here| {
            let launch = of(&[("LOCAL_WORLD_SIZE", here), ("MASTER_ADDR", address)]).unwrap();
            launch.check_reach().map_err(|error| error.to_string())
        };
        for (address, here) in [("127.0.0.1", "4"), ("192.0.2.1", "2"), ("no such name", "2")] {
            assert_eq!(on(address, here), Ok(()));
        }
        assert_eq!(
            on("127.0.1.1", "2").unwrap_err(),
            "MASTER_ADDR is \"127.0.1.1\": a loopback address, which ranks on other \
             machines cannot reach; expected an address of rank 0's machine in their network"
        );
    }

    #[test]
    fn an_invalid_variable_is_named() {
        let told = |changed| of(&[changed]).unwrap_err().to_string();
        assert_eq!(told(("RANK", "one")), "RANK is \"one\": expected a non-negative integer");
        assert_eq!(told(("RANK", "4")), "RANK is 4: expected less than WORLD_SIZE, which is 4");
        assert_eq!(told(("MASTER_PORT", "70000")), "MASTER_PORT is 70000: expected a port, at most 65535");
        assert_eq!(told(("WORLD_SIZE", "0")), "RANK is 1: expected less than WORLD_SIZE, which is 0");
    }
}
