//! Update rules of the optimizers, each in one pass over memory. The formulas are PyTorch's.

use crate::simd::{Vector, on_processor};
use crate::team::Team;

/// One step of Adam (Kingma & Ba 2015) or AdamW (Loshchilov & Hutter 2019).
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// Factor of the weights before the update: 1 for Adam, 1 - rate · decay for AdamW.
    pub shrink: f32,
    /// Factor of the weights that are added to the gradients: the weight decay for Adam, 0 for AdamW.
    pub decay: f32,
    /// Decay rate of the first moment.
    pub beta_1: f32,
    /// Decay rate of the second moment.
    pub beta_2: f32,
    /// rate / (1 - β₁^t)
    pub rate: f32,
    /// √(1 - β₂^t)
    pub root: f32,
    /// Added to the denominator.
    pub epsilon: f32,
}

impl Adam {
    /// Step `step`, from 1, without weight decay, by the β of the moments and PyTorch's ε.
    pub fn at(step: u64, rate: f64, betas: [f64; 2]) -> Self {
        let [correction_1, correction_2] = Self::corrections(step, betas);
        Self {
            shrink: 1.0,
            decay: 0.0,
            beta_1: betas[0] as f32,
            beta_2: betas[1] as f32,
            rate: (rate / correction_1) as f32,
            root: correction_2.sqrt() as f32,
            epsilon: 1e-8,
        }
    }

    /// 1 - β^t for both moments.
    pub fn corrections(step: u64, betas: [f64; 2]) -> [f64; 2] {
        betas.map(|beta| 1.0 - beta.powi(i32::try_from(step).unwrap_or(i32::MAX)))
    }
}

/// One step of stochastic gradient descent with momentum.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// Weight decay.
    pub decay: f32,
    /// Momentum.
    pub momentum: f32,
    /// The learning rate.
    pub rate: f32,
}

/// Updates weights by Adam's rule and sets their gradients to 0.
pub fn adam(
    team: &Team,
    weights: &mut [f32],
    gradients: &mut [f32],
    [mean, square]: [&mut [f32]; 2],
    rule: &Adam,
) {
    let part = team.part(weights.len());
    let parts = weights.chunks_mut(part).zip(gradients.chunks_mut(part));
    let parts = parts.zip(mean.chunks_mut(part).zip(square.chunks_mut(part)));
    team.each(parts.collect(), |((weights, gradients), (mean, square))| {
        adam_on(team.processor(), weights, gradients, mean, square, rule);
    });
}

/// Updates weights by gradient descent and sets their gradients to 0. `velocity` is as long as `weights`.
pub fn sgd(team: &Team, weights: &mut [f32], gradients: &mut [f32], velocity: &mut [f32], rule: &Sgd) {
    let part = team.part(weights.len());
    let parts = weights.chunks_mut(part).zip(gradients.chunks_mut(part)).zip(velocity.chunks_mut(part));
    team.each(parts.collect(), |((weights, gradients), velocity)| {
        sgd_on(team.processor(), weights, gradients, velocity, rule);
    });
}

#[inline(always)]
fn adam_part<V: Vector>(
    weights: &mut [f32],
    gradients: &mut [f32],
    mean: &mut [f32],
    square: &mut [f32],
    rule: &Adam,
) {
    let splat = V::splat;
    let (keep, keep_square) = (splat(rule.beta_2), splat(1.0 - rule.beta_2));
    let parts = weights.chunks_mut(V::LANES).zip(gradients.chunks_mut(V::LANES));
    for ((weights, gradients), (mean, square)) in
        parts.zip(mean.chunks_mut(V::LANES).zip(square.chunks_mut(V::LANES)))
    {
        let weight = V::load_part(weights).mul(splat(rule.shrink));
        let gradient = weight.fma(splat(rule.decay), V::load_part(gradients));
        let old = V::load_part(mean);
        let new = gradient.sub(old).fma(splat(1.0 - rule.beta_1), old);
        let new_square = gradient.mul(keep_square).fma(gradient, V::load_part(square).mul(keep));
        let divisor = new_square.sqrt().div(splat(rule.root)).add(splat(rule.epsilon));
        weight.sub(new.mul(splat(rule.rate)).div(divisor)).store_part(weights);
        new.store_part(mean);
        new_square.store_part(square);
        splat(0.0).store_part(gradients);
    }
}

#[inline(always)]
fn sgd_part<V: Vector>(weights: &mut [f32], gradients: &mut [f32], velocity: &mut [f32], rule: &Sgd) {
    let splat = V::splat;
    let parts = weights.chunks_mut(V::LANES).zip(gradients.chunks_mut(V::LANES));
    for ((weights, gradients), velocity) in parts.zip(velocity.chunks_mut(V::LANES)) {
        let weight = V::load_part(weights);
        let gradient = weight.fma(splat(rule.decay), V::load_part(gradients));
        let new = V::load_part(velocity).fma(splat(rule.momentum), gradient);
        new.fma(splat(-rule.rate), weight).store_part(weights);
        new.store_part(velocity);
        splat(0.0).store_part(gradients);
    }
}

on_processor! {
    fn adam_on(
        weights: &mut [f32],
        gradients: &mut [f32],
        mean: &mut [f32],
        square: &mut [f32],
        rule: &Adam,
    ) = adam_part;
    fn sgd_on(weights: &mut [f32], gradients: &mut [f32], velocity: &mut [f32], rule: &Sgd) = sgd_part;
}
