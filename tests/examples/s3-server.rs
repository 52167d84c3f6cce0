//! `s3-server`: the S3 server of the tests that is written in Rust, for measurements from outside.
//!
//! usage: s3-server
//!
//! Prints its address, and serves the bucket `bucket` to the key of the tests until its standard input ends.

use std::io::{self, Read, Write};

use tests::s3_server::S3Server;

fn main() -> io::Result<()> {
    let server = S3Server::start_s3s_fs();
    writeln!(io::stdout(), "{}", server.address())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
