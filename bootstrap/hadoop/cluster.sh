#!/usr/bin/env bash
# Runs a Hadoop cluster on this machine: HDFS, and YARN with two nodes, on loopback addresses. First run
# `bootstrap/laptop.sh hadoop`. The cluster requires about 1.5 GB of memory and stores all files in one folder.
#
# usage: cluster.sh COMMAND FOLDER [ARGUMENT ...]
#   start [FILE:NAME=VALUE ...]  starts a new cluster in a new folder, with extra settings: mapred:mapreduce.map.memory.mb=512
#   serve [FILE:NAME=VALUE ...]  like start, but stops the cluster when standard input is closed; prints `ready` when the
#                                cluster is up
#   start emr ..., serve emr ... with S3A and a job history server, as on EMR; first run `bootstrap/laptop.sh emr`
#   stop                         kills all processes of the cluster, including tasks
#   kill-node N, start-node N    kills node N, from 1 on, and all its tasks, as in a power failure; starts this node again
#   web                          prints the URL of YARN's web pages
#   fs, streaming, job, logs, application ARGUMENT ...
#                                run Hadoop's clients: `hdfs dfs`, `hadoop jar hadoop-streaming.jar`, `mapred job`,
#                                `yarn logs` and `yarn application`, with Java's options in HADOOP_CLIENT_OPTS and the
#                                configuration in HADOOP_CONF_DIR, if set
# HADOOP_NODES is the number of nodes of YARN, 2 by default.
# The cluster uses 20 consecutive ports. HADOOP_PORT is the first of them; the default is the first of 20 free ports.
set -euo pipefail

NODES=${HADOOP_NODES:-2}
PORTS=20
# A start can fail: another process may bind a port between the search and the daemon's start.
TRIES=3
# Time limit of each service in a try.
START_LIMIT_S=240
# Hadoop 3.4 uses packages of Java that are closed since version 16.
OPENS=()
for package in lang lang.reflect net nio io util util.concurrent; do
    OPENS+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done
# For short-lived JVMs on few cores, the C1 compiler and the serial garbage collector are faster.
SMALL=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k)

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
jars=$root/.deps/hadoop/jars
# The jars that an EMR node has in addition.
emr_jars=$root/.deps/emr/jars
# Set if the cluster is started with `emr`.
emr=

main() {
    [ $# -ge 2 ] || usage
    local command=$1
    folder=$(realpath -m "$2")
    shift 2
    [ -d "$jars" ] || fail "$jars is missing; run bootstrap/laptop.sh hadoop"
    case $command in
        start)
            start "$@"
            trap - EXIT
            ;;
        serve)
            start "$@"
            echo ready
            # When the process that started this script exits for any reason, its end of the pipe is closed.
            cat >/dev/null
            ;;
        stop) stop ;;
        kill-node) kill_all "SENTIMILL_NODE=$folder/node$1" ;;
        start-node) of_running && start_node "$1" ;;
        web) of_running && echo "http://127.0.0.1:$((port + 9))" ;;
        fs) client org.apache.hadoop.fs.FsShell "$@" ;;
        streaming) client org.apache.hadoop.streaming.HadoopStreaming "$@" ;;
        job) client org.apache.hadoop.mapred.JobClient "$@" ;;
        logs) client org.apache.hadoop.yarn.client.cli.LogsCLI "$@" ;;
        application) client org.apache.hadoop.yarn.client.cli.ApplicationCLI application "$@" ;;
        *) usage ;;
    esac
}

usage() {
    sed -n '/^# usage/,/^set /s/^# \{0,1\}//p' "$here/cluster.sh" >&2
    exit 64
}

start() {
    command -v curl >/dev/null || fail "curl was not found: apt-get install curl"
    [ ! -e "$folder/conf" ] || fail "$folder contains a cluster; stop it and delete the folder"
    if [ "${1:-}" = emr ]; then
        [ -d "$emr_jars" ] || fail "$emr_jars is missing; run bootstrap/laptop.sh emr"
        emr=yes
        shift
    fi
    # A partly started cluster is stopped.
    trap stop EXIT
    java_home
    local try
    for try in $(seq $TRIES); do
        mkdir -p "$folder/work"
        start_daemons "$@"
        ! all_up || return 0
        tell_logs
        [ "$try" -lt $TRIES ] || break
        echo "cluster: starting it again" >&2
        stop
        delete_cluster
    done
    fail "the cluster did not start in $TRIES tries; the logs of the last are in $folder"
}

start_daemons() {
    local node
    port=${HADOOP_PORT:-$(free_ports)}
    conf conf 127.0.0.1 "$@"
    printf 'JAVA_HOME=%q\nport=%s\nemr=%s\n' "$JAVA_HOME" "$port" "$emr" >"$folder/running"
    cd "$folder/work"
    java_of "$folder/conf" org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive >"$folder/format.log" 2>&1 ||
        fail "formatting the NameNode failed; see $folder/format.log"
    daemon namenode conf org.apache.hadoop.hdfs.server.namenode.NameNode
    daemon datanode conf org.apache.hadoop.hdfs.server.datanode.DataNode
    daemon resourcemanager conf org.apache.hadoop.yarn.server.resourcemanager.ResourceManager
    [ -z "$emr" ] || daemon jobhistory conf org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer
    for node in $(seq "$NODES"); do
        conf "node$node" "127.0.0.$((node + 1))" "$@"
        start_node "$node"
    done
}

# Waits until all daemons serve. Fails if one has exited, or after the time limit.
all_up() {
    until_up HDFS "http://127.0.0.1:$((port + 1))/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState" \
        '"NumLiveDataNodes" : 1' || return 1
    until_up YARN "http://127.0.0.1:$((port + 9))/ws/v1/cluster/metrics" "\"activeNodes\":$NODES" || return 1
    [ -z "$emr" ] ||
        until_up "the job history server" "http://127.0.0.1:$((port + 15))/ws/v1/history/info" startedOn || return 1
}

# Deletes what a start has made, and nothing else in the folder.
delete_cluster() {
    cd /
    rm -rf "$folder"/{conf,name,data,tmp,work,running} "$folder"/node[0-9]* "$folder"/*.{log,pid}
}

# Prints the end of each daemon's log.
tell_logs() {
    tail -n 12 "$folder"/*.log >&2
}

start_node() {
    cd "$folder/work"
    SENTIMILL_NODE=$folder/node$1 daemon "nodemanager$1" "node$1" org.apache.hadoop.yarn.server.nodemanager.NodeManager
}

# stop: processes are found by their environment, because tasks continue after their node is killed, and clients wait for
# a stopped cluster.
stop() {
    kill_all "SENTIMILL_CLUSTER=$folder"
}

# kill_all VARIABLE=VALUE: kills the processes with this variable in their environment, until none is left.
kill_all() {
    local found
    for _ in $(seq 100); do
        found=$(grep -lzxFs -- "$1" /proc/[0-9]*/environ | cut -d / -f 3) || true
        [ -n "$found" ] || return 0
        # shellcheck disable=SC2086 # Numbers, one per argument.
        kill -9 $found 2>/dev/null || true
        sleep 0.1
    done
    fail "processes" "$found" "do not exit"
}

java_home() {
    local java=java
    [ -z "${JAVA_HOME:-}" ] || return 0
    command -v java >/dev/null || fail "java was not found: apt-get install openjdk-17-jre-headless"
    JAVA_HOME=$("$java" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.home = //p')
    export JAVA_HOME
}

# java_of CONF CLASS [ARGUMENT ...]
java_of() {
    local conf=$1
    shift
    # shellcheck disable=SC2086 # Options, separated by spaces.
    "$JAVA_HOME/bin/java" "${OPENS[@]}" "${SMALL[@]}" -Xmx256m ${HADOOP_CLIENT_OPTS:-} \
        -cp "$conf:$(all_jars :)" "$@"
}

# all_jars SEPARATOR
all_jars() {
    echo "$jars/*${emr:+$1$emr_jars/*}"
}

client() {
    of_running
    SENTIMILL_CLUSTER=$folder java_of "${HADOOP_CONF_DIR:-$folder/conf}" "$@"
}

of_running() {
    [ -e "$folder/running" ] || fail "$folder contains no cluster; start one there"
    # shellcheck disable=SC1091 # JAVA_HOME, port and emr, written by start.
    . "$folder/running"
    export JAVA_HOME
}

# daemon NAME CONF CLASS
daemon() {
    SENTIMILL_CLUSTER=$folder setsid "$JAVA_HOME/bin/java" "${OPENS[@]}" "${SMALL[@]}" -Xmx256m \
        -cp "$folder/$2:$(all_jars :)" "$3" >"$folder/$1.log" 2>&1 </dev/null &
    echo $! >"$folder/$1.pid"
    # Otherwise the shell reports when the daemon exits.
    disown
}

# until_up NAME URL EXPECTED: waits until the response at URL contains EXPECTED. Fails if a daemon has exited, or after the
# time limit.
until_up() {
    local begin=$SECONDS response='' pid
    until response=$(curl --silent --fail --max-time 5 "$2") && [[ $response == *"$3"* ]]; do
        for pid in "$folder"/*.pid; do
            kill -0 "$(cat "$pid")" 2>/dev/null || {
                echo "cluster: the daemon $(basename "$pid" .pid) has exited" >&2
                return 1
            }
        done
        [ $((SECONDS - begin)) -lt $START_LIMIT_S ] || {
            echo "cluster: $1 did not start within $START_LIMIT_S s; it responds: $response" >&2
            return 1
        }
        sleep 0.2
    done
}

# Prints the first of PORTS consecutive free ports, below the system's range for connections. The random start avoids
# collisions with concurrent searches.
free_ports() {
    local first used
    used=$(awk '$4 == "0A" { sub(".*:", "", $2); print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    for _ in $(seq 200); do
        first=$((20000 + RANDOM % 590 * PORTS))
        # shellcheck disable=SC2046 # Numbers, one per argument.
        if ! grep -qxF "$(printf '%04X\n' $(seq $first $((first + PORTS - 1))))" <<<"$used"; then
            echo $first
            return
        fi
    done
    fail "no $PORTS consecutive free ports between 20000 and 32000; set HADOOP_PORT to the first port"
}

# conf NAME HOST [FILE:NAME=VALUE ...]: writes the configuration folder of one daemon; HOST is the address of its node.
conf() {
    local conf=$folder/$1 host=$2 file
    shift 2
    # Folders of web pages: two daemons do not start without them.
    mkdir -p "$conf/webapps/hdfs" "$conf/webapps/datanode"
    cp "$here/log4j.properties" "$conf/"
    for file in core hdfs yarn mapred capacity-scheduler; do
        {
            echo '<configuration>'
            { settings "$host"; printf '%s\n' "${@/=/ }"; } | sed -n "s/^$file://p" | sed \
                's,^\([^ ]*\) \(.*\)$,<property><name>\1</name><value>\2</value></property>,'
            echo '</configuration>'
        } >"$conf/$(if [ $file = capacity-scheduler ]; then echo $file; else echo $file-site; fi).xml"
    done
}

# settings HOST: prints the settings that differ from Hadoop's defaults.
settings() {
    local task_java="-Xmx160m ${SMALL[*]} ${OPENS[*]}"
    cat <<END
core:fs.defaultFS hdfs://127.0.0.1:$port
core:hadoop.tmp.dir $folder/tmp
hdfs:dfs.replication 1
hdfs:dfs.namenode.name.dir file://$folder/name
hdfs:dfs.datanode.data.dir file://$folder/data
hdfs:dfs.namenode.http-address 127.0.0.1:$((port + 1))
hdfs:dfs.datanode.address 127.0.0.1:$((port + 2))
hdfs:dfs.datanode.http.address 127.0.0.1:$((port + 3))
hdfs:dfs.datanode.ipc.address 127.0.0.1:$((port + 4))
yarn:yarn.resourcemanager.hostname 127.0.0.1
yarn:yarn.resourcemanager.address 127.0.0.1:$((port + 5))
yarn:yarn.resourcemanager.scheduler.address 127.0.0.1:$((port + 6))
yarn:yarn.resourcemanager.resource-tracker.address 127.0.0.1:$((port + 7))
yarn:yarn.resourcemanager.admin.address 127.0.0.1:$((port + 8))
yarn:yarn.resourcemanager.webapp.address 127.0.0.1:$((port + 9))
yarn:yarn.resourcemanager.nodemanagers.heartbeat-interval-ms 100
yarn:yarn.resourcemanager.scheduler.class org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler
capacity-scheduler:yarn.scheduler.capacity.root.queues default
capacity-scheduler:yarn.scheduler.capacity.root.default.capacity 100
capacity-scheduler:yarn.scheduler.capacity.maximum-am-resource-percent 0.5
yarn:yarn.scheduler.minimum-allocation-mb 64
yarn:yarn.nodemanager.hostname $1
yarn:yarn.nodemanager.bind-host $1
yarn:yarn.nodemanager.address $1:$((port + 10))
yarn:yarn.nodemanager.localizer.address $1:$((port + 11))
yarn:yarn.nodemanager.webapp.address $1:$((port + 12))
yarn:yarn.nodemanager.collector-service.address $1:$((port + 13))
yarn:yarn.nodemanager.local-dirs $conf/local
yarn:yarn.nodemanager.log-dirs $conf/logs
yarn:yarn.nodemanager.remote-app-log-dir /logs
yarn:yarn.log-aggregation-enable true
yarn:yarn.nodemanager.aux-services mapreduce_shuffle
yarn:yarn.nodemanager.resource.memory-mb 4096
yarn:yarn.nodemanager.vmem-check-enabled false
yarn:yarn.nodemanager.env-whitelist JAVA_HOME,SENTIMILL_CLUSTER,SENTIMILL_NODE
yarn:yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage 99.5
yarn:yarn.application.classpath $(all_jars ,)
mapred:mapreduce.application.classpath $(all_jars ,)
mapred:mapreduce.framework.name yarn
mapred:mapreduce.shuffle.port 0
mapred:mapreduce.jobhistory.address 127.0.0.1:$((port + 14))
mapred:mapreduce.jobhistory.webapp.address 127.0.0.1:$((port + 15))
mapred:mapreduce.jobhistory.admin.address 127.0.0.1:$((port + 16))
mapred:yarn.app.mapreduce.am.staging-dir /staging
mapred:yarn.app.mapreduce.am.resource.mb 384
mapred:yarn.app.mapreduce.am.command-opts -Xmx256m ${SMALL[*]} ${OPENS[*]}
mapred:yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms 100
mapred:mapreduce.client.completion.pollinterval 200
mapred:mapreduce.client.progressmonitor.pollinterval 200
mapred:mapreduce.map.memory.mb 384
mapred:mapreduce.reduce.memory.mb 512
mapred:mapreduce.map.java.opts $task_java
mapred:mapreduce.reduce.java.opts $task_java
mapred:mapreduce.task.io.sort.mb 32
END
}

fail() {
    echo "cluster: error: $*" >&2
    exit 1
}

main "$@"
