//! EMR's releases and AWS's regions, as of 2026-09-08: what exists, and the glibc of each release.
//!
//! Source: Amazon's release guide and the answers of ListReleaseLabels.

use crate::finding::nearest;

/// The date of these lists, for messages.
pub const DATE: &str = "2026-09-08";

/// The newest release of each minor version that is known, for the two supported major versions.
const NEWEST: [(u32, u32); 2] = [(7, 14), (6, 15)];
/// The oldest release with Hadoop 3 and automatic termination of idle clusters.
const OLDEST: Release = Release { major: 6, minor: 1, patch: 0 };
/// Patch releases beyond `.0`.
const PATCHES: [(u32, u32, u32); 7] =
    [(6, 1, 1), (6, 2, 1), (6, 3, 1), (6, 8, 1), (6, 9, 1), (6, 10, 1), (6, 11, 1)];

/// Regions with EMR.
const REGIONS: &str = include_str!("regions.txt");

/// The region whose name is nearest to a name, if one is near.
pub fn nearest_region(name: &str) -> Option<&'static str> {
    nearest(name, REGIONS.lines())
}

/// A release label: `emr-7.14.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u32,
    minor: u32,
    patch: u32,
}

/// What is known of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRelease {
    /// It exists.
    Exists,
    /// It is newer than this list.
    Newer,
    /// It does not exist.
    Missing,
    /// It has Hadoop 2, with which the programs are not tested, or cannot terminate idle clusters.
    TooOld,
}

impl Release {
    /// Parses a label.
    pub fn parse(label: &str) -> Option<Self> {
        let mut parts = label.strip_prefix("emr-")?.split('.').map(|part| part.parse().ok());
        let release = Self { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
        parts.next().is_none().then_some(release)
    }

    /// Whether it exists.
    pub fn known(self) -> KnownRelease {
        if self < OLDEST {
            return KnownRelease::TooOld;
        }
        match NEWEST.iter().find(|(major, _)| *major == self.major) {
            None => KnownRelease::Newer,
            Some((major, minor)) if self.minor > *minor && *major == NEWEST[0].0 => KnownRelease::Newer,
            Some((_, minor)) if self.minor > *minor => KnownRelease::Missing,
            Some(_) if self.patch == 0 || PATCHES.contains(&(self.major, self.minor, self.patch)) => {
                KnownRelease::Exists
            }
            Some((major, _)) if *major == NEWEST[0].0 => KnownRelease::Newer,
            Some(_) => KnownRelease::Missing,
        }
    }

    /// The glibc of its Linux: Amazon Linux 2023 from release 7, Amazon Linux 2 before.
    pub fn glibc(self) -> (u32, u32) {
        if self.major >= 7 { (2, 34) } else { (2, 26) }
    }
}

/// Whether EMR exists in a region, as far as this list knows.
pub fn is_region(region: &str) -> bool {
    REGIONS.lines().any(|known| known == region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_exists_or_is_newer_or_is_wrong() {
        let known = |label: &str| Release::parse(label).map(Release::known);
        for (label, expected) in [
            ("emr-7.14.0", Some(KnownRelease::Exists)),
            ("emr-6.11.1", Some(KnownRelease::Exists)),
            ("emr-7.15.0", Some(KnownRelease::Newer)),
            ("emr-8.0.0", Some(KnownRelease::Newer)),
            ("emr-6.99.0", Some(KnownRelease::Missing)),
            ("emr-6.12.1", Some(KnownRelease::Missing)),
            ("emr-6.1.0", Some(KnownRelease::Exists)),
            ("emr-6.0.1", Some(KnownRelease::TooOld)),
            ("emr-5.36.0", Some(KnownRelease::TooOld)),
            ("emr-7.14", None),
            ("7.14.0", None),
            ("emr-7.14.0.1", None),
        ] {
            assert_eq!(known(label), expected, "{label}");
        }
        assert_eq!(Release::parse("emr-7.0.0").unwrap().glibc(), (2, 34));
        assert_eq!(Release::parse("emr-6.15.0").unwrap().glibc(), (2, 26));
    }
}
