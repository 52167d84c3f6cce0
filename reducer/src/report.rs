//! Output of a reducer. Under Hadoop, it prints counters, states and the commit record; for a user, it prints
//! one line.

use std::io::{self, Write};

use corpus::digest::Digest;
use corpus::ledger::ReducerCounts;
use dataset::commit::Commit;
use program::exit::{Exit, Failed};
use program::hadoop::{Runner, report_counters, report_status};
use program::system::Failure;
use serde_json::json;

use crate::Result;

/// Prints notices and the result.
pub(crate) struct Report<L> {
    pub log: L,
    pub runner: Runner,
}

impl<L: Write> Report<L> {
    /// Reports progress.
    pub fn status(&mut self, status: &str) -> Result<()> {
        match self.runner {
            Runner::User => Ok(()),
            Runner::Hadoop => report_status(&mut self.log, status).map_err(|error| unwritten(&error)),
        }
    }

    /// Prints a notice for a user; under Hadoop, reports it as the status.
    pub fn notice(&mut self, notice: &str) -> Result<()> {
        match self.runner {
            // One write, so that lines of other programs cannot interrupt it.
            Runner::User => {
                let written = self.log.write_all(format!("reducer: {notice}\n").as_bytes());
                written.map_err(|error| unwritten(&error))
            }
            Runner::Hadoop => self.status(notice),
        }
    }

    /// Reports Hadoop's counters.
    pub fn counters(&mut self, counts: &ReducerCounts) -> Result<()> {
        match self.runner {
            Runner::User => Ok(()),
            Runner::Hadoop => report_counters(&mut self.log, ReducerCounts::GROUP, &counts.counters())
                .map_err(|error| unwritten(&error)),
        }
    }

    /// Prints the result on standard output. It depends only on the elected record.
    pub fn commit(&self, mut output: impl Write, elected: &Commit) -> Result<()> {
        let told = match self.runner {
            Runner::User => in_short(elected),
            Runner::Hadoop => format!("part-{:05}\t{}", elected.partition, as_record(elected)),
        };
        writeln!(output, "{told}").and_then(|()| output.flush()).map_err(|error| unwritten(&error))
    }
}

fn unwritten(error: &io::Error) -> Failed {
    let why = Failure::writing("write the result", error, "redirect it to another disk");
    Failed::new(Exit::Io, format!("standard output: {why}"))
}

fn in_short(elected: &Commit) -> String {
    let Commit { partition, attempt, counts, .. } = elected;
    let (reviews, texts) = (counts.reviews, counts.of_texts());
    format!("part-{partition:05} committed by attempt {attempt}: {reviews} reviews, {texts}")
}

/// The record with a digest in place of the stop words, which the record in the store contains.
fn as_record(elected: &Commit) -> String {
    let mut record = serde_json::to_value(elected).expect("a record of plain values is JSON");
    let words = elected.settings.stop_words.join("\n");
    record["settings"]["stop_words"] = json!(Digest::of(words.as_bytes()).to_string());
    record.to_string()
}
