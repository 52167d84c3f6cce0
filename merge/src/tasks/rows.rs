//! Encodes the rows of some ranges, for the file that `merge assemble` writes.

use std::fs::File;
use std::io::BufWriter;

use dataset::spool::Spool;
use dataset::{Before, RowsSize, WordsReader, encode_rows};
use making::{Ids, Parts, at};
use program::temporary::{self, TemporaryPath};

use crate::Result;
use crate::merge_rows::MergedRows;
use crate::plan::{Planned, Task};
use crate::tasks::{VerifiedRun, WordsFile, WorkOptions, read_words};
use crate::vocabulary::IdMap;

/// Encodes the rows of a task. Returns the file of the result.
pub(crate) fn encode(planned: &Planned, number: u32, options: &WorkOptions) -> Result<TemporaryPath> {
    let run = VerifiedRun::read(planned)?;
    let words = read_words(planned, &run, options)?;
    let (_, _, inputs) = planned.inputs(&options.s3)?;
    let vocabulary = inputs.vocabulary(|visit| {
        words.iter().for_each(|file| file.each_word(visit));
        Ok::<_, program::exit::Failed>(())
    })?;
    let ids = Ids::of(&vocabulary.words);
    let files: Vec<(&WordsFile, Vec<Option<u32>>)> =
        words.iter().map(|file| (file, file.words().map(|word| ids.get(word)).collect())).collect();
    let map = |shard: usize, dictionary: &mut WordsReader| {
        let (mut map, mut next) = (IdMap::empty(dictionary.n_words()), 0);
        for (file, ids) in &files {
            for (place, candidate) in file.places(shard, dictionary.n_words())? {
                if place < next {
                    return Err(file.unexpected("of words that do not follow those of the task before"));
                }
                next = place + 1;
                if let Some(id) = ids[candidate as usize] {
                    map.push(place, id);
                }
            }
        }
        Ok(map.ranked())
    };
    let shards = run.open(planned, options)?;
    let (ranges, these) = (planned.all_ranges(), planned.ranges(number));
    let (mut before, sizes) = (RowsSize::default(), &run.sizes[these.clone()]);
    run.sizes[..these.start].iter().for_each(|&size| before += size);
    let before = if number == 0 { Before::Nothing } else { Before::Rows(before) };
    let mut spool = Spool::create(&options.scratch)?;
    let rows = MergedRows::open(
        (&shards, &ids, map),
        (&ranges, these.start, sizes),
        (None, inputs.without()),
        &mut spool,
        options.threads,
    )?;
    let create =
        || temporary::path_in(&options.scratch).and_then(|path| Ok((File::create_new(&path)?, path)));
    let (file, path) = at(&options.scratch, "create a temporary file", create())?;
    let size = RowsSize { rows: run.size.rows, tokens: run.size.tokens };
    let progress = planned.store().progress();
    encode_rows(
        (size, vocabulary.token_type()),
        (before, sizes),
        options.threads,
        |part, visit| {
            rows.each_row(part, &mut |row| {
                progress.advance(1);
                visit(row)
            })
        },
        (&path, BufWriter::new(file), planned.identity(Task::Rows(number))),
    )?;
    Ok(path)
}
