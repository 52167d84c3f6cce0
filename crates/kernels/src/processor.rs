//! Selects the kernels that this processor can run.
#![allow(unsafe_code)]

use crate::Loss;
use crate::dropout::Dropout;
use crate::head::HeadSums;
use crate::model::Model;
use crate::optimizer::{self, Adam, Sgd};
use crate::projection::{self, ProjectionSums};
use crate::tile::{self, Sums, Tile};
use crate::vector::Plain;
#[cfg(target_arch = "x86_64")]
use crate::vector::{Avx2, Avx512};

/// Instruction sets that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512(Checked),
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(Checked),
    /// Any processor.
    Plain,
}

/// Proof that the processor supports the instruction set; created only after the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked(());

impl Processor {
    /// The fastest instruction set that this processor supports.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// All instruction sets that this processor supports, the fastest first.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                all.push(Self::Avx512(Checked(())));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Self::Avx2(Checked(())));
            }
        }
        all.push(Self::Plain);
        all
    }

    /// Floats per vector.
    pub(crate) fn lanes(self) -> usize {
        use crate::vector::Vector;
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::LANES,
            Self::Plain => Plain::LANES,
        }
    }
}

/// Generates a function that calls a generic function with the vector type ([`crate::vector::Vector`]) of the
/// processor.
macro_rules! on_processor {
    ($(#[$attribute:meta])* fn $name:ident = $module:ident :: $generic:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name(processor: Processor, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512($($argument: $type),*) {
                $module::$generic::<Avx512>($($argument),*);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) {
                $module::$generic::<Avx2>($($argument),*);
            }
            match processor {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `Checked` exists only if the processor supports these instructions.
                Processor::Avx512(_) => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Processor::Avx2(_) => unsafe { avx2($($argument),*) },
                Processor::Plain => $module::$generic::<Plain>($($argument),*),
            }
        }
    };
}

on_processor! {
    fn project = projection::project(
        model: &Model,
        embedding: &[f32],
        ids: &[u32],
        embedded: &mut [f32],
        projected: &mut [f32],
    )
}
on_processor! {
    fn project_back = projection::project_back(
        model: &Model,
        embedded: &[f32],
        gradients: &mut [f32],
        of_others: &[&[f32]],
        embedding_gradients: &mut [f32],
        sums: &mut ProjectionSums,
    )
}
on_processor! {
    fn train = tile::train(
        tile: &mut Tile,
        model: &Model,
        projected: &[f32],
        dropout: &Dropout,
        loss: &Loss<'_>,
        sums: &mut Sums,
        losses: &mut Vec<(usize, f64)>,
    )
}
on_processor! {
    fn predict = tile::predict(
        tile: &mut Tile,
        model: &Model,
        projected: &[f32],
        head: &mut HeadSums,
        outputs: &mut Vec<(usize, Vec<f32>)>,
    )
}
on_processor! {
    fn adam = optimizer::adam_part(
        weights: &mut [f32],
        gradients: &mut [f32],
        mean: &mut [f32],
        square: &mut [f32],
        rule: &Adam,
    )
}
on_processor! {
    fn sgd = optimizer::sgd_part(weights: &mut [f32], gradients: &mut [f32], velocity: &mut [f32], rule: &Sgd)
}
