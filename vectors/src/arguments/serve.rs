//! Flags of `vectors serve`, and of the connection to its servers.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use parameters::{LogSync, TlsFiles};
use program::place::local_path;
use program::size::parse_memory;

use training::arguments::numbers::{positive, whole};

/// Maximum number of servers and of workers.
pub(super) const PLACES_MAX: i64 = 10_000;

/// Flags of a parameter server.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Folder of the snapshots and the log
    ///
    /// A server that was stopped or killed continues with the state in its folder.
    #[arg(
        long,
        value_name = "FOLDER",
        value_parser = PathBufValueParser::new().try_map(local_path),
        required_unless_present = "statistics"
    )]
    pub folder: Option<PathBuf>,
    /// Address and port at which it listens
    ///
    /// Port 0 is a free port, which is printed. An address that other machines can reach requires --token-file, or the three
    /// TLS files.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub listen: SocketAddr,
    /// Print the statistics of running servers, and end
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', conflicts_with = "folder")]
    pub statistics: Vec<String>,
    /// This server of all servers, from 0: I/N
    ///
    /// Row r is on server r modulo N. Pass the servers to vectors train in this order.
    #[arg(long, value_name = "I/N", default_value = "0/1", value_parser = place, help_heading = "Workers")]
    pub shard: Place,
    /// Number of workers
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<u32>(1..=PLACES_MAX), help_heading = "Workers")]
    pub workers: u32,
    /// Maximum steps that a worker is ahead: a number or unbounded
    ///
    /// 0: all workers complete a step before its updates are applied, in the order of workers. The result does not depend on
    /// their speed.
    #[arg(long, value_name = "N", default_value = "1", value_parser = staleness, help_heading = "Workers")]
    pub staleness: Staleness,
    /// Seconds after which a silent worker is removed
    ///
    /// The others then continue without it.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = positive, hide_short_help = true, help_heading = "Workers")]
    pub remove_after: f64,
    /// Maximum memory of the rows
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_memory, help_heading = "Running")]
    pub memory: usize,
    /// When updates are made durable: always, interval or off
    ///
    /// always: before they are acknowledged. interval: each second. off: when the system does. After a kill of the server, none
    /// is lost in any case; after a failure of the machine, none with always.
    #[arg(long, value_name = "NAME", default_value = "always", help_heading = "Running")]
    pub log_sync: LogSync,
    /// Seconds between two snapshots
    ///
    /// A snapshot shortens the log. Updates continue meanwhile.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = positive, help_heading = "Running")]
    pub snapshot_every: f64,
    /// End when all workers have left
    #[arg(long, help_heading = "Running")]
    pub until_done: bool,
    /// Print the statistics as JSON on standard output at the end
    #[arg(long, help_heading = "Running")]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, help_heading = "Running")]
    pub quiet: bool,
    /// Token and certificates.
    #[command(flatten)]
    pub security: Security,
}

/// Token and certificates of servers and workers.
#[derive(Clone, Debug, Args)]
pub struct Security {
    /// File with the key of servers and workers [default: $SENTIMILL_KEY_FILE]
    ///
    /// Only its owner can read it (mode 600). A token that is derived from it is sent; without TLS, whoever reads the network
    /// can read the token. Create it with `head -c 32 /dev/urandom | base64`.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Security")]
    pub token_file: Option<PathBuf>,
    /// Certificate of this process, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        hide_short_help = true,
        help_heading = "Security"
    )]
    pub tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        hide_short_help = true,
        help_heading = "Security"
    )]
    pub tls_key: Option<PathBuf>,
    /// Certificate of the authority that signed the other side's certificate
    ///
    /// A server with it requires certificates of its clients. A client with it uses TLS.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Security")]
    pub tls_ca: Option<PathBuf>,
}

impl Security {
    /// The files of TLS.
    pub fn tls(&self) -> TlsFiles {
        let Self { tls_certificate, tls_key, tls_ca, .. } = self.clone();
        TlsFiles { certificate: tls_certificate, key: tls_key, authority: tls_ca }
    }
}

/// One of several servers or workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// Parses I/N.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    numbers
        .filter(|&(number, of): &(u32, u32)| number < of && i64::from(of) <= PLACES_MAX)
        .map(|(number, of)| Place { number, of })
        .ok_or_else(|| format!("expected I/N, from 0/N to N-1/N, such as 0/2; N is at most {PLACES_MAX}"))
}

/// `--staleness`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staleness(pub Option<u64>);

fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an IP address and a port up to 65535, such as 127.0.0.1:7070 or [::1]:7070";
    text.parse().map_err(|_| expected.to_owned())
}

fn staleness(text: &str) -> Result<Staleness, String> {
    if text == "unbounded" {
        return Ok(Staleness(None));
    }
    let bound = text.parse::<u32>().map_err(|_| "expected a whole number from 0, or unbounded".to_owned());
    bound.map(|bound| Staleness(Some(u64::from(bound))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_bounds_are_checked() {
        assert_eq!(place("1/2"), Ok(Place { number: 1, of: 2 }));
        for text in ["2/2", "0/0", "1", "-1/2", "0/10001", "a/b"] {
            assert!(place(text).is_err(), "{text}");
        }
        assert_eq!(staleness("0"), Ok(Staleness(Some(0))));
        assert_eq!(staleness("unbounded"), Ok(Staleness(None)));
        assert!(staleness("-1").is_err() && staleness("none").is_err());
        assert!(address("[::1]:7070").is_ok());
        for text in ["7070", "localhost:7070", "127.0.0.1:99999"] {
            assert!(address(text).unwrap_err().contains("such as 127.0.0.1:7070"), "{text}");
        }
    }
}
