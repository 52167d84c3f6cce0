//! Vectors of words by their characters, which the program `vectors` trains, as PyTorch computes them.
#![allow(clippy::unwrap_used)]

use std::fs;

use tch::{Kind, Tensor};
use tests::command::{ended, program};

const WORDS: [&str; 7] = ["hot", "ketle", "new", "shiny", "loud", "heavy", "blue"];
const FLAGS: [&str; 14] = [
    "--model",
    "char-lstm",
    "--dim",
    "16",
    "--hidden",
    "32",
    "--char-dim",
    "16",
    "--batch",
    "256",
    "--epochs",
    "1",
    "--threads",
    "1",
];

#[test]
fn pytorch_computes_the_same_vectors_from_the_weights() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    let lines =
        (0..500).map(|n| format!("the kettle was very {} and the lid {}\n", WORDS[n % 5], WORDS[n % 7]));
    fs::write(&input, lines.collect::<String>()).unwrap();
    let mut train = program("vectors");
    train.arg("train").arg("--input").arg(&input).arg("--out").arg(&out).args(FLAGS);
    let (code, told) = ended(train);
    assert_eq!(code, Some(0), "{told}");
    let read = Tensor::read_safetensors(out.join("model/generator.safetensors")).unwrap();
    let weight = |name: &str| &read.iter().find(|(found, _)| found == name).unwrap().1;
    let lstm =
        ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(|name| weight(&format!("lstm.{name}_l0")));
    let model = embeddings::folder::read(&out.join("model")).unwrap();
    let characters = model.generator.as_ref().unwrap().characters().clone();
    for word in ["kettle", "the", "ketle", "\u{e9}t\u{e9}"] {
        let ids = characters.ids(word.as_bytes());
        let embedded = weight("embedding.weight").index_select(0, &Tensor::from_slice(&ids)).unsqueeze(0);
        let zeros = Tensor::zeros([1, 1, 32], (Kind::Float, tch::Device::Cpu));
        let (_, state, _) = embedded.lstm(&[&zeros, &zeros], &lstm, true, 1, 0.0, false, false, true);
        let vector = state.reshape([1, 32]).linear(weight("linear.weight"), Some(weight("linear.bias")));
        let expected: Vec<f32> = vector.reshape([-1]).try_into().unwrap();
        let found = model.vector_of(word.as_bytes()).unwrap();
        assert!(
            found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5),
            "{word}: {found:?} {expected:?}"
        );
    }
}
