//! Trains texts on several threads with reproducible results.
//!
//! In a round each thread computes the gradients of a fixed number of texts while no weight changes. Then each thread
//! updates the rows that it owns, in the order of the texts. The result depends on the number of threads, because it
//! determines the texts of a round, but not on timing.

use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::{Condvar, Mutex, RwLock};
use std::thread;

use program::threads::spawn;

use super::kernel;
use super::segment::Segment;
use super::update::{RowCounts, Shared, Step, plain_rate, row_of};

/// Number of texts of a round, of all threads. More texts cost fewer waits, but their gradients are of older weights:
/// with 64, accuracy on film reviews is 0.016 lower.
const TEXTS_PER_ROUND: usize = 16;
/// Minimum number of texts per thread and round.
const TEXTS_MIN: usize = 2;
/// Number of checks before a waiting thread sleeps; some microseconds.
const SPINS: usize = 2000;

/// The gradients of one thread's texts of a round.
#[derive(Default)]
struct Gradients {
    texts: Vec<Text>,
    /// By owner: the rows of all texts.
    rows: Vec<Vec<u32>>,
    /// By text: the mean of its rows.
    means: Vec<f32>,
    /// By text: the gradient with respect to the mean.
    gradients: Vec<f32>,
    /// By text: the errors of rows of the output.
    errors: Vec<f32>,
    /// The row of each error; empty if each row has one per text.
    nodes: Vec<u32>,
}

struct Text {
    position: usize,
    n_rows: u32,
    /// The end of the text's errors.
    end: usize,
    /// By owner: the end of the text's rows.
    ends: Vec<u32>,
}

/// Trains the texts of a segment. Returns the sum of losses and the number of texts.
pub(super) fn run(shared: &Shared<'_>, segment: &Segment<'_>) -> (f64, u64) {
    let threads = shared.settings.threads;
    let gradients: Vec<RwLock<Gradients>> = (0..threads).map(|_| RwLock::default()).collect();
    let gate = Gate::new(threads);
    let run = |thread| train(shared, segment, thread, &gradients, &gate);
    let sums = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| spawn(scope, move || run(thread))).collect();
        let first = std::iter::once(run(0));
        first.chain(others.into_iter().map(|thread| thread.join().expect("no panic"))).collect::<Vec<_>>()
    });
    sums.into_iter().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn train(
    shared: &Shared<'_>,
    segment: &Segment<'_>,
    thread: usize,
    gradients: &[RwLock<Gradients>],
    gate: &Gate,
) -> (f64, u64) {
    let mut step = Step::new(shared);
    let mut distinct = RowCounts::default();
    let mut rows = Vec::new();
    let (mut loss, mut n_trained) = (0.0, 0);
    let n_together = (TEXTS_PER_ROUND / gradients.len()).max(TEXTS_MIN);
    for round in (segment.from..segment.to).step_by(n_together * gradients.len()) {
        let from = (round + thread * n_together).min(segment.to);
        let to = (from + n_together).min(segment.to);
        let mut mine = gradients[thread].write().expect("no panic");
        mine.clear(gradients.len());
        for position in from..to {
            let number = segment.step(position);
            let listed = step.list_rows(shared, segment.window, position, number, &mut rows);
            let rows = listed.unwrap_or(&rows);
            if !rows.is_empty() {
                let labels = segment.window.text(position).labels;
                loss += f64::from(step.forward(shared, rows, labels, number));
                n_trained += 1;
                mine.push(position, rows, &step);
            }
        }
        drop(mine);
        gate.wait();
        for of_thread in gradients {
            update(shared, segment, thread, &of_thread.read().expect("no panic"), &mut distinct);
        }
        gate.wait();
    }
    (loss, n_trained)
}

/// Updates the rows that a thread owns.
fn update(
    shared: &Shared<'_>,
    segment: &Segment<'_>,
    thread: usize,
    gradients: &Gradients,
    distinct: &mut RowCounts,
) {
    let stride = shared.input.stride();
    let threads = gradients.rows.len();
    let (mut from, mut error) = (0, 0);
    let mut scaled = vec![0.0; stride];
    for (at, text) in gradients.texts.iter().enumerate() {
        let to = text.ends[thread] as usize;
        let rows = &gradients.rows[thread][from..to];
        let next = gradients.texts.get(at + 1).map_or(to, |next| next.ends[thread] as usize);
        from = to;
        let n_done = segment.step(text.position);
        let rule = shared.settings.rule(shared.settings.rate_at(n_done, segment.n_total), n_done + 1);
        let mean = &gradients.means[at * stride..][..stride];
        let errors = &gradients.errors[error..text.end];
        let nodes = gradients.nodes.get(error..text.end).unwrap_or_default();
        error = text.end;
        let (first, step) = if nodes.is_empty() { (thread, threads) } else { (0, 1) };
        for at in (first..errors.len()).step_by(step) {
            let row = row_of(nodes, at);
            if row as usize % threads == thread {
                kernel::update_row_on(shared.processor, shared.output, row, mean, errors[at], &rule);
            }
        }
        let gradient = &gradients.gradients[at * stride..][..stride];
        let share = 1.0 / text.n_rows as f32;
        if let Some(rate) = plain_rate(&rule) {
            scaled
                .iter_mut()
                .zip(gradient)
                .for_each(|(scaled, gradient)| *scaled = gradient * (-rate * share));
            kernel::add_to_rows_on(
                shared.processor,
                shared.input,
                rows,
                &scaled,
                &gradients.rows[thread][to..next],
            );
        } else {
            for &(row, count) in distinct.of(rows) {
                kernel::update_row_on(
                    shared.processor,
                    shared.input,
                    row,
                    gradient,
                    count as f32 * share,
                    &rule,
                );
            }
        }
    }
}

impl Gradients {
    fn clear(&mut self, threads: usize) {
        self.texts.clear();
        self.nodes.clear();
        self.rows.resize_with(threads, Vec::new);
        self.rows.iter_mut().for_each(Vec::clear);
        for list in [&mut self.means, &mut self.gradients, &mut self.errors] {
            list.clear();
        }
    }

    fn push(&mut self, position: usize, rows: &[u32], step: &Step) {
        let threads = self.rows.len() as u64;
        for &row in rows {
            // The upper half of a product with a multiplicative hash: owners of equal shares of the rows.
            let owner = (u64::from(row.wrapping_mul(0x9e37_79b1)) * threads) >> 32;
            self.rows[owner as usize].push(row);
        }
        let ends = self.rows.iter().map(|rows| rows.len() as u32).collect();
        let end = self.errors.len() + step.errors.len();
        self.texts.push(Text { position, n_rows: rows.len() as u32, end, ends });
        self.means.extend_from_slice(&step.mean);
        self.gradients.extend_from_slice(&step.gradient);
        self.errors.extend_from_slice(&step.errors);
        self.nodes.extend_from_slice(&step.nodes);
    }
}

/// Lets threads pass when all have arrived. A wait is short if each thread has a processor, so threads check repeatedly
/// before they sleep.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
    /// Number of times that all threads passed.
    passed: AtomicUsize,
    sleeping: Mutex<()>,
    wake: Condvar,
}

impl Gate {
    fn new(threads: usize) -> Self {
        let (arrived, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { threads, arrived, passed, sleeping: Mutex::new(()), wake: Condvar::new() }
    }

    fn wait(&self) {
        let passed = self.passed.load(Acquire);
        if self.arrived.fetch_add(1, AcqRel) + 1 == self.threads {
            self.arrived.store(0, Release);
            // Under the lock, so that no thread falls asleep between its check and the call that wakes it.
            let sleeping = self.sleeping.lock().expect("no panic");
            self.passed.store(passed + 1, Release);
            drop(sleeping);
            return self.wake.notify_all();
        }
        for _ in 0..SPINS {
            if self.passed.load(Acquire) != passed {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleeping = self.sleeping.lock().expect("no panic");
        while self.passed.load(Acquire) == passed {
            sleeping = self.wake.wait(sleeping).expect("no panic");
        }
    }
}
