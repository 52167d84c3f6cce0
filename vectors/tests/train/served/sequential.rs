//! What `--staleness 0` computes: in each step, every worker trains rows of the same moment, and the differences are
//! added in the order of workers. It does not depend on the number of servers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use embeddings::skipgram::{
    Decay, Distribution, Sentences, SkipGramSettings, SkipGramTraining, Vocabulary, Work, count,
};

use super::super::{model, sentences, trained};
use super::{Server, train, worker};

const EPOCHS: u64 = 5;
/// `--step-pairs` of the workers, by the mean number of words of a window.
const WORDS_PER_STEP: usize = 2000 / 6;

/// The sentences of a worker, by steps.
fn steps(all: &Sentences, number: usize, n_workers: usize) -> Vec<Arc<Sentences>> {
    let mut steps = Vec::new();
    let mut step = Sentences::default();
    for sentence in all.iter().skip(number).step_by(n_workers) {
        step.push(sentence.iter().copied(), sentence.len() as u64);
        if step.n_words() >= WORDS_PER_STEP {
            steps.push(Arc::new(std::mem::take(&mut step)));
        }
    }
    if step.n_words() > 0 {
        steps.push(Arc::new(step));
    }
    steps
}

/// The rows of both tables.
type Tables = [Vec<Vec<f32>>; 2];

/// Trains a step on these rows. Returns the differences, by table and row.
fn differences(
    training: &SkipGramTraining,
    decay: Decay,
    work: &Work,
    tables: &Tables,
) -> Vec<(usize, u32, Vec<f32>)> {
    let of_training = [training.input(), training.output()];
    for (table, rows) in of_training.iter().zip(tables) {
        (0..).zip(rows).for_each(|(row, values)| table.write(row, 0, values));
    }
    training.run_once(decay, work).unwrap();
    let rows = training.rows(work);
    let mut found = Vec::new();
    for (at, rows) in [rows.input, rows.output].into_iter().enumerate() {
        for row in rows {
            let mut after = vec![0.0; training.settings().dim];
            of_training[at].read(row, 0, &mut after);
            let before = &tables[at][row as usize];
            found.push((at, row, after.iter().zip(before).map(|(after, before)| after - before).collect()));
        }
    }
    found
}

/// The words, and their vectors.
fn sequential(text: &str, n_workers: usize) -> (Vocabulary, Vec<Vec<f32>>) {
    let (mut vocabulary, mut all) = (Vocabulary::new(1000), Sentences::default());
    count(&mut vocabulary, text.as_bytes(), &mut all);
    let (vocabulary, numbers) = vocabulary.ranked(5);
    all.renumber(|word| numbers[word as usize]);
    let settings = SkipGramSettings { dim: 16, rate: 0.05, ..SkipGramSettings::default() };
    let distribution = Arc::new(Distribution::new(&vocabulary.counts(), 1, settings.power, settings.sample));
    let new = || SkipGramTraining::new(settings.clone(), vocabulary.n_words()).unwrap();
    let shares: Vec<_> = (0..n_workers).map(|number| steps(&all, number, n_workers)).collect();
    let trainings: Vec<_> = (0..n_workers).map(|_| new()).collect();
    let mut tables: Tables = [Vec::new(), vec![vec![0.0; settings.dim]; vocabulary.n_words()]];
    for word in 0..vocabulary.n_words() as u32 {
        let mut row = vec![0.0; settings.dim];
        trainings[0].draw(word);
        trainings[0].input().read(word, 0, &mut row);
        tables[0].push(row);
    }
    let n_steps = |share: &Vec<Arc<Sentences>>| share.len() as u64 * EPOCHS;
    for step in 0..shares.iter().map(n_steps).max().unwrap() {
        let mut of_step = Vec::new();
        for (number, (share, training)) in shares.iter().zip(&trainings).enumerate() {
            if step >= n_steps(share) {
                continue;
            }
            let n_words: usize = share.iter().map(|step| step.n_words()).sum();
            let decay = Decay::Linear { n_tokens: n_words as u64 * EPOCHS };
            let work = Work {
                sentences: Arc::clone(&share[step as usize % share.len()]),
                distribution: Arc::clone(&distribution),
                subwords: None,
                number: step * n_workers as u64 + number as u64,
            };
            of_step.extend(differences(training, decay, &work, &tables));
        }
        for (table, row, difference) in of_step {
            let values = &mut tables[table][row as usize];
            values.iter_mut().zip(difference).for_each(|(value, difference)| *value += difference);
        }
    }
    let [vectors, _] = tables;
    (vocabulary, vectors)
}

fn assert_equal_bits(out: &Path, (vocabulary, vectors): &(Vocabulary, Vec<Vec<f32>>)) {
    let model = model(out);
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(vocabulary.n_words(), 22);
    for ((word, _), expected) in vocabulary.iter().zip(vectors) {
        let found = model.vector_of(word).unwrap();
        assert_eq!(bits(&found), bits(expected), "{}", String::from_utf8_lossy(word));
    }
}

#[test]
fn with_staleness_0_the_vectors_equal_those_of_a_sequential_training_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    let text = sentences(1500, 7);
    fs::write(&input, &text).unwrap();
    for (n_workers, n_servers) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let of = |name: &str| folder.path().join(format!("{n_workers}-{n_servers}-{name}"));
        let workers = n_workers.to_string();
        let servers: Vec<Server> = (0..n_servers)
            .map(|shard| {
                let place = format!("{shard}/{n_servers}");
                let flags = ["--workers", &workers, "--shard", &place, "--staleness", "0"];
                Server::start(&of(&place.replace('/', "-")), &flags)
            })
            .collect();
        let addresses: Vec<&str> = servers.iter().map(|server| server.address.as_str()).collect();
        let (addresses, out) = (addresses.join(","), of("out"));
        match n_workers {
            1 => trained(worker(&input, &out, &addresses, "0/1", &[])),
            _ => train(&input, &out, &addresses, &[]),
        };
        assert_equal_bits(&out, &sequential(&text, n_workers));
    }
}
