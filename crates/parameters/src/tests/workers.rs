//! Workers that add 1 to rows, so that the sum of each row tells how often its updates were applied.

use std::sync::mpsc::Sender;

use program::random::Random;

use super::{DIM, N_ROWS, client, ones, spec};
use crate::{Client, Moment, Read, Sent};

/// What a group of workers does.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) servers: Vec<String>,
    pub(super) n_workers: u32,
    pub(super) n_steps: u64,
    pub(super) seed: u64,
    /// A worker is replaced by a new one in one of this number of steps; 0: never.
    pub(super) dies_in: u64,
}

impl Work {
    /// The rows that a worker updates in a step. They depend on nothing else.
    fn rows(&self, worker: u32, step: u64) -> Vec<u32> {
        let mut random = Random::of(&[self.seed, u64::from(worker), step]);
        let mut rows: Vec<u32> = (0..20).map(|_| random.below(u64::from(N_ROWS)) as u32).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// The values of all rows at the end.
    pub(super) fn sums(&self) -> Vec<f32> {
        let mut sums = vec![0.0; N_ROWS as usize * DIM];
        for worker in 0..self.n_workers {
            for row in (0..self.n_steps).flat_map(|step| self.rows(worker, step)) {
                sums[row as usize * DIM..][..DIM].iter_mut().for_each(|sum| *sum += 1.0);
            }
        }
        sums
    }

    /// The number of pushes: each step has one on each server.
    pub(super) fn n_pushes(&self) -> u64 {
        self.n_steps * u64::from(self.n_workers) * self.servers.len() as u64
    }

    /// Runs all workers. `done` gets a message for each step.
    pub(super) fn run(&self, done: &Sender<()>) -> Sent {
        let mut sum = Sent::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..self.n_workers).map(|worker| scope.spawn(move || self.worker(worker, done))).collect();
            workers.into_iter().for_each(|worker| sum.add(&worker.join().unwrap()));
        });
        sum
    }

    fn join(&self, worker: u32) -> (Client, u64) {
        let mut client = client(&self.servers);
        client.create(&spec()).unwrap();
        let joined = client.join(worker, self.n_workers).unwrap();
        (client, joined.step)
    }

    fn worker(&self, worker: u32, done: &Sender<()>) -> Sent {
        let mut sent = Sent::default();
        let mut deaths = Random::of(&[self.seed, 99, u64::from(worker)]);
        let (mut client, mut step) = self.join(worker);
        while step < self.n_steps {
            let rows = self.rows(worker, step);
            let reads = vec![Read { table: 0, rows: rows.clone() }];
            let pulled = client.pulled(client.pull(Moment::Step(step), reads).unwrap()).unwrap();
            let pushing = client.push(step, &pulled.read_at, &mut [ones(rows)]).unwrap();
            if self.dies_in > 0 && deaths.below(self.dies_in) == 0 {
                // The push is cut off, before or after the server accepts it.
                drop((pushing, client));
                (client, step) = self.join(worker);
            } else {
                sent.add(&client.pushed(pushing).unwrap());
                step += 1;
            }
            let _ = done.send(());
        }
        client.leave().unwrap();
        sent
    }
}
