use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io::Write};

use super::*;
use crate::job::EXAMPLE;

fn training(text: &str) -> Training {
    let job =
        Job::parse(Path::new("/jobs/JOB.toml"), text).unwrap_or_else(|error| panic!("{:?}", error.details()));
    plan(&job, job.gpus.as_ref().unwrap())
}

fn example_with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    EXAMPLE.replacen(from, to, 1)
}

/// A job whose machines share a folder, with names that a shell must not split.
fn shared() -> String {
    let text = example_with("s3://bucket/gpus/", "s3://bucket/my gpus/");
    let text = text.replace("out = \"s3://bucket/trainings/reviews\"", "out = \"/mnt/shared/it's\"");
    text.replace("machines = 2", "machines = 2\nshared = \"efs://fs-0123\"")
}

#[test]
fn a_type_that_the_pinned_pytorch_supports_has_gpus_and_others_a_reason() {
    for (name, gpus) in
        [("g4dn.12xlarge", 4), ("g5.48xlarge", 8), ("g6.xlarge", 1), ("p4d.24xlarge", 8), ("p5.48xlarge", 8)]
    {
        assert_eq!(gpu_type(name).unwrap().gpus, gpus, "{name}");
    }
    for (name, found) in [
        (
            "p2.xlarge",
            "p2.xlarge has NVIDIA K80 GPUs with compute capability 3.7, which CUDA 13 no longer supports",
        ),
        (
            "g3.4xlarge",
            "g3.4xlarge has NVIDIA M60 GPUs with compute capability 5.2, which CUDA 13 no longer supports",
        ),
        (
            "p3.2xlarge",
            "p3.2xlarge has NVIDIA V100 GPUs with compute capability 7.0, which CUDA 13 no longer supports",
        ),
        ("g5g.xlarge", "g5g.xlarge has Graviton processors, and the pinned PyTorch is for x86_64"),
        ("m6i.xlarge", "\"m6i.xlarge\" is not a known type with GPUs"),
        ("g5.3xlarge", "\"g5.3xlarge\" is not a known type with GPUs"),
    ] {
        assert_eq!(gpu_type(name).unwrap_err().to_string(), found);
    }
    let refused = training(&example_with("g6.12xlarge", "p2.xlarge"));
    assert!(refused.findings.iter().any(Finding::is_error), "{:?}", refused.findings);
}

#[test]
fn a_region_that_a_shell_would_execute_is_refused_and_a_type_is_quoted() {
    let text = example_with("machines = 2", "machines = 2\nregion = \"x; reboot\"");
    let refused = Job::parse(Path::new("/jobs/JOB.toml"), &text).unwrap_err();
    let expected = "gpus.region: \"x; reboot\", expected a region such as eu-central-1";
    assert!(refused.to_string().contains(expected), "{refused}");
    let start = training(&example_with("g6.12xlarge", "g6; reboot")).start;
    assert!(start.contains("--instance-type 'g6; reboot' "), "{start}");
}

#[test]
fn a_digest_that_a_shell_would_execute_is_refused() {
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let refused = Job::parse(Path::new("/jobs/JOB.toml"), &example_with(digest, "'; reboot")).unwrap_err();
    let expected = "gpus.sha256: \"'; reboot\", expected the SHA-256 of the file SHA256SUMS in gpus.files";
    assert!(refused.to_string().contains(expected), "{refused}");
}

#[test]
fn the_start_up_script_is_valid_and_has_no_credentials() {
    for text in
        [EXAMPLE.to_owned(), shared(), example_with("machines = 2", "shared = \"nfs://10.0.0.5/data\"")]
    {
        let training = training(&text);
        assert!(!training.findings.iter().any(Finding::is_error), "{:?}", training.findings);
        let commands = format!("{}\nFIRST=x\n{}\n", training.user_data, training.train.join("\n"));
        assert!(!commands.contains("AWS_") && !commands.to_lowercase().contains("secret"), "{commands}");
        check_bash(&training.user_data);
        check_bash(&format!(
            "#!/bin/bash\nexport FIRST=x\n{}\n{}\n",
            training.start,
            training.train.join("\n")
        ));
    }
}

/// Runs `bash -n` and shellcheck.
#[track_caller]
fn check_bash(script: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all(script.as_bytes()).unwrap();
    assert!(Command::new("bash").arg("-n").arg(file.path()).status().unwrap().success(), "{script}");
    let shellcheck = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/bin/shellcheck");
    // SC1091: the environment files exist on the machine only.
    let mut command = Command::new(&shellcheck);
    let checked =
        command.args(["--norc", "--exclude=SC1091"]).arg(file.path()).stdout(Stdio::piped()).output();
    let checked = checked.unwrap_or_else(|error| panic!("{}: {error}", shellcheck.display()));
    assert!(checked.status.success(), "{}\n{script}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn the_start_up_script_runs_the_scripts_of_the_project_with_options_that_they_have() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bootstrap/gpu-node");
    let script = training(&shared()).user_data;
    for name in SCRIPTS {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let line = script.lines().find(|line| line.starts_with(&format!("./{name}"))).unwrap();
        for option in line.split(' ').filter(|word| word.starts_with("--")) {
            assert!(text.contains(&format!("{option})")), "{name} has no {option}");
        }
    }
    assert!(
        script.contains("./pytorch.sh --wheelhouse 's3://bucket/my gpus/wheelhouse' --sha256 "),
        "{script}"
    );
    assert!(
        script.contains("--from fs-0123.efs.eu-central-1.amazonaws.com:/ --at /mnt/shared\n"),
        "{script}"
    );
}

#[test]
fn each_machine_has_its_rank_and_one_machine_needs_no_rendezvous() {
    let two = training(EXAMPLE);
    assert_eq!((two.train.len(), two.gpus_per_machine), (2, 4));
    for (rank, line) in two.train.iter().enumerate() {
        assert!(line.contains(&format!("--nnodes 2 --node-rank {rank} --nproc-per-node 4")), "{line}");
        assert!(
            line.contains(
                "fit s3://bucket/datasets/reviews.h5 --out s3://bucket/trainings/reviews --resume --epochs 10"
            ),
            "{line}"
        );
    }
    assert!(
        two.findings[0].to_string().contains("copy /opt/sentimill/ranks.key to all machines"),
        "{:?}",
        two.findings
    );
    let one = training(&example_with("machines = 2", "machines = 1"));
    assert!(one.train[0].contains("trainer launch --nproc 4 -- fit"), "{}", one.train[0]);
    assert!(!one.train[0].contains("rdzv") && one.findings.is_empty());
}

#[test]
fn a_path_that_other_machines_cannot_read_is_refused() {
    let local =
        training(&example_with("out = \"s3://bucket/trainings/reviews\"", "out = \"/data/training\""));
    let expected =
        "gpus.out: \"/data/training\", expected an s3:// URL, or a path in the shared folder /mnt/shared";
    assert!(
        local.findings.iter().any(|finding| finding.is_error() && finding.to_string().contains(expected))
    );
}

#[test]
fn the_price_is_that_of_all_machines() {
    assert_eq!(training(EXAMPLE).price_per_hour, None);
    let text = EXAMPLE.to_owned() + "\n[prices.instances.\"g6.12xlarge\"]\nec2 = 5.75\nemr = 0\n";
    assert_eq!(training(&text).price_per_hour.as_deref(), Some("11.50 USD"));
}
