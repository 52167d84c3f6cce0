#!/usr/bin/env python3
"""Builds bootstrap/container/Dockerfile and trains in the image. Takes minutes and needs the network.

usage: tests/container_build.py [--programs FOLDER]
  --programs FOLDER  copy programs that are already built, in place of compiling them

Uses docker or buildah, if one can reach the base images. Otherwise it runs the Dockerfile's instructions as root in Debian file
trees that debootstrap makes (DEBOOTSTRAP=... sets its path). The Rust toolchain of the base image is then that of this
machine. Without these tools, it prints SKIPPED.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent
DOCKERFILE = PROJECT / "bootstrap/container/Dockerfile"
IMAGE = "sentimill-test"
DEBOOTSTRAP = os.environ.get("DEBOOTSTRAP", "debootstrap")
# The packages of Docker's image rust:*-bookworm that the build uses.
OF_RUST = ["build-essential", "ca-certificates", "curl", "git", "python3"]
TOOLCHAIN = "/usr/local/rustup"
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
INSTRUCTIONS = {"FROM", "RUN", "COPY", "WORKDIR", "ARG", "CMD"}
# A job of SageMaker with this dataset, below the folder $1.
JOB = """
set -eu
cd "$1"
mkdir -p input/config input/data/training output
echo '{"epochs": "1", "hidden": "16", "embedding": "16"}' >input/config/hyperparameters.json
echo '{"training": {}}' >input/config/inputdataconfig.json
yes '{"reviewText": "works well", "overall": 5}
{"reviewText": "broke at once", "overall": 1}' | head -n 200 | awk '{sub("well|once", "& " sprintf("%c%c", 97 + NR % 26, 97 + NR / 26)); print}' >reviews.json
"""
TRAIN = "cd /opt/ml && sentimill reviews.json --out input/data/training/reviews.h5 && rm -f reviews.json && cd / && train && trainer predict /opt/ml/model --format text"


def main() -> None:
    options = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1], allow_abbrev=False)
    options.add_argument("--programs", type=pathlib.Path)
    programs = options.parse_args().programs
    with tempfile.TemporaryDirectory(prefix="container-") as place:
        folder = pathlib.Path(place)
        # The files of the last commit: a builder gets neither build results nor tools of this machine.
        (folder / "context").mkdir()
        archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=PROJECT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder / "context"], stdin=archive.stdout, check=True)
        if archive.wait() != 0:
            sys.exit("container_build.py: git archive failed")
        builder = next((name for name in ("docker", "buildah") if not programs and is_usable(name)), None)
        if builder:
            by_builder(builder, folder)
        elif os.getuid() == 0 and shutil.which(DEBOOTSTRAP):
            Trees(folder, programs).build()
        else:
            print("SKIPPED container: neither docker, nor buildah, nor root and debootstrap were found")


def is_usable(builder: str) -> bool:
    """Whether the builder runs and reaches the base images."""
    if not shutil.which(builder):
        return False
    image = instructions()[0][1].split()[0]
    return subprocess.run([builder, "pull", f"docker.io/library/{image}"], capture_output=True).returncode == 0


def by_builder(builder: str, folder: pathlib.Path) -> None:
    build = [builder, "build", "--file", DOCKERFILE, "--tag", IMAGE, folder / "context"]
    subprocess.run(build, check=True)
    job = folder / "job"
    job.mkdir()
    subprocess.run(["sh", "-c", JOB, "sh", job], check=True)
    run = ["docker", "run", "--rm", "--interactive", "--volume", f"{job}:/opt/ml", IMAGE] if builder == "docker" else None
    if run is None:
        container = subprocess.run(["buildah", "from", IMAGE], check=True, capture_output=True, text=True).stdout.strip()
        run = ["buildah", "run", "--volume", f"{job}:/opt/ml", container]
    predicts(subprocess.run([*run, "sh", "-c", TRAIN], input="works well\n", capture_output=True, text=True))


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with their arguments on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    found = [line.split(None, 1) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    if unknown := {name for name, _ in found} - INSTRUCTIONS:
        sys.exit(f"container_build.py: {DOCKERFILE}: {', '.join(sorted(unknown))}: not supported here")
    return [(name, argument.strip()) for name, argument in found]


class Trees:
    """Runs the instructions in one file tree per stage."""

    def __init__(self, folder: pathlib.Path, programs: pathlib.Path | None) -> None:
        self.folder, self.programs = folder, programs
        self.trees: dict[str, pathlib.Path] = {}
        self.tree, self.at, self.environment = folder, "/", {}

    def build(self) -> None:
        subprocess.run([DEBOOTSTRAP, "--variant=minbase", "bookworm", self.folder / "debian"], check=True, stdout=subprocess.DEVNULL)
        for name, argument in instructions():
            print(f"{name} {argument}", flush=True)
            getattr(self, name.lower())(argument)
        job = self.tree / "opt/ml"
        subprocess.run(["sh", "-c", JOB, "sh", job], check=True)
        # Copied programs have the path of another libtorch.
        libraries = {"LD_LIBRARY_PATH": "/sentimill/.deps/libtorch/lib"} if self.programs else {}
        predicts(self.enter(TRAIN, libraries, input="works well\n", capture_output=True, text=True))

    def from_(self, argument: str) -> None:
        words = argument.split()
        stage = words[2] if len(words) == 3 else "image"
        self.tree, self.at, self.environment = self.folder / stage, "/", {}
        self.trees[stage] = self.tree
        subprocess.run(["cp", "-a", "--reflink=auto", self.folder / "debian", self.tree], check=True)
        shutil.copy("/etc/resolv.conf", self.tree / "etc/resolv.conf")
        if CERTIFICATES.exists():
            shutil.copy(CERTIFICATES, self.tree / "certificates.crt")
        if words[0].startswith("rust:"):
            self.run(f"apt-get update && apt-get install --yes --no-install-recommends {' '.join(OF_RUST)}")
            (self.tree / TOOLCHAIN.lstrip("/")).mkdir(parents=True)

    def arg(self, argument: str) -> None:
        name, _, value = argument.partition("=")
        self.environment[name] = value

    def workdir(self, argument: str) -> None:
        self.at = argument
        self.path(argument).mkdir(parents=True, exist_ok=True)

    def cmd(self, argument: str) -> None:
        if json.loads(argument) != ["train"]:
            sys.exit(f"container_build.py: CMD {argument}, expected train")

    def copy(self, argument: str) -> None:
        words = shlex.split(argument)
        source = self.folder / "context"
        if words[0].startswith("--from="):
            source = self.trees[words.pop(0).removeprefix("--from=")]
        *sources, target = words
        to = self.path(target)
        for name in sources:
            path = source / name.strip("/")
            into_folder = target.endswith("/") or len(sources) > 1
            folder = to if path.is_dir() or into_folder else to.parent
            folder.mkdir(parents=True, exist_ok=True)
            # The content of a folder is copied, not the folder.
            subprocess.run(["cp", "-a", f"{path}/." if path.is_dir() else path, to], check=True)

    def run(self, command: str) -> None:
        if self.programs and "make build" in command:
            self.copy_programs(command)
            return
        done = self.enter(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"container_build.py: RUN {command}: exit code {done.returncode}")

    def copy_programs(self, command: str) -> None:
        """What `make build` does, with copies of programs in place of cargo's results."""
        self.run(command.replace("make build", "bootstrap/laptop.sh build torch"))
        release = self.path("target/release")
        release.mkdir(parents=True)
        for program in self.programs.iterdir():
            if program.is_file() and os.access(program, os.X_OK):
                shutil.copy(program, release)

    def path(self, path: str) -> pathlib.Path:
        return self.tree / os.path.join(self.at, path).lstrip("/")

    def enter(self, command: str, environment: dict | None = None, **options) -> subprocess.CompletedProcess:
        """Runs a command of the shell in the tree, with the network of this machine."""
        mounts = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev"'
        rustup = pathlib.Path(os.environ.get("RUSTUP_HOME", pathlib.Path.home() / ".rustup"))
        if self.path(TOOLCHAIN).exists():
            mounts += f' && mount --bind {shlex.quote(str(rustup))} "$0{TOOLCHAIN}"'
        path = f"{self.toolchain()}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        variables = {"PATH": path, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", "CARGO_HOME": "/usr/local/cargo"}
        if CERTIFICATES.exists():
            variables |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "CARGO_HTTP_CAINFO"), "/certificates.crt")
        variables |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        variables |= self.environment | (environment or {})
        inside = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()), "sh", "-ec", f"cd {shlex.quote(self.at)}; {command}"]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", f'{mounts} && exec chroot "$0" "$@"', self.tree, *inside]
        return subprocess.run(enter, **options)

    def toolchain(self) -> str:
        """The folder of this machine's Rust toolchain, in the tree of the build."""
        found = subprocess.run(["rustc", "--print", "sysroot"], cwd=PROJECT, check=True, capture_output=True, text=True).stdout.strip()
        return f"{TOOLCHAIN}/toolchains/{pathlib.Path(found).name}"


# `from` is a keyword.
setattr(Trees, "from", Trees.from_)


def predicts(done: subprocess.CompletedProcess) -> None:
    """Checks that the image trained a model and predicts with it."""
    if done.returncode != 0 or '"label":' not in done.stdout:
        sys.exit(f"container_build.py: the job of SageMaker failed with exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"container: trained, and predicted {done.stdout.splitlines()[-1]}")


if __name__ == "__main__":
    main()
