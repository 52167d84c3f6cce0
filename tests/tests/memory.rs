//! Memory use is bounded for every input.
//!
//! Each program runs under `ulimit -d`: the kernel refuses more private writable memory, and the program
//! fails. This is stricter than resident memory, because untouched pages count. It excludes the program's
//! code and the kernel's file cache.
//!
//! With PROVE=1 the inputs are 1 GB of reviews, 200 MB of words that occur once, and a line of 4 GB.
//! Otherwise they are at most a tenth of that, and the reducer gets less memory too, so that it spills.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use synthetic::{self, new_words::each_text};
use tests::demo::json_line;
use tests::pipe::{merge, reducer};
use tests::programs::{Finished, finish, program, run, without_hadoop};
use tests::{prove, say};

/// Limit of mapper and combiner. They share a cluster node with many other processes.
const STREAMING_MIB: u64 = 12;
/// Limit of reducer and merge.
const SHARDS_MIB: u64 = 224;
/// Limit of a reducer with a small --memory.
const SPARING_MIB: u64 = 48;

/// The command under a limit of its writable memory.
fn limited(command: &Command, mib: u64) -> Command {
    let mut bash = without_hadoop(Path::new("bash"));
    bash.args(["-c", "ulimit -d \"$1\" && shift && exec \"$@\"", "bash", &(mib << 10).to_string()]);
    bash.arg(command.get_program()).args(command.get_args());
    bash
}

/// Runs a command under a memory limit, with standard input and output redirected to files. Prints the run time.
fn stream(name: &str, command: &Command, mib: u64, input: &Path, output: &Path) -> Finished {
    let begin = Instant::now();
    let mut command = limited(command, mib);
    command.stdin(File::open(input).unwrap()).stdout(File::create(output).unwrap()).stderr(Stdio::piped());
    let finished = finish(command.spawn().unwrap(), name).succeeded();
    let input_mb = fs::metadata(input).unwrap().len() as f64 / 1e6;
    let seconds = begin.elapsed().as_secs_f64();
    say(&format!("{name}: {input_mb:.0} MB in {seconds:.1} s within {mib} MiB of memory"));
    finished
}

/// Writes reviews of about this size.
fn write_reviews(path: &Path, bytes: u64) {
    const LINE_BYTES: u64 = 450;
    let mut output = BufWriter::new(File::create(path).unwrap());
    synthetic::write(bytes / LINE_BYTES, 1, &mut output).unwrap();
    output.flush().unwrap();
}

/// Writes sorted records of about this size, with words that occur only once.
fn write_new_words(path: &Path, bytes: u64) {
    let mut output = BufWriter::new(File::create(path).unwrap());
    each_text(bytes, |text| writeln!(output, "{text}\t0,0,0,0,1").unwrap());
    output.flush().unwrap();
}

/// Converts records into a dataset, with reducers with these flags under this limit.
fn reduce_and_merge(folder: &Path, records: &Path, flags: &[&str], mib: u64) -> PathBuf {
    const PARTITIONS: u32 = 2;
    let name = flags.join(" ");
    let run_folder = folder.join(&name);
    for partition in 0..PARTITIONS {
        let mut reducer = reducer(&run_folder, partition, PARTITIONS);
        reducer.arg("--select").args(flags);
        stream(&format!("reducer {name}"), &reducer, mib, records, &folder.join("committed"));
    }
    let dataset = folder.join(format!("{name}.h5"));
    let merge = merge(&run_folder, &dataset);
    stream("merge", &merge, SHARDS_MIB, records, &folder.join("card"));
    dataset
}

#[test]
fn a_program_that_takes_more_than_its_limit_fails() {
    // tail holds the last 64 MiB in memory.
    let mut tail = without_hadoop(Path::new("tail"));
    tail.args(["-c", "67108864"]);
    let zeros = vec![0; 64 << 20];

    let limits = [STREAMING_MIB, SHARDS_MIB].map(|mib| run(&mut limited(&tail, mib), &zeros).code);

    assert!(limits[0] != 0 && limits[1] == 0, "{limits:?}");
}

#[test]
fn each_stage_stays_within_its_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let [raw, mapped, sorted, combined] =
        ["raw", "mapped", "sorted", "combined"].map(|name| folder.path().join(name));
    write_reviews(&raw, if prove() { 1_000_000_000 } else { 20_000_000 });

    stream("mapper", &program("mapper"), STREAMING_MIB, &raw, &mapped);
    let mut sort = without_hadoop(Path::new("sort"));
    sort.env("LC_ALL", "C").args(["-S", "256M", "-T"]).args([
        folder.path(),
        Path::new("-o"),
        &sorted,
        &mapped,
    ]);
    run(&mut sort, b"").succeeded();
    stream("combiner", &program("combiner"), STREAMING_MIB, &sorted, &combined);
    let datasets = [
        (&["--memory", "128MiB"][..], SHARDS_MIB),
        (&["--memory", "1MiB"], SPARING_MIB),
        (&["--texts", "--memory", "128MiB"], SHARDS_MIB),
        (&["--texts", "--memory", "1MiB"], SPARING_MIB + TEXTS_MIB),
    ]
    .map(|(flags, mib)| fs::read(reduce_and_merge(folder.path(), &combined, flags, mib)).unwrap());

    assert!(
        datasets.iter().all(|dataset| *dataset == datasets[0]),
        "neither memory nor --texts changes a byte"
    );
}

#[test]
fn a_dictionary_larger_than_memory_stays_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let words = folder.path().join("words");
    write_new_words(&words, if prove() { 200_000_000 } else { 8_000_000 });

    let usual = reduce_and_merge(folder.path(), &words, &["--memory", "128MiB"], SHARDS_MIB);
    let sparing = reduce_and_merge(folder.path(), &words, &["--memory", "1MiB"], SPARING_MIB);

    assert!(fs::read(usual).unwrap() == fs::read(sparing).unwrap(), "less memory changes no byte");
}

/// Memory of sentimill in addition to its --memory: thread stacks, line buffers, HDF5.
const SENTIMILL_MIB: u64 = 48;

/// Memory for a thread that encodes Parquet files, in addition to a small --memory.
const TEXTS_MIB: u64 = 64;

/// Converts lines of reviews into a dataset, with this number of threads and this memory.
fn sentimill(folder: &Path, lines: &Path, threads: &str, memory_mib: u64) -> PathBuf {
    let dataset = lines.with_extension(format!("{threads}.h5"));
    let mut sentimill = program("sentimill");
    sentimill.arg("--input").arg(lines).arg("--out").arg(&dataset);
    sentimill.args(["--threads", threads, "--memory", &format!("{memory_mib}MiB")]);
    let name = format!("sentimill --memory {memory_mib}MiB --threads {threads}");
    stream(&name, &sentimill, memory_mib + SENTIMILL_MIB, lines, &folder.join("card"));
    dataset
}

/// As [`sentimill`], and writes the texts.
fn sentimill_with_texts(folder: &Path, lines: &Path, threads: &str, memory_mib: u64) -> PathBuf {
    let dataset = lines.with_extension("texts.h5");
    let mut sentimill = program("sentimill");
    sentimill.arg("--input").arg(lines).arg("--out").arg(&dataset).args(["--texts", "corpus.parquet"]);
    sentimill.args(["--threads", threads, "--memory", &format!("{memory_mib}MiB")]);
    let name = format!("sentimill --texts --memory {memory_mib}MiB --threads {threads}");
    stream(&name, &sentimill, memory_mib + SENTIMILL_MIB + TEXTS_MIB, lines, &folder.join("card"));
    fs::remove_file(folder.join("corpus.parquet")).unwrap();
    dataset
}

#[test]
fn sentimill_stays_within_its_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let [raw, words] = ["raw", "words"].map(|name| folder.path().join(name));
    write_reviews(&raw, if prove() { 1_000_000_000 } else { 60_000_000 });
    let mut output = BufWriter::new(File::create(&words).unwrap());
    each_text(if prove() { 200_000_000 } else { 20_000_000 }, |text| {
        output.write_all(json_line(text, 5).as_bytes()).unwrap();
    });
    output.flush().unwrap();
    drop(output);

    for lines in [raw, words] {
        let held = sentimill(folder.path(), &lines, "2", 256);
        let spilled = sentimill(folder.path(), &lines, "1", 64);
        assert!(fs::read(&held).unwrap() == fs::read(spilled).unwrap(), "less memory changes no byte");
        let with_texts = sentimill_with_texts(folder.path(), &lines, "1", 64);
        assert!(fs::read(held).unwrap() == fs::read(with_texts).unwrap(), "--texts changes no byte");
        fs::remove_file(lines).unwrap();
    }
}

#[test]
fn origins_are_written_within_the_memory_limit_by_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    // With a long name, a row group is as large as it may be.
    let lines = folder.path().join("x".repeat(200));
    let mut output = BufWriter::new(File::create(&lines).unwrap());
    (0..900_000)
        .for_each(|number| output.write_all(json_line(&format!("fits {number}"), 5).as_bytes()).unwrap());
    output.flush().unwrap();
    drop(output);
    let memory_mib = 64;
    let mut sentimill = program("sentimill");
    sentimill.arg("--input").arg(&lines).arg("--out").arg(folder.path().join("reviews.h5"));
    sentimill.arg("--origins").arg(folder.path().join("origins.parquet"));
    sentimill.args(["--threads", "8", "--memory", &format!("{memory_mib}MiB")]);
    let name = "sentimill --origins --threads 8";
    stream(name, &sentimill, memory_mib + SENTIMILL_MIB + TEXTS_MIB, &lines, &folder.path().join("card"));
}

#[test]
fn a_line_that_inflates_to_more_than_memory_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let [bomb, mapped] = ["bomb.json.gz", "mapped"].map(|name| folder.path().join(name));
    let line_bytes = if prove() { 4_000_000_000 } else { 200_000_000 };
    let mut gzip = GzEncoder::new(File::create(&bomb).unwrap(), Compression::best());
    io::copy(&mut io::repeat(b'a').take(line_bytes), &mut gzip).unwrap();
    gzip.write_all(format!("\n{}", json_line("fine", 5)).as_bytes()).unwrap();
    gzip.finish().unwrap();
    assert!(fs::metadata(&bomb).unwrap().len() < line_bytes / 500);

    let mut mapper = program("mapper");
    mapper.arg("--input").arg(&bomb);
    stream("mapper of a line", &mapper, STREAMING_MIB, &bomb, &mapped);
    sentimill(folder.path(), &bomb, "2", 64);

    assert_eq!(fs::read_to_string(mapped).unwrap(), "fine\t0,0,0,0,1\n");
    let card = fs::read_to_string(folder.path().join("card")).unwrap();
    assert!(card.contains("1 line_too_long"), "{card}");
}
