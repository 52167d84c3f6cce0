//! Memory, disks, time limits and other limits.

use super::{NODES, TASKS};
use crate::diagnose::rule::{Kind::Cause, Rule};
use crate::logs::Place;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "memory-physical",
        places: NODES,
        kind: Cause,
        pattern: r"(?:beyond the 'PHYSICAL' memory limit|beyond physical memory limits)\. Current usage: (?P<used>[0-9.]+ \w+) of (?P<limit>[0-9.]+ \w+) physical memory used",
        cause: "a task used more memory than its container has: {used} of {limit}",
        remedy: "raise mapreduce.map.memory.mb or mapreduce.reduce.memory.mb; the limit covers Java (mapreduce.*.java.opts) and the program, which uses at most 256 MiB",
    },
    Rule {
        id: "memory-virtual",
        places: NODES,
        kind: Cause,
        pattern: r"(?:beyond the 'VIRTUAL' memory limit|beyond virtual memory limits)\. .*?(?P<used>[0-9.]+ \w+) of (?P<limit>[0-9.]+ \w+) virtual memory used",
        cause: "a task used more virtual memory than YARN allows: {used} of {limit}",
        remedy: "set yarn.nodemanager.vmem-check-enabled=false (classification yarn-site), as EMR does, or raise yarn.nodemanager.vmem-pmem-ratio",
    },
    Rule {
        id: "memory-request",
        places: NODES,
        kind: Cause,
        pattern: r"(?:(?P<kind>MAP|REDUCE) capability (?:required )?is more than the supported max container capability.*(?:mapResourceRequest|reduceResourceRequest): <memory:(?P<asked>\d+).*maxContainerCapability:<memory:(?P<most>\d+)|Invalid resource request.*[Rr]equested resource type=\[memory-mb\])",
        cause: "a container of {asked} MB was requested, and the largest possible one has {most} MB",
        remedy: "lower mapreduce.map.memory.mb and mapreduce.reduce.memory.mb, or use larger instance types",
    },
    Rule {
        id: "java-heap",
        places: TASKS,
        kind: Cause,
        pattern: r"(?:OutOfMemoryError|Error): (?P<what>Java heap space|GC overhead limit exceeded)",
        cause: "Java's heap is full in a task or in the job client ({what})",
        remedy: "in a task, lower mapreduce.task.io.sort.mb or raise -Xmx in mapreduce.map.java.opts or mapreduce.reduce.java.opts, together with the container's memory; in the client, raise HADOOP_CLIENT_OPTS=-Xmx",
    },
    Rule {
        id: "threads",
        places: NODES,
        kind: Cause,
        pattern: r"unable to create (?:new )?native thread|fork: (?:retry: )?Resource temporarily unavailable|Cannot allocate memory",
        cause: "the node has no memory or no process left for another thread or process",
        remedy: "run fewer containers per node (yarn.nodemanager.resource.memory-mb), or raise the limit of processes (nproc)",
    },
    Rule {
        id: "task-timeout",
        places: TASKS,
        kind: Cause,
        pattern: r"(?:(?P<attempt>attempt_\w+) )?(?:task timeout set: (?P<limit>\d+)s, taskTimedOut: true|Timed out after (?P<seconds>\d+) secs)",
        cause: "the task {attempt} made no progress within mapreduce.task.timeout",
        remedy: "check what the program waits for, such as an unreachable store; programs of this project report progress, so a longer timeout helps only other programs",
    },
    Rule {
        id: "counters-limit",
        places: TASKS,
        kind: Cause,
        pattern: r"LimitExceededException: Too many (?P<what>counters|counter groups): (?P<found>\d+) max=(?P<limit>\d+)",
        cause: "the job has more {what} than Hadoop allows: {found}, limit {limit}",
        remedy: "write fewer counters (programs of this project write fewer than 40), or raise mapreduce.job.counters.max on the whole cluster",
    },
    Rule {
        id: "local-disks-bad",
        places: NODES,
        kind: Cause,
        pattern: r"(?P<bad>\d+/\d+ (?:local|log)-dirs (?:are bad|usable space is below configured utilization percentage/no more usable space).*)",
        cause: "YARN does not use a node, because its disks are full or broken: {bad}",
        remedy: "use larger volumes (EbsConfiguration) or fewer containers per node; YARN stops using a disk that is 90 % full",
    },
    Rule {
        id: "no-local-folder",
        places: NODES,
        kind: Cause,
        pattern: r"DiskErrorException: (?:Could not find any valid local directory for|No space available in any of the local directories|Directory is not writable: )\s*(?P<what>\S*)",
        cause: "no local disk of the node has space for {what}",
        remedy: "use larger volumes (EbsConfiguration) or more nodes, and compress the map output: mapreduce.map.output.compress=true",
    },
    Rule {
        id: "no-space",
        places: &[Place::Controller, Place::Step, Place::Bootstrap, Place::Container, Place::Node],
        kind: Cause,
        pattern: r"(?:(?P<path>/\S+): .*)?No space left on device",
        cause: "a disk of the node is full",
        remedy: "use larger volumes (EbsConfiguration); for a step, free space on the primary node, or let merge write to another folder",
    },
    Rule {
        id: "hdfs-full",
        places: TASKS,
        kind: Cause,
        pattern: r"could only be (?:written to|replicated to) 0 (?:of the|nodes).*|NotEnoughReplicasException|The DiskSpace quota of \S+ is exceeded",
        cause: "HDFS has no space, or no DataNode is running",
        remedy: "add core nodes or larger volumes, or delete data from HDFS; spot instances as core nodes lose HDFS, so use them for task nodes only",
    },
    Rule {
        id: "broken-disk",
        places: NODES,
        kind: Cause,
        pattern: r"java\.io\.IOException: Input/output error|Read-only file system",
        cause: "a disk of the node is broken",
        remedy: "terminate the node, so that EMR replaces it, and run the step again",
    },
];
