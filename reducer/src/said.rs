//! What a reducer says: to Hadoop by its counters, states and the commit record, to a user in one line.

use std::io::Write;

use corpus::digest::Digest;
use corpus::ledger::ReducerCounts;
use dataset::commit::Commit;
use hadoop::{Runner, report_counters, report_status};
use serde_json::json;

use crate::{Error, Result};

/// Says what there is to say beside the result.
pub(crate) struct Said<L> {
    pub log: L,
    pub runner: Runner,
}

impl<L: Write> Said<L> {
    /// How far the work is.
    pub fn status(&mut self, status: &str) -> Result<()> {
        match self.runner {
            Runner::User => Ok(()),
            Runner::Hadoop => report_status(&mut self.log, status).map_err(Error::Output),
        }
    }

    /// Something that a user wants to know too.
    pub fn notice(&mut self, notice: &str) -> Result<()> {
        match self.runner {
            // By one write, so that no other program's line gets into it.
            Runner::User => {
                self.log.write_all(format!("reducer: {notice}\n").as_bytes()).map_err(Error::Output)
            }
            Runner::Hadoop => self.status(notice),
        }
    }

    /// Hadoop's counters.
    pub fn counters(&mut self, counts: &ReducerCounts) -> Result<()> {
        match self.runner {
            Runner::User => Ok(()),
            Runner::Hadoop => report_counters(&mut self.log, ReducerCounts::GROUP, &counts.counters())
                .map_err(Error::Output),
        }
    }

    /// The result, on standard output: a function of the record that was elected, whoever asks.
    pub fn commit(&self, mut output: impl Write, elected: &Commit) -> Result<()> {
        let told = match self.runner {
            Runner::User => in_short(elected),
            Runner::Hadoop => format!("part-{:05}\t{}", elected.partition, as_record(elected)),
        };
        writeln!(output, "{told}").and_then(|()| output.flush()).map_err(Error::Output)
    }
}

fn in_short(elected: &Commit) -> String {
    let Commit { partition, attempt, counts, .. } = elected;
    let [reviews, distinct, only_stopwords, rows] = counts.counters().map(|(name, n)| format!("{n} {name}"));
    format!(
        "part-{partition:05} committed by attempt {attempt}: {reviews}, {distinct} = {only_stopwords} + {rows}"
    )
}

/// The record, in which a digest stands for the stop words: they are in the record in the store.
fn as_record(elected: &Commit) -> String {
    let mut record = serde_json::to_value(elected).expect("a record of plain values is JSON");
    let words = elected.settings.stop_words.join("\n");
    record["settings"]["stop_words"] = json!(Digest::of(words.as_bytes()).to_string());
    record.to_string()
}
