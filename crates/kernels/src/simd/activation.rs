//! Logistic function and hyperbolic tangent, with an error of about 2e-7.
//!
//! logistic(x) = 1 / (1 + 2^y) and tanh(x) = 2 / (1 + 2^y) - 1. The caller multiplies x by the factor that gives y, or
//! has it in its weights.

use crate::simd::Vector;

/// Factor from the argument of the logistic function to the exponent of two: -log₂ e.
pub const LOGISTIC: f32 = -std::f32::consts::LOG2_E;

/// Factor from the argument of the hyperbolic tangent to the exponent of two: -2 log₂ e.
pub const TANH: f32 = -2.0 * std::f32::consts::LOG2_E;

/// 2^y for y up to 126; a greater y gives 2^126. NaN stays NaN.
#[inline(always)]
fn power_of_two<V: Vector>(y: V) -> V {
    let y = V::splat(126.0).min(y);
    let whole = y.round();
    let rest = y.sub(whole);
    // Minimax polynomial of degree 5 on [-1/2, 1/2], found with the Remez algorithm; relative error 7.5e-8.
    let mut sum = V::splat(0.001_327_647_2);
    for coefficient in [0.009_675_541, 0.055_507_133, 0.240_221_2, 0.693_146_94, 1.000_000_1] {
        sum = sum.fma(rest, V::splat(coefficient));
    }
    sum.scale(whole)
}

/// Returns 1 / (1 + e^-x) for y = [`LOGISTIC`] · x.
#[inline(always)]
pub fn logistic<V: Vector>(y: V) -> V {
    power_of_two(y).add(V::splat(1.0)).reciprocal()
}

/// tanh x, where y = [`TANH`] · x.
#[inline(always)]
pub fn tanh<V: Vector>(y: V) -> V {
    V::splat(2.0).fma(logistic(y), V::splat(-1.0))
}
