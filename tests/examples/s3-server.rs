//! `s3-server`: the Rust S3 server of the tests, for measurements outside of the tests.
//!
//! usage: s3-server
//!
//! Prints its address, and serves the bucket `bucket` with the tests' credentials until its standard input
//! ends.

use std::io::{self, Read, Write};

use tests::s3_server::S3Server;

fn main() -> io::Result<()> {
    let server = S3Server::start_s3s_fs();
    writeln!(io::stdout(), "{}", server.address())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
