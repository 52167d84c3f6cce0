//! Failures whose cause another line states. These rules apply if no rule names a cause.

use super::{ANY, NODES, TASKS};
use crate::diagnose::rule::Kind::{ContainerEnd, Symptom};
use crate::diagnose::rule::Rule;

pub(super) const RULES: &[Rule] = &[
    exit_code(
        "exit-64",
        r"subprocess failed with code 64\b",
        "usage: the program refused its arguments",
        "correct the arguments; the log of the task states the wrong one",
    ),
    exit_code(
        "exit-65",
        r"subprocess failed with code 65\b",
        "bad input: the program refused its input",
        "read the message in the stderr log of the task",
    ),
    exit_code(
        "exit-66",
        r"subprocess failed with code 66\b",
        "an input is missing, is of another kind, or does not match its digest",
        "check --run and the paths in the arguments",
    ),
    exit_code(
        "exit-69",
        r"subprocess failed with code 69\b",
        "a remote service, such as S3, is unavailable",
        "check the endpoint and the network of the nodes, then run the job again with the same --run",
    ),
    exit_code(
        "exit-70",
        r"subprocess failed with code 70\b",
        "an internal guarantee is broken: two attempts of a partition do not agree, or a record is damaged",
        "read the message in the stderr log of the task; start again with a new --run",
    ),
    exit_code(
        "exit-74",
        r"subprocess failed with code 74\b",
        "the program could not read or write, for example because a disk is full",
        "read the message in the stderr log of the task",
    ),
    exit_code(
        "exit-75",
        r"subprocess failed with code 75\b",
        "the program was interrupted, and a retry may succeed",
        "run the job again with the same --run",
    ),
    exit_code(
        "exit-78",
        r"subprocess failed with code 78\b",
        "settings are invalid: credentials, policies, or settings of another run",
        "read the message in the stderr log of the task",
    ),
    exit_code(
        "exit-127",
        r"subprocess failed with code 12[67]\b",
        "a program or a command of a script does not exist or is not executable",
        "check that the node has every command of the script, and that the program was built for its processor",
    ),
    exit_code(
        "exit-137",
        r"subprocess failed with code 137\b|[Ee]xit(?:ed with a non-zero exit)?[ _]?code(?: is)?:? 137\b",
        "the program was killed (SIGKILL), usually because the node or the container has no memory left",
        "raise mapreduce.map.memory.mb or mapreduce.reduce.memory.mb, or run fewer containers per node",
    ),
    exit_code(
        "exit-139",
        r"subprocess failed with code 13[469]\b",
        "the program crashed (SIGSEGV or SIGABRT)",
        "check that the program is built for the node's processor and not damaged; report a crash of this project's programs",
    ),
    Rule {
        id: "broken-pipe",
        places: TASKS,
        kind: Symptom,
        pattern: r"java\.io\.IOException: (?:Broken pipe|Stream closed|Pipe closed)",
        cause: "the program exited before it had read all its input",
        remedy: "read the message in the stderr log of the task; a script must read its standard input to the end, and -mapper takes no shell pipe",
    },
    Rule {
        id: "task-killed",
        places: ANY,
        kind: ContainerEnd,
        pattern: r"subprocess failed with code 143\b|Container killed on request\. Exit code is 143",
        cause: "YARN ended a task (SIGTERM)",
        remedy: "check for a timeout, for lost nodes and for memory limits in the log of the job client",
    },
    Rule {
        id: "exit-other",
        places: TASKS,
        kind: Symptom,
        pattern: r"subprocess failed with code (?P<code>\d+)",
        cause: "the program exited with code {code}",
        remedy: "read the message in the stderr log of the task",
    },
    Rule {
        id: "container-failed",
        places: NODES,
        kind: ContainerEnd,
        pattern: r"Container exited with a non-zero exit code (?P<code>\d+)|AM Container for \S+ exited with\s+exitCode: (?P<am>-?\d+)",
        cause: "a container exited with code {code}{am}",
        remedy: "read the logs of the container: stderr, prelaunch.err and syslog",
    },
];

const fn exit_code(
    id: &'static str,
    pattern: &'static str,
    cause: &'static str,
    remedy: &'static str,
) -> Rule {
    Rule { id, places: TASKS, kind: Symptom, pattern, cause, remedy }
}
