#!/usr/bin/env bash
# The commands of an EMR node, under whose names this script is linked: hadoop, hadoop-streaming, hdfs, mapred and yarn.
# They use the cluster in SENTIMILL_HADOOP with the configuration in HADOOP_CONF_DIR.
set -euo pipefail

cluster=$(dirname "$(readlink -f "$0")")/../../bootstrap/hadoop/cluster.sh
name=$(basename "$0")

run() {
    local client=$1
    shift
    exec "$cluster" "$client" "$SENTIMILL_HADOOP" "$@"
}

case "$name ${1:-}" in
    hadoop-streaming*) run streaming "$@" ;;
    "hadoop jar")
        case ${2:-} in
            *hadoop-streaming*.jar) run streaming "${@:3}" ;;
            *) echo "JAR does not exist or is not a normal file: ${2:-}" >&2 ;;
        esac
        ;;
    "mapred streaming") run streaming "${@:2}" ;;
    "hadoop fs" | "hdfs dfs") run fs "${@:2}" ;;
    "mapred job") run job "${@:2}" ;;
    "yarn application" | "yarn app") run application "${@:2}" ;;
    "yarn logs") run logs "${@:2}" ;;
    *) echo "$name: ${1:-no command}: not a command of the nodes of the tests" >&2 ;;
esac
exit 1
