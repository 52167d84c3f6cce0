//! The logistic function and the hyperbolic tangent, to within some 2e-7.
//!
//! Both are 1 / (1 + 2^y), the second times two less one. What y is to be multiplied by is in the weights already
//! ([`crate::packing`]).

use crate::vector::Vector;

/// What the logistic function's argument is multiplied by: -log₂ e.
pub(crate) const LOGISTIC: f32 = -std::f32::consts::LOG2_E;

/// What the hyperbolic tangent's argument is multiplied by: -2 log₂ e.
pub(crate) const TANH: f32 = -2.0 * std::f32::consts::LOG2_E;

/// 2^y for y up to 126; beyond, as there. What is no number stays so.
#[inline(always)]
fn power_of_two<V: Vector>(y: V) -> V {
    let y = V::splat(126.0).min(y);
    let whole = y.round();
    let rest = y.sub(whole);
    // The polynomial of degree 5 with the least relative error, 7.5e-8, from -1/2 to 1/2; by Remez' exchange.
    let mut sum = V::splat(0.001_327_647_2);
    for coefficient in [0.009_675_541, 0.055_507_133, 0.240_221_2, 0.693_146_94, 1.000_000_1] {
        sum = sum.fma(rest, V::splat(coefficient));
    }
    sum.scale(whole)
}

/// 1 / (1 + e^-x) of y = [`LOGISTIC`] · x.
#[inline(always)]
pub(crate) fn logistic<V: Vector>(y: V) -> V {
    power_of_two(y).add(V::splat(1.0)).reciprocal()
}

/// tanh x of y = [`TANH`] · x.
#[inline(always)]
pub(crate) fn tanh<V: Vector>(y: V) -> V {
    V::splat(2.0).fma(logistic(y), V::splat(-1.0))
}
