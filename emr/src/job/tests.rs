use std::collections::BTreeSet;
use std::path::Path;

use super::flags::{InputFlags, OutputFlags, RowFlags};
use super::*;

/// A job without a cluster.
const SMALL: &str =
    "name = \"small\"\nrun = \"run\"\ndataset = \"reviews.h5\"\n[input]\nplaces = [\"reviews.json\"]\n";

fn job(text: &str) -> Job {
    Job::parse(Path::new("/jobs/JOB.toml"), text)
        .unwrap_or_else(|error| panic!("{error}: {:#?}", error.details()))
}

/// The findings of a job file.
fn refused(text: &str) -> Vec<String> {
    match Job::parse(Path::new("/jobs/JOB.toml"), text) {
        Err(Error::BadJob { findings, .. }) => {
            findings.iter().map(|finding| finding.to_string().replace("/jobs/JOB.toml", "JOB.toml")).collect()
        }
        other => panic!("accepted: {other:?}"),
    }
}

/// `EXAMPLE` with one text replaced.
fn example_with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    EXAMPLE.replacen(from, to, 1)
}

#[test]
fn the_example_is_accepted_also_with_its_comments_as_keys() {
    let example = job(EXAMPLE);
    assert_eq!(example.staging.as_ref().unwrap().to_string(), "s3://bucket/runs/programs");
    assert_eq!(example.input.bytes, Some(90_000_000_000));
    let groups = EXAMPLE.find("[[cluster.groups]]").unwrap()..EXAMPLE.find("# Fleets").unwrap();
    let fleets =
        EXAMPLE.replace(&EXAMPLE[groups], "").replace("\n# ", "\n").replace("\nFleets", "\n# Fleets");
    let fleets = fleets.replace("A job on", "# A job on").trim_start_matches("# ").to_owned();
    let primary = "[[cluster.fleets]]\nrole = \"primary\"\ntypes = { \"m6i.xlarge\" = 1 }\non-demand = 1\n";
    let fleets = format!("# {fleets}\n{primary}");
    assert_eq!(job(&fleets).cluster().unwrap().fleets.len(), 2);
}

#[test]
fn programs_get_the_flags_of_the_job_file() {
    let example = job(EXAMPLE);
    assert_eq!(example.mapper_flags(), ["--preset", "amazon2018", "--bad-lines-max", "0.01"]);
    assert_eq!(example.reducer_flags(), ["--keep", "ends", "--max-tokens", "400", "--stopwords", "none"]);
    assert_eq!(example.merge_flags(), ["--vocabulary-size", "10000", "--bad-lines-max", "0.01"]);
}

#[test]
fn texts_and_kept_words_are_flags_of_the_reducer_and_part_of_the_record() {
    let tables = "[output]\nparquet = true\ntexts = true\n[hadoop]\nkeep-words = true\n";
    let [without, with] = ["", tables].map(|tables| job(&format!("{SMALL}{tables}")));
    let expected = ["--texts", "--keep-words"].map(str::to_owned);
    assert_eq!(
        (&with.reducer_flags()[..], with.merge_flags()),
        (&expected[..], vec!["--parquet".to_owned()])
    );
    let [without, with] = [without, with].map(|job| job.record(&BTreeMap::new()));
    assert_eq!((&with.reducer[..], without.reducer), (&expected[..], Vec::new()));
    let found = refused(&format!("{SMALL}[output]\ntexts = \"reviews.parquet\"\n"));
    assert!(found[0].contains("output.texts") || found[0].contains("output"), "{found:?}");
}

#[test]
fn a_list_of_stop_words_in_s3_is_passed_on() {
    let in_s3 = job(&format!("{SMALL}[rows]\nstopwords = \"s3://bucket/words.txt\"\n"));
    assert_eq!(in_s3.reducer_flags(), ["--stopwords", "s3://bucket/words.txt"]);
}

#[test]
fn named_classes_are_flags_of_the_reducer() {
    let rows = |rows: &str| format!("{SMALL}[rows]\n{rows}\n");
    let three = job(&rows("labels = \"1-2=negative,3=so so,4-5=positive\""));
    assert_eq!(three.reducer_flags(), ["--labels", "1-2=negative,3=so so,4-5=positive"]);
    let found = refused(&rows("labels = \"1-2=a,2=b\""));
    assert!(found[0].contains("labels 1-2=a,2=b: the rating 2 is in two classes"), "{found:?}");
    let found = refused(&rows("labels = \"1=a,2=b\"\npositive-from = 3"));
    assert!(found[0].contains("cannot be used with"), "{found:?}");
}

#[test]
fn a_sample_is_a_flag_of_the_reducer() {
    let rows = |rows: &str| format!("{SMALL}[rows]\n{rows}\n");
    assert_eq!(job(&rows("sample = 0.25")).reducer_flags(), ["--sample", "0.25"]);
    let found = refused(&rows("sample = 1.5"));
    assert!(found[0].contains("sample 1.5: expected a number above 0 and up to 1"), "{found:?}");
}

#[test]
fn relative_paths_are_relative_to_the_job_file() {
    let small = job(SMALL);
    assert_eq!(small.run, Place::Local("/jobs/run".into()));
    assert_eq!(small.input.places, [Place::Local("/jobs/reviews.json".into())]);
    assert!(small.staging.is_none() && small.cluster.is_none());
}

#[test]
fn a_job_file_that_is_named_relatively_has_absolute_paths_and_the_same_record() {
    let folder = tempfile::tempdir().unwrap();
    let absolute = folder.path().canonicalize().unwrap();
    let up: std::path::PathBuf = std::env::current_dir().unwrap().iter().skip(1).map(|_| "..").collect();
    let relative_folder = up.join(absolute.strip_prefix("/").unwrap());
    std::fs::write(absolute.join("words.txt"), "the\n").unwrap();
    let text = format!("programs = \"bin\"\n{SMALL}[rows]\nstopwords = \"words.txt\"\n");
    std::fs::write(absolute.join("JOB.toml"), text).unwrap();
    let relative = Job::read(&relative_folder.join("JOB.toml")).unwrap();
    assert_eq!(relative.run.local(), Some(absolute.join("run").as_path()));
    assert_eq!(relative.dataset.local(), Some(absolute.join("reviews.h5").as_path()));
    assert_eq!(relative.input.places[0].local(), Some(absolute.join("reviews.json").as_path()));
    assert_eq!(relative.rows.stop_words, Some(absolute.join("words.txt")));
    assert_eq!(relative.programs, absolute.join("bin"));
    let record = relative.record(&BTreeMap::new());
    let name = absolute.file_name().unwrap();
    for other in [absolute.join("JOB.toml"), absolute.join("..").join(name).join("JOB.toml")] {
        assert_eq!(Job::read(&other).unwrap().record(&BTreeMap::new()), record, "{}", other.display());
    }
}

#[test]
fn punctuation_of_rows_is_a_flag_of_mappers_and_reducers() {
    let job = job(&format!("{SMALL}[rows]\npunctuation = true\nmax-tokens = 9\n"));
    assert_eq!(job.mapper_flags(), ["--punctuation"]);
    assert_eq!(job.reducer_flags()[..3], ["--max-tokens", "9", "--punctuation"]);
    assert!(job.record(&BTreeMap::new()).mapper.contains(&"--punctuation".to_owned()));
}

#[test]
fn reviews_that_are_named_twice_are_refused_where_the_names_show_it() {
    for (places, expected) in [
        (r#""s3://bucket/a/", "s3://bucket/a""#, r#""s3://bucket/a" is named twice"#),
        (r#""s3://bucket/a/b.json", "s3://bucket/a/""#, r#""s3://bucket/a/b.json" is in "s3://bucket/a""#),
        (r#""s3://bucket", "s3://bucket/a""#, r#""s3://bucket/a" is in "s3://bucket/""#),
        (r#""hdfs:///a/", "hdfs:///a/b.json.gz""#, r#""hdfs:///a/b.json.gz" is in "hdfs:///a/""#),
        (r#""hdfs:///", "hdfs:///a""#, r#""hdfs:///a" is in "hdfs:///""#),
        (r#""hdfs:///a//b", "hdfs:///a/b/""#, r#""hdfs:///a/b/" is named twice"#),
        (r#""a.json", "./a.json""#, r#""/jobs/./a.json" is named twice"#),
        (r#""/data", "file:///data/a.json""#, r#""/data/a.json" is in "/data""#),
        (r#""https://host/a", "https://host/a""#, r#""https://host/a" is named twice"#),
        (r#""hdfs:///a/*", "hdfs:///a/*""#, r#""hdfs:///a/*" is named twice"#),
    ] {
        let found = refused(&SMALL.replace("\"reviews.json\"", places));
        let expected =
            format!("JOB.toml:5: input.places: {expected}, and its reviews would count twice; name it once");
        assert_eq!(found, [expected], "{places}");
    }
    for places in [
        r#""s3://bucket/a", "s3://bucket/ab", "s3://other/a""#,
        r#""hdfs:///a/b", "hdfs:///a/bc", "hdfs://host/a/b/c""#,
        r#""hdfs:///a/*", "hdfs:///a/b""#,
        r#""https://host/a", "https://host/a/b""#,
        r#""a", "ab""#,
    ] {
        assert_eq!(
            job(&SMALL.replace("\"reviews.json\"", places)).input.places.len(),
            places.split(',').count()
        );
    }
}

#[test]
fn all_wrong_values_are_found_with_their_lines() {
    let text = "name = \"a|b\"\nrun = \"s3://bucket\"\ndataset = \"s3://bucket/folder/\"\ns3 = \"secret=x\"\n[input]\nplaces = []\n\
                preset = \"yelpp\"\n[rows]\npositive-from = 9\nstopwords = \"missing.txt\"\n[hadoop]\nreducers = 0\n\
                merge-tasks = 10001\nsettings = { \"stream.map.output.field.separator\" = \",\", \"fs.s3a.secret.key\" = \"x\" }\n";
    let found = refused(text);
    for start in [
        "JOB.toml:1: name: \"a|b\", expected 1 to 200 characters",
        "JOB.toml:2: run: ",
        "JOB.toml:3: dataset: \"s3://bucket/folder/\" names a folder, expected the name of a file",
        "JOB.toml:4: s3: \"secret=x\" is not an option",
        "JOB.toml:6: input.places: no reviews",
        "JOB.toml:7: input.preset: preset yelpp: expected amazon2014, amazon2018, amazon2023 or yelp",
        "JOB.toml:9: rows.positive-from: positive-from 9: expected a number from 1 to 5",
        "JOB.toml:12: hadoop.reducers: 0, expected a number from 1 to 10000",
        "JOB.toml:13: hadoop.merge-tasks: 10001, expected a number from 1 to 10000",
        "JOB.toml:14: hadoop.settings.stream.map.output.field.separator: a setting that the job sets itself",
        "JOB.toml:14: hadoop.settings.fs.s3a.secret.key: a setting for credentials, expected no credentials",
    ] {
        assert!(found.iter().any(|found| found.starts_with(start)), "{start}: {found:#?}");
    }
    let stop_words = refused(&format!("{SMALL}[rows]\nstopwords = \"missing.txt\"\n"));
    assert!(
        stop_words[0].starts_with("JOB.toml:7: rows.stopwords: stopwords /jobs/missing.txt: "),
        "{stop_words:?}"
    );
}

#[test]
fn unknown_flags_and_wrong_values_are_found_together_in_the_order_of_the_lines() {
    let text = "run = \"s3://bucket\"\ndataset = \"x.h5\"\n[rows]\nmax-token = 1\nkeep = \"end\"\n[input]\nplaces = [\"x\"]\n\
                bytes = \"90 gigs\"\n[cluster]\nregion = \"eu-west-1\"\n[[cluster.groups]]\nrole = \"primary\"\n\
                [[cluster.groups]]\nrole = \"core\"\ntype = \"m6i.xlarge\"\ncount = 0\n";
    let found = refused(text);
    for (n, start) in [
        "JOB.toml: name: no such key, expected 1 to 200 characters",
        "JOB.toml:1: run: ",
        "JOB.toml:4: rows.max-token: unknown key, expected one of ",
        "JOB.toml:5: rows.keep: ",
        "JOB.toml:8: input.bytes: ",
        "JOB.toml:11: cluster.groups[0].type: no such key, expected an instance type such as m6i.xlarge",
        "JOB.toml:16: cluster.groups[1].count: 0 core nodes",
    ]
    .iter()
    .enumerate()
    {
        assert!(found[n].starts_with(start), "{start}: {found:#?}");
    }
    assert_eq!(found.len(), 7, "{found:#?}");
}

#[test]
fn a_key_of_another_format_is_refused() {
    let found = refused(&format!("{SMALL}format = \"fasttext\"\npreset = \"yelp\"\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("JOB.toml:7: input.preset: preset is not used by the format fasttext"),
        "{found:?}"
    );
}

#[test]
fn a_cluster_that_emr_would_refuse_or_that_loses_data_is_refused() {
    #[rustfmt::skip]
    let cases = [
        ("region = \"eu-central-1\"", "region = \"Europe\"", "cluster.region: \"Europe\", expected a region"),
        ("subnet-0a1b2c3d4e5f67890\"]", "net-1\"]", "cluster.subnets: \"net-1\", expected the id of a subnet"),
        ("idle-timeout-s = 900", "idle-timeout-s = 59", "cluster.idle-timeout-s: 59 s, expected 60 s to 604800 s"),
        ("count = 2\n", "count = 2\nspot = true\n", "cluster.groups[1].spot: spot instances for core nodes, expected on-demand"),
        ("role = \"primary\"\n", "role = \"primary\"\ncount = 3\n", "cluster.groups[0].count: 3 primary nodes, expected 1: EMR does not end"),
        ("role = \"core\"", "role = \"task\"", "cluster.groups: a task group without a core group"),
        ("role = \"primary\"", "role = \"core\"", "cluster.groups: 0 primary groups, expected exactly one"),
        ("count = 4", "count = 0", "cluster.groups[2].count: 0 task nodes, expected 1 or more"),
        ("disk-gib = 256", "disk-gib = 0", "cluster.groups[1].disk-gib: 0 GiB"),
        ("\"s3://bucket/logs/\"", "\"logs\"", "cluster.log: \"logs\", expected an s3:// URL"),
        ("team = \"reviews\"", "\"aws:x\" = \"y\"", "cluster.tags.aws:x: "),
        ("name = \"node check\"", "name = \"\"", "cluster.bootstrap[0].name: \"\""),
        ("ec2 = 0.460", "ec2 = -1", "prices.instances.m6i.2xlarge.ec2: -1, expected a price of 0 or more"),
        ("region = \"eu-central-1\"", "region = \"eu-central-1\"\nid = \"j-1A\"", "cluster.release: a property of a new cluster"),
    ];
    for (from, to, expected) in cases {
        let found = refused(&example_with(from, to));
        assert!(found.iter().any(|found| found.contains(expected)), "{expected}: {found:#?}");
    }
    let action = "[[cluster.bootstrap]]\nname = \"x\"\nscript = \"s3://bucket/x.sh\"\n".repeat(16);
    let found = refused(&format!("{EXAMPLE}\n{action}"));
    assert!(found[0].contains("17 bootstrap actions, expected at most 16"), "{found:?}");
}

#[test]
fn runners_without_emr_accept_an_incomplete_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("JOB.toml");
    for cluster in ["keep = true\n", "[[cluster.groups]]\nrole = \"core\"\n"] {
        std::fs::write(&path, format!("{SMALL}[cluster]\n{cluster}")).unwrap();
        assert!(Job::read_without_cluster(&path).is_ok(), "{cluster}");
        assert!(Job::read(&path).is_err(), "{cluster}");
    }
    for wrong in
        ["regoin = \"eu-west-1\"\n", "region = \"Europe\"\n", "[[cluster.groups]]\nrole = \"worker\"\n"]
    {
        std::fs::write(&path, format!("{SMALL}[cluster]\n{wrong}")).unwrap();
        assert!(Job::read_without_cluster(&path).is_err(), "{wrong}");
    }
}

#[test]
fn a_cluster_that_runs_needs_only_its_id() {
    let text = format!("{SMALL}[cluster]\nid = \"j-2AXXXXXXGAPLF\"\nregion = \"us-east-1\"\n");
    assert_eq!(job(&text).cluster().unwrap().id.as_deref(), Some("j-2AXXXXXXGAPLF"));
}

#[test]
fn the_region_of_the_buckets_is_that_of_the_job_file() {
    let cluster = "[cluster]\nid = \"j-2AXXXXXXGAPLF\"\nregion = \"us-east-1\"\n";
    for (text, region) in [
        (format!("s3 = \"region=eu-west-1\"\n{SMALL}{cluster}"), Some("eu-west-1")),
        (format!("{SMALL}{cluster}"), Some("us-east-1")),
        (SMALL.to_owned(), None),
    ] {
        assert_eq!(job(&text).bucket_options().region.as_deref(), region, "{text}");
    }
}

#[test]
fn equal_runs_have_equal_ids_and_other_settings_another_record() {
    let (one, other) = (job(EXAMPLE), job(&example_with("max-tokens = 400", "max-tokens = 100")));
    assert_eq!(one.run_id(), other.run_id());
    assert_eq!(one.run_id(), "sentimill-9d82e807b723d02b");
    let (one, other) = (one.record(&BTreeMap::new()), other.record(&BTreeMap::new()));
    let (field, ours, theirs) = one.difference(&other).unwrap();
    assert_eq!(field, "reducer");
    assert!(ours.contains("\"400\"") && theirs.contains("\"100\""), "{ours} {theirs}");
    let moved = job(&example_with("count = 4", "count = 5")).record(&BTreeMap::new());
    assert_eq!(one.difference(&moved), None);
    let merged =
        job(&example_with("reducers = 64", "reducers = 64\nmerge-tasks = 5")).record(&BTreeMap::new());
    assert_eq!(one.difference(&merged), None);
    let read: JobRecord = serde_json::from_slice(&one.to_bytes()).unwrap();
    assert_eq!(read, one);
}

/// The keys of a table, in the words in which serde or the parser of flags refuses another one.
fn keys_of(table: &str) -> BTreeSet<String> {
    match table {
        "input" => return flags::keys::<InputFlags>(&["places", "bytes"]).into_iter().collect(),
        "rows" => return flags::keys::<RowFlags>(&[]).into_iter().collect(),
        "output" => return flags::keys::<OutputFlags>(&[]).into_iter().collect(),
        _ => {}
    }
    let heading = match table {
        "" => String::new(),
        "cluster.groups" | "cluster.fleets" | "cluster.bootstrap" => format!("[[{table}]]\n"),
        "prices.instances" => format!("[{table}.x]\n"),
        _ => format!("[{table}]\n"),
    };
    let error = toml::from_str::<file::File>(&format!("{heading}zzz = 1\n")).unwrap_err();
    error.message().split('`').skip(1).step_by(2).filter(|name| *name != "zzz").map(str::to_owned).collect()
}

#[test]
fn the_page_lists_all_keys_with_their_kinds_and_its_job_file_is_accepted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/emr.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, section) = page.split_once("\n## All keys\n").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---|")).skip(1);
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let [_, key, kind, ..] = row.split(" | ").flat_map(|cell| cell.split("| ")).collect::<Vec<_>>()[..]
        else {
            panic!("{row}");
        };
        let key = key.trim_matches('`');
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        assert!(listed.entry(table.to_owned()).or_default().insert(name.to_owned()), "{key} is listed twice");
        if ["input", "rows", "output"].contains(&table) {
            continue;
        }
        let value = match (name, kind) {
            ("role", _) => "\"core\"",
            ("spot-timeout-action", _) => "\"terminate-cluster\"",
            ("spot-allocation", _) => "\"diversified\"",
            (_, "text" | "number or text") => "\"x\"",
            (_, "list of texts") => "[\"x\"]",
            (_, "whole number") => "1",
            (_, "number") => "1.5",
            (_, "true or false") => "true",
            (_, "table of values") => "{ x = \"y\" }",
            (_, "table of numbers") => "{ x = 1 }",
            (_, "table of tables" | "table") => "{}",
            (_, "list of tables") => "[]",
            _ => panic!("{row}"),
        };
        let (heading, others) = match table {
            "cluster.groups" | "cluster.fleets" => (format!("[[{table}]]"), "role = \"core\"\n"),
            "cluster.bootstrap" => (format!("[[{table}]]"), ""),
            "prices.instances" => (format!("[{table}.x]"), "ec2 = 1\nemr = 1\n"),
            "" => (String::new(), ""),
            table => (format!("[{table}]"), ""),
        };
        let others = others.split_inclusive('\n').filter(|line| !line.starts_with(&format!("{name} =")));
        let text = format!("{heading}\n{name} = {value}\n{}", others.collect::<String>());
        toml::from_str::<file::File>(&text).unwrap_or_else(|error| panic!("{text}{error}"));
    }
    assert_eq!(listed.len(), 12, "{listed:?}");
    for (table, names) in listed {
        assert_eq!(names, keys_of(&table), "{table}");
    }
    let block = before.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    assert_eq!(job(block).cluster().unwrap().groups.len(), 2);
}
