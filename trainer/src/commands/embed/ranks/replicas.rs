//! Models whose tables have an optimizer, on ranks: each rank has the tables, as a parameter server has them.

use std::io::Write;

use launch::interrupt::Asked;
use parameters::{Replica, Spec};
use skipgram::{Decay, Done, Vocabulary, Work};

use super::exchange::{RankModel, RankTraffic, invalid};
use crate::commands::embed::model::{Model, reads, rows_from, updates};
use crate::commands::group::Group;
use crate::commands::texts_out::TextsOut;
use crate::error::{Error, Result};

/// The model of a rank, and the tables of which it gets the rows of a step.
pub(super) struct Replicas<M> {
    model: M,
    specs: Vec<Spec>,
    replica: Replica,
    /// The updates of the last step.
    message: Vec<u8>,
    sent: RankTraffic,
}

impl<M: Model> Replicas<M> {
    pub(super) fn new(model: M) -> Self {
        let specs = model.specs("");
        Self {
            replica: Replica::new(specs.clone()),
            model,
            specs,
            message: Vec::new(),
            sent: RankTraffic::default(),
        }
    }
}

impl<M: Model> RankModel for Replicas<M> {
    type Of = M;

    fn model(&self) -> &M {
        &self.model
    }

    fn model_mut(&mut self) -> &mut M {
        &mut self.model
    }

    fn step(&mut self, sentences: Work, decay: Decay) -> Result<Done> {
        let work = self.model.work_on(sentences);
        let rows = self.model.rows_of(&work);
        let before = self.replica.read(&reads(&rows))?;
        self.model.write(&rows, &before);
        let (done, pushed) = self.model.train(&work, &rows, &before, decay)?;
        self.sent.rows += rows.iter().map(|rows| rows.len() as u64).sum::<u64>();
        self.message = self.replica.encode(updates(rows, pushed))?;
        Ok(done)
    }

    fn exchange(&mut self, group: Group<'_>, asked: Option<Asked>, step: u64) -> Result<Option<Asked>> {
        let message = [&[Group::number_of(asked)], &self.message[..]].concat();
        self.sent.exchanges += 1;
        self.sent.bytes += message.len() as u64;
        let mut asked = 0;
        for message in group.gather(&message)? {
            let (&of_rank, updates) = message.split_first().ok_or_else(invalid)?;
            asked = asked.max(of_rank);
            // All ranks get the values, so that all of them fail at this step.
            self.replica.apply(updates).map_err(|error| match error {
                parameters::Error::NotFinite => Error::vectors_diverged(step),
                other => other.into(),
            })?;
        }
        Ok(Group::asked_of(asked))
    }

    fn sent(&self) -> RankTraffic {
        self.sent
    }

    fn refresh(&mut self) -> Result<()> {
        let n_rows = self.specs.iter().map(|spec| spec.n_rows).max().unwrap_or_default();
        let rows = rows_from(&self.specs, 0, n_rows);
        let values = self.replica.read(&reads(&rows))?;
        self.model.write(&rows, &values);
        Ok(())
    }

    fn save(&self, out: &mut TextsOut, _: &Vocabulary, place: &[u8]) -> Result<()> {
        let state = self.replica.save(place)?;
        out.save(|file| file.write_all(&state))
    }

    fn restore(&mut self, state: &[u8], check: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        check(Replica::place(state)?)?;
        Ok(self.replica.restore(state)?)
    }

    fn into_model(mut self) -> Result<M> {
        self.refresh()?;
        Ok(self.model)
    }
}
