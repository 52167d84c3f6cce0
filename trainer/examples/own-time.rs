//! Measures the time per step of the profile and of the balancer. With several ranks, measures the exchange of a step: its
//! loss, its requests and the measurements for the balancer. These four numbers take no time of their own: the message is
//! sent in a frame of 256 bytes, with or without them.
//!
//! usage: own-time
//!
//! The environment of torchrun makes it a rank.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use batches::balance::{BalanceRule, Balancer, BalancerSettings, Measured};
use tch::Device;
use trainer::ranks::Ranks;
use trainer::train::times::{Phase, Stopwatch};

const STEPS: u64 = 20_000;
const BATCH: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var_os("RANK").is_some() {
        return exchange(&Ranks::join(Device::Cpu)?);
    }
    println!("profile: {:.2} µs per step", micros(profile));
    for ranks in [2, 8, 64] {
        println!("balancer of {ranks} ranks: {:.1} µs per step", micros(|| decide(ranks)));
    }
    Ok(())
}

/// The exchange of eight numbers in a step. Ranks enter it at the same time, so that none waits for another one.
fn exchange(ranks: &Ranks) -> Result<(), Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    for _ in 0..STEPS / 4 {
        ranks.gather([0.0], &[])?;
        let begin = Instant::now();
        ranks.gather([1.0; 8], &[])?;
        times.push(begin.elapsed());
    }
    if ranks.rank() == 0 {
        times.sort();
        println!("exchange: {:.1} µs per step, the median", times[times.len() / 2].as_secs_f64() * 1e6);
    }
    Ok(())
}

fn micros(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e6 / STEPS as f64
}

fn profile() {
    let mut stopwatch = Stopwatch::alone(Device::Cpu);
    for _ in 0..STEPS {
        stopwatch.count(1, 1);
        for phase in Phase::ALL {
            stopwatch.measure(phase, || ());
        }
        black_box((stopwatch.lap(), stopwatch.end_step()));
    }
}

/// Ranks of equal speed whose times differ by up to 10 %.
fn decide(ranks: usize) {
    let settings = BalancerSettings {
        rule: BalanceRule::Dynamic { every: 10 },
        ranks,
        batch_rows: BATCH,
        step_batches: 1,
        delay: 6,
    };
    let mut balancer = Balancer::new(settings, vec![BATCH / ranks; ranks]);
    let mut random = 1u64;
    for step in 0..STEPS {
        let sizes = balancer.parts_of(step).to_vec();
        let measured = sizes.iter().map(|&rows| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let work = rows as u64 * (50 + step % 50);
            Measured { rows, work, nanoseconds: work * (1000 + (random >> 40) % 100) }
        });
        let measured = measured.collect();
        black_box(balancer.note(step, measured));
    }
}
