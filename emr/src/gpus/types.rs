//! EC2's instance types with NVIDIA GPUs, and whether the pinned PyTorch supports them. As of 2026-09.
//!
//! PyTorch 2.11 is built for CUDA 13, which requires compute capability 7.5. Sources: Amazon's page of accelerated
//! instances, NVIDIA's table of compute capabilities.

use thiserror::Error;

/// The families that can be planned, for messages.
pub const OF_GPUS: &str = "g4dn, g5, g6, g6e, gr6, p4d, p4de, p5, p5e, p5en or p6-b200";

/// The GPUs of an instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuType {
    /// The model.
    pub gpu: &'static str,
    /// The number of GPUs.
    pub gpus: u32,
}

/// Why an instance type cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnusableType {
    /// The GPUs are too old.
    #[error("{name} has {gpu} GPUs with compute capability {capability}, which CUDA 13 no longer supports")]
    TooOld {
        /// The type.
        name: String,
        /// The model.
        gpu: &'static str,
        /// Its compute capability.
        capability: &'static str,
    },
    /// The programs and wheels are for x86_64.
    #[error("{name} has Graviton processors, and the pinned PyTorch is for x86_64")]
    Graviton {
        /// The type.
        name: String,
    },
    /// Not in the list.
    #[error("{0:?} is not a known type with GPUs")]
    Unknown(String),
}

/// Sizes with one, four and eight GPUs.
type Sizes = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

const USUAL: Sizes =
    (&["xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"], &["12xlarge", "24xlarge"], &["48xlarge"]);

const FAMILIES: [(&str, &str, Sizes); 11] = [
    (
        "g4dn",
        "NVIDIA T4",
        (&["xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"], &["12xlarge"], &["metal"]),
    ),
    ("g5", "NVIDIA A10G", USUAL),
    ("g6", "NVIDIA L4", USUAL),
    ("g6e", "NVIDIA L40S", USUAL),
    ("gr6", "NVIDIA L4", (&["4xlarge", "8xlarge"], &[], &[])),
    ("p4d", "NVIDIA A100", (&[], &[], &["24xlarge"])),
    ("p4de", "NVIDIA A100", (&[], &[], &["24xlarge"])),
    ("p5", "NVIDIA H100", (&["4xlarge"], &[], &["48xlarge"])),
    ("p5e", "NVIDIA H200", (&[], &[], &["48xlarge"])),
    ("p5en", "NVIDIA H200", (&[], &[], &["48xlarge"])),
    ("p6-b200", "NVIDIA B200", (&[], &[], &["48xlarge"])),
];

const OLD: [(&str, &str, &str); 6] = [
    ("g2", "NVIDIA K520", "3.0"),
    ("g3", "NVIDIA M60", "5.2"),
    ("g3s", "NVIDIA M60", "5.2"),
    ("p2", "NVIDIA K80", "3.7"),
    ("p3", "NVIDIA V100", "7.0"),
    ("p3dn", "NVIDIA V100", "7.0"),
];

/// The GPUs of a type.
pub fn gpu_type(name: &str) -> Result<GpuType, UnusableType> {
    let (family, size) = name.split_once('.').ok_or_else(|| UnusableType::Unknown(name.to_owned()))?;
    if let Some((_, gpu, capability)) = OLD.iter().find(|(old, ..)| *old == family) {
        return Err(UnusableType::TooOld { name: name.to_owned(), gpu, capability });
    }
    if family == "g5g" {
        return Err(UnusableType::Graviton { name: name.to_owned() });
    }
    let known = FAMILIES.iter().find(|(known, ..)| *known == family);
    let Some((_, gpu, (one, four, eight))) = known else {
        return Err(UnusableType::Unknown(name.to_owned()));
    };
    let counts = [(one, 1), (four, 4), (eight, 8)];
    let gpus = counts.into_iter().find(|(sizes, _)| sizes.contains(&size)).map(|(_, gpus)| gpus);
    gpus.map(|gpus| GpuType { gpu, gpus }).ok_or_else(|| UnusableType::Unknown(name.to_owned()))
}
