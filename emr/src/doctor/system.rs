//! The operating system: glibc, processor, memory, disk, clock, limits.
//!
//! The bootstrap action `node-check.sh` measures, so a node and `emr doctor` agree.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::system::cause;
use program::temporary;
use rustix::process::{Resource, getrlimit};
use serde_json::{Map, Value};

use super::check::Checks;

const NODE_CHECK: &str = include_str!("../../../bootstrap/emr/node-check.sh");
/// What a reducer uses at most, and Java besides.
const MEMORY_MIN: u64 = 1 << 30;
/// A shard of 1 GB of reviews, its spilled runs and the copy that is uploaded.
const DISK_MIN: u64 = 2 << 30;
/// `merge` reads 64 shards at a time.
const FILES_MIN: u64 = 256;
/// Instructions that the kernels use if the processor has them.
const FEATURES: [&str; 4] = ["sse4_2", "avx2", "fma", "avx512f"];

pub(super) fn examine(checks: &mut Checks) {
    let folder = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let folder = std::path::absolute(&folder).unwrap_or(folder).display().to_string();
    let facts = Facts::of(NODE_CHECK, &["--tmpdir", &folder]);
    glibc(checks, &facts);
    processor(checks, &facts);
    memory(checks, &facts);
    disk(checks, &facts, &folder);
    files(checks);
    clock(checks, &facts);
}

/// What a script of `bootstrap/` has found: the JSON object that is its last line.
pub(super) struct Facts(Map<String, Value>);

impl Facts {
    pub fn of(script: &str, arguments: &[&str]) -> Self {
        let run = || {
            let mut bash = Command::new("bash");
            bash.args(["-s", "--"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut bash = bash.stderr(Stdio::null()).spawn().ok()?;
            // A script that refuses an argument does not read the rest of itself.
            let _ = bash.stdin.take()?.write_all(script.as_bytes());
            let output = String::from_utf8_lossy(&bash.wait_with_output().ok()?.stdout).into_owned();
            serde_json::from_str(output.lines().last()?).ok()
        };
        Self(run().unwrap_or_default())
    }

    pub fn get(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }

    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// Whether the script refuses something in these words.
    fn refuses(&self, words: &str) -> bool {
        self.text("error").contains(words)
    }
}

fn glibc(checks: &mut Checks, facts: &Facts) {
    let found = match facts.text("glibc") {
        "" => "not found",
        version => version,
    };
    if facts.refuses("glibc ") || found == "not found" {
        let remedy = "use EMR 7.0 or later, or build the programs on this machine with make build";
        checks.missing("glibc", format!("{found}, expected 2.34 or newer"), remedy);
    } else {
        checks.ok("glibc", found);
    }
    checks.fact("glibc", facts.get("glibc"));
}

fn processor(checks: &mut Checks, facts: &Facts) {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.split_once(':')).map(|(_, value)| value.trim())
    };
    let flags: Vec<&str> = value("flags").unwrap_or_default().split(' ').collect();
    let features: Vec<&str> = FEATURES.into_iter().filter(|feature| flags.contains(feature)).collect();
    let name = value("model name").unwrap_or("unknown model");
    let vectors = if features.is_empty() { "no vectors".to_owned() } else { features.join(" ") };
    let cores = facts.number("cores").unwrap_or(1);
    let found = format!("{}, {cores} cores, {name}, {vectors}", facts.text("arch"));
    if facts.refuses("architecture ") {
        checks.missing("processor", found, "use an instance type with x86-64 processors (not Graviton), or build the programs on this machine");
    } else if !features.contains(&"avx2") {
        checks.warning("processor", found, "training is slower without AVX2; use a newer instance type");
    } else {
        checks.ok("processor", found);
    }
    checks.fact("arch", facts.get("arch")).fact("cores", cores).fact("cpu_features", features);
}

fn memory(checks: &mut Checks, facts: &Facts) {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let (total, available) = (facts.number("memory_bytes").unwrap_or(0), available.unwrap_or(0) << 10);
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

fn disk(checks: &mut Checks, facts: &Facts, folder: &str) {
    let free = facts.number("disk_free_bytes");
    match free {
        None => checks.missing(
            "TMPDIR",
            match temporary::file_in(Path::new(folder)) {
                Err(error) => format!("{folder}: cannot be written: {}", cause(&error)),
                Ok(_) => format!("{folder}: cannot be written"),
            },
            "set TMPDIR to a writable folder on a large disk",
        ),
        Some(free) if free < DISK_MIN => checks.warning(
            "TMPDIR",
            format!("{folder}: {} free", mib(free)),
            "set TMPDIR to a folder on a larger disk; shards and sorted runs are written there",
        ),
        Some(free) => checks.ok("TMPDIR", format!("{folder}: {} free", mib(free))),
    }
    .fact("tmpdir", folder)
    .fact("disk_free_bytes", free)
    .fact("tmpdir_writable", free.is_some());
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
fn clock(checks: &mut Checks, facts: &Facts) {
    let synchronized = facts.get("clock_synchronized").as_bool();
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
