#!/usr/bin/env bash
# Runs the whole job on a Hadoop of two nodes with an S3 server, all on this machine, and shows commands and output.
#
# usage: tests/hadoop-demo.sh PROGRAMS MOTO_SERVER   (folder of the programs, S3 server)
# shellcheck disable=SC2016 # Commands are printed as typed, and expanded when they run.
set -euo pipefail

PROGRAMS=$(cd "$1" && pwd)
moto_server=$(realpath -s "$2")
cluster=$(cd "$(dirname "$0")/../bootstrap/hadoop" && pwd)/cluster.sh
export PROGRAMS PATH=$PROGRAMS:$PROGRAMS/examples:$PATH

folder=$(mktemp -d)
end() {
    code=$?
    "$cluster" stop "$folder/cluster"
    [ -z "${s3:-}" ] || kill "$s3"
    if [ $code = 0 ]; then
        rm -rf "$folder"
    else
        echo "hadoop-demo.sh: exited with code $code; files and logs of the cluster are in $folder" >&2
    fi
}
trap end EXIT
cd "$folder"

# step TEXT COMMAND: prints what is done and its command, then runs it.
step() {
    printf '\n# %s\n$ %s\n' "$1" "$2"
    bash -e -o pipefail -c "$2"
}

echo "HDFS, YARN with two nodes, and an S3 server, in $folder"
"$moto_server" -H 127.0.0.1 -p 0 >s3.log 2>&1 &
s3=$!
"$cluster" start "$folder/cluster"
until port=$(sed -n 's,.*Running on http://127.0.0.1:\([0-9]*\).*,\1,p' s3.log) && [ -n "$port" ]; do
    kill -0 $s3
    sleep 0.2
done
export AWS_ENDPOINT_URL_S3=http://127.0.0.1:$port AWS_REGION=us-east-1
curl --silent --fail --request PUT "$AWS_ENDPOINT_URL_S3/bucket" >/dev/null
# The commands hdfs and hadoop, as on a cluster.
mkdir bin
printf '#!/bin/sh\nshift\nexec %q fs %q "$@"\n' "$cluster" "$folder/cluster" >bin/hdfs
printf '#!/bin/sh\nshift 2\nexec %q streaming %q "$@"\n' "$cluster" "$folder/cluster" >bin/hadoop
chmod +x bin/*
export PATH=$folder/bin:$PATH HADOOP_STREAMING=hadoop-streaming.jar

step "Put 20,000 reviews into HDFS, some of them invalid, half of them gzip-compressed." \
    'demo-corpus --reviews 10000 --seed 1 > reviews-1.json
  demo-corpus --reviews 10000 --seed 2 | gzip > reviews-2.json.gz
  hdfs dfs -mkdir /reviews /programs
  hdfs dfs -put reviews-1.json reviews-2.json.gz /reviews
  for program in mapper combiner reducer; do strip -o $program $PROGRAMS/$program; done
  hdfs dfs -put mapper combiner reducer /programs'

step "Credentials are in a file on each node, readable by the user of the tasks only; the job gets its path." \
    'export AWS_SHARED_CREDENTIALS_FILE=$PWD/credentials
  (umask 077; printf "[default]\naws_access_key_id = demo\naws_secret_access_key = demo\n" > credentials)'
export AWS_SHARED_CREDENTIALS_FILE=$folder/credentials

step "Run the job: the same programs, with Hadoop sorting between them." \
    'hadoop jar $HADOOP_STREAMING \
    -D mapreduce.job.reduces=3 \
    -files hdfs:///programs/mapper,hdfs:///programs/combiner,hdfs:///programs/reducer \
    -mapper mapper -combiner combiner -reducer "reducer --run s3a://bucket/run1" \
    -cmdenv AWS_SHARED_CREDENTIALS_FILE=$AWS_SHARED_CREDENTIALS_FILE \
    -cmdenv AWS_ENDPOINT_URL_S3=$AWS_ENDPOINT_URL_S3 -cmdenv AWS_REGION=$AWS_REGION \
    -input /reviews -output /out/run1 > job.log 2>&1
  grep -o "Job job_.*" job.log
  sed -n "/^\tmapper/,/reviews=/p; /^\treducer/,/rows=/p" job.log'

step "Merge the shards into one dataset; the ledger from the job's counters must balance." \
    'merge --run s3a://bucket/run1 --counts job.log --out reviews.h5'

step "A pipe makes the same dataset of the same reviews, byte for byte." \
    '(cat reviews-1.json; zcat reviews-2.json.gz) | mapper --counts mapper.json 2> log | LC_ALL=C sort |
    reducer --run file://$PWD/pipe --partition 0 --partitions 1 > committed 2>> log
  merge --run file://$PWD/pipe --counts mapper.json --out pipe.h5 > card 2>> log
  cmp reviews.h5 pipe.h5 && ls -l reviews.h5 pipe.h5'

step "List the rejected lines with a job without reducers." \
    'hadoop jar $HADOOP_STREAMING \
    -D mapreduce.job.reduces=0 \
    -files hdfs:///programs/mapper -mapper "mapper --rejects" \
    -input /reviews -output /out/rejects > rejects.log 2>&1
  hdfs dfs -cat "/out/rejects/part-*" > rejects.json
  wc -l rejects.json; grep -m 2 no_text rejects.json | cut -c 1-200'
