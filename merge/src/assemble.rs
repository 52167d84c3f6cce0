//! Makes the dataset of a plan from the results of its tasks.

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;

use dataset::EncodedRows;
use making::{DatasetContent, DatasetOptions, Existing, Ids, Making, Output, ProgressBars, Rows, Size, at};
use program::exit::Failed;

use crate::plan::{Planned, Task};
use crate::tasks::{VerifiedRun, WordsFile, WorkOptions, read_words};
use crate::{Outcome, Result, existing, put_seal};

/// Options of assembling. The vocabulary of the dataset and the texts that it omits are those of the plan.
#[derive(Clone, Debug)]
pub struct AssembleOptions {
    /// The path or URL of the dataset.
    pub out: Output,
    /// Number of ids per row of a padded copy, if one is to be made.
    pub padded: Option<u64>,
    /// Whether its ids are also written to a Parquet file.
    pub ids: bool,
    /// What happens to an existing dataset that differs.
    pub existing: Existing,
    /// How results are read.
    pub work: WorkOptions,
}

/// Makes the dataset of a plan. All of its tasks must have been run.
pub fn assemble(planned: &Planned, options: &AssembleOptions, progress: &ProgressBars) -> Result<Outcome> {
    let seal = &planned.plan.seal;
    let (vocabulary, without, _) = planned.inputs(&options.work.s3)?;
    let AssembleOptions { out, padded, ids, existing: of_existing, work } = options;
    let dataset = DatasetOptions {
        out: out.clone(),
        vocabulary,
        without,
        padded: *padded,
        ids: *ids,
        texts: None,
        existing: *of_existing,
    };
    let making = Making::open(&dataset, &seal.settings)?;
    if let Some(unchanged) = existing(&making, seal)? {
        return Ok(Outcome::Unchanged(unchanged));
    }
    if let Some(&task) = planned.unfinished()?.first() {
        return Err(planned.missing(task));
    }
    let run = VerifiedRun::read(planned)?;
    let words = read_words(planned, &run, work)?;
    let mut content = Assembled { planned, run, words, options: work };
    let (manifest, card) =
        making.make(&mut content, seal, progress, |seal| put_seal(planned.store(), seal))?;
    Ok(Outcome::Made(Box::new(manifest), Box::new(card)))
}

/// The results of all tasks, as the content of a dataset.
struct Assembled<'a> {
    planned: &'a Planned,
    run: VerifiedRun,
    words: Vec<WordsFile>,
    options: &'a WorkOptions,
}

impl DatasetContent for Assembled<'_> {
    type Error = Failed;

    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        self.words.iter().for_each(|file| file.each_word(visit));
        Ok(())
    }

    fn size(&mut self) -> Result<Size> {
        Ok(self.run.size)
    }

    fn rows<'p>(&'p mut self, _: &'p Ids<'p>) -> Result<Rows<'p, Failed>> {
        let Self { planned, run, options, .. } = self;
        let open = |number: u32| {
            let task = Task::Rows(number);
            let key = planned.result_key(task)?;
            let copy = planned.store().local_copy(&key, &options.scratch)?;
            let file = at(copy.path(), "read the encoded rows", File::open(copy.path()))?;
            let n_rows = run.sizes[planned.ranges(number)].iter().map(|size| size.rows).sum();
            Ok(EncodedRows::new(
                BufReader::new(file),
                planned.url(&key).as_ref(),
                planned.identity(task),
                n_rows,
            ))
        };
        Ok(Rows::Encoded(Box::new((0..planned.plan.tasks).map(open))))
    }

    fn threads(&self) -> NonZeroUsize {
        self.options.threads
    }
}
