//! The operating system: glibc, processor, memory, disk, limits.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};

use super::check::Checks;

/// The glibc for which `make dist` builds programs.
const GLIBC_MIN: (u32, u32) = (2, 34);
/// What a reducer uses at most, and Java besides.
const MEMORY_MIN: u64 = 1 << 30;
/// A shard of 1 GB of reviews, its spilled runs and the copy that is uploaded.
const DISK_MIN: u64 = 2 << 30;
/// `merge` reads 64 shards at a time.
const FILES_MIN: u64 = 256;
/// Instructions that the kernels use if the processor has them.
const FEATURES: [&str; 4] = ["sse4_2", "avx2", "fma", "avx512f"];

pub(super) fn examine(checks: &mut Checks) {
    glibc(checks);
    processor(checks);
    memory(checks);
    disk(checks);
    files(checks);
    clock(checks);
}

fn glibc(checks: &mut Checks) {
    let found = output("getconf", &["GNU_LIBC_VERSION"]);
    let version = found.as_deref().and_then(|text| text.trim().strip_prefix("glibc ")).map(str::to_owned);
    let remedy = "use EMR 7.0 or later, or build the programs on this machine with make build";
    match &version {
        Some(version) if version_of(version) >= Some(GLIBC_MIN) => checks.ok("glibc", version),
        Some(version) => checks.missing(
            "glibc",
            format!("{version}, expected {}.{} or newer", GLIBC_MIN.0, GLIBC_MIN.1),
            remedy,
        ),
        None => checks.missing("glibc", "not found", remedy),
    }
    .fact("glibc", version);
}

/// `2.34` as numbers.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn processor(checks: &mut Checks) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.split_once(':')).map(|(_, value)| value.trim())
    };
    let flags: Vec<&str> = value("flags").unwrap_or_default().split(' ').collect();
    let features: Vec<&str> = FEATURES.into_iter().filter(|feature| flags.contains(feature)).collect();
    let name = value("model name").unwrap_or("unknown model");
    // Of the machine, not of this program, which may be emulated.
    let arch =
        output("uname", &["-m"]).map_or_else(|| env::consts::ARCH.to_owned(), |text| text.trim().to_owned());
    let found = format!(
        "{arch}, {cores} cores, {name}, {}",
        if features.is_empty() { "no vectors".to_owned() } else { features.join(" ") }
    );
    if arch != "x86_64" {
        checks.missing("processor", found, "use an instance type with x86-64 processors (not Graviton), or build the programs on this machine");
    } else if !features.contains(&"avx2") {
        checks.warning("processor", found, "training is slower without AVX2; use a newer instance type");
    } else {
        checks.ok("processor", found);
    }
    checks.fact("arch", arch).fact("cores", cores).fact("cpu_features", features);
}

fn memory(checks: &mut Checks) {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    let (total, available) =
        (kilobytes("MemTotal").unwrap_or(0) << 10, kilobytes("MemAvailable").unwrap_or(0) << 10);
    let limit = cgroup_limit().filter(|limit| *limit < total);
    let usable = limit.unwrap_or(total).min(available.max(1));
    let of_limit = limit.map(|limit| format!(", limited to {} by a cgroup", mib(limit))).unwrap_or_default();
    let found = format!("{}, {} available{of_limit}", mib(total), mib(available));
    if usable < MEMORY_MIN {
        checks.warning(
            "memory",
            found,
            "programs need 512 MiB, and a container of Java besides; stop other programs, or pass --memory",
        );
    } else {
        checks.ok("memory", found);
    }
    checks
        .fact("memory_bytes", total)
        .fact("memory_available_bytes", available)
        .fact("memory_limit_bytes", limit);
}

/// The memory limit of this process's cgroup, version 2 or 1.
fn cgroup_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of = |controller: &str| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers
                .split(',')
                .any(|one| one == controller)
                .then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let read = |path: String| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let unified = || read(format!("/sys/fs/cgroup/{}/memory.max", of("")?));
    let legacy = || read(format!("/sys/fs/cgroup/memory/{}/memory.limit_in_bytes", of("memory")?));
    unified().or_else(legacy)
}

fn disk(checks: &mut Checks) {
    let folder = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let shown = folder.display().to_string();
    let free = rustix::fs::statvfs(&folder).map(|disk| disk.f_bavail * disk.f_frsize).ok();
    let written = tempfile::Builder::new().prefix(".emr-doctor-").tempfile_in(&folder);
    let free_text = free.map_or_else(|| "unknown space".to_owned(), mib);
    match (&written, free) {
        (Err(error), _) => checks.missing(
            "TMPDIR",
            format!("{shown}: cannot be written: {}", program::system::cause(error)),
            "set TMPDIR to a writable folder on a large disk",
        ),
        (Ok(_), Some(free)) if free < DISK_MIN => checks.warning(
            "TMPDIR",
            format!("{shown}: {free_text} free"),
            "set TMPDIR to a folder on a larger disk; shards and sorted runs are written there",
        ),
        (Ok(_), _) => checks.ok("TMPDIR", format!("{shown}: {free_text} free")),
    }
    .fact("tmpdir", shown)
    .fact("disk_free_bytes", free)
    .fact("tmpdir_writable", written.is_ok());
}

fn files(checks: &mut Checks) {
    let limit = getrlimit(Resource::Nofile).current;
    match limit {
        Some(limit) if limit < FILES_MIN => checks.warning(
            "open files",
            format!("limit {limit}, expected at least {FILES_MIN}"),
            "raise the limit with ulimit -n 1024",
        ),
        Some(limit) => checks.ok("open files", format!("limit {limit}")),
        None => checks.ok("open files", "no limit"),
    }
    .fact("open_files_limit", limit);
}

/// Whether chrony or systemd keeps the clock synchronized. The store's clock is compared in `store.rs`.
fn clock(checks: &mut Checks) {
    let chrony =
        output("chronyc", &["-c", "-n", "tracking"]).map(|text| !text.trim().ends_with("Not synchronised"));
    let systemd =
        || match output("timedatectl", &["show", "--property", "NTPSynchronized", "--value"])?.trim() {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
    let synchronized = chrony.or_else(systemd);
    match synchronized {
        Some(true) => checks.ok("clock", "synchronized"),
        Some(false) => checks.warning(
            "clock",
            "not synchronized",
            "start chronyd; S3 refuses requests of a clock that differs by 15 minutes",
        ),
        None => checks.unknown("clock", "neither chrony nor systemd reports its state"),
    }
    .fact("clock_synchronized", synchronized);
}

pub(super) fn mib(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{} GiB", bytes >> 30) } else { format!("{} MiB", bytes >> 20) }
}

/// The output of a command that succeeds.
pub(super) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version_of("2.4") < Some(GLIBC_MIN));
        assert!(version_of("2.34") >= Some(GLIBC_MIN));
        assert!(version_of("2.100-r1") > Some(GLIBC_MIN));
        assert_eq!(version_of("musl"), None);
    }
}
