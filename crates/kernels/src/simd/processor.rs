//! Runs code with the fastest vectors of this processor.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::simd::vector::{Avx2, Avx512};
use crate::simd::vector::{Plain, Vector};

/// Instruction sets that kernels are compiled for.
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
    pub fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::LANES,
            Self::Plain => Plain::LANES,
        }
    }
}

/// Generates functions that call a generic function with the vectors of a processor. The generic function and all that it
/// calls have the attribute `#[inline(always)]`: code that is not inlined is compiled without the instructions of the
/// processor.
///
/// ```
/// use kernels::simd::{Processor, Vector};
///
/// #[inline(always)]
/// fn double<V: Vector>(values: &mut [f32]) {
///     for values in values.chunks_exact_mut(V::LANES) {
///         let vector = V::load(values);
///         vector.add(vector).store(values);
///     }
/// }
///
/// kernels::on_processor! {
///     fn double_all(values: &mut [f32]) = double;
/// }
///
/// let mut values = [1.5; 16];
/// double_all(Processor::best(), &mut values);
/// assert_eq!(values, [3.0; 16]);
/// ```
// Functions with the arguments, not with a struct of them: the compiler knows that references of arguments do not alias.
// Without this, steps of a training take a tenth longer.
#[macro_export]
macro_rules! on_processor {
    ($(
        $(#[$attribute:meta])*
        $visible:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $($generic:ident)::+;
    )*) => {$(
        $(#[$attribute])*
        #[inline]
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $visible fn $name(processor: $crate::simd::Processor, $($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512($($argument: $type),*) $(-> $result)? {
                $($generic)::+::<$crate::simd::types::Avx512>($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                $($generic)::+::<$crate::simd::types::Avx2>($($argument),*)
            }
            match processor {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `Checked` exists only if the processor supports these instructions.
                $crate::simd::Processor::Avx512(_) => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::simd::Processor::Avx2(_) => unsafe { avx2($($argument),*) },
                $crate::simd::Processor::Plain => $($generic)::+::<$crate::simd::types::Plain>($($argument),*),
            }
        }
    )*};
}
