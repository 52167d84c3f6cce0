//! `emr doctor` on this machine, with a store and without.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::programs::{Finished, run, without_hadoop};
use tests::s3_server::{S3Server, with_s3};

fn doctor(arguments: &[&str]) -> Command {
    let mut command = without_hadoop(Path::new(env!("CARGO_BIN_EXE_emr")));
    command.arg("doctor").args(arguments);
    command
}

fn json(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).unwrap()
}

#[test]
fn facts_of_this_machine_have_the_names_of_the_bootstrap_actions() {
    let folder = tempfile::tempdir().unwrap();
    let facts = json(&run(doctor(&["--json"]).env("TMPDIR", folder.path()), b"").succeeded());
    assert_eq!(facts["arch"], std::env::consts::ARCH);
    assert_eq!(facts["tmpdir"], folder.path().to_str().unwrap());
    for name in ["memory_bytes", "cores", "disk_free_bytes"] {
        assert!(facts[name].as_u64().unwrap() > 0, "{name}: {facts}");
    }
    for name in ["glibc", "interface"] {
        assert!(!facts[name].as_str().unwrap().is_empty(), "{name}: {facts}");
    }
    let action = include_str!("../../bootstrap/emr/node-check.sh");
    for name in ["arch", "glibc", "memory_bytes", "cores", "clock_synchronized", "tmpdir", "disk_free_bytes"]
    {
        assert!(action.contains(&format!("fact {name} ")), "{name}");
        assert!(facts.get(name).is_some(), "{name}: {facts}");
    }
}

#[test]
fn a_folder_for_temporary_files_that_cannot_be_written_is_reported_with_a_remedy() {
    let finished = run(doctor(&[]).env("TMPDIR", "/no/such/folder"), b"").with_code(78);
    let said = finished.said();
    let (_, rest) = said
        .split_once("TMPDIR      missing  /no/such/folder: cannot be written: no such file or folder\n")
        .expect(&said);
    assert!(rest.trim_start().starts_with("set TMPDIR to a writable folder on a large disk\n"), "{said}");
    assert!(finished.stderr.starts_with("emr: missing on this machine: TMPDIR"), "{}", finished.stderr);
}

/// The check of GPUs with what `nvidia-smi` prints for them: driver, compute capability, MiB and name.
fn gpus(lines: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let smi = folder.path().join("nvidia-smi");
    fs::write(&smi, format!("#!/bin/sh\nprintf '{lines}'\n")).unwrap();
    fs::set_permissions(&smi, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let said = run(doctor(&[]).env("PATH", path), b"").said();
    let lines: Vec<_> = said.lines().skip_while(|line| !line.starts_with("gpu ")).take(2).collect();
    lines.join("\n")
}

#[test]
fn gpus_that_cuda_13_has_dropped_are_reported() {
    let found = gpus("580.65.06, 7.5, 15360, Tesla T4\n580.65.06, 8.6, 23028, NVIDIA A10G\n");
    let expected = "gpu         ok       Tesla T4 (compute capability 7.5), NVIDIA A10G (compute capability 8.6); \
                    driver 580.65.06\n";
    assert!(found.starts_with(expected), "{found}");
    for (line, found, remedy) in [
        (
            "470.82.01, 3.7, 11441, Tesla K80\n",
            "Tesla K80 has compute capability 3.7, expected 7.5 or newer",
            "choose a g4dn, g5, g6, p4 or p5 instance",
        ),
        (
            "580.65.06, 7.0, 16384, Tesla V100-SXM2-16GB\n",
            "Tesla V100-SXM2-16GB has compute capability 7.0, expected 7.5 or newer",
            "choose a g4dn, g5, g6, p4 or p5 instance",
        ),
        (
            "535.104.12, 7.5, 15360, Tesla T4\n",
            "driver 535.104.12, expected 580.65 or newer",
            "choose another machine image",
        ),
    ] {
        let said = gpus(line);
        assert!(said.starts_with("gpu         missing ") && said.contains(found), "{said}");
        assert!(said.contains(&format!("\n                     {remedy}")), "{said}");
    }
}

/// The check of libtorch with these executables beside `emr`, each with the libraries that `ldd` prints for it.
fn libtorch(executables: &[(&str, &str)]) -> String {
    // On the file system of `emr`, so that a link is enough.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let emr = folder.path().join("emr");
    fs::hard_link(env!("CARGO_BIN_EXE_emr"), &emr).unwrap();
    for (name, libraries) in executables {
        fs::write(folder.path().join(name), "").unwrap();
        fs::write(folder.path().join(format!("{name}.libraries")), libraries).unwrap();
    }
    let ldd = folder.path().join("ldd");
    fs::write(&ldd, "#!/bin/sh\ncat \"$1.libraries\"\n").unwrap();
    fs::set_permissions(&ldd, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());

    // Other programs are absent, or do not run, so the exit code is not that of this check.
    let said = run(without_hadoop(&emr).arg("doctor").env("PATH", path), b"").said();

    let line = said.lines().find(|line| line.starts_with("libtorch ")).unwrap_or_else(|| panic!("{said}"));
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn libtorch_is_that_of_the_executable_that_trains() {
    let none = "\tlibc.so.6 => /lib64/libc.so.6 (0x00007f0000000000)\n";
    let found = "\tlibtorch_cpu.so => /torch/lib/libtorch_cpu.so (0x00007f0000000000)\n";
    let absent = "\tlibtorch_cpu.so => not found\n\tlibc10.so => not found\n";
    let of = |libraries| libtorch(&[("trainer", libraries)]);
    assert_eq!(of(found), "ok found, for CPUs");
    assert_eq!(of(absent), "missing trainer lacks libtorch_cpu.so, libc10.so");
    assert_eq!(of(none), "warning trainer links no libtorch");
}

#[test]
fn a_store_is_checked_with_its_clock_and_its_conditional_puts() {
    let server = S3Server::start_s3s_fs();
    let url = format!("http://{}", server.address());
    let facts =
        json(&run(&mut with_s3(doctor(&["--run", "s3://bucket/run1", "--json"]), &url), b"").succeeded());
    assert_eq!(facts["store_ok"], true, "{facts}");
    assert_eq!(facts["region"], "eu-central-1");
    assert_eq!(facts["endpoint"], server.address().to_string());
    assert_eq!(facts["credentials"], "the environment (AWS_ACCESS_KEY_ID)");
    assert!(!facts.to_string().contains("canary"), "{facts}");

    let refused = run(&mut with_s3(doctor(&["--run", "s3://no-such-bucket/run1"]), &url), b"").with_code(78);
    assert!(refused.said().contains("store       missing  s3://no-such-bucket/run1"), "{}", refused.said());
    assert!(refused.said().contains("check the bucket, region= and endpoint="), "{}", refused.said());
}

#[test]
fn the_clock_of_the_service_is_compared() {
    // moto sends a date with each response, as Amazon does.
    let Some(server) = S3Server::start() else { return };
    let url = format!("http://{}", server.address());
    let facts =
        json(&run(&mut with_s3(doctor(&["--run", "s3://bucket/run1", "--json"]), &url), b"").succeeded());
    assert!(facts["clock_offset_s"].as_f64().unwrap().abs() <= 5.0, "{facts}");
}

#[test]
fn a_local_run_needs_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = folder.path().join("run");
    let finished = run(&mut doctor(&["--run", run_folder.to_str().unwrap(), "--json"]), b"").succeeded();
    assert_eq!(json(&finished)["store_ok"], true);
}
