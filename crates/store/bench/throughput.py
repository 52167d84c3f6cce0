"""Measures put and get of a file with 1, 4 and 16 concurrent parts, and `aws s3 cp` with the same part size and concurrency.
Both use the same s3s-fs on this machine, in turn. Prints medians and the spread of whole processes, and the CPU seconds of
client and server.

usage: throughput.py PROGRAMS AWS
  PROGRAMS  folder of examples/s3-server and examples/copy (target/release)
  AWS       path of the AWS CLI (.deps/bench/bin/aws)
Environment: MEGABYTES (default 512), ROUNDS (3), TMPDIR (contains the file three times).
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
AWS = pathlib.Path(sys.argv[2]).absolute()
BYTES = int(os.environ.get("MEGABYTES", 512)) * 1_000_000
ROUNDS = int(os.environ.get("ROUNDS", 3))
AT_ONCE = [1, 4, 16]
PART_MIB = 8
URL = "s3://bucket/run"


def main():
    server = subprocess.Popen([PROGRAMS / "examples/s3-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = "http://" + server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            measure(server.pid, endpoint, pathlib.Path(folder))
    finally:
        server.communicate()


def measure(server, endpoint, folder):
    file = folder / "file"
    with open(file, "wb") as out:
        for begin in range(0, BYTES, 1 << 20):
            out.write(os.urandom(min(1 << 20, BYTES - begin)))
    print(f"{BYTES / 1e6:.0f} MB in parts of {PART_MIB} MiB; median of {ROUNDS} rounds on {os.cpu_count()} cores")
    print(f"{'at once':8}{'':12}{'MB/s':>8}{'slowest':>9}{'fastest':>9}{'client CPU s':>14}{'server CPU s':>14}")
    for at_once in AT_ONCE:
        environment = settings(folder, endpoint, at_once)
        taken = {}
        for _ in range(ROUNDS):
            for name, command in commands(file, at_once).items():
                taken.setdefault(name, []).append(timed(command, environment, server))
            run([AWS, "s3", "rm", "--quiet", "--recursive", URL], environment)
        for name, rounds in taken.items():
            walls, clients, servers = zip(*rounds)
            speeds = [BYTES / 1e6 / wall for wall in (statistics.median(walls), max(walls), min(walls))]
            used = [statistics.median(seconds) for seconds in (clients, servers)]
            print(f"{at_once:<8}{name:12}{speeds[0]:8.0f}{speeds[1]:9.0f}{speeds[2]:9.0f}{used[0]:14.2f}{used[1]:14.2f}")


def commands(file, at_once):
    copy, options = PROGRAMS / "examples/copy", f"part-mib={PART_MIB},parts={at_once}"
    aws = [AWS, "s3", "cp", "--quiet"]
    return {
        "store put": [copy, "put", URL, file, options],
        "aws put": [*aws, file, f"{URL}/aws"],
        "store get": [copy, "get", URL, file, options],
        "aws get": [*aws, f"{URL}/aws", file.with_name("got")],
    }


def settings(folder, endpoint, at_once):
    """Writes the configuration of the CLI; returns the environment of both."""
    config = folder / "config"
    config.write_text(
        "[default]\nregion = eu-central-1\ns3 =\n"
        f"  max_concurrent_requests = {at_once}\n"
        f"  multipart_chunksize = {PART_MIB}MB\n"
        f"  multipart_threshold = {2 * PART_MIB}MB\n"
    )
    return os.environ | {
        "AWS_CONFIG_FILE": str(config),
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_ACCESS_KEY_ID": "canary-key",
        "AWS_SECRET_ACCESS_KEY": "canary-secret-0123456789",
    }


def timed(command, environment, server):
    """Returns wall and CPU seconds of a process, and CPU seconds of the server meanwhile."""
    used, served, begin = cpu_of_children(), cpu_of(server), time.perf_counter()
    run(command, environment)
    return time.perf_counter() - begin, cpu_of_children() - used, cpu_of(server) - served


def run(command, environment):
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
