//! What ranks exchange, of any model.

use launch::interrupt::Asked;
use program::exit::{Exit, Failed};
use skipgram::{Decay, Done, Vocabulary, Work};

use crate::commands::embed::model::Model;
use crate::commands::group::Group;
use crate::commands::texts_out::TextsOut;
use crate::error::{Error, Result};

/// A model of which each rank has all rows. After an exchange, all ranks have the same ones.
pub(super) trait RankModel {
    type Of: Model;

    fn model(&self) -> &Self::Of;

    fn model_mut(&mut self) -> &mut Self::Of;

    /// Trains on the sentences of a step.
    fn step(&mut self, sentences: Work, decay: Decay) -> Result<Done>;

    /// Sends what has changed since the last time to all ranks, and applies what all of them have sent, in the order of ranks.
    /// Returns the action for all ranks: to stop if a rank was asked to, otherwise a checkpoint if a rank was asked for
    /// it.
    ///
    /// Errors: a rank cannot be reached, or a value is not finite at this step.
    fn exchange(&mut self, group: Group<'_>, asked: Option<Asked>, step: u64) -> Result<Option<Asked>>;

    /// What this rank has sent.
    fn sent(&self) -> RankTraffic;

    /// Gives the model the rows of this moment.
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }

    /// Saves a checkpoint with bytes of the caller.
    fn save(&self, out: &mut TextsOut, vocabulary: &Vocabulary, place: &[u8]) -> Result<()>;

    /// Reads the state of a checkpoint of the same settings and words. `check` refuses the caller's bytes of another training.
    fn restore(&mut self, state: &[u8], check: impl FnOnce(&[u8]) -> Result<()>) -> Result<()>;

    /// The model with the rows of this moment.
    fn into_model(self) -> Result<Self::Of>;
}

/// What a rank has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankTraffic {
    pub(super) exchanges: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// The error of a message that this program did not write.
pub(super) fn invalid() -> Error {
    let message = "a rank sent an invalid message; start all ranks with the same program";
    Failed::new(Exit::Settings, message).into()
}
