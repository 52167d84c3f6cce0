//! Measures training speed in rows per second for a model of the default sizes. A step is forward pass, backward pass
//! and Adam; no dataset is read and no metrics are computed.
//!
//! usage: step [THREADS [LENGTH [BATCH [HIDDEN [LAYERS [KINDS]]]]]]
//!   LENGTH  tokens per row
//!   KINDS   number of instruction sets to measure, the fastest first

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use kernels::{Adam, Dropout, Engine, Pool, Processor, Sizes, Team, TokenRows};

const STEPS: usize = 100;

fn main() {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|number| number.parse().expect("a number")).collect();
    let argument = |at: usize, otherwise: usize| arguments.get(at).copied().unwrap_or(otherwise);
    let (threads, length, batch) = (argument(0, 1), argument(1, 40), argument(2, 512));
    let sizes = Sizes {
        ids: 10_003,
        embedding: 100,
        hidden: argument(3, 32),
        layers: argument(4, 2),
        linear: 32,
        outputs: 1,
        pool: Pool::Last,
    };
    for processor in Processor::all().into_iter().take(argument(5, 3)) {
        let team = Arc::new(Team::new(threads, processor));
        measure(&sizes, &team, length, batch);
    }
}

fn measure(sizes: &Sizes, team: &Arc<Team>, length: usize, batch: usize) {
    let mut random = 1u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut weights =
        sizes.lengths().map(|n| (0..n).map(|_| (next() - 0.5) as f32 * 0.2).collect::<Vec<f32>>());
    // Token ids roughly follow Zipf's law.
    let mut token = || ((sizes.ids as f64).powf(next()) as i64).min(sizes.ids as i64 - 1);
    let batches: Vec<Vec<i64>> = (0..8).map(|_| (0..batch * length).map(|_| token()).collect()).collect();
    let lengths = vec![length as i64; batch];
    let mut engine = Engine::new(*sizes, team.clone());
    let zeros = || sizes.lengths().map(|n| vec![0.0f32; n]);
    let (mut gradients, mut mean, mut square) = (zeros(), zeros(), zeros());
    let loss = |_: usize, outputs: &[f32], gradients: &mut [f32]| {
        gradients[0] = outputs[0] - 1.0;
        f64::from(outputs[0] - 1.0).powi(2) / 2.0
    };
    let rule =
        Adam { shrink: 1.0, decay: 0.0, beta_1: 0.9, beta_2: 0.999, rate: 1e-4, root: 1.0, epsilon: 1e-8 };
    let mut times = Vec::new();
    for step in 0..STEPS {
        let begin = Instant::now();
        let rows = TokenRows { tokens: &batches[step % 8], longest: length, lengths: &lengths };
        engine.train(&weights.views(), rows, &Dropout::none(), &loss, &mut gradients.views_mut());
        let trained = begin.elapsed().as_secs_f64();
        let all = weights.views_mut().all().into_iter().zip(gradients.views_mut().all());
        for ((weights, gradients), (mean, square)) in
            all.zip(mean.views_mut().all().into_iter().zip(square.views_mut().all()))
        {
            kernels::adam(team, weights, gradients, [mean, square], &rule);
        }
        times.push((begin.elapsed().as_secs_f64(), trained));
    }
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (took, trained) = times[STEPS / 2];
    let fastest = times[0].0;
    let token_products = sizes.hidden * 4 * (sizes.hidden + (sizes.layers - 1) * 2 * sizes.hidden);
    let operations = (batch * length * token_products * 6) as f64;
    println!(
        "{:?}: {:.0} rows/s, {:.2} ms a step of {batch} (fastest {:.2}), {:.2} ms without Adam, at least {:.0} GFLOP/s",
        team.processor(),
        batch as f64 / took,
        took * 1e3,
        fastest * 1e3,
        trained * 1e3,
        operations / trained / 1e9
    );
}
