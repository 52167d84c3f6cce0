//! GPUs, their driver, and the library with which `trainer` uses them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::check::Checks;
use super::system::output;

/// CUDA 13 supports Turing (T4) and newer.
const CAPABILITY_MIN: (u32, u32) = (7, 5);
/// The first driver of CUDA 13.
const DRIVER_MIN: u32 = 580;
/// Executables that train, by priority. `trainer` starts the `trainer-torch` beside it, which links libtorch. A machine
/// with GPUs may have the latter alone, under the name `trainer`.
const WITH_TORCH: [&str; 2] = ["trainer-torch", "trainer"];

pub(super) fn examine(checks: &mut Checks) {
    let queried = output(
        "nvidia-smi",
        &["--query-gpu=name,driver_version,compute_cap,memory.total", "--format=csv,noheader,nounits"],
    );
    let gpus: Vec<Gpu> = queried.as_deref().unwrap_or_default().lines().filter_map(Gpu::parse).collect();
    report(checks, &gpus, module().as_deref());
    libtorch(checks);
}

/// A GPU as `nvidia-smi` prints it.
#[derive(Debug, PartialEq)]
struct Gpu {
    name: String,
    driver: String,
    capability: (u32, u32),
    memory_mib: Option<u64>,
}

impl Gpu {
    /// Parses `Tesla T4, 580.65.06, 7.5, 15360`.
    fn parse(line: &str) -> Option<Self> {
        let [name, driver, capability, memory] = line.split(',').map(str::trim).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let (major, minor) = capability.split_once('.')?;
        let capability = (major.parse().ok()?, minor.parse().ok()?);
        Some(Self {
            name: name.to_owned(),
            driver: driver.to_owned(),
            capability,
            memory_mib: memory.parse().ok(),
        })
    }

    fn json(&self) -> Value {
        let (major, minor) = self.capability;
        json!({ "name": self.name, "compute_capability": format!("{major}.{minor}"), "memory_mib": self.memory_mib })
    }
}

fn report(checks: &mut Checks, gpus: &[Gpu], module: Option<&str>) {
    let Some(first) = gpus.first() else {
        match module {
            Some(version) => checks.warning(
                "gpu",
                format!("driver {version}, but nvidia-smi lists no GPU"),
                "install nvidia-smi of the same driver, and check the kernel log for errors of the GPU",
            ),
            None => checks.ok("gpu", "none; training uses the CPU"),
        }
        .fact("gpus", Value::Array(Vec::new()))
        .fact("driver", module);
        return;
    };
    let names: Vec<_> = gpus
        .iter()
        .map(|gpu| format!("{} (compute capability {}.{})", gpu.name, gpu.capability.0, gpu.capability.1))
        .collect();
    let found = format!("{}; driver {}", names.join(", "), first.driver);
    let driver: u32 = first.driver.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if gpus.iter().any(|gpu| gpu.capability < CAPABILITY_MIN) {
        checks.missing("gpu", found, "CUDA 13 requires compute capability 7.5; use g4dn, g5, g6, p4 or p5 in place of p2, p3 or g3, or train on the CPU");
    } else if driver < DRIVER_MIN {
        checks.missing(
            "gpu",
            found,
            &format!("CUDA 13 requires driver {DRIVER_MIN} or newer; update the driver"),
        );
    } else {
        checks.ok("gpu", found);
    }
    checks.fact("gpus", gpus.iter().map(Gpu::json).collect::<Value>()).fact("driver", first.driver.clone());
}

/// The version of the kernel module.
fn module() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let words = text.lines().next()?.split_whitespace();
    words
        .into_iter()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

/// PyTorch's C++ library, as the dynamic linker finds it for the executable beside `emr` that trains.
fn libtorch(checks: &mut Checks) {
    let Some((name, path)) = env::current_exe().ok().and_then(|emr| with_torch(emr.parent()?)) else {
        return;
    };
    let libraries = output("ldd", &[&path.to_string_lossy()]).unwrap_or_default();
    let torch: Vec<_> = libraries
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("libtorch") || line.starts_with("libc10"))
        .collect();
    let missing: Vec<_> = torch
        .iter()
        .filter(|line| line.ends_with("not found"))
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect();
    if !missing.is_empty() {
        checks.missing(
            "libtorch",
            format!("{name} lacks {}", missing.join(", ")),
            "add PyTorch's folder torch/lib to LD_LIBRARY_PATH; bootstrap/gpu-node installs it",
        );
    } else if torch.is_empty() {
        checks.warning(
            "libtorch",
            format!("{name} links no libtorch"),
            "copy trainer-torch of this project into the folder of emr; training needs it",
        );
    } else {
        // The program loads CUDA's part at run time, from the same folder.
        let paths = torch.iter().filter_map(|line| line.split_once(" => ")?.1.split(' ').next());
        let cuda = paths.map(Path::new).any(|path| path.with_file_name("libtorch_cuda.so").is_file());
        checks
            .ok("libtorch", if cuda { "found, with CUDA" } else { "found, for CPUs" })
            .fact("libtorch_cuda", cuda);
    }
}

/// The executable of a folder that trains: its name and its path.
fn with_torch(folder: &Path) -> Option<(&'static str, PathBuf)> {
    WITH_TORCH.into_iter().map(|name| (name, folder.join(name))).find(|(_, path)| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    fn state(lines: &str) -> (State, String) {
        let gpus: Vec<_> = lines.lines().filter_map(Gpu::parse).collect();
        let mut checks = Checks::default();
        report(&mut checks, &gpus, None);
        (checks.checks[0].state, checks.checks[0].remedy.clone())
    }

    #[test]
    fn gpus_that_cuda_13_has_dropped_are_reported() {
        assert_eq!(state("Tesla T4, 580.65.06, 7.5, 15360\nNVIDIA A10G, 580.65.06, 8.6, 23028").0, State::Ok);
        for (line, remedy) in [
            ("Tesla K80, 470.82.01, 3.7, 11441", "CUDA 13 requires compute capability 7.5"),
            ("Tesla V100-SXM2-16GB, 580.65.06, 7.0, 16384", "CUDA 13 requires compute capability 7.5"),
            ("Tesla T4, 535.104.12, 7.5, 15360", "CUDA 13 requires driver 580"),
        ] {
            let found = state(line);
            assert!(found.0 == State::Missing && found.1.starts_with(remedy), "{line}: {found:?}");
        }
        assert_eq!(state("").0, State::Ok);
    }
}
