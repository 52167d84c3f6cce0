"""bootstrap/container/: the command `train` in a clean root, with a folder laid out as SageMaker does, and the Dockerfile."""

import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

from clean_root import INTERFACES, PROJECT, ActionTest, skip

CONTAINER = PROJECT / "bootstrap/container"
PROGRAMS = pathlib.Path(os.environ.get("SENTIMILL_PROGRAMS", PROJECT / "target/debug")).resolve()
DEPS = (PROJECT / ".deps").resolve()
# Settings of a small model.
SMALL = {"epochs": "2", "hidden": "16", "embedding": '"16"', "linear": "8", "batch_size": "16", "bidirectional": "false"}


def reviews(n: int) -> str:
    """JSON lines of synthetic reviews."""
    draw = random.Random(7)
    words = {5: ["great", "works", "love", "perfect"], 1: ["broke", "bad", "refund", "waste"]}
    lines = []
    for at in range(n):
        rating = draw.choice([1, 5, 5])
        text = " ".join(draw.choices(words[rating] + [f"{chr(97 + k)}{chr(97 + at % 26)}thing" for k in range(20)], k=draw.randint(4, 30)))
        lines.append(json.dumps({"reviewText": text, "overall": rating}))
    return "\n".join(lines)


class Container(ActionTest):
    """`train` with the programs of this build."""

    FOLDERS = (PROGRAMS, DEPS)
    N_REVIEWS = 400

    @classmethod
    def setUpClass(cls):
        if not (PROGRAMS / "trainer").exists():
            skip(f"container: {PROGRAMS / 'trainer'} is missing; make build builds it, with PyTorch")
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        folder = pathlib.Path(cls.place.name)
        (folder / "reviews.json").write_text(reviews(cls.N_REVIEWS))
        subprocess.run([PROGRAMS / "sentimill", "reviews.json"], cwd=folder, check=True, capture_output=True)
        cls.dataset = (folder / "reviews.h5").read_bytes()

    def setUp(self):
        super().setUp()
        self.root.write("/usr/local/bin/train", (CONTAINER / "train.py").read_bytes(), 0o755)

    def lay_out(self, base: str = "/opt/ml", hyperparameters: dict = SMALL, hosts=("algo-1",), host: str = "algo-1", channel: str = "training") -> None:
        self.root.write(f"{base}/input/config/hyperparameters.json", json.dumps(hyperparameters))
        channels = {channel: {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}}
        self.root.write(f"{base}/input/config/inputdataconfig.json", json.dumps(channels))
        resources = {"current_host": host, "hosts": list(hosts), "network_interface_name": "eth0", "current_instance_type": "ml.c5.xlarge"}
        self.root.write(f"{base}/input/config/resourceconfig.json", json.dumps(resources))
        self.root.write(f"{base}/input/data/{channel}/reviews.h5", self.dataset)
        for name in ("model", "output/data"):
            (self.root.changes / base.lstrip("/") / name).mkdir(parents=True, exist_ok=True)

    def train(self, commands: str = "train") -> subprocess.CompletedProcess:
        environment = f"export PATH={PROGRAMS}:/usr/local/bin:$PATH LD_LIBRARY_PATH={DEPS}/libtorch/lib OMP_NUM_THREADS=1"
        return self.root.run(f"{environment}\n{commands}")

    def names(self, path: str) -> list[str]:
        return sorted(file.name for file in (self.root.changes / path.lstrip("/")).glob("*"))

    def world_size(self) -> int:
        return json.loads(self.root.read("/opt/ml/output/data/training/settings.json"))["world_size"]

    def fails(self, code: int, reason: str, commands: str = "train") -> None:
        done = self.train(commands)
        self.assertEqual(done.returncode, code, done.stderr)
        failure = self.root.read("/opt/ml/output/failure")
        self.assertIn(reason, failure)
        self.assertEqual(len(failure.splitlines()), 1)
        self.assertIn(failure.strip(), done.stderr)
        self.assertEqual(self.names("/opt/ml/model"), [])
        (self.root.changes / "opt/ml/output/failure").unlink()

    def test_a_training_leaves_its_model_and_its_metrics(self):
        self.lay_out(hyperparameters=SMALL | {"sagemaker_region": '"eu-west-1"', "_tuning_objective_metric": "accuracy"})
        done = self.train("train && train && echo 'works great' | trainer predict /opt/ml/model --format text")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"label":', done.stdout.splitlines()[-1])
        self.assertIn("already complete", done.stderr)
        self.assertIn("model.safetensors", self.names("/opt/ml/model"))
        written = self.names("/opt/ml/output/data/training")
        self.assertLessEqual({"metrics.jsonl", "evaluation.json", "scores.npy", "settings.json"}, set(written))
        self.assertEqual(self.names("/opt/ml/output"), ["data"])
        settings = json.loads(self.root.read("/opt/ml/model/config.json"))
        self.assertIn("16", json.dumps(settings))

    def test_an_interrupted_training_continues_and_ends_with_the_same_weights(self):
        # Some seconds.
        long = SMALL | {"epochs": "600", "checkpoint-minutes": "1000"}
        self.lay_out(hyperparameters=long)
        weights = "/opt/ml/model/model.safetensors"
        done = self.train(f"train && sha256sum {weights}")
        self.assertEqual(done.returncode, 0, done.stderr)
        uninterrupted = done.stdout.splitlines()[-1].split()[0]
        metrics = "/opt/ml/checkpoints/training/metrics.jsonl"
        # On a busy machine, the training may be done before it is interrupted; then it starts again.
        done = self.train(f"""
            code=0
            until [ $code != 0 ]; do
                rm -rf /opt/ml/output/* /opt/ml/model/* /opt/ml/checkpoints; mkdir /opt/ml/checkpoints
                train & pid=$!
                until grep -q '"epoch"' {metrics} 2>/dev/null; do kill -0 $pid || break; sleep 0.02; done
                kill -TERM $pid
                wait $pid; code=$?
            done
            echo "exit code $code"
            ls /opt/ml/output /opt/ml/model /opt/ml/checkpoints/training/checkpoints
            train && sha256sum {weights}""")
        self.assertIn("exit code 75\n", done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("interrupted; a checkpoint is in /opt/ml/checkpoints/training/checkpoints", done.stderr)
        self.assertIn("resuming after step", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1].split()[0], uninterrupted)
        self.assertNotIn("failure", self.names("/opt/ml/output"))
        copied = self.names("/opt/ml/output/data/training")
        self.assertIn("metrics.jsonl", copied)
        self.assertFalse({"model", "checkpoints"} & set(copied), copied)

    def test_a_failure_is_explained_in_one_line(self):
        self.lay_out(hyperparameters=SMALL | {"epoch": "3"})
        self.fails(64, "trainer: unexpected argument '--epoch' found")
        self.lay_out(hyperparameters=SMALL | {"out": "/tmp"})
        self.fails(64, "train: hyperparameter out: not supported")
        self.lay_out(hyperparameters={"epochs": "[1, 2]"})
        self.fails(64, "train: hyperparameter epochs: found [1, 2], expected one value")
        self.lay_out()
        self.root.write("/opt/ml/input/data/training/reviews.h5", self.dataset[: len(self.dataset) // 2])
        self.fails(66, "/opt/ml/input/data/training/reviews.h5")
        self.root.write("/opt/ml/input/data/training/other.h5", self.dataset)
        self.fails(66, "train: /opt/ml/input/data/training: found 2 files FILE.h5, expected one dataset")
        self.root.write("/opt/ml/input/config/inputdataconfig.json", '{"validation": {}}')
        self.fails(66, "found the channels validation, expected one of training and train")
        self.root.write("/opt/ml/input/config/hyperparameters.json", "{")
        self.root.write("/opt/ml/input/config/inputdataconfig.json", "{}")
        (self.root.changes / "opt/ml/input/data/training/other.h5").unlink()
        self.fails(78, "train: /opt/ml/input/config/hyperparameters.json: not JSON")

    def test_a_killed_trainer_is_reported(self):
        self.lay_out()
        self.root.double("trainer", "kill -9 $$")
        self.fails(137, "trainer was killed by SIGKILL: the memory of the instance may be too small", "SENTIMILL_TRAINER=/doubles/trainer train")

    def test_one_rank_is_started_per_gpu(self):
        self.lay_out(hyperparameters=SMALL | {"device": "cpu"}, channel="train")
        self.root.double("nvidia-smi", "printf 'GPU 0: one\\nGPU 1: two\\n'")
        self.root.write("/interfaces.py", INTERFACES)
        done = self.train("python3 /interfaces.py train")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.world_size(), 2)
        self.assertIn("model.safetensors", self.names("/opt/ml/model"))

    def test_hosts_train_together_and_the_first_keeps_the_model(self):
        hosts = ("algo-1", "algo-2")
        self.root.write("/etc/hosts", "127.0.0.1 localhost\n10.0.0.2 algo-1 algo-2\n")
        self.root.write("/interfaces.py", INTERFACES)
        for base, host in (("/opt/ml", "algo-1"), ("/other/ml", "algo-2")):
            self.lay_out(base, hosts=hosts, host=host)
        done = self.train("""
            cat >/both <<'EOF'
            SAGEMAKER_BASE_DIR=/other/ml train & other=$!
            train; echo "algo-1: $?"
            wait $other; echo "algo-2: $?"
EOF
            python3 /interfaces.py "$(cat /both)" eth0""")
        self.assertEqual(done.stdout.splitlines()[-2:], ["algo-1: 0", "algo-2: 0"], done.stderr)
        self.assertEqual(self.world_size(), 2)
        self.assertIn("model.safetensors", self.names("/opt/ml/model"))
        self.assertEqual(self.names("/other/ml/model"), [])


class Conventions(unittest.TestCase):
    """`train` and sagemaker-training read the same folder in the same way."""

    READ = """
import json
from sagemaker_training import environment, files, torch_distributed
found = environment.Environment()
files.write_failure_file("the reason")
print(json.dumps({
    "arguments": found.to_cmd_args(), "channels": found.channel_input_dirs, "model": found.model_dir, "outputs": found.output_data_dir,
    "master": found.master_hostname, "at": found.hosts.index(found.current_host), "interface": found.network_interface_name,
    "port": torch_distributed.MASTER_PORT,
}))
"""

    def test_the_folder_of_a_job_is_read_as_sagemaker_training_reads_it(self):
        python, source = PROJECT / ".deps/s3/bin/python", PROJECT / ".deps/sagemaker"
        if not (source / "stamp").exists():
            skip("container: .deps/sagemaker is missing; bootstrap/laptop.sh sagemaker installs it")
        train = load()
        with tempfile.TemporaryDirectory() as place:
            base = pathlib.Path(place)
            for folder in ("input/config", "input/data/training", "input/data/test", "output", "model"):
                (base / folder).mkdir(parents=True)
            for channel in ("training", "test"):
                (base / f"input/data/{channel}/reviews.h5").touch()
            written = {
                "hyperparameters": {"epochs": "4", "optimizer": '"adamw"', "pool": "mean", "pos_weight": "0.5", "sagemaker_program": '"x.py"', "sagemaker_job_name": '"j"'},
                "inputdataconfig": {name: {"TrainingInputMode": "File"} for name in ("training", "test")},
                "resourceconfig": {"current_host": "algo-2", "hosts": ["algo-1", "algo-2", "algo-3"], "network_interface_name": "ethwe"},
            }
            for name, content in written.items():
                (base / f"input/config/{name}.json").write_text(json.dumps(content))
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(source), "SAGEMAKER_BASE_DIR": str(base), "AWS_DEFAULT_REGION": "us-east-1"}
            done = subprocess.run([python, "-B", "-c", self.READ], env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            theirs = json.loads(done.stdout.splitlines()[-1])

            named = dict(zip(theirs["arguments"][::2], theirs["arguments"][1::2], strict=True))
            ours = dict(option.split("=") for option in train.options(written["hyperparameters"]))
            self.assertEqual(ours, {name.replace("_", "-"): value for name, value in named.items()})
            cluster = train.Cluster(written["resourceconfig"])
            channels = train.Channels(base / "input/data", written["inputdataconfig"], cluster)
            self.assertEqual({"training": str(channels.dataset.parent), "test": str(channels.test.parent)}, theirs["channels"])
            [(command, world)] = cluster.commands(["fit"])
            self.assertEqual((world["MASTER_ADDR"], world["MASTER_PORT"], world["RANK"]), (theirs["master"], theirs["port"], str(theirs["at"])))
            self.assertEqual(world["NCCL_SOCKET_IFNAME"], theirs["interface"])
            self.assertEqual(theirs["model"], str(base / "model"))
            self.assertEqual(theirs["outputs"], str(base / "output/data"))
            # The file that sagemaker-training wrote is not replaced.
            train.fail(base, "another reason")
            self.assertEqual((base / "output/failure").read_text(), "the reason")


class Dockerfile(unittest.TestCase):
    TEXT = (CONTAINER / "Dockerfile").read_text()

    def test_the_programs_are_built_by_the_command_of_the_readme(self):
        install = (PROJECT / "README.md").read_text().split("## Install")[1].split("```sh\n")[1].split("```")[0]
        self.assertIn("make build\n", install)
        self.assertRegex(self.TEXT, r"RUN .*&& make build\n")

    def test_versions_are_those_of_the_project(self):
        rust = re.search(r'^rust-version = "([0-9.]+)"', (PROJECT / "Cargo.toml").read_text(), re.MULTILINE)[1]
        bases = re.findall(r"^FROM (\S+)", self.TEXT, re.MULTILINE)
        self.assertEqual(len(bases), 2)
        self.assertRegex(bases[0], rf"^rust:{re.escape(rust)}(\.\d+)?-bookworm$")
        self.assertRegex(bases[1], r"^debian:12\.\d+-slim$")

    def test_every_program_and_each_file_that_it_needs_is_copied(self):
        programs = re.search(r"^PROGRAMS := (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)[1].replace("$(STAGES)", re.search(r"^STAGES := (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)[1])
        for program in {*programs.split(), "trainer", "emr"}:
            self.assertIn(f"/sentimill/target/release/{program} ", self.TEXT)
        self.assertIn("COPY bootstrap/container/train.py /usr/local/bin/train\n", self.TEXT)

    def test_the_clean_root_has_the_packages_of_the_image(self):
        image = self.TEXT.split("\nFROM ")[1]
        packages = re.search(r"--no-install-recommends (.*?) &&", image)[1].split()
        installed = {line.rsplit("/", 1)[1].split("_")[0] for line in (PROJECT / "bootstrap/root/packages.sha256").read_text().splitlines()}
        # Certificates are for S3. The clean root has no network.
        self.assertLessEqual(set(packages) - {"ca-certificates"}, installed)


def load():
    """bootstrap/container/train.py as a module."""
    specification = importlib.util.spec_from_file_location("train", CONTAINER / "train.py")
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


if __name__ == "__main__":
    unittest.main()
