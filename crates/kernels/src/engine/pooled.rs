//! Computes pooled vectors and, in a second call, gradients from those of the vectors, for losses that need the vectors
//! of all rows at once. The head of the model is not used.

use super::Engine;
use crate::tile::{Tile, pooled};
use crate::{Parameters, TokenRows};

impl Engine {
    /// The pooled vector of each row, `[rows, P]`. It does not depend on the other rows. The states of all rows are kept
    /// for [`Engine::pooled_back`].
    pub fn pooled(&mut self, weights: &Parameters<&[f32]>, rows: TokenRows<'_>) -> Vec<f32> {
        self.begin(weights, rows);
        let Self { team, model, distinct, projected, workers, sizes, .. } = self;
        let processor = team.processor();
        team.each(workers.iter_mut().collect(), |worker| {
            worker.kept.resize_with(worker.kept.len().max(worker.tiles.len()), Tile::default);
            for (rows, tile) in worker.tiles.iter().zip(&mut worker.kept) {
                tile.begin(model, rows, |row| distinct.of_row(row), false);
                pooled::forward_on(processor, tile, model, projected);
            }
        });
        let mut pooled = vec![0.0; distinct.n_rows() * sizes.pooled()];
        for worker in workers {
            worker.kept[..worker.tiles.len()].iter().for_each(|tile| tile.copy_pooled(&mut pooled));
        }
        pooled
    }

    /// Adds the gradients of the weights, from those of the pooled vectors, `[rows, P]`, of the last call of
    /// [`Engine::pooled`].
    pub fn pooled_back(&mut self, of_pooled: &[f32], gradients: &mut Parameters<&mut [f32]>) {
        let Self { team, model, distinct, workers, sizes, .. } = self;
        assert_eq!(of_pooled.len(), distinct.n_rows() * sizes.pooled(), "one gradient per pooled value");
        let (processor, n_distinct) = (team.processor(), distinct.ids.len());
        team.each(workers.iter_mut().collect(), |worker| {
            worker.sums.clear(model, n_distinct);
            for tile in &mut worker.kept[..worker.tiles.len()] {
                pooled::backward_on(processor, tile, model, of_pooled, &mut worker.sums);
            }
            worker.tiles.clear();
        });
        self.project_back();
        self.add_to(gradients);
    }
}
