//! Measures the time per step of the profile and of the balancer, without the exchange of their measurements.
//!
//! usage: own-time

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use balance::{Balancer, Measured, Rule, Settings};
use tch::Device;
use trainer::times::{Phase, Stopwatch};

const STEPS: u64 = 20_000;
const BATCH: usize = 4096;

fn main() {
    println!("profile: {:.2} µs per step", micros(profile));
    for ranks in [2, 8, 64] {
        println!("balancer of {ranks} ranks: {:.1} µs per step", micros(|| decide(ranks)));
    }
}

fn micros(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e6 / STEPS as f64
}

fn profile() {
    let mut stopwatch = Stopwatch::start(Device::Cpu);
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
    let settings =
        Settings { rule: Rule::Dynamic { every: 10 }, ranks, batch_rows: BATCH, step_batches: 1, delay: 6 };
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
