//! A merge by tasks: several programs at once, in a folder and in S3, make the file of one program.

use std::fs;
use std::thread;

use tests::demo::DEMO;
use tests::lines::sorted_as_c;
use tests::pipe::mapped;
use tests::programs::{program, run};
use tests::s3_server::{S3Server, with_s3};

/// Number of tasks of each kind.
const TASKS: usize = 3;

#[test]
fn programs_that_race_for_the_tasks_make_the_dataset_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&mapped(&DEMO.raw, &folder.path().join("counts.json")));
    for (at, server) in S3Server::each().map(Some).chain([None]).enumerate() {
        let place = if server.is_some() { "s3://bucket/run" } else { "run" };
        let command = |arguments: &[&str]| {
            let mut command = program(arguments[0]);
            if let Some(server) = &server {
                command = with_s3(command, &format!("http://{}", server.address()));
            }
            command.args(&arguments[1..]).args(["--run", place]).current_dir(folder.path());
            command
        };
        for partition in ["0", "1"] {
            let partition = ["reducer", "--partition", partition, "--partitions", "2", "--select"];
            run(&mut command(&partition), &sorted).succeeded();
        }
        let tasks = TASKS.to_string();
        let plan = ["merge", "plan", "--tasks", &tasks, "--counts", "counts.json"];
        run(&mut command(&plan), b"").succeeded();
        let kinds = ["shards", "words", "rows"].into_iter();
        let lines = kinds.flat_map(|kind| (0..TASKS).map(move |number| format!("{kind} {number:05}")));
        let lines: Vec<String> = lines.collect();
        // The second program waits for the results of the others.
        let forth = lines.join("\n");
        let back = lines.iter().rev().map(String::as_str).collect::<Vec<_>>().join("\n");
        let work = |lines: &String| {
            let worked = run(&mut command(&["merge", "work", "--threads", "2"]), lines.as_bytes());
            worked.succeeded().said()
        };
        let printed = thread::scope(|scope| {
            [&forth, &back, &forth]
                .map(|lines| scope.spawn(move || work(lines)))
                .map(|racing| racing.join().unwrap())
                .concat()
        });
        // A test server may accept two puts at the same time; both have the same bytes.
        for line in lines {
            let told = |result: &str| printed.matches(&format!("{line}\t{result}\n")).count();
            let (stored, already) = (told("stored"), told("already stored"));
            assert!(stored > 0 && stored + already == 3, "{line}: {printed}");
            assert!(server.is_some() || stored == 1, "{line}: {printed}");
        }
        let out = format!("reviews-{at}.h5");
        run(&mut command(&["merge", "assemble", "--out", &out]), b"").succeeded();
        assert!(fs::read(folder.path().join(&out)).unwrap() == DEMO.dataset, "{place}");

        let collected = run(&mut command(&["merge", "gc", "--delete"]), b"").succeeded().said();
        let (plan, results) = (2, 3 * TASKS);
        assert!(collected.ends_with(&format!("objects deleted: {}\n", plan + results)), "{collected}");
    }
}
