//! Converts lines into the input of each reducer attempt as Hadoop does: splits, spills, combiner passes on
//! each spill and at each merge, and a different order of values in each attempt.

use std::io;

use corpus::clean::Rules;
use corpus::format::Format;
use corpus::ledger::{Limits, MapperCounts};
use mapper::{InputSplit, Mapper, Options, Output};
use program::hadoop::Runner;
use synthetic::random::Random;
use tests::lines::{in_parts, sorted_by_key_only, split};
use tests::pipe::split_by_hadoop;

/// The completed maps of a job.
pub struct Maps {
    /// Records by map and partition.
    records: Vec<Vec<Vec<u8>>>,
    /// The sums of their counts.
    pub counts: MapperCounts,
}

impl Maps {
    /// Runs this number of maps over the lines, for this number of reducers.
    pub fn of(lines: &[u8], n_maps: usize, partitions: u32) -> Self {
        let mut counts = MapperCounts::default();
        let records = in_parts(lines, n_maps).into_iter().map(|part| {
            let (records, counted) = mapped(&part);
            counts += counted;
            split_by_hadoop(&records, partitions)
        });
        Self { records: records.collect(), counts }
    }

    /// The input of an attempt of this partition's reducer: sorted by key, and combined in some places.
    pub fn input(&self, partition: u32, random: &mut Random) -> Vec<u8> {
        let mut segments: Vec<Vec<u8>> = Vec::new();
        for map in &self.records {
            let n_spills = 1 + random.below(4);
            let spills = in_parts(&map[partition as usize], n_spills);
            let spills: Vec<_> = spills.iter().map(|spill| pass(spill, random)).collect();
            // Maps merge their spills; with three or more, the combiner runs once more.
            segments.push(if n_spills > 2 { pass(&spills.concat(), random) } else { spills.concat() });
        }
        // Reducers merge segments as they arrive, in any order, until few enough are left.
        while segments.len() > 1 && !random.one_in(3) {
            let one = segments.swap_remove(random.below(segments.len()));
            let other = segments.swap_remove(random.below(segments.len()));
            segments.push(pass(&[one, other].concat(), random));
        }
        sorted_by_key_only(&segments.concat(), seed(random))
    }
}

/// The records sorted by key, and combined or not.
fn pass(records: &[u8], random: &mut Random) -> Vec<u8> {
    let sorted = sorted_by_key_only(records, seed(random));
    if random.one_in(2) {
        return sorted;
    }
    let mut combined = Vec::new();
    combiner::run(&sorted[..], &mut combined).unwrap();
    combined
}

fn seed(random: &mut Random) -> u64 {
    random.below(usize::MAX) as u64
}

fn mapped(lines: &[u8]) -> (Vec<u8>, MapperCounts) {
    let options = Options {
        format: Format::default(),
        rules: Rules::Letters,
        line_bytes_max: 4 << 20,
        encoding: corpus::encoding::UTF_8,
        limits: Limits::NONE,
        output: Output::Records,
        runner: Runner::Hadoop,
    };
    let mut records = Vec::new();
    let mut mapper = Mapper::new(&mut records, io::sink(), options);
    mapper.read(lines, &InputSplit { file: "-".to_owned(), split_start: None }).unwrap();
    let counts = mapper.finish().unwrap();
    (records, counts)
}

/// A wrong input caused by a defect, equal in each attempt that has it: one additional review of the first
/// text. `None` if there is no text.
pub fn with_a_review_more(input: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let first = split(input).first()?.split(|&byte| byte == b'\t').next()?;
    Some(sorted_by_key_only(&[input, first, b"\t0,0,0,0,1\n"].concat(), seed(random)))
}
