//! GPUs, their driver, and the library with which `trainer` uses them.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::check::Checks;
use super::system::{Facts, output};

/// The bootstrap action that compares the GPUs and the driver with those that CUDA 13 supports.
const GPU_CHECK: &str = include_str!("../../../bootstrap/gpu-node/gpu-check.sh");
/// The executable that links libtorch.
const TRAINER: &str = "trainer";

pub(super) fn examine(checks: &mut Checks) {
    add(checks, &Facts::of(GPU_CHECK, &[]), module());
    libtorch(checks);
}

/// Adds what the bootstrap action has found, and the version of the kernel module.
fn add(checks: &mut Checks, facts: &Facts, module: Option<String>) {
    let gpus = facts.get("gpus").as_array().cloned().unwrap_or_default();
    let driver = Some(facts.text("driver").to_owned()).filter(|driver| !driver.is_empty()).or(module);
    let name = |gpu: &Value, name: &str| gpu[name].as_str().unwrap_or_default().to_owned();
    let names = gpus
        .iter()
        .map(|gpu| format!("{} (compute capability {})", name(gpu, "name"), name(gpu, "capability")));
    let names = names.collect::<Vec<_>>().join(", ");
    match (&driver, facts.text("error").split_once(": ")) {
        (Some(driver), None) => checks.ok("gpu", format!("{names}; driver {driver}")),
        (Some(driver), Some((error, remedy))) if gpus.is_empty() => {
            checks.warning("gpu", format!("driver {driver}; {error}"), remedy)
        }
        (Some(driver), Some((error, remedy))) => {
            checks.missing("gpu", format!("{names}; driver {driver}; {error}"), remedy)
        }
        (None, _) => checks.ok("gpu", "none; training uses the CPU"),
    }
    .fact("gpus", gpus)
    .fact("driver", driver);
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
    let Some(path) =
        env::current_exe().ok().map(|emr| emr.with_file_name(TRAINER)).filter(|path| path.is_file())
    else {
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
            format!("{TRAINER} lacks {}", missing.join(", ")),
            "add PyTorch's folder torch/lib to LD_LIBRARY_PATH; bootstrap/gpu-node installs it",
        );
    } else if torch.is_empty() {
        checks.warning(
            "libtorch",
            format!("{TRAINER} links no libtorch"),
            "copy trainer of this project into the folder of emr; training needs it",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_too_old_for_the_check_is_named_as_the_cause() {
        let error = "the driver is older than 510, expected 580.65 or newer: choose another machine image";
        let facts = Facts::of(&format!("echo '{{\"error\":\"{error}\"}}'"), &[]);
        let mut checks = Checks::default();

        add(&mut checks, &facts, Some("470.82.01".to_owned()));

        let found = checks.checks[0].json();
        assert_eq!(
            found["found"],
            "driver 470.82.01; the driver is older than 510, expected 580.65 or newer"
        );
        assert_eq!(
            (&found["state"], &found["remedy"]),
            (&"warning".into(), &"choose another machine image".into())
        );
    }
}
