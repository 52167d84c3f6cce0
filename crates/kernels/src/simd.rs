//! The vectors of floats that a processor computes with, and tables of floats that threads share without locks.
//!
//! Code is generic over [`Vector`]. [`on_processor!`] makes a function of it that runs with the vectors of a
//! [`Processor`]: 16 floats with AVX-512, 8 with AVX2, otherwise 4. [`Table`] holds rows that several threads read and
//! write at once. [`activation`] has the logistic function and the hyperbolic tangent.

pub mod activation;
mod digested;
mod processor;
mod table;
#[cfg(test)]
mod tests;
mod vector;

pub use crate::on_processor;
pub use digested::Digested;
pub use processor::{Checked, Processor};
pub use table::{LINE, Row, Table, table_bytes};
pub use vector::{LANES_MAX, Vector};

/// The vectors of each instruction set, for [`on_processor!`] only: a method may be called only if the processor supports
/// its instruction.
#[doc(hidden)]
pub mod types {
    pub use crate::simd::vector::Plain;
    #[cfg(target_arch = "x86_64")]
    pub use crate::simd::vector::{Avx2, Avx512};
}
