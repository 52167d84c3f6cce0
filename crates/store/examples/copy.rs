//! Copies a file into a run in S3 or back, for throughput measurements.
//!
//! usage: copy put|get RUN FILE OPTIONS
//!
//! OPTIONS are those of the programs' `--s3`, such as `part-mib=8,parts=4`. The object has the name of the
//! file. `get` copies it into the folder of the file and then removes the copy.
//! `crates/store/bench/throughput.py` compares it with `aws s3 cp`.
#![allow(clippy::unwrap_used, reason = "a measurement, not a program of the project")]

use std::env;
use std::path::Path;

use store::{Key, ObjectContent, Put, Store};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [what, run, file, options] = &arguments[..] else { panic!("usage: copy put|get RUN FILE OPTIONS") };
    let store = Store::open_with(run, &options.parse().unwrap()).unwrap();
    let file = Path::new(file);
    let key = Key::new(file.file_name().unwrap().to_str().unwrap()).unwrap();
    match what.as_str() {
        "put" => {
            assert!(matches!(store.put_if_absent(&key, ObjectContent::File(file)).unwrap(), Put::Stored(_)));
        }
        "get" => assert!(store.local_copy(&key, file.parent().unwrap()).unwrap().bytes() > 0),
        _ => panic!("{what}: expected put or get"),
    }
}
