//! Saves a training's tensors in a checkpoint and restores them. Rank 0 writes and reads the files, and broadcasts
//! the restored training to the other ranks.

use std::path::Path;

use batches::{Part, Rows};
use runs::checkpoints::{BEST, Checkpoints, Expected, MODEL, OPTIMIZER, State, TensorFile, read};
use runs::recipe::Recipe;
use tch::Tensor;

use crate::error::Result;
use crate::exchange::Table;
use crate::families::{Lstm, read_like, write_tensors};
use crate::ranks::Ranks;
use crate::train::Training;

/// The name of [`Training::unsent`] in a checkpoint.
const UNSENT: &str = "unsent";

/// What each rank remembers by itself: the state of its optimizer, and what it has not sent of its changes. In rounds they
/// differ by rank; otherwise those of one rank are all. Every rank must call it.
pub fn remembered(recipe: &Recipe, training: &Training, ranks: &Ranks) -> Result<Vec<Vec<Tensor>>> {
    let Some(group) = ranks.group().filter(|_| recipe.sync_every > 1) else {
        return Ok(vec![training.optimizer.tensors()]);
    };
    let mut all: Vec<Vec<Tensor>> = (0..group.world_size()).map(|_| Vec::new()).collect();
    for tensor in of_rank(recipe, training, group.world_size())? {
        let of_ranks = group.all_gather(&tensor)?;
        // Only rank 0 writes them.
        if ranks.is_first() {
            all.iter_mut().zip(of_ranks).for_each(|(of_rank, tensor)| of_rank.push(tensor));
        }
    }
    Ok(all)
}

/// What this rank of `n_ranks` remembers. Before the first exchange, nothing was kept back.
fn of_rank(recipe: &Recipe, training: &Training, n_ranks: usize) -> Result<Vec<Tensor>> {
    let mut own = training.optimizer.tensors();
    if keeps_back(recipe, n_ranks) {
        own.push(match &training.unsent {
            Some(unsent) => unsent.shallow_clone(),
            None => Table::zeros(training.model.parameters().tensors(), Lstm::EMBEDDING)?.rows,
        });
    }
    Ok(own)
}

/// Whether ranks send less than their changes.
fn keeps_back(recipe: &Recipe, n_ranks: usize) -> bool {
    n_ranks > 1 && recipe.sync_every > 1 && !recipe.wire.is_full()
}

/// The names of what these ranks remember.
fn names_of_all(recipe: &Recipe, training: &Training, n_ranks: usize) -> Vec<String> {
    let mut of_one = training.optimizer.names(training.model.parameters().names());
    of_one.extend(keeps_back(recipe, n_ranks).then(|| UNSENT.to_owned()));
    let others = (1..n_ranks).flat_map(|rank| of_one.iter().map(move |name| format!("rank{rank}.{name}")));
    of_one.iter().cloned().chain(others).collect()
}

/// Saves a checkpoint with what the ranks [remember](remembered). On return, it is durable.
pub fn save(
    to: &Checkpoints,
    recipe: &Recipe,
    rows: &Rows,
    training: &Training,
    remembered: &[Vec<Tensor>],
) -> Result<()> {
    let parameters = training.model.parameters();
    let (steps, has_best) = (training.optimizer.steps(), training.best.is_some());
    let n_ranks = remembered.len();
    let state = State::of(recipe, &rows.settings().rows, &training.position, steps, has_best, n_ranks);
    let model = |path: &Path| parameters.write(path);
    let names = names_of_all(recipe, training, n_ranks);
    let remembered: Vec<Tensor> = remembered.iter().flatten().map(Tensor::shallow_clone).collect();
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
        training.best = Some(training.model.parameters().copies()?);
    }
    training.position = state.position;
    ranks.broadcast(training.model.parameters().tensors())?;
    let n_ranks = state.optimizers;
    for rank in 0..n_ranks {
        let mut tensors = match remembered.get(rank) {
            Some(tensors) => tensors.iter().map(Tensor::shallow_clone).collect(),
            None => of_rank(recipe, training, n_ranks)?.iter().map(Tensor::zeros_like).collect::<Vec<_>>(),
        };
        ranks.broadcast(&tensors)?;
        if ranks.rank() % n_ranks == rank {
            let unsent = if keeps_back(recipe, n_ranks) { tensors.pop() } else { None };
            // What was kept back is added once.
            training.unsent = unsent.filter(|_| ranks.rank() < n_ranks);
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
    let names = names_of_all(recipe, training, state.optimizers);
    let of_one = of_rank(recipe, training, state.optimizers)?;
    let like: Vec<Tensor> = (0..state.optimizers).flat_map(|_| &of_one).map(Tensor::shallow_clone).collect();
    let mut remembered = read_like(&names, &like, &folder.join(OPTIMIZER))?.into_iter();
    let of_ranks = (0..state.optimizers).map(|_| remembered.by_ref().take(of_one.len()).collect()).collect();
    training.best = match state.has_best {
        true => Some(read_like(parameters.names(), parameters.tensors(), &folder.join(BEST))?),
        false => None,
    };
    training.model.parameters_mut().read(&folder.join(MODEL))?;
    Ok((state, of_ranks))
}
