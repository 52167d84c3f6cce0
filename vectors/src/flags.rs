//! Parses the arguments. A flag that has no effect is refused.

use std::ffi::OsString;

use clap::ArgMatches;
use training::arguments::idle::{Idle, idle, refuse_idle, refuse_replaced, s3};
use training::places::{is_any_in_s3, is_any_url_of_s3};

use crate::arguments::{Arguments, Command, ModelName, Pip, Serve, Train};

/// Parses the program's arguments. Errors, besides those of the parser: a flag without an effect.
pub fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    training::arguments::parse(words, option_env!("SENTIMILL_COMMIT"), &[], |_, _, _, _| None, check)
}

/// Refuses a flag that was passed and has no effect.
fn check(arguments: &Arguments, given: &ArgMatches) -> Result<(), clap::Error> {
    let idle = match &arguments.command {
        Command::Train(train) => {
            refuse_replaced::<Arguments>(train.out.as_ref(), train.force)?;
            of_training(train)
        }
        Command::Serve(serve) => of_serve(serve),
        Command::Pip(Pip { corpus, .. }) => {
            ["window", "shift", "words"].map(|id| idle(id, corpus.is_empty(), "--corpus")).to_vec()
        }
        Command::Report(report) => vec![s3(is_any_in_s3(report.runs.iter().chain([&report.out])))],
        Command::Neighbours(_) | Command::Analogy(_) | Command::Similarity(_) | Command::Convert(_) => {
            Vec::new()
        }
    };
    refuse_idle::<Arguments>(&idle, given)
}

fn of_training(train: &Train) -> Vec<Idle> {
    let is_other = train.model != ModelName::CharLstm;
    let of_lstm =
        ["hidden", "char_dim", "outputs", "batch"].map(|id| idle(id, is_other, "--model char-lstm"));
    let of_skip_gram = ["char_ngrams", "buckets", "step_pairs", "sync_every"]
        .map(|id| idle(id, !is_other, "--model skip-gram"));
    let is_alone = train.served.servers.is_empty();
    let of_servers =
        ["token_file", "tls_ca", "tls_certificate", "tls_key"].map(|id| idle(id, is_alone, "--async"));
    // The training folder is that of worker 0.
    let is_other = train.served.worker.number > 0;
    let of_model = ["similarity", "held_out"].map(|id| idle(id, is_other, "--worker 0/N"));
    // Workers of streams keep in a folder what they have read.
    let has_folder = !is_other || train.is_stream();
    let of_folder = ["out", "resume", "force"].map(|id| idle(id, !has_folder, "--worker 0/N"));
    let of_stream =
        idle("checkpoint_every", !is_alone && !train.is_stream(), "--follow or standard input as --input");
    let places = train.input.iter().chain(&train.held_out);
    let has_url = is_any_in_s3(train.out.iter()) || is_any_url_of_s3(places);
    [
        &of_lstm[..],
        &of_skip_gram[..],
        &of_servers[..],
        &of_model[..],
        &of_folder[..],
        &[of_stream, s3(has_url)],
    ]
    .concat()
}

fn of_serve(serve: &Serve) -> Vec<Idle> {
    let ids = [
        "listen",
        "shard",
        "workers",
        "staleness",
        "remove_after",
        "memory",
        "log_sync",
        "snapshot_every",
        "until_done",
        "json",
    ];
    ids.map(|id| idle(id, serve.folder.is_none(), "--folder")).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(arguments: &str) -> Option<String> {
        let words = ["vectors"].into_iter().chain(arguments.split(' ')).map(OsString::from);
        parse(&words.collect::<Vec<_>>()).err().map(|error| error.to_string())
    }

    #[test]
    fn a_flag_that_does_nothing_is_refused_by_what_it_needs() {
        for (arguments, expected) in [
            ("train a.txt", "pass inputs with --input: vectors train --input a.txt"),
            ("train --input a --hidden 8", "--hidden has no effect without --model char-lstm;"),
            ("train --input a --token-file f", "--token-file has no effect without --async;"),
            ("train --input a --out s3://bucket/a --force", "nothing in S3 is replaced"),
            ("pip a b --window 3", "--window has no effect without --corpus;"),
            ("report a --s3 region=eu-central-1", "--s3 has no effect without an s3:// URL;"),
        ] {
            let told = refusal(arguments).unwrap_or_default();
            assert!(told.contains(expected), "{arguments}: {told}");
        }
        assert_eq!(refusal("train --input s3://bucket/a --s3 region=eu-central-1"), None);
    }
}
