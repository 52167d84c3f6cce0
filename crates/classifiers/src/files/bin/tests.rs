use std::path::Path;

use proptest::prelude::*;

use super::answers::{BinScratch, best};
use super::*;
use crate::{Dictionary, Names};

const PATH: &str = "model.bin";

fn names(names: &[&str]) -> Names {
    names.iter().map(|name| name.as_bytes()).collect()
}

fn args(loss: BinLoss) -> Args {
    Args {
        kind: Kind::Supervised,
        dim: 2,
        window: 5,
        epochs: 5,
        min_count: 1,
        negatives: 5,
        word_ngrams: 2,
        loss,
        n_buckets: 3,
        shortest: 0,
        longest: 0,
        update_rate: 100,
        threshold: 1e-4,
    }
}

fn dictionary() -> Dictionary {
    Dictionary::new(names(&["good", "</s>"]), vec![7, 3], names(&["pos", "neg"]), vec![2, 1])
}

/// A model of two words, three buckets and two labels, of which the second row is `second`.
fn model(loss: BinLoss, second: f32) -> BinModel {
    let input = Dense::new(2, vec![1.0, 0.0, second, 0.5, 0.25, 0.0, -0.5, 2.0, 0.0, 0.0]).unwrap();
    let output = Dense::new(2, vec![1.0, -1.0, -1.0, 1.0]).unwrap();
    BinModel::new(args(loss), dictionary().into(), Matrix::Dense(input), Matrix::Dense(output)).unwrap()
}

fn bytes_of(model: &BinModel) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(PATH);
    model.write(&path).unwrap();
    std::fs::read(path).unwrap()
}

fn parse(bytes: &[u8]) -> Result<BinModel> {
    BinModel::parse(bytes, bytes.len() as u64, Path::new(PATH))
}

fn refused(bytes: &[u8]) -> String {
    parse(bytes).err().map(|error| error.to_string()).expect("the file is refused")
}

/// A quantised model with pruned buckets.
fn quantised(loss: BinLoss, separate_norms: bool) -> BinModel {
    let n_words = 100;
    let words: Vec<String> = (0..n_words).map(|word| format!("w{word}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let dictionary =
        Dictionary::new(names(&words), (1..=n_words).rev().collect(), names(&["1", "2", "3"]), vec![9, 8, 7]);
    let args = Args { dim: 3, n_buckets: 300, ..args(loss) };
    let value = |at: usize| ((at * 7919) % 1013) as f32 / 500.0 - 1.0;
    let input = Dense::new(3, (0..1200).map(value).collect()).unwrap();
    let output = Dense::new(3, (0..9).map(value).collect()).unwrap();
    let dense = BinModel::new(args, dictionary.into(), Matrix::Dense(input), Matrix::Dense(output)).unwrap();
    let how = Quantization { part_columns: 2, separate_norms, output: false, rows_max: 300, threads: 2 };
    dense.quantised(&how).unwrap()
}

#[test]
fn a_file_has_the_layout_of_the_program() {
    let ints = |ints: &[i32]| ints.iter().flat_map(|int| int.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |floats: &[f32]| floats.iter().flat_map(|float| float.to_le_bytes()).collect::<Vec<u8>>();
    let entry =
        |name: &str, count: i64, kind: u8| [name.as_bytes(), &[0], &count.to_le_bytes(), &[kind]].concat();
    let longs = |longs: &[i64]| longs.iter().flat_map(|long| long.to_le_bytes()).collect::<Vec<u8>>();
    let expected = [
        ints(&[793_712_314, 12]),
        ints(&[2, 5, 5, 1, 5, 2, 4, 3, 3, 0, 0, 100]),
        1e-4f64.to_le_bytes().to_vec(),
        ints(&[4, 2, 2]),
        longs(&[10, -1]),
        entry("good", 7, 0),
        entry("</s>", 3, 0),
        entry("__label__pos", 2, 1),
        entry("__label__neg", 1, 1),
        vec![0],
        longs(&[5, 2]),
        floats(&[1.0, 0.0, 0.5, 0.5, 0.25, 0.0, -0.5, 2.0, 0.0, 0.0]),
        vec![0],
        longs(&[2, 2]),
        floats(&[1.0, -1.0, -1.0, 1.0]),
    ]
    .concat();
    assert_eq!(bytes_of(&model(BinLoss::OneVersusAll, 0.5)), expected);
}

#[test]
fn a_written_model_is_read_back() {
    for loss in
        [BinLoss::Softmax, BinLoss::OneVersusAll, BinLoss::NegativeSampling, BinLoss::HierarchicalSoftmax]
    {
        let models = [model(loss, 0.5), quantised(loss, false), quantised(loss, true)];
        for bytes in models.map(|model| bytes_of(&model)) {
            assert!(bytes_of(&parse(&bytes).unwrap()) == bytes);
        }
    }
}

#[test]
fn labels_without_the_usual_prefix_keep_their_names() {
    let mut bytes = bytes_of(&model(BinLoss::Softmax, 0.5));
    let at = bytes.windows(7).position(|bytes| bytes == b"__label").unwrap();
    bytes[at] = b'x';
    let read = parse(&bytes).unwrap();
    assert_eq!(read.entries().label(0), b"x_label__pos");
    assert_eq!(read.entries().label(1), b"__label__neg");
    assert!(bytes_of(&read) == bytes);
    // A label in a text has no row.
    let (mut one, mut other) = (BinScratch::default(), BinScratch::default());
    let expected = read.scores(b"good", &mut one);
    assert_eq!(read.scores(b"x_label__pos good __label__other", &mut other), expected);
}

#[test]
fn version_11_has_no_character_ngrams() {
    let mut bytes = bytes_of(&model(BinLoss::Softmax, 0.5));
    bytes[4] = 11;
    // Shortest and longest character n-gram.
    bytes[44] = 3;
    bytes[48] = 6;
    assert_eq!(parse(&bytes).unwrap().args().longest, 0);
    bytes[4] = 12;
    assert_eq!(parse(&bytes).unwrap().args().longest, 6);
}

#[test]
fn answers_are_means_of_rows_and_a_linear_layer() {
    let model = model(BinLoss::Softmax, 0.5);
    let mut scratch = BinScratch::default();
    // An unknown word has no row, but is part of n-grams.
    let hashes = ["bad", "good", "</s>"].map(|word| crate::hash(word.as_bytes()) as i32 as u64);
    let bucket = |a: u64, b: u64| 2 + (a.wrapping_mul(116_049_371).wrapping_add(b) % 3) as usize;
    let rows = [0, 1, bucket(hashes[0], hashes[1]), bucket(hashes[1], hashes[2])];
    let mut mean = [0.0; 2];
    rows.iter().for_each(|&row| model.input().add_row(row, &mut mean));
    let margin = 2.0 * (mean[0] - mean[1]) / 4.0;
    let expected = 1.0 / (1.0 + f64::from(-margin).exp()) + 1e-5;
    let found = model.probabilities(b"bad  good", &mut scratch).unwrap();
    assert!((f64::from(found[0]) - expected).abs() < 1e-6, "{found:?}, expected {expected}");
    assert_eq!(best(found, 1), [usize::from(expected < 0.5)]);
}

#[test]
fn a_line_without_rows_has_no_answer() {
    let dictionary = Dictionary::new(names(&["good"]), vec![7], names(&["pos"]), vec![2]);
    let args = Args { word_ngrams: 1, n_buckets: 0, ..args(BinLoss::Softmax) };
    let matrix = || Matrix::Dense(Dense::new(2, vec![1.0, 2.0]).unwrap());
    let model = BinModel::new(args, dictionary.into(), matrix(), matrix()).unwrap();
    assert_eq!(model.scores(b"bad __label__pos", &mut BinScratch::default()), None);
    assert!(model.scores(b"good", &mut BinScratch::default()).is_some());
}

#[test]
fn a_tree_gives_probabilities_that_sum_to_one() {
    let model = quantised(BinLoss::HierarchicalSoftmax, true);
    let mut scratch = BinScratch::default();
    let probabilities = model.probabilities(b"w1 w5 w7", &mut scratch).unwrap();
    assert_eq!(probabilities.len(), 3);
    // The program adds 1e-5 to each of the four factors.
    let sum: f32 = probabilities.iter().sum();
    assert!((sum - 1.0).abs() < 1e-4, "{probabilities:?}");
    assert!(probabilities.iter().all(|&probability| probability > 0.01));
}

#[test]
fn a_quantised_row_is_near_the_row() {
    let dense = Dense::new(4, (0..4000).map(|at| ((at * 37) % 101) as f32 / 50.0 - 1.0).collect()).unwrap();
    let dictionary = Dictionary::new(names(&["a"]), vec![1], names(&["1"]), vec![1]);
    let args = Args { dim: 4, n_buckets: 999, ..args(BinLoss::Softmax) };
    let output = Matrix::Dense(Dense::new(4, vec![0.0; 4]).unwrap());
    let model = BinModel::new(args, dictionary.into(), Matrix::Dense(dense.clone()), output).unwrap();
    for separate_norms in [false, true] {
        let how = Quantization { part_columns: 2, separate_norms, output: false, rows_max: 0, threads: 2 };
        let quantised = model.quantised(&how).unwrap();
        let mut squares = 0.0;
        for row in 0..1000 {
            let mut sum = [0.0; 4];
            quantised.input().add_row(row, &mut sum);
            squares += sum.iter().zip(dense.row(row)).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        }
        // 101 distinct rows fit into 256 centroids; norms are computed.
        assert!(squares / 1000.0 < 1e-6, "{squares}");
    }
}

#[test]
fn a_quantised_model_keeps_the_rows_of_the_largest_norms_and_the_end_of_the_line() {
    let norms = |at: usize| (at * 389 % 1009) as f32;
    let input = Dense::new(1, (0..1009).map(norms).collect()).unwrap();
    let words: Vec<String> =
        (0..9).map(|word| if word == 0 { "</s>".to_owned() } else { format!("{word}") }).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let dictionary = Dictionary::new(names(&words), vec![1; 9], names(&["1"]), vec![1]);
    let args = Args { dim: 1, n_buckets: 1000, ..args(BinLoss::Softmax) };
    let output = Matrix::Dense(Dense::new(1, vec![1.0]).unwrap());
    let model = BinModel::new(args, dictionary.into(), Matrix::Dense(input), output).unwrap();
    let how =
        Quantization { part_columns: 1, separate_norms: false, output: false, rows_max: 300, threads: 1 };
    let quantised = model.quantised(&how).unwrap();
    let entries = quantised.entries();
    // Row 0, `</s>`, has norm 0 but is kept; of the others, those with a norm of 710 or more are kept.
    let kept = |row: usize| row == 0 || norms(row) >= 710.0;
    let expected: Vec<&[u8]> = (0..9).filter(|&row| kept(row)).map(|row| words[row].as_bytes()).collect();
    assert_eq!(entries.dictionary().words().iter().collect::<Vec<_>>(), expected);
    let buckets: Vec<u32> = (9..1009).filter(|&row| kept(row)).map(|row| row as u32 - 9).collect();
    assert_eq!(entries.pruned().unwrap().iter().map(|pair| pair.0).collect::<Vec<_>>(), buckets);
    assert_eq!(quantised.input().rows(), 300);
    for &(bucket, row) in entries.pruned().unwrap() {
        let mut value = [0.0];
        quantised.input().add_row(expected.len() + row as usize, &mut value);
        assert!((value[0] - norms(9 + bucket as usize)).abs() < 2.0);
    }
}

#[test]
fn a_model_that_is_too_small_or_quantised_is_not_quantised() {
    let how = Quantization { part_columns: 2, separate_norms: false, output: false, rows_max: 0, threads: 1 };
    let few = Unquantisable::FewRows { matrix: "the input matrix", rows: 5 };
    assert_eq!(model(BinLoss::Softmax, 0.5).quantised(&how).unwrap_err(), few);
    let again = quantised(BinLoss::Softmax, true).quantised(&how).unwrap_err();
    assert_eq!(again, Unquantisable::Quantised);
}

#[test]
fn an_error_names_the_field_the_value_found_and_the_expected_ones() {
    let remedy = "; check that this is a supervised model of fastText, and copy it again";
    let bytes = bytes_of(&model(BinLoss::Softmax, 0.5));
    let altered = |at: usize, int: i32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&int.to_le_bytes());
        refused(&bytes)
    };
    let cases = [
        (altered(0, 7), "the magic number is 7, expected 793712314"),
        (altered(4, 13), "the version is 13, expected 11 or 12"),
        (altered(8, -2), "the dimension is -2, expected 0 to 1048576"),
        (altered(8, 3), "the number of columns of the input matrix is 2, expected 3"),
        (altered(32, 9), "the loss is 9, expected 1 to 4"),
        (altered(36, 2), "the kind of model is 2, word vectors by skip-gram, expected 3, a supervised model"),
        (altered(40, 4), "the number of rows of the input matrix is 5, expected 6"),
        (altered(40, 0), "the number of buckets is 0, expected 1 or more, because the model has n-grams"),
        (altered(64, -1), "the number of entries is -1, expected 0 to 2147483647"),
        (altered(68, 3), "the number of entries is 4, expected 3 words + 2 labels"),
        (
            altered(84, 0),
            "the number of pruned buckets is -4294967296, expected -1, or 0 to 11, because 90 bytes remain",
        ),
        (refused(&bytes[..3]), "the magic number is cut off after 3 bytes, expected 4 bytes"),
        (
            refused(&bytes[..bytes.len() - 1]),
            "the output matrix is cut off after 15 bytes, expected 16 bytes",
        ),
        (
            refused(&[&bytes[..], b"xy"].concat()),
            "the number of bytes after the output matrix is 2, expected 0",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, format!("{PATH}: {expected}{remedy}"));
    }
}

#[test]
fn values_that_are_not_finite_are_refused() {
    for value in [f32::NAN, f32::INFINITY, -1e13] {
        let found = refused(&bytes_of(&model(BinLoss::Softmax, value)));
        let expected = format!(
            "{PATH}: value 2 of the input matrix is {value}, expected a finite value of a magnitude below 1e12; check \
             that this is a supervised model of fastText, and copy it again"
        );
        assert_eq!(found, expected);
    }
}

#[test]
fn an_enormous_matrix_is_refused_without_allocation() {
    let bytes = bytes_of(&model(BinLoss::Softmax, 0.5));
    let rows = bytes.len() - 4 * 4 - 8 * 2;
    let mut altered = bytes.clone();
    altered[rows..rows + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    altered[rows + 8..rows + 12].copy_from_slice(&i32::MAX.to_le_bytes());
    assert!(
        refused(&altered)
            .contains("the output matrix is cut off after 16 bytes, expected 18446744056529682436")
    );
}

#[test]
fn a_repeated_name_is_refused() {
    let mut bytes = bytes_of(&model(BinLoss::Softmax, 0.5));
    let at = bytes.windows(4).position(|bytes| bytes == b"</s>").unwrap();
    bytes[at..at + 4].copy_from_slice(b"good");
    assert!(refused(&bytes).contains("entry 1 is \"good\", expected a name that no other entry has"));
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    for model in [model(BinLoss::HierarchicalSoftmax, 0.5), quantised(BinLoss::Softmax, true)] {
        let bytes = bytes_of(&model);
        let step = (bytes.len() / 500).max(1);
        for length in (0..bytes.len()).step_by(step) {
            refused(&bytes[..length]);
        }
    }
}

#[test]
fn no_flipped_bit_causes_a_panic() {
    for model in [model(BinLoss::HierarchicalSoftmax, 0.5), quantised(BinLoss::OneVersusAll, true)] {
        let mut bytes = bytes_of(&model);
        let step = (bytes.len() / 2000).max(1);
        for at in (0..bytes.len().min(200)).chain((200..bytes.len()).step_by(step)) {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                if let Ok(model) = parse(&bytes) {
                    model.scores(b"good w1 w2 \xc3\xa9", &mut BinScratch::default());
                }
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(PATH);
    std::fs::write(&path, "other").unwrap();
    let error = model(BinLoss::Softmax, 0.5).write(&path).unwrap_err().to_string();
    let expected = "already exists: found a file, expected a new name; move it away, or choose another path";
    assert_eq!(error, format!("{}: {expected}", path.display()));
    assert_eq!(std::fs::read(&path).unwrap(), b"other");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_missing_file_is_reported_by_name() {
    let error = BinModel::read(Path::new("/nowhere/model.bin")).unwrap_err().to_string();
    assert_eq!(error, "/nowhere/model.bin: not found, expected a model of fastText; check the name");
}

proptest! {
    /// The tree joins the two nodes of the smallest counts, so no other tree has shorter paths.
    #[test]
    fn a_tree_of_descending_counts_is_optimal(mut counts in prop::collection::vec(1u64..1000, 1..20)) {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let tree = Tree::new(counts.clone());
        let mut depths = vec![0; tree.n_nodes()];
        for (inner, (left, right)) in tree.down() {
            let depth = depths[tree.node(inner)] + 1;
            (depths[left], depths[right]) = (depth, depth);
        }
        let found: u64 = counts.iter().zip(&depths).map(|(count, depth)| count * depth).sum();
        let mut expected = 0;
        let mut left = counts;
        while left.len() > 1 {
            left.sort_unstable_by(|a, b| b.cmp(a));
            let joined = left.pop().unwrap() + left.pop().unwrap();
            expected += joined;
            left.push(joined);
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let whole = bytes_of(&model(BinLoss::Softmax, 0.5));
        for kept in [8, 64, 92] {
            let _ = parse(&[&whole[..kept], &bytes[..]].concat());
        }
    }
}
