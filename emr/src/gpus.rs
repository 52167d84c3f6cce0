//! Machines for training: their start-up script, and the commands that start them and the training. Sends nothing.

mod types;

use std::fmt::Write;

use corpus::shell::word;
use serde::Serialize;

use crate::finding::Finding;
use crate::job::{Gpus, Job, Place, Prices, Shared};
pub use types::{GpuType, OF_GPUS, UnusableType, gpu_type};

/// Where the start-up script mounts the shared folder; the default of shared-folder.sh.
const MOUNT: &str = "/mnt/shared";
const FOLDER: &str = "/opt/sentimill";
/// The port of torchrun's rendezvous.
const PORT: u16 = 29400;
/// The scripts of bootstrap/gpu-node/ that a machine runs.
pub const SCRIPTS: [&str; 4] = ["gpu-check.sh", "pytorch.sh", "nccl.sh", "shared-folder.sh"];

/// The machines and commands of a training.
#[derive(Clone, Debug, Serialize)]
pub struct Training {
    /// The instance type.
    pub instance_type: String,
    /// The model of the GPUs.
    pub gpu: &'static str,
    /// GPUs per machine.
    pub gpus_per_machine: u32,
    /// The number of machines.
    pub machines: u32,
    /// The price of all machines per hour, with its currency, if the job file has the price of the type.
    pub price_per_hour: Option<String>,
    /// The start-up script.
    pub user_data: String,
    /// The command that starts the machines.
    pub start: String,
    /// The command that writes the key of the ranks, on the first machine; `None` for one machine.
    pub key: Option<String>,
    /// The command of each machine that starts its ranks.
    pub train: Vec<String>,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
}

/// Plans the machines of a job.
pub fn plan(job: &Job, gpus: &Gpus) -> Training {
    let mut findings = check(job, gpus);
    let kind = gpu_type(&gpus.instance_type).unwrap_or_else(|refused| {
        let thing = job.thing("gpus.type");
        findings.push(Finding::error(thing, refused.to_string(), format!("a type of {OF_GPUS}")));
        GpuType { gpu: "", gpus: 0 }
    });
    Training {
        instance_type: gpus.instance_type.clone(),
        gpu: kind.gpu,
        gpus_per_machine: kind.gpus,
        machines: gpus.machines,
        price_per_hour: price_per_hour(gpus, &job.prices),
        user_data: user_data(gpus, kind.gpus),
        start: start(gpus),
        key: (gpus.machines > 1)
            .then(|| format!("(umask 077; head -c 32 /dev/urandom | base64 >{})", key_file(gpus))),
        train: (0..gpus.machines).map(|rank| train(job, gpus, kind.gpus, rank)).collect(),
        findings,
    }
}

fn check(job: &Job, gpus: &Gpus) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_shared = |path: &std::path::Path| gpus.shared.is_some() && path.starts_with(MOUNT);
    for (key, place) in [("dataset", &job.dataset), ("gpus.out", &gpus.out)] {
        if place.local().is_some_and(|path| !is_shared(path)) {
            let expected = format!("an s3:// URL, or a path in the shared folder {MOUNT}");
            let finding = Finding::error(job.thing(key), format!("\"{place}\""), expected);
            findings.push(
                finding.remedy("a path on one machine is not on the others; set gpus.shared, or use S3"),
            );
        }
    }
    if gpus.machines > 1 && gpus.shared.is_none() {
        let finding = Finding::warning(job.thing("gpus.shared"), "no shared folder", "");
        findings.push(finding.remedy(format!(
            "each machine fetches the dataset once; copy {} to all machines yourself",
            key_file(gpus)
        )));
    }
    findings
}

/// The start-up script. It contains no credentials: the machine's role has access to S3.
fn user_data(gpus: &Gpus, n_gpus: u32) -> String {
    let files = word(&format!("{}/", gpus.files));
    let wheels = word(&gpus.files.join("wheelhouse").to_string());
    let (sha256, scripts) = (&gpus.sha256, SCRIPTS.join(" "));
    let mut script = format!(
        "#!/bin/bash\n\
         # Prepares this machine for training. Its output is in /var/log/cloud-init-output.log.\n\
         set -euo pipefail\n\
         mkdir -p {FOLDER}/files {FOLDER}/cache\n\
         cd {FOLDER}/files\n\
         aws s3 cp --only-show-errors --recursive --exclude 'wheelhouse/*' {files} .\n\
         # Nothing of it runs before it is verified.\n\
         echo '{sha256}  SHA256SUMS' | sha256sum --check --status ||\n    \
             {{ echo 'SHA256SUMS: its SHA-256 is not that of gpus.sha256 in the job file' >&2; exit 66; }}\n\
         for file in trainer {scripts} wheelhouse/requirements.txt; do\n    \
             grep -qE \"^[0-9a-f]{{64}}  $file\\$\" SHA256SUMS || {{ echo \"SHA256SUMS: $file is missing\" >&2; exit 66; }}\n\
         done\n\
         grep -v '  wheelhouse/' SHA256SUMS | sha256sum --check --quiet\n\
         wheels=$(sed -n 's|  wheelhouse/requirements.txt$||p' SHA256SUMS)\n\
         chmod +x trainer ./*.sh\n\
         ./gpu-check.sh --gpus-min {n_gpus}\n\
         ./pytorch.sh --wheelhouse {wheels} --sha256 \"$wheels\"\n\
         ./nccl.sh\n"
    );
    let from = gpus.shared.as_ref().map(|shared| match shared {
        Shared::Nfs { server, path } => format!("{server}:{path}"),
        Shared::Efs { id } => format!("{id}.efs.{}.amazonaws.com:/", gpus.region),
    });
    if let Some(from) = from {
        let _ = writeln!(script, "./shared-folder.sh --from {} --at {MOUNT}", word(&from));
    }
    let _ = writeln!(script, "install -m 755 trainer /usr/local/bin/trainer");
    script
}

fn start(gpus: &Gpus) -> String {
    let mut command = format!(
        "aws ec2 run-instances --region {} --count {} --instance-type {} --image-id {} \\\n    --iam-instance-profile Name={} ",
        word(&gpus.region),
        gpus.machines,
        word(&gpus.instance_type),
        gpus.image,
        word(&gpus.instance_profile)
    );
    if let Some(subnet) = &gpus.subnet {
        let _ = write!(command, "--subnet-id {subnet} ");
    }
    command + "--user-data file://user-data.sh"
}

/// The command of one machine. Several machines find each other at `$FIRST`, the private address of the first.
fn train(job: &Job, gpus: &Gpus, n_gpus: u32, rank: u32) -> String {
    let place = |place: &Place| word(&place.to_string());
    let arguments: String = gpus.arguments.iter().map(|argument| format!(" {}", word(argument))).collect();
    let fit = format!("fit {} --out {} --resume{arguments}", place(&job.dataset), place(&gpus.out));
    let environment = format!(
        "set -a; . /etc/sentimill/torch.env; . /etc/sentimill/nccl.env; set +a; export SENTIMILL_CACHE={FOLDER}/cache"
    );
    if gpus.machines == 1 {
        return format!("{environment}\ntrainer launch --nproc {n_gpus} -- {fit}");
    }
    let key = format!("export SENTIMILL_KEY_FILE={}", key_file(gpus));
    format!(
        "{environment}\n{key}\n\
         {FOLDER}/torch/bin/torchrun --no-python --nnodes {} --node-rank {rank} --nproc-per-node {n_gpus} \\\n    \
         --rdzv-backend c10d --rdzv-endpoint \"$FIRST:{PORT}\" trainer {fit}",
        gpus.machines
    )
}

/// The file with the key of the ranks, on each machine or in the shared folder.
fn key_file(gpus: &Gpus) -> String {
    let folder = if gpus.shared.is_some() { MOUNT } else { FOLDER };
    format!("{folder}/ranks.key")
}

fn price_per_hour(gpus: &Gpus, prices: &Prices) -> Option<String> {
    let price = prices.instances.get(&gpus.instance_type)?;
    Some(format!("{:.2} {}", price.ec2 * f64::from(gpus.machines), prices.currency()))
}

#[cfg(test)]
mod tests;
