//! `launch` with shell scripts as ranks. Each test starts a separate process, because `launch` handles the signals of
//! its process and some tests kill it.
//!
//! A script that must not exit by itself sleeps for [`SLEEP_S`] seconds. The limits of a launch are equally long,
//! unless a test sets them. A passing test waits for neither. If one event must follow another, the processes
//! synchronize through a named pipe.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use launch::Options;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tests::programs::program;

/// Environment variables of the example `launch-script`.
const LOG_DIR: &str = "TEST_LOG_DIR";
const GRACE_MS: &str = "TEST_GRACE_MS";
const ROOT_CAUSE_WITHIN_MS: &str = "TEST_ROOT_CAUSE_WITHIN_MS";

const SLEEP_S: u64 = 60;
/// Much longer than a launch without waits, and much shorter than [`SLEEP_S`].
const SOON: Duration = Duration::from_secs(30);

fn launch(n_ranks: usize, script: &str) -> Command {
    let mut command = program("launch-script");
    command.arg(n_ranks.to_string()).arg(script).env("SLEEP_S", SLEEP_S.to_string());
    let sleep_ms = (1000 * SLEEP_S).to_string();
    command.env(GRACE_MS, &sleep_ms).env(ROOT_CAUSE_WITHIN_MS, sleep_ms);
    command.env_remove("OMP_NUM_THREADS").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the exit code, standard output and standard error.
fn end(launched: Child) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = launched.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let started = Instant::now();
    let ended = end(command.spawn().unwrap());
    assert!(started.elapsed() < SOON, "it waited for what it should not wait for: {ended:?}");
    ended
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A named pipe with which ranks wait for each other and tests wait for ranks.
struct Fifo {
    folder: TempDir,
}

impl Fifo {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mkfifo = Command::new("mkfifo");
        mkfifo.arg("fifo").current_dir(folder.path());
        assert!(mkfifo.status().unwrap().success());
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("fifo")
    }

    /// Opens the pipe for reading. It ends when the last writer closes it.
    fn open(&self) -> BufReader<File> {
        BufReader::new(File::open(self.path()).unwrap())
    }
}

/// Waits for `n` lines and sorts them.
fn lines(pipe: &mut BufReader<File>, n: usize) -> Vec<String> {
    let mut lines: Vec<_> = pipe.lines().take(n).map(Result::unwrap).collect();
    lines.sort();
    lines
}

fn signal(launched: &Child, signal: Signal) {
    kill_process(Pid::from_child(launched), signal).unwrap();
}

#[test]
fn each_rank_gets_torchruns_variables() {
    let script = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $OMP_NUM_THREADS \
                  $((MASTER_PORT > 1023)) ${TORCHELASTIC_USE_AGENT_STORE-none}";
    let (code, stdout, stderr) = run(launch(3, script).env("TORCHELASTIC_USE_AGENT_STORE", "True"));

    let threads = (std::thread::available_parallelism().map_or(1, NonZeroUsize::get) / 3).max(1);
    let of = |rank| format!("{rank} {rank} 3 3 127.0.0.1 {threads} 1 none");
    assert_eq!(sorted(&stdout), [of(0), format!("[rank 1] {}", of(1)), format!("[rank 2] {}", of(2))]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_thread_count_of_the_user_is_kept() {
    let (code, stdout, _) = run(launch(1, "echo $OMP_NUM_THREADS").env("OMP_NUM_THREADS", "7"));

    assert_eq!((code, stdout.as_str()), (Some(0), "7\n"));
}

#[test]
fn lines_of_ranks_do_not_mix() {
    // Three ranks print half lines, several times more than fits in a pipe.
    let script = "i=0; while [ $i -lt 5000 ]; do printf 'first half, '; echo second half; i=$((i+1)); done";
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, _) = run(launch(3, script).env(LOG_DIR, folder.path()));

    assert_eq!(code, Some(0));
    for prefix in ["", "[rank 1] ", "[rank 2] "] {
        let line = format!("{prefix}first half, second half");
        assert_eq!(stdout.lines().filter(|found| *found == line).count(), 5000);
    }
    assert_eq!(stdout.lines().count(), 15_000);
}

#[test]
fn logs_contain_both_streams_and_are_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs/of-this-run");
    let script = "echo rank $RANK; echo 'to stderr' >&2; printf unfinished";
    for _ in 0..2 {
        let (code, stdout, stderr) = run(launch(2, script).env(LOG_DIR, &logs));
        assert_eq!(code, Some(0));
        // Rank 0's unfinished line may be joined with rank 1's line.
        assert!(stdout.contains("[rank 1] rank 1\n") && stdout.contains("[rank 1] unfinished\n"), "{stdout}");
        assert_eq!(sorted(&stderr), ["[rank 1] to stderr", "to stderr"]);
    }
    for rank in 0..2 {
        let log = fs::read_to_string(logs.join(format!("rank-{rank}.log"))).unwrap();
        assert_eq!(log.matches(&format!("rank {rank}\n")).count(), 2, "{log}");
        assert_eq!(log.matches("to stderr\n").count(), 2, "{log}");
        assert_eq!(log.matches("unfinished").count(), 2, "{log}");
    }
}

#[test]
fn an_invalid_log_folder_starts_no_rank() {
    let (code, stdout, stderr) = run(launch(2, "echo started").env(LOG_DIR, "/dev/null/logs"));

    assert_eq!((code, stdout.as_str()), (Some(74), ""));
    assert_eq!(
        stderr,
        "trainer: /dev/null/logs: a part of the path is a file, expected a folder; check the path\n"
    );
}

#[test]
fn a_full_disk_ends_a_log_but_not_the_ranks() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("rank-1.log")).unwrap();
    let (code, stdout, stderr) = run(launch(2, "echo one; echo two").env(LOG_DIR, folder.path()));

    assert_eq!(code, Some(0));
    assert_eq!(sorted(&stdout), ["[rank 1] one", "[rank 1] two", "one", "two"]);
    assert_eq!(stderr, "[rank 1] its log ends here: disk full\n");
}

#[test]
fn rank_0_inherits_the_terminal_unless_it_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    // The parent of a rank is the launching process.
    let script = "for fd in 1 2; do \
                  [ $(readlink /proc/$$/fd/$fd) = $(readlink /proc/$PPID/fd/$fd) ] && echo same || echo other; done";

    let (_, stdout, _) = run(&mut launch(2, script));
    assert_eq!(sorted(&stdout), ["[rank 1] other", "[rank 1] other", "same", "same"]);

    let (_, stdout, _) = run(launch(1, script).env(LOG_DIR, folder.path()));
    assert_eq!(stdout, "other\nother\n");
}

#[test]
fn a_failed_rank_ends_all_with_its_code_and_last_line() {
    let script = "case $RANK in 1) echo progress >&2; echo 'trainer: no such row' >&2; exit 65;; esac; exec sleep $SLEEP_S";
    let (code, _, stderr) = run(&mut launch(3, script));

    assert_eq!(code, Some(65));
    assert_eq!(stderr.lines().last(), Some("trainer: rank 1 of 3 exited with code 65: trainer: no such row"));
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
}

#[test]
fn an_error_file_takes_precedence_over_the_last_line() {
    let failing = program("launch-script");
    let script = format!(
        "[ $RANK = 0 ] || exec sleep $SLEEP_S
        echo 'trainer: checkpoint: disk full' >&2; {} fail; code=$?
        echo \"a library's warning at exit\" >&2; exit $code",
        failing.get_program().display()
    );
    let folder = tempfile::tempdir().unwrap();

    let (code, _, stderr) = run(&mut launch(2, &script));
    assert_eq!(code, Some(74));
    let line = "trainer: rank 0 of 2 exited with code 74: checkpoint: disk full";
    assert_eq!(stderr.lines().last(), Some(line));

    let (_, _, stderr) = run(launch(2, &script).env(LOG_DIR, folder.path()));
    let line = format!("{line}; its log is {}/rank-0.log", folder.path().display());
    assert_eq!(stderr.lines().last(), Some(line.as_str()));
}

#[test]
fn a_killed_rank_is_the_root_cause_and_can_be_retried() {
    let fifo = Fifo::new();
    // Rank 0 exits because rank 1 was lost, which it notices at the end of the pipe.
    let script =
        "if [ $RANK = 1 ]; then exec 9>$FIFO; kill -9 $$; fi; cat $FIFO; echo 'rank 1 has died' >&2; exit 75";
    let (code, _, stderr) = run(launch(2, script).env("FIFO", fifo.path()));

    assert_eq!(code, Some(75));
    assert_eq!(stderr.lines().last(), Some("trainer: rank 1 of 2 was killed by SIGKILL"));
}

#[test]
fn a_rank_that_lost_a_peer_is_not_the_root_cause_even_if_first() {
    let fifo = Fifo::new();
    let script = "if [ $RANK = 0 ]; then exec 9>$FIFO; echo 'rank 1 has died' >&2; exit 75; fi; \
                  cat $FIFO; echo 'disk full' >&2; exit 74";
    let (code, _, stderr) = run(launch(2, script).env("FIFO", fifo.path()));

    assert_eq!(code, Some(74));
    assert_eq!(stderr.lines().last(), Some("trainer: rank 1 of 2 exited with code 74: disk full"));
}

#[test]
fn a_lost_peer_is_the_root_cause_if_no_other_rank_fails() {
    let script = "[ $RANK = 1 ] && { echo 'rank 0 has been silent for 10 s' >&2; exit 75; }; kill -STOP $$";
    let (code, _, stderr) = run(launch(2, script).env(ROOT_CAUSE_WITHIN_MS, "1"));

    assert_eq!(code, Some(75));
    let line = "trainer: rank 1 of 2 exited with code 75: rank 0 has been silent for 10 s";
    assert_eq!(stderr.lines().last(), Some(line));
}

#[test]
fn a_rank_that_ignores_sigterm_is_killed() {
    let fifo = Fifo::new();
    let script = "if [ $RANK = 0 ]; then trap '' TERM; exec 9>$FIFO; echo ready >&9; exec sleep $SLEEP_S; fi; \
                  read ready <$FIFO; exit 70";
    let (code, _, stderr) = run(launch(2, script).env("FIFO", fifo.path()).env(GRACE_MS, "1"));

    assert_eq!((code, stderr.as_str()), (Some(70), "trainer: rank 1 of 2 exited with code 70\n"));
}

#[test]
fn a_successful_rank_does_not_end_the_others() {
    let fifo = Fifo::new();
    let script = "if [ $RANK = 0 ]; then exec 9>$FIFO; exit 0; fi; cat $FIFO; echo last";
    let (code, stdout, stderr) = run(launch(2, script).env("FIFO", fifo.path()));

    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "[rank 1] last\n", ""));
}

#[test]
fn a_background_process_of_a_rank_does_not_delay_the_exit() {
    // The background process holds rank 1's standard output, which the launch reads.
    let script = "[ $RANK = 0 ] || { sleep $SLEEP_S & echo $!; }";
    let (code, stdout, _) = run(&mut launch(2, script));

    assert_eq!(code, Some(0));
    let left = stdout.trim().strip_prefix("[rank 1] ").and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    kill_process(left.unwrap(), Signal::KILL).unwrap();
}

/// Ranks that report received signals through the pipe and stop with the code in `$CODE`. Without a code they
/// continue for [`SLEEP_S`] seconds. They wait in short sleeps, because a shell that starts a long wait, for example
/// in `read`, misses a signal that arrived just before.
const LISTENS: &str = "exec 9>$FIFO; \
     trap 'echo $RANK saves >&9' USR1; \
     trap 'echo $RANK stops >&9; [ -z $CODE ] || exit $CODE' TERM; \
     trap '' INT; echo $RANK ready >&9; \
     n=0; while [ $n -lt $((SLEEP_S * 50)) ]; do sleep 0.02; n=$((n + 1)); done";

#[test]
fn a_stop_is_forwarded_and_the_ranks_code_returned() {
    for (asked, code) in [(Signal::TERM, 0), (Signal::INT, 75)] {
        let fifo = Fifo::new();
        let mut launched = launch(2, LISTENS);
        let launched = launched.env("FIFO", fifo.path()).env("CODE", code.to_string()).spawn().unwrap();
        let mut pipe = fifo.open();
        assert_eq!(lines(&mut pipe, 2), ["0 ready", "1 ready"]);

        signal(&launched, asked);

        assert_eq!(lines(&mut pipe, 3), ["0 stops", "1 stops"]);
        let (ended, _, stderr) = end(launched);
        assert_eq!(ended, Some(code), "{stderr}");
    }
}

#[test]
fn a_checkpoint_request_is_forwarded_to_all_ranks() {
    let fifo = Fifo::new();
    let launched = launch(2, LISTENS).env("FIFO", fifo.path()).env("CODE", "0").spawn().unwrap();
    let mut pipe = fifo.open();
    assert_eq!(lines(&mut pipe, 2), ["0 ready", "1 ready"]);

    signal(&launched, Signal::USR1);
    assert_eq!(lines(&mut pipe, 2), ["0 saves", "1 saves"]);

    signal(&launched, Signal::TERM);
    assert_eq!(end(launched).0, Some(0));
}

#[test]
fn a_second_interrupt_kills_all_ranks() {
    let fifo = Fifo::new();
    let launched = launch(2, LISTENS).env("FIFO", fifo.path()).env("CODE", "").spawn().unwrap();
    let mut pipe = fifo.open();
    assert_eq!(lines(&mut pipe, 2), ["0 ready", "1 ready"]);

    signal(&launched, Signal::TERM);
    assert_eq!(lines(&mut pipe, 2), ["0 stops", "1 stops"]);
    signal(&launched, Signal::INT);
    assert_eq!(lines(&mut pipe, 2), ["0 stops", "1 stops"]);
    signal(&launched, Signal::INT);

    let (code, _, stderr) = end(launched);
    assert_eq!(code, Some(75));
    assert_eq!(
        stderr,
        "trainer: all ranks were killed at the second interrupt; start again from the last checkpoint\n"
    );
}

#[test]
fn ranks_die_with_a_killed_launch() {
    let fifo = Fifo::new();
    let script = "exec 9>$FIFO; trap '' TERM INT HUP; echo $$ >&9; exec sleep $SLEEP_S";
    let launched = launch(3, script).env("FIFO", fifo.path()).spawn().unwrap();
    let mut pipe = fifo.open();
    let ranks = lines(&mut pipe, 3);
    let started = Instant::now();

    signal(&launched, Signal::KILL);

    assert_eq!(pipe.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(started.elapsed() < SOON, "ranks {ranks:?} went on");
    assert_eq!(launched.wait_with_output().unwrap().status.signal(), Some(9));
}

/// Ranks that go on without a lost one. The file has the ranks that the others declare lost.
fn launch_surviving(n_ranks: usize, script: &str, fifo: &Fifo) -> Command {
    let mut command = launch(n_ranks, script);
    let lost = fifo.folder.path().join("lost");
    fs::write(&lost, "").unwrap();
    command.env("FIFO", fifo.path()).env("TEST_LOST", lost);
    command
}

#[test]
fn ranks_that_go_on_without_lost_ones_succeed() {
    let fifo = Fifo::new();
    // Rank 2 continues after rank 0 has ended.
    let script = "case $RANK in 0) exec 9>$FIFO; kill -9 $$;; 1) exit 75;; esac; cat $FIFO; \
                  echo $MASTER_PORT $SENTIMILL_SURVIVES";
    let (code, stdout, stderr) = run(&mut launch_surviving(3, script, &fifo));

    // Any rank may write the result.
    assert_eq!((code, stdout.as_str()), (Some(0), "4711 1\n"));
    let lines = ["without rank 0, which was killed by SIGKILL", "without rank 1, which exited with code 75"];
    assert_eq!(sorted(&stderr), lines);
}

#[test]
fn a_rank_that_was_declared_lost_is_killed() {
    let fifo = Fifo::new();
    let script = "if [ $RANK = 1 ]; then exec 9>$FIFO; kill -STOP $$; fi; \
                  exec 8<$FIFO; echo 1 > $TEST_LOST; cat <&8; echo last";
    let (code, stdout, stderr) = run(&mut launch_surviving(2, script, &fifo));

    assert_eq!((code, stdout.as_str()), (Some(0), "last\n"));
    assert_eq!(stderr, "without rank 1, which was killed by SIGKILL\n");
}

#[test]
fn a_rank_that_is_stopped_while_the_others_succeed_is_killed() {
    let script = "[ $RANK = 0 ] || kill -STOP $$";
    let (code, _, stderr) = run(&mut launch_surviving(2, script, &Fifo::new()));

    assert_eq!((code, stderr.as_str()), (Some(0), "without rank 1, which was killed by SIGKILL\n"));
}

/// The file has the lost ranks and the members of the newest group, as the ranks of a training declare them.
#[test]
fn a_lost_rank_is_replaced() {
    let fifo = Fifo::new();
    let script = "case $RANK in \
        1) kill -9 $$;; \
        2) echo '1|0 2' > $TEST_LOST; echo $WORLD_SIZE $SENTIMILL_JOINS; echo x > $TEST_LOST.joined;; \
        *) until [ -s $TEST_LOST.joined ]; do sleep 0.05; done; cat $TEST_LOST.joined;; esac";
    let (code, stdout, stderr) = run(launch_surviving(2, script, &fifo).env("TEST_RESTARTS", "1"));

    assert_eq!((code, sorted(&stdout)), (Some(0), vec!["3 1", "x"]));
    let told = ["rank 1 was killed by SIGKILL; started rank 2 in its place"];
    assert_eq!(stderr.lines().collect::<Vec<_>>(), told);
}

#[test]
fn a_rank_that_waits_for_lost_ones_is_killed() {
    let fifo = Fifo::new();
    // Rank 1 is lost when rank 2 has taken the place of rank 0.
    let script =
        "case $RANK in 0) kill -9 $$;; 1) exec 8<$FIFO; kill -9 $$;; esac; exec 9>$FIFO; exec sleep $SLEEP_S";
    let (code, _, stderr) = run(launch_surviving(2, script, &fifo).env("TEST_RESTARTS", "1"));

    assert_eq!(code, Some(75));
    let told = [
        "rank 0 was killed by SIGKILL; started rank 2 in its place",
        "trainer: rank 0 was killed by SIGKILL",
    ];
    assert_eq!(stderr.lines().collect::<Vec<_>>(), told);
}

#[test]
fn ranks_that_could_not_join_fail_without_others() {
    let script = "exit 78";
    let fifo = Fifo::new();
    let (code, _, stderr) = run(launch_surviving(2, script, &fifo).env("TEST_JOINS_FROM", "4"));

    assert_eq!(code, Some(78), "{stderr}");
    assert!(["4", "5"].iter().any(|rank| stderr == format!("trainer: rank {rank} exited with code 78\n")));
}

/// The other rank fails without declaring it lost.
#[test]
fn a_rank_that_is_stopped_after_the_others_were_lost_is_killed() {
    let fifo = Fifo::new();
    let script = "if [ $RANK = 1 ]; then exec 9>$FIFO; kill -STOP $$; fi; exec 8<$FIFO; exit 75";
    let (code, _, stderr) = run(&mut launch_surviving(2, script, &fifo));

    assert_eq!(code, Some(75));
    assert_eq!(stderr, "trainer: rank 1 of 2 was killed by SIGKILL\n");
}

#[test]
fn a_rank_that_crashes_ends_those_that_would_survive() {
    let fifo = Fifo::new();
    let script = "[ $RANK = 1 ] && kill -SEGV $$; exec sleep $SLEEP_S";
    let (code, _, stderr) = run(&mut launch_surviving(2, script, &fifo));

    assert_eq!(code, Some(70));
    assert_eq!(stderr, "trainer: rank 1 of 2 was killed by SIGSEGV\n");
}

#[test]
fn a_rank_that_fails_by_itself_ends_those_that_would_survive() {
    let fifo = Fifo::new();
    let script = "case $RANK in 0) exec 9>$FIFO; kill -9 $$;; 1) cat $FIFO; echo 'disk full' >&2; exit 74;; esac; \
                  exec sleep $SLEEP_S";
    let (code, _, stderr) = run(&mut launch_surviving(3, script, &fifo));

    assert_eq!(code, Some(74));
    assert_eq!(stderr.lines().last(), Some("trainer: rank 1 of 3 exited with code 74: disk full"));
}

#[test]
fn a_launch_without_a_rank_that_is_left_names_the_killed_one() {
    let fifo = Fifo::new();
    let script =
        "if [ $RANK = 1 ]; then exec 9>$FIFO; kill -9 $$; fi; cat $FIFO; echo 'rank 1 has died' >&2; exit 75";
    let (code, _, stderr) = run(&mut launch_surviving(2, script, &fifo));

    assert_eq!(code, Some(75));
    assert_eq!(stderr.lines().last(), Some("trainer: rank 1 of 2 was killed by SIGKILL"));
}

#[test]
fn a_rank_that_is_lost_before_the_others_can_go_on_ends_all() {
    let script = "[ $RANK = 1 ] && kill -9 $$; exec sleep $SLEEP_S";
    let (code, _, stderr) = run(launch(2, script).env("TEST_LOST", "/no/such/file"));

    assert_eq!(code, Some(75));
    assert_eq!(stderr, "trainer: rank 1 of 2 was killed by SIGKILL\n");
}

#[test]
fn ranks_that_would_survive_stop_when_asked() {
    let fifo = Fifo::new();
    let mut launched = launch_surviving(2, LISTENS, &fifo);
    let launched = launched.env("CODE", "75").spawn().unwrap();
    let mut pipe = fifo.open();
    assert_eq!(lines(&mut pipe, 2), ["0 ready", "1 ready"]);

    signal(&launched, Signal::TERM);

    assert_eq!(lines(&mut pipe, 3), ["0 stops", "1 stops"]);
    let (code, _, stderr) = end(launched);
    assert_eq!((code, stderr.contains("exited with code 75")), (Some(75), true), "{stderr}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let options = Options::of(NonZeroUsize::new(2).unwrap());
    let error = launch::run(Path::new("/no/such/program"), &[], &options).unwrap_err();

    assert_eq!(
        error.to_string(),
        "/no/such/program: cannot be started as rank 0: no such file or folder; check the path"
    );
    assert_eq!(error.exit_code(), 74);
}
