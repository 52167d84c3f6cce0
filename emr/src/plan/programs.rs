//! The files of a job on this machine: digests, and what the programs require from a node.

use std::path::PathBuf;

use durable::sha256;
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, SHT_GNU_VERNEED};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use program::bounded;
use serde::Serialize;

use crate::finding::Finding;
use crate::job::{Job, Place, STOP_WORDS};

/// The programs of the Hadoop job in the order of the data, and the program of the second step.
pub const MERGE: &str = "merge";

/// A file that is sent to the cluster.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name on the nodes.
    pub name: String,
    /// The file on this machine.
    pub path: PathBuf,
    /// Where it is uploaded. The URL contains the digest, so an upload never replaces another file.
    pub url: Place,
    /// Its SHA-256.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// What it requires, for a program.
    pub needs: Option<Needs>,
}

/// What a program requires from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The processor.
    pub architecture: Architecture,
    /// The newest version of glibc's symbols, such as (2, 34).
    pub glibc: (u32, u32),
}

/// A processor architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Architecture {
    /// Intel and AMD.
    #[serde(rename = "x86_64")]
    X86_64,
    /// Graviton.
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Architecture {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

/// Maximum size of a program.
pub(crate) const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// Reads all files of a job. A file that cannot be used is a finding, and has a digest of zeros.
pub fn read(job: &Job) -> (Vec<Program>, Vec<Finding>) {
    let mut findings = Vec::new();
    let programs = file_names(job).into_iter().map(|name| read_one(job, name, &mut findings)).collect();
    (programs, findings)
}

fn read_one(job: &Job, name: &str, findings: &mut Vec<Finding>) -> Program {
    let is_program = name != STOP_WORDS;
    let stop_words = job.rows.stop_words.as_ref().filter(|_| !is_program);
    let path = stop_words.cloned().unwrap_or_else(|| job.programs.join(name));
    let read = bounded::read(&path, PROGRAM_BYTES_MAX).map_err(|error| {
        let found = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => program::system::cause(&error),
        };
        let remedy = "set programs to the folder that `make dist` wrote";
        findings.push(
            Finding::error(path.display().to_string(), found, format!("the program {name}")).remedy(remedy),
        );
    });
    let checked = read.as_ref().ok().filter(|_| is_program).map(|content| needs(content));
    let needs = checked.and_then(|checked| {
        let refused = checked.as_ref().err();
        findings.extend(refused.map(|found| {
            Finding::error(path.display().to_string(), found, "a program for 64-bit Linux with glibc")
        }));
        checked.ok()
    });
    let content = read.unwrap_or_default();
    let sha256: String = match content.is_empty() {
        true => "0".repeat(64),
        false => sha256::of_bytes(&content),
    };
    let staging = job.staging.clone().unwrap_or(Place::Local(PathBuf::new()));
    let url = staging.join(&sha256).join(name);
    Program { name: name.to_owned(), path, url, sha256, bytes: content.len() as u64, needs }
}

/// What a program requires, read from its ELF headers.
pub fn needs(content: &[u8]) -> Result<Needs, String> {
    if content.is_empty() {
        return Err("an empty file".to_owned());
    }
    let file = ElfFile64::<Endianness>::parse(content).map_err(|_| "not a 64-bit ELF file".to_owned())?;
    let endian = file.endian();
    let architecture = match file.elf_header().e_machine(endian) {
        EM_X86_64 => Architecture::X86_64,
        EM_AARCH64 => Architecture::Aarch64,
        machine => return Err(format!("built for the ELF machine {machine}")),
    };
    let unreadable = |error: object::Error| format!("unreadable ELF sections ({error})");
    let mut glibc = (0, 0);
    for section in file.elf_section_table().iter() {
        if section.sh_type(endian) != SHT_GNU_VERNEED {
            continue;
        }
        let Some((mut needed, link)) = section.gnu_verneed(endian, content).map_err(unreadable)? else {
            continue;
        };
        let strings = file.elf_section_table().strings(endian, content, link).map_err(unreadable)?;
        while let Some((_, mut versions)) = needed.next().map_err(unreadable)? {
            while let Some(version) = versions.next().map_err(unreadable)? {
                let name = version.name(endian, strings).map_err(unreadable)?;
                glibc = glibc.max(glibc_version(name).unwrap_or_default());
            }
        }
    }
    Ok(Needs { architecture, glibc })
}

/// `GLIBC_2.34`, `GLIBC_2.2.5`.
fn glibc_version(name: &[u8]) -> Option<(u32, u32)> {
    let mut parts = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The files that are sent to the cluster for a job, by name.
pub fn file_names(job: &Job) -> Vec<&'static str> {
    let combiner = job.hadoop.combiner.then_some("combiner");
    let stop_words = job.rows.stop_words.is_some().then_some(STOP_WORDS);
    ["mapper", "reducer", MERGE].into_iter().chain(combiner).chain(stop_words).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_needs_of_this_program_are_read() {
        let needs = needs(&fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
        assert!(needs.glibc >= (2, 2) && needs.glibc < (3, 0), "{needs:?}");
        assert_eq!(needs.architecture.name(), std::env::consts::ARCH);
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        assert_eq!(needs(b"#!/bin/sh\n"), Err("not a 64-bit ELF file".to_owned()));
        assert_eq!(needs(b""), Err("an empty file".to_owned()));
        assert_eq!(glibc_version(b"GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc_version(b"GLIBC_PRIVATE"), None);
        assert_eq!(glibc_version(b"GCC_3.0"), None);
    }

    #[test]
    fn a_program_for_graviton_is_recognised() {
        // An ELF header with the machine of aarch64 and no sections.
        let mut header = [0_u8; 64];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        header[16..20].copy_from_slice(&[3, 0, 183, 0]);
        header[20] = 1;
        header[52] = 64;
        header[54] = 56;
        header[58] = 64;
        assert_eq!(needs(&header).unwrap().architecture, Architecture::Aarch64);
        header[18] = 40;
        assert_eq!(needs(&header), Err("built for the ELF machine 40".to_owned()));
    }
}
