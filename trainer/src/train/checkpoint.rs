//! Saves a training's tensors in a checkpoint and restores them. Rank 0 writes and reads the files, and broadcasts
//! the restored training to the other ranks.

use std::path::Path;

use batches::{Part, Rows};
use runs::checkpoints::{BEST, Checkpoints, Expected, MODEL, OPTIMIZER, State, TensorFile, read};
use runs::recipe::Recipe;

use crate::error::Result;
use crate::families::{read_like, write_tensors};
use crate::ranks::Ranks;
use crate::train::Training;

/// Saves a checkpoint. On return, it is durable.
pub fn save(to: &Checkpoints, recipe: &Recipe, rows: &Rows, training: &Training) -> Result<()> {
    let parameters = training.model.parameters();
    let (steps, has_best) = (training.optimizer.steps(), training.best.is_some());
    let state = State::of(recipe, &rows.settings().rows, &training.position, steps, has_best);
    let model = |path: &Path| parameters.write(path);
    let (names, remembered) = (training.optimizer.names(parameters.names()), training.optimizer.tensors());
    let optimizer = |path: &Path| write_tensors(&names, &remembered, path);
    let best =
        |path: &Path| write_tensors(parameters.names(), training.best.as_deref().unwrap_or_default(), path);
    let mut files: Vec<TensorFile<'_>> = vec![(MODEL, &model), (OPTIMIZER, &optimizer)];
    if state.has_best {
        files.push((BEST, &best));
    }
    Ok(to.save(&state, &rows.vocabulary().words, &files)?)
}

/// Restores a training from a checkpoint. Rank 0 reads it, so the path need not exist on other machines. Errors: a
/// file does not match its digest, or the recipe or vocabulary differs from this training's.
pub fn restore(
    folder: &Path,
    recipe: &Recipe,
    rows: &Rows,
    training: &mut Training,
    ranks: &Ranks,
) -> Result<()> {
    let state = ranks.of_rank_0(|| restore_here(folder, recipe, rows, training))?;
    if state.has_best && training.best.is_none() {
        training.best = Some(training.model.parameters().copies());
    }
    training.position = state.position;
    ranks.broadcast(training.model.parameters().tensors())?;
    let remembered = training.optimizer.tensors();
    ranks.broadcast(&remembered)?;
    training.optimizer.restore(state.optimizer_steps, &remembered)?;
    if let Some(best) = &training.best {
        ranks.broadcast(best)?;
    }
    Ok(())
}

fn restore_here(folder: &Path, recipe: &Recipe, rows: &Rows, training: &mut Training) -> Result<State> {
    let expected = Expected {
        recipe,
        preparation: &rows.settings().rows,
        words: &rows.vocabulary().words,
        n_rows: rows.n_rows(Part::Training),
    };
    let state = read(folder, &expected)?;
    let parameters = training.model.parameters();
    let names = training.optimizer.names(parameters.names());
    let remembered = read_like(&names, &training.optimizer.tensors(), &folder.join(OPTIMIZER))?;
    training.best = match state.has_best {
        true => Some(read_like(parameters.names(), parameters.tensors(), &folder.join(BEST))?),
        false => None,
    };
    training.model.parameters_mut().read(&folder.join(MODEL))?;
    training.optimizer.restore(state.optimizer_steps, &remembered)?;
    Ok(state)
}
