//! Saves a training's tensors in a checkpoint and restores them. Rank 0 writes and reads the files, and broadcasts
//! the restored training to the other ranks.

use std::path::Path;

use batches::{Part, Rows};
use runs::checkpoints::{BEST, Checkpoints, Expected, MODEL, OPTIMIZER, State, TensorFile, read};
use runs::recipe::Recipe;
use tch::Tensor;

use crate::error::Result;
use crate::families::{read_like, write_tensors};
use crate::optim::Optimizer;
use crate::ranks::Ranks;
use crate::train::Training;

/// The state tensors of the optimizers of all ranks, by rank. In rounds they differ; otherwise those of one rank are all.
/// Every rank must call it.
pub fn optimizers(recipe: &Recipe, training: &Training, ranks: &Ranks) -> Result<Vec<Vec<Tensor>>> {
    let own = training.optimizer.tensors();
    let Some(group) = ranks.group().filter(|_| recipe.sync_every > 1) else { return Ok(vec![own]) };
    let mut all: Vec<Vec<Tensor>> = (0..group.world_size()).map(|_| Vec::new()).collect();
    for tensor in own {
        let of_ranks = group.all_gather(&tensor)?;
        // Only rank 0 writes them.
        if ranks.is_first() {
            all.iter_mut().zip(of_ranks).for_each(|(of_rank, tensor)| of_rank.push(tensor));
        }
    }
    Ok(all)
}

/// The names of the state tensors of the optimizers of these ranks.
fn names_of_all(optimizer: &Optimizer, parameters: &[String], n_ranks: usize) -> Vec<String> {
    let of_one = optimizer.names(parameters);
    let others = (1..n_ranks).flat_map(|rank| of_one.iter().map(move |name| format!("rank{rank}.{name}")));
    of_one.iter().cloned().chain(others).collect()
}

/// Saves a checkpoint with these [`optimizers`]. On return, it is durable.
pub fn save(
    to: &Checkpoints,
    recipe: &Recipe,
    rows: &Rows,
    training: &Training,
    optimizers: &[Vec<Tensor>],
) -> Result<()> {
    let parameters = training.model.parameters();
    let (steps, has_best) = (training.optimizer.steps(), training.best.is_some());
    let n_optimizers = optimizers.len();
    let state = State::of(recipe, &rows.settings().rows, &training.position, steps, has_best, n_optimizers);
    let model = |path: &Path| parameters.write(path);
    let names = names_of_all(&training.optimizer, parameters.names(), n_optimizers);
    let remembered: Vec<Tensor> = optimizers.iter().flatten().map(Tensor::shallow_clone).collect();
    let optimizer = |path: &Path| write_tensors(&names, &remembered, path);
    let best =
        |path: &Path| write_tensors(parameters.names(), training.best.as_deref().unwrap_or_default(), path);
    let mut files: Vec<TensorFile<'_>> = vec![(MODEL, &model), (OPTIMIZER, &optimizer)];
    if state.has_best {
        files.push((BEST, &best));
    }
    Ok(to.save(&state, &rows.vocabulary().words, &files)?)
}

/// Restores a training from a checkpoint. Rank 0 reads it, so the path need not exist on other machines. If there are more
/// ranks than the checkpoint has optimizers, several take over the same one. Errors: a file does not match its digest, or the
/// recipe or vocabulary differs from this training's.
pub fn restore(
    folder: &Path,
    recipe: &Recipe,
    rows: &Rows,
    training: &mut Training,
    ranks: &Ranks,
) -> Result<()> {
    let mut remembered = Vec::new();
    let state = ranks.of_rank_0(|| {
        let (state, of_ranks) = restore_here(folder, recipe, rows, training)?;
        remembered = of_ranks;
        Ok(state)
    })?;
    if state.has_best && training.best.is_none() {
        training.best = Some(training.model.parameters().copies());
    }
    training.position = state.position;
    ranks.broadcast(training.model.parameters().tensors())?;
    for optimizer in 0..state.optimizers {
        let tensors = match remembered.get(optimizer) {
            Some(tensors) => tensors.iter().map(Tensor::shallow_clone).collect(),
            None => training.optimizer.tensors().iter().map(Tensor::zeros_like).collect::<Vec<_>>(),
        };
        ranks.broadcast(&tensors)?;
        if ranks.rank() % state.optimizers == optimizer {
            training.optimizer.restore(state.optimizer_steps, &tensors)?;
        }
    }
    if let Some(best) = &training.best {
        ranks.broadcast(best)?;
    }
    Ok(())
}

/// Restores the model. Returns the state tensors of each optimizer.
fn restore_here(
    folder: &Path,
    recipe: &Recipe,
    rows: &Rows,
    training: &mut Training,
) -> Result<(State, Vec<Vec<Tensor>>)> {
    let expected = Expected {
        recipe,
        preparation: &rows.settings().rows,
        words: &rows.vocabulary().words,
        n_rows: rows.n_rows(Part::Training),
    };
    let state = read(folder, &expected)?;
    let parameters = training.model.parameters();
    let names = names_of_all(&training.optimizer, parameters.names(), state.optimizers);
    let like: Vec<Tensor> = (0..state.optimizers).flat_map(|_| training.optimizer.tensors()).collect();
    let mut remembered = read_like(&names, &like, &folder.join(OPTIMIZER))?.into_iter();
    let n_of_one = training.optimizer.tensors().len();
    let of_ranks = (0..state.optimizers).map(|_| remembered.by_ref().take(n_of_one).collect()).collect();
    training.best = match state.has_best {
        true => Some(read_like(parameters.names(), parameters.tensors(), &folder.join(BEST))?),
        false => None,
    };
    training.model.parameters_mut().read(&folder.join(MODEL))?;
    Ok((state, of_ranks))
}
