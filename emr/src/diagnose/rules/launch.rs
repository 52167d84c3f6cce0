//! Programs that do not start.

use super::{ANY, TASKS};
use crate::diagnose::rule::{Kind::Cause, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "arguments-too-long",
        places: TASKS,
        kind: Cause,
        pattern: r#"(?:Cannot run program "(?P<program>[^"]+)".*: )?error=7, Argument list too long"#,
        cause: "the settings of the job are too large for the environment of {program}",
        remedy: "pass -D stream.jobconf.truncate.limit=20000",
    },
    Rule {
        id: "program-missing",
        places: TASKS,
        kind: Cause,
        pattern: r#"Cannot run program "(?P<program>[^"]+)".*: error=2, No such file or directory"#,
        cause: "the node has no program {program}",
        remedy: "pass the program with -files, before all other options, and name it without a folder: -files s3://bucket/mapper -mapper mapper",
    },
    Rule {
        id: "program-not-executable",
        places: TASKS,
        kind: Cause,
        pattern: r#"Cannot run program "(?P<program>[^"]+)".*: error=13, Permission denied|(?P<path>\S+): Permission denied$"#,
        cause: "the program {program} is not executable",
        remedy: "pass it with -files and name it without a folder, so that Hadoop makes it executable; or run chmod +x on each node, on a volume without noexec",
    },
    Rule {
        id: "architecture",
        places: ANY,
        kind: Cause,
        pattern: r#"error=8, Exec format error|(?P<path>\S+): cannot execute binary file|(?P<other>\S+): \d+: \S*ELF.*not found|[Ee]xec format error"#,
        cause: "the program was built for another processor than the node's",
        remedy: "use x86-64 instance types (not Graviton, such as m6g), or programs built for the node's processor; `file PROGRAM` shows it",
    },
    Rule {
        id: "glibc",
        places: ANY,
        kind: Cause,
        pattern: r"(?P<program>\S+): \S*: version `GLIBC_(?P<version>[0-9.]+)' not found",
        cause: "{program} requires glibc {version}, which is newer than the node's",
        remedy: "use EMR 7.0 or later (glibc 2.34), and programs built by `make dist`",
    },
    Rule {
        id: "library-missing",
        places: ANY,
        kind: Cause,
        pattern: r"error while loading shared libraries: (?P<library>[^:]+): cannot open shared object file",
        cause: "the node has no library {library}",
        remedy: "use programs built by `make dist`, which link all libraries except glibc's",
    },
    Rule {
        id: "interpreter-missing",
        places: ANY,
        kind: Cause,
        pattern: r"(?P<script>\S+): (?P<interpreter>\S+): bad interpreter|env: ['‘]?(?P<name>[A-Za-z0-9.+-]+\r?)['’]?: No such file or directory",
        cause: "the interpreter of a script does not exist on the node, or the script has Windows line ends",
        remedy: "check the first line of the script (EMR 7 has python3, not python), and convert its line ends with sed -i 's/\\r$//'",
    },
];
