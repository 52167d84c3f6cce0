//! Instance types that EMR supports: `instance_types.txt`, one family with its sizes per line, as of emr-7.13.0
//! (2026-05). Source: the answer of ListSupportedInstanceTypes.

use super::programs::Architecture;

/// The source of the list, for messages.
pub const SOURCE: &str = "the list of emr-7.13.0";

const FAMILIES: &str = include_str!("instance_types.txt");

/// Families with GPUs that the pinned PyTorch no longer supports: their compute capability is below 7.5, which CUDA 13
/// requires.
const OLD_GPUS: [&str; 4] = ["p2", "g3", "g3s", "p3"];
/// Families that Amazon EMR does not have. Their instances have burstable processors.
const BURSTABLE: [&str; 4] = ["t2", "t3", "t3a", "t4g"];

/// What is known of an instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownType {
    /// EMR supports it.
    Supported,
    /// Its GPUs are too old.
    OldGpu,
    /// It has a burstable processor.
    Burstable,
    /// The family exists, the size does not.
    NoSize,
    /// The family is not in the list.
    Unknown,
    /// It is not the name of an instance type.
    NoName,
}

/// What is known of an instance type.
pub fn known(name: &str) -> KnownType {
    let Some((family, size)) = name.split_once('.') else { return KnownType::NoName };
    if generation(family).is_none() || sizes_vcpus(size).is_none() {
        return KnownType::NoName;
    }
    if OLD_GPUS.contains(&family) {
        return KnownType::OldGpu;
    }
    if BURSTABLE.contains(&family) {
        return KnownType::Burstable;
    }
    match sizes(family) {
        None => KnownType::Unknown,
        Some(sizes) if sizes.split(' ').any(|known| known == size) => KnownType::Supported,
        Some(_) => KnownType::NoSize,
    }
}

/// The sizes of a family.
pub fn sizes(family: &str) -> Option<&'static str> {
    FAMILIES.lines().find_map(|line| line.strip_prefix(family)?.strip_prefix(' '))
}

/// The architecture: the letter `g` after the generation is Graviton, as in m7g, c6gd, im4gn.
pub fn architecture(name: &str) -> Architecture {
    let family = name.split('.').next().unwrap_or(name);
    match generation(family) {
        Some(after) if after.starts_with('g') => Architecture::Aarch64,
        _ => Architecture::X86_64,
    }
}

/// The number of virtual processors: four per `xlarge`, in all families of the list.
pub fn vcpus(name: &str) -> Option<u32> {
    sizes_vcpus(name.split_once('.')?.1)
}

fn sizes_vcpus(size: &str) -> Option<u32> {
    match size {
        "medium" => Some(1),
        "large" => Some(2),
        "xlarge" => Some(4),
        _ => Some(4 * size.strip_suffix("xlarge")?.parse::<u32>().ok()?),
    }
}

/// The letters after the generation of a family: `g` of m7g. `None` if the text is not the name of a family.
fn generation(family: &str) -> Option<&str> {
    let rest = family.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < family.len() && after.len() < rest.len()).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_type_is_supported_or_refused_for_a_reason() {
        for (name, expected) in [
            ("m6i.xlarge", KnownType::Supported),
            ("m7g.16xlarge", KnownType::Supported),
            ("g5.48xlarge", KnownType::Supported),
            ("p2.xlarge", KnownType::OldGpu),
            ("g3s.xlarge", KnownType::OldGpu),
            ("p3.2xlarge", KnownType::OldGpu),
            ("t3.xlarge", KnownType::Burstable),
            ("m6i.5xlarge", KnownType::NoSize),
            ("m99i.xlarge", KnownType::Unknown),
            ("m6i", KnownType::NoName),
            ("large", KnownType::NoName),
            ("m6i.huge", KnownType::NoName),
        ] {
            assert_eq!(known(name), expected, "{name}");
        }
    }

    #[test]
    fn graviton_is_recognised_by_name() {
        for name in ["m7g.xlarge", "c6gd.xlarge", "im4gn.xlarge", "r8gb.xlarge", "x2gd.xlarge"] {
            assert_eq!(architecture(name), Architecture::Aarch64, "{name}");
        }
        for name in ["m6i.xlarge", "g5.xlarge", "g4dn.xlarge", "p5.48xlarge", "gr6.4xlarge"] {
            assert_eq!(architecture(name), Architecture::X86_64, "{name}");
        }
        assert_eq!((vcpus("m6i.large"), vcpus("m6i.4xlarge"), vcpus("x")), (Some(2), Some(16), None));
    }
}
