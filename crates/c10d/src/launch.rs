//! A process's rank and store, from the environment variables set by torchrun.

use std::env;

use crate::address::is_loopback_only;
use crate::error::{Error, Result};

const START: &str = "start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";

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
/// let launch = c10d::Launch::from_variables(of_two)?;
/// assert_eq!((launch.rank, launch.world_size, launch.master_port), (1, 2, 29500));
/// # Ok::<(), c10d::Error>(())
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
    /// Host of the store: that of rank 0 or of torchrun's agent.
    pub master_addr: String,
    /// Port of the store. 0 selects a free port, for a group of one rank.
    pub master_port: u16,
    /// Whether torchrun's agent serves the store (`TORCHELASTIC_USE_AGENT_STORE`). Otherwise rank 0 serves it.
    pub agent_store: bool,
    /// Number of restarts of the group by torchrun (`TORCHELASTIC_RESTART_COUNT`).
    pub restarts: usize,
}

impl Launch {
    /// Reads the environment. Errors: a variable is missing or invalid.
    ///
    /// ```
    /// // Not started with torchrun: a group of this process alone.
    /// let launch = c10d::Launch::from_env().unwrap_or_else(|_| c10d::Launch::alone());
    /// assert!(launch.rank < launch.world_size);
    /// ```
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| env::var(name).ok())
    }

    /// Reads the variables from a function.
    ///
    /// ```
    /// let missing = c10d::Launch::from_variables(|name| (name == "RANK").then(|| "0".to_owned())).unwrap_err();
    /// assert!(missing.to_string().starts_with("WORLD_SIZE is not set: start the program with torchrun"));
    /// ```
    pub fn from_variables(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self> {
        let needed = |name: &'static str| {
            variable(name).ok_or(Error::Environment {
                name,
                found: "not set".to_owned(),
                remedy: START.to_owned(),
            })
        };
        let number = |name: &'static str, text: String| {
            text.parse::<usize>().map_err(|_| Error::Environment {
                name,
                found: format!("{text:?}"),
                remedy: "expected a non-negative integer".to_owned(),
            })
        };
        let needed_number = |name| number(name, needed(name)?);
        let number_or_0 = |name| variable(name).map_or(Ok(0), |text| number(name, text));

        let rank = needed_number("RANK")?;
        let world_size = needed_number("WORLD_SIZE")?;
        if rank >= world_size {
            return Err(Error::Environment {
                name: "RANK",
                found: rank.to_string(),
                remedy: format!("expected less than WORLD_SIZE, which is {world_size}"),
            });
        }
        let port = needed_number("MASTER_PORT")?;
        Ok(Self {
            rank,
            world_size,
            local_rank: number_or_0("LOCAL_RANK")?,
            local_world_size: variable("LOCAL_WORLD_SIZE")
                .map(|text| number("LOCAL_WORLD_SIZE", text))
                .transpose()?,
            master_addr: needed("MASTER_ADDR")?,
            master_port: u16::try_from(port).map_err(|_| Error::Environment {
                name: "MASTER_PORT",
                found: port.to_string(),
                remedy: "expected a port, at most 65535".to_owned(),
            })?,
            agent_store: variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|text| text == "True"),
            restarts: number_or_0("TORCHELASTIC_RESTART_COUNT")?,
        })
    }

    /// A group of one rank, with a store on a free port of this machine.
    ///
    /// ```
    /// assert_eq!(c10d::Launch::alone().world_size, 1);
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
            restarts: 0,
        }
    }

    /// Whether this process must serve the store.
    pub(crate) fn serves_store(&self) -> bool {
        !self.agent_store && self.rank == 0
    }

    /// Refuses a loopback address if ranks are on several machines. Ranks listen only on the interface of the store's
    /// address, so ranks on other machines would wait in vain.
    pub(crate) fn check_reach(&self) -> Result<()> {
        let has_others = self.local_world_size.is_some_and(|here| here < self.world_size);
        if !has_others || is_loopback_only(&self.master_addr) != Some(true) {
            return Ok(());
        }
        Err(Error::Environment {
            name: "MASTER_ADDR",
            found: format!("{:?}", self.master_addr),
            remedy: "a loopback address, which ranks on other machines cannot reach; \
                     expected an address of rank 0's machine in their network"
                .to_owned(),
        })
    }

    /// Prefix of the store's keys. Empty in the first round, so that Python ranks find them.
    pub(crate) fn store_prefix(&self) -> String {
        match (self.agent_store, self.restarts) {
            (true, 1..) => format!("c10d/round/{}/", self.restarts),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn variables(changed: &[(&'static str, &str)]) -> Result<Launch> {
        let mut all =
            vec![("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29500")];
        all.extend_from_slice(changed);
        Launch::from_variables(|name| {
            all.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn torchruns_environment_is_read() {
        let launch = variables(&[
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
            ("RANK", "3"),
            ("LOCAL_RANK", "1"),
            ("WORLD_SIZE", "4"),
        ])
        .unwrap();

        assert_eq!((launch.rank, launch.local_rank, launch.world_size, launch.restarts), (3, 1, 4, 2));
        assert!(launch.agent_store && !launch.serves_store());
        assert_eq!(launch.store_prefix(), "c10d/round/2/");
        assert_eq!(Launch { restarts: 0, ..launch.clone() }.store_prefix(), "");
        // After a restart, rank 0 serves a new store.
        assert_eq!(Launch { agent_store: false, ..launch }.store_prefix(), "");
    }

    #[test]
    fn loopback_is_refused_for_several_machines() {
        let on = |address, here| {
            let launch =
                variables(&[("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", here), ("MASTER_ADDR", address)]);
            launch.unwrap().check_reach().map_err(|error| error.to_string())
        };

        assert_eq!(on("127.0.0.1", "4"), Ok(()));
        assert_eq!(on("192.0.2.1", "2"), Ok(()));
        assert_eq!(
            on("127.0.1.1", "2").unwrap_err(),
            "MASTER_ADDR is \"127.0.1.1\": a loopback address, which ranks on other \
             machines cannot reach; expected an address of rank 0's machine in their network"
        );
    }

    #[test]
    fn an_invalid_variable_is_named() {
        let told = |changed| variables(&[changed]).unwrap_err().to_string();

        assert_eq!(told(("RANK", "one")), "RANK is \"one\": expected a non-negative integer");
        assert_eq!(told(("RANK", "1")), "RANK is 1: expected less than WORLD_SIZE, which is 1");
        assert_eq!(told(("MASTER_PORT", "70000")), "MASTER_PORT is 70000: expected a port, at most 65535");
        assert_eq!(told(("WORLD_SIZE", "0")), "RANK is 0: expected less than WORLD_SIZE, which is 0");
    }
}
