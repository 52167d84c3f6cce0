//! Measures a server: workers push updates of random rows, or pull random rows, for some seconds, one request at a time.
//!
//! `pushes FOLDER LOG_SYNC WIRE WORKERS ROWS DIM SECONDS` prints one JSON object. The server is a process of the example
//! `parameter-server`; FOLDER receives its log. Rows per message: ROWS of DIM floats each, of a table of 100,000 rows.
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use parameters::{Client, ClientOptions, Initial, Moment, Optimizer, Read, Spec, TlsFiles, Update, Wire};
use program::random::Random;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Rows of the table.
const N_ROWS: u32 = 100_000;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [folder, log_sync, wire, workers, rows, dim, seconds] => {
            let load = Load { wire: wire.parse()?, rows: rows.parse()?, dim: dim.parse()? };
            let seconds = Duration::from_secs_f64(seconds.parse()?);
            measure(folder, log_sync, workers, &load, seconds)
        }
        _ => Err("usage: pushes FOLDER LOG_SYNC WIRE WORKERS ROWS DIM SECONDS".into()),
    }
}

/// What workers send.
#[derive(Clone, Copy)]
struct Load {
    wire: Wire,
    rows: usize,
    dim: usize,
}

fn measure(folder: &str, log_sync: &str, workers: &str, load: &Load, time: Duration) -> Result<(), Failed> {
    let (mut server, address) = start(folder, log_sync, workers)?;
    let n_workers: u32 = workers.parse()?;
    let all = |pushes: bool| -> Result<f64, Failed> {
        let began = Instant::now();
        let threads: Vec<_> = (0..n_workers)
            .map(|worker| {
                let (address, load) = (address.clone(), *load);
                thread::spawn(move || work(&address, worker, n_workers, load, time, pushes))
            })
            .collect();
        let mut rows = 0;
        for thread in threads {
            rows += thread.join().map_err(|_| "a worker panicked")??;
        }
        Ok(rows as f64 / began.elapsed().as_secs_f64())
    };
    let (pushed, pulled) = (all(true)?, all(false)?);
    let Load { rows, dim, .. } = load;
    writeln!(
        io::stdout(),
        "{{\"log_sync\":\"{log_sync}\",\"workers\":{workers},\"rows\":{rows},\"dim\":{dim},\"pushed_rows_per_s\":{pushed:.0},\
         \"pulled_rows_per_s\":{pulled:.0}}}"
    )?;
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

/// A server process, and its address.
fn start(folder: &str, log_sync: &str, workers: &str) -> Result<(Child, String), Failed> {
    if Path::new(folder).exists() {
        return Err(format!("{folder}: exists, expected a new folder").into());
    }
    let mut server = Command::new(env::current_exe()?.with_file_name("parameter-server"))
        .args(["127.0.0.1:0", folder, log_sync, workers, "none", "4294967296", "3600"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    let address = lines.next().ok_or("the server does not listen")??;
    thread::spawn(move || lines.for_each(drop));
    Ok((server, address))
}

/// Pushes, or pulls, one message after the other. Returns the number of rows.
fn work(
    address: &str,
    worker: u32,
    n_workers: u32,
    load: Load,
    time: Duration,
    pushes: bool,
) -> Result<u64, Failed> {
    let mut client = Client::new(&ClientOptions {
        servers: vec![address.to_owned()],
        token: None,
        tls: TlsFiles::default(),
        wire: load.wire,
        patience: Duration::from_secs(60),
        stop: Arc::default(),
    })?;
    let table = client.create(&Spec {
        name: "rows".to_owned(),
        n_rows: u64::from(N_ROWS),
        dim: load.dim as u32,
        initial: Initial::Zero,
        optimizer: Optimizer::Sum,
        content: String::new(),
        min_count: 0,
    })?;
    let mut step = client.join(worker, n_workers)?.step;
    let mut random = Random::of(&[u64::from(worker), step]);
    let values: Vec<f32> = (0..load.rows * load.dim).map(|_| random.uniform() - 0.5).collect();
    let began = Instant::now();
    let mut n_rows = 0;
    while began.elapsed() < time {
        let mut rows: Vec<u32> = (0..load.rows).map(|_| random.below(u64::from(N_ROWS)) as u32).collect();
        rows.sort_unstable();
        rows.dedup();
        n_rows += rows.len() as u64;
        if pushes {
            let values = values[..rows.len() * load.dim].to_vec();
            client.pushed(client.push(step, &[0], &mut [Update { table, rows, values }])?)?;
            step += 1;
        } else {
            client.pulled(client.pull(Moment::Now, vec![Read { table, rows }])?)?;
        }
    }
    Ok(n_rows)
}
