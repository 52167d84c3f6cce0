use super::*;
use crate::labels::Labels;

const COUNTS: MapperCounts = MapperCounts {
    lines: 10,
    blank: 1,
    line_too_long: 0,
    bad_line: 2,
    no_text: 1,
    bad_rating: 0,
    unrated: 0,
    empty_text: 1,
    reviews: 5,
    invalid_utf8: 2,
    table_lines: 0,
};

#[test]
fn unrated_reviews_are_counted_apart_and_are_not_bad() {
    let mut counts = MapperCounts { lines: 13, unrated: 2, ..COUNTS };
    assert_eq!(counts.count(NoReview::Rejected(Reject::Unrated)), 3);
    assert_eq!((counts.check(), counts.bad()), (Ok(()), COUNTS.bad()));
    assert!(counts.counters().contains(&("unrated", 3)) && !NoReview::Rejected(Reject::Unrated).is_bad());
    let ledger = "13 lines = 1 blank + 2 bad_line + 1 no_text + 3 unrated + 1 empty_text + 5 reviews";
    assert_eq!(counts.to_string(), ledger);
    let written = serde_json::to_value(counts).unwrap();
    assert_eq!(serde_json::from_value::<MapperCounts>(written).unwrap(), counts);
    assert_eq!(serde_json::to_value(COUNTS).unwrap().get("unrated"), None);
}

#[test]
fn a_ledger_that_lost_a_line_does_not_balance() {
    assert_eq!(COUNTS.check(), Ok(()));
    let lost = MapperCounts { blank: 0, ..COUNTS };
    assert_eq!(lost.check(), Err(Unbalanced::Lines { lines: 10, sum: 9 }));
}

#[test]
fn each_reason_has_its_own_counter_and_four_are_bad() {
    let reasons = [
        (NoReview::Blank, "blank", false),
        (NoReview::TooLong, "line_too_long", true),
        (NoReview::Rejected(Reject::BadLine), "bad_line", true),
        (NoReview::Rejected(Reject::NoText), "no_text", true),
        (NoReview::Rejected(Reject::BadRating), "bad_rating", true),
        (NoReview::EmptyText, "empty_text", false),
    ];
    for (reason, counter, is_bad) in reasons {
        assert_eq!((reason.counter(), reason.is_bad()), (counter, is_bad));
        let mut counts = MapperCounts::default();
        assert_eq!([counts.count(reason), counts.count(reason)], [1, 2]);
        let counted = counts.counters().into_iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>();
        assert_eq!((counted, counts.bad()), (vec![(counter, 2)], if is_bad { 2 } else { 0 }));
    }
}

#[test]
fn only_lines_that_are_not_blank_and_not_too_long_are_held() {
    assert_eq!(NoReview::held(LineContent::Bytes(b"a b")), Ok(&b"a b"[..]));
    assert_eq!(NoReview::held(LineContent::Bytes(b" \t")), Err(NoReview::Blank));
}

#[test]
fn reviews_of_mappers_and_reducers_must_agree() {
    let reduced = ReducerCounts { reviews: 5, distinct: 4, only_stopwords: 1, rows: 3, ..Default::default() };
    assert_eq!(check_run(&COUNTS, &reduced), Ok(()));
    let doubled = ReducerCounts { reviews: 6, ..reduced };
    assert_eq!(check_run(&COUNTS, &doubled), Err(Unbalanced::Reviews { mapped: 5, reduced: 6 }));
    let lost = ReducerCounts { rows: 2, ..reduced };
    assert_eq!(check_run(&COUNTS, &lost), Err(Unbalanced::Texts { distinct: 4, sum: 3 }));
}

#[test]
fn texts_without_a_class_are_counted_only_with_named_classes() {
    let labels = |list: &str| Labels::Classes(list.parse().unwrap());
    let split = ReducerCounts::none(&Settings::default());
    let labels = labels("1-2=bad,5=good");
    let mut named = ReducerCounts::none(&Settings { labels, ..Settings::default() });
    assert_eq!(split.to_string(), "0 reviews, 0 distinct, 0 only_stopwords, 0 rows");
    assert_eq!(named.of_texts(), "0 distinct = 0 not_labelled + 0 only_stopwords + 0 rows");
    let counted = ReducerCounts { reviews: 5, distinct: 4, only_stopwords: 1, rows: 1, ..with_classes(2) };
    named += counted;
    assert_eq!((named, named.check()), (counted, Ok(())));
    named += counted;
    assert_eq!((named.not_labelled, named.check()), (Some(4), Ok(())));
    let lost = ReducerCounts { not_labelled: Some(1), ..counted };
    assert_eq!(lost.check(), Err(Unbalanced::Texts { distinct: 4, sum: 3 }));
    let written = |counts: &ReducerCounts| serde_json::to_value(counts).unwrap();
    assert_eq!(written(&split).get("not_labelled"), None);
    assert_eq!(written(&counted)["not_labelled"], 2);
    assert_eq!(serde_json::from_value::<ReducerCounts>(written(&counted)).unwrap(), counted);
    let null = serde_json::json!({
        "reviews": 0, "distinct": 0, "not_labelled": null, "only_stopwords": 0, "rows": 0
    });
    assert!(serde_json::from_value::<ReducerCounts>(null).is_err());
}

fn with_classes(not_labelled: u64) -> ReducerCounts {
    ReducerCounts { not_labelled: Some(not_labelled), ..ReducerCounts::default() }
}

#[test]
fn texts_outside_a_sample_are_counted_only_with_a_sample() {
    let settings = |share: &str| Settings { sample: share.parse().unwrap(), ..Settings::default() };
    assert_eq!(ReducerCounts::none(&settings("1")), ReducerCounts::default());
    let mut sampled = ReducerCounts::none(&settings("0.25"));
    assert_eq!(sampled.of_texts(), "0 distinct = 0 not_sampled + 0 only_stopwords + 0 rows");
    let not_sampled = Some(5);
    let counted =
        ReducerCounts { reviews: 9, distinct: 9, not_sampled, only_stopwords: 1, rows: 1, ..with_classes(2) };
    let texts = "9 distinct = 5 not_sampled + 2 not_labelled + 1 only_stopwords + 1 rows";
    assert_eq!((counted.of_texts(), counted.check()), (texts.to_owned(), Ok(())));
    assert_eq!(counted.dropped(), 8);
    sampled += counted;
    sampled += counted;
    assert_eq!((sampled.not_sampled, sampled.check()), (Some(10), Ok(())));
    let lost = ReducerCounts { not_sampled: None, ..counted };
    assert_eq!(lost.check(), Err(Unbalanced::Texts { distinct: 9, sum: 4 }));
    let written = serde_json::to_value(counted).unwrap();
    assert_eq!(written["not_sampled"], 5);
    assert_eq!(serde_json::from_value::<ReducerCounts>(written).unwrap(), counted);
}

fn judged(counts: &MapperCounts, share: &str, part: Part) -> Option<TooManyBad> {
    let limits = Limits { bad_lines_max: share.parse().unwrap(), ..Limits::default() };
    match counts.judge(limits, part, "UTF-8") {
        Ok(()) => None,
        Err(TooMany::Bad(found)) => Some(found),
        Err(found) => panic!("{found}"),
    }
}

#[test]
fn the_share_of_bad_lines_of_a_task_is_checked_from_1000_lines() {
    let judged = |counts: &MapperCounts, share: &str| judged(counts, share, Part::Task);
    let counts = MapperCounts { lines: 1100, blank: 100, bad_line: 50, ..MapperCounts::default() };
    assert_eq!(judged(&counts, "0.05"), None);
    let more = MapperCounts { no_text: 1, ..counts };
    let expected = "51 of 1000 lines are bad (bad_line 50, no_text 1), expected at most 0.05 of them";
    assert_eq!(judged(&more, "0.05").unwrap().to_string(), expected);
    assert_eq!(judged(&more, "0.06"), None);
    let fewer_lines = MapperCounts { blank: 101, ..more };
    assert_eq!(judged(&fewer_lines, "0.001"), None);
    // 0 allows no bad line, however few lines there are.
    assert_eq!(judged(&fewer_lines, "0").unwrap().bad, 51);
}

#[test]
fn the_share_of_bad_lines_of_all_input_is_checked_from_20_bad_lines() {
    let judged = |counts: &MapperCounts, share: &str| judged(counts, share, Part::All);
    let counts = MapperCounts { lines: 200, bad_line: 19, ..MapperCounts::default() };
    assert_eq!(judged(&counts, "0.001"), None);
    assert_eq!(judged(&counts, "0").unwrap().bad, 19);
    assert_eq!(judged(&MapperCounts { bad_line: 0, ..counts }, "0"), None);
    let more = MapperCounts { no_text: 1, ..counts };
    let expected = "20 of 200 lines are bad (bad_line 19, no_text 1), expected at most 0.05 of them";
    assert_eq!(judged(&more, "0.05").unwrap().to_string(), expected);
    assert_eq!(judged(&more, "0.1"), None);
    assert_eq!(judged(&MapperCounts { blank: 1, ..more }, "0.1").unwrap().lines, 199);
    assert_eq!(judged(&MapperCounts { lines: 400, ..more }, "0.05"), None);
    assert!(["1.1", "-0.1", "NaN", "five", ""].iter().all(|share| share.parse::<Share>().is_err()));
}

#[test]
fn the_share_of_lines_that_are_not_utf8_is_checked_as_that_of_bad_lines_and_before_it() {
    let judged = |counts: &MapperCounts, share: &str, part| {
        let limits = Limits { invalid_utf8_max: share.parse().unwrap(), ..Limits::default() };
        counts.judge(limits, part, "UTF-8").map_err(|found| found.to_string())
    };
    let counts = MapperCounts { lines: 400, blank: 1, invalid_utf8: 19, ..MapperCounts::default() };
    assert_eq!(judged(&counts, "0.01", Part::All), Ok(()));
    assert_eq!(judged(&MapperCounts { invalid_utf8: 0, ..counts }, "0", Part::All), Ok(()));
    let more = MapperCounts { bad_line: 399, invalid_utf8: 20, ..counts };
    let expected = "20 of 399 lines are not UTF-8, expected at most 0.05 of them";
    assert_eq!(judged(&more, "0.05", Part::All).unwrap_err(), expected);
    assert!(judged(&more, "0.06", Part::All).unwrap_err().starts_with("399 of 399 lines are bad"));
    assert_eq!(judged(&more, "0.05", Part::Task), Ok(()));
    let task = MapperCounts { lines: 1000, invalid_utf8: 51, ..MapperCounts::default() };
    assert!(judged(&task, "0.05", Part::Task).is_err());
    assert_eq!(judged(&MapperCounts { invalid_utf8: 50, ..task }, "0.05", Part::Task), Ok(()));
    let found =
        |invalid| TooManyInvalid { encoding: "UTF-8", invalid, lines: 100, share: Share::OF_INVALID_UTF8 };
    assert_eq!([found(10).advice(), found(11).advice()], [", or raise --invalid-utf8-max", ""]);
}

#[test]
fn sums_of_hostile_counts_saturate() {
    let mut sum = MapperCounts { reviews: u64::MAX, bad_line: u64::MAX, ..COUNTS };
    sum += sum;
    assert_eq!((sum.reviews, sum.bad()), (u64::MAX, u64::MAX));
    assert!(sum.check().is_err());
}

#[test]
fn sums_keep_every_counter() {
    let mut sum = COUNTS;
    sum += COUNTS;
    let doubled: Vec<_> = COUNTS.counters().into_iter().map(|(name, n)| (name, 2 * n)).collect();
    assert_eq!((sum.counters(), doubled.len()), (doubled, 9));
}

#[test]
fn lines_that_are_not_utf8_are_reported_outside_the_ledger() {
    let none = MapperCounts { invalid_utf8: 0, ..COUNTS };
    assert_eq!(none.counters(), COUNTS.ledger());
    let written = |counts: &MapperCounts| serde_json::to_value(counts).unwrap();
    assert_eq!(written(&COUNTS)["invalid_utf8"], 2);
    assert_eq!(written(&none).get("invalid_utf8"), None);
    assert_eq!(serde_json::from_value::<MapperCounts>(written(&none)).unwrap(), none);
    assert_eq!(COUNTS.to_string(), "10 lines = 1 blank + 2 bad_line + 1 no_text + 1 empty_text + 5 reviews");
    assert_eq!(MapperCounts::default().to_string(), "0 lines = 0 reviews");
}

#[test]
fn lines_inside_records_of_tables_are_reported_outside_the_ledger() {
    let counts = MapperCounts { table_lines: 12, ..COUNTS };
    assert_eq!((counts.check(), counts.counters().last()), (Ok(()), Some(&("table_lines", 12))));
    let reducer = ReducerCounts::default();
    let text = |counts| lines(Some(&counts), &reducer, 0, 0);
    assert!(text(counts).contains("\n                  10 records of tables in 12 lines (table_lines)\n"));
    assert!(!text(MapperCounts { table_lines: 10, ..COUNTS }).contains("table_lines"));
}

#[test]
fn counters_are_read_from_the_output_of_the_job_client() {
    let output = "INFO mapreduce.Job: Counters: 55\n\tFile System Counters\n\t\tFILE: Number of bytes read=7\n\
        \tmapper\n\t\tbad_line=2\n\t\tblank=1\n\t\tempty_text=1\n\t\tinvalid_utf8=2\n\t\tlines=10\n\t\tno_text=1\n\t\treviews=5\n\
        \treducer\n\t\treviews=5\n\tFile Input Format Counters \n\t\tBytes Read=100\n";
    assert_eq!(MapperCounts::from_job_output(output), Some(COUNTS));
    assert_eq!(MapperCounts::from_job_output("no counters"), None);
}

#[test]
fn the_counters_of_mapred_job_status_are_read() {
    // Printed by `mapred job -status` of Hadoop 3.4.2, with parts removed.
    let output = "\nJob: job_1795410667730_0001\nUber job : false\nNumber of maps: 2\nmap() completion: 1.0\n\
                  Job state: SUCCEEDED\nretired: false\nreason for failure:  \nCounters: 73\n\tJob Counters \n\
                  \t\tLaunched map tasks=2\n\tmapper\n\t\tbad_line=3\n\t\tbad_rating=6\n\t\tblank=1\n\t\tempty_text=1\n\
                  \t\tinvalid_utf8=1\n\t\tline_too_long=0\n\t\tlines=2000\n\t\tno_text=3\n\t\treviews=1986\n\
                  \tFile Input Format Counters \n\t\tBytes Read=920783\n\treducer\n\t\treviews=1986\n";
    let counts = MapperCounts::from_job_output(output).unwrap();
    assert_eq!((counts.lines, counts.bad_rating, counts.invalid_utf8, counts.reviews), (2000, 6, 1, 1986));
    assert_eq!(counts.check(), Ok(()));
}
