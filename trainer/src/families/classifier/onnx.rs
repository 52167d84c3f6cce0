//! A classifier as a graph of ONNX.
//!
//! Inputs are the ids of words, `tokens`, `[B, T]`, which are 0 after the end of a text, and the numbers of words, `lengths`,
//! `[B]`; of a model with n-grams also those of `Wide::graph`. Outputs are `probabilities`, `[B, classes]`, calibrated, and for
//! two labels `score`, `[B]`. A rating has a score only. Weights are 32-bit floats, because onnxruntime computes an LSTM with no
//! others. `predict.py` of the exported folder makes the inputs of texts.
//!
//! B: texts; T: words of the longest; E: embedding dimension; H: hidden size; D: directions; O: outputs.

use dataset::WordList;
use runs::onnx::{Attribute, ElementType, Graph, Value};
use runs::recipe::{LstmSettings, Pool};
use runs::saved::Config;
use scoring::{Calibrator, LOG_ODDS_MAX, Scoring};
use tch::{Kind, TchError, Tensor};

use super::Classifier;
use crate::error::{Error, Result};

/// The place in PyTorch, i, f, g, o, of each gate in the order of ONNX, i, o, f, c.
const GATES: [i64; 4] = [0, 3, 1, 2];

/// The graph of a classifier with these settings and words.
pub fn graph(model: &Classifier, config: &Config, scoring: Scoring, words: &WordList) -> Result<Graph> {
    let mut graph = Graph::default();
    let tokens = graph.input("tokens", ElementType::I64, &["batch", "length"]);
    let lengths = graph.input("lengths", ElementType::I32, &["batch"]);
    let mut parts = Parts { graph: &mut graph, model };
    let pooled = parts.pooled(&tokens, &lengths)?;
    let hidden = parts.dense("linear", &pooled)?;
    let hidden = parts.graph.node("Relu", &[&hidden], &[]);
    let mut outputs = parts.dense("output", &hidden)?; // [B, O]
    if let Some(wide) = model.wide() {
        let factor = graph.number(wide.head().lstm);
        let deep = graph.node("Mul", &[&outputs, &factor], &[]);
        let wide = wide.graph(&mut graph);
        outputs = graph.node("Add", &[&deep, &wide], &[]);
    }
    add_outputs(&mut graph, &outputs, scoring, config.calibration);
    let json = |value: serde_json::Result<String>| value.map_err(|error| Error::internal(&error));
    graph.metadata("labels", json(serde_json::to_string(&config.preparation.labels.names()))?);
    graph.metadata("config", json(serde_json::to_string(config))?);
    // The first word has the id 2; 0 is padding and 1 an unknown word.
    graph.metadata("vocabulary", String::from_utf8_lossy(&runs::saved::lines(words)?).into_owned());
    Ok(graph)
}

/// The layers of a classifier.
struct Parts<'a> {
    graph: &'a mut Graph,
    model: &'a Classifier,
}

impl Parts<'_> {
    /// The vector of each text, `[B, D H]` or `[B, 2 D H]`.
    fn pooled(&mut self, tokens: &str, lengths: &str) -> Result<Value> {
        let embedding = self.weight("embedding.weight")?;
        let by_time = self.graph.node("Transpose", &[tokens], &[]); // [T, B]
        let mut states = self.graph.node("Gather", &[&embedding, &by_time], &[]); // [T, B, E]
        let mut last = String::new();
        let join = self.graph.integers(&[0, 0, -1]);
        for layer in 0..self.model.lstm().settings().layers {
            let [all, of_end] = self.layer(layer, &states, lengths)?; // [T, D, B, H] and [D, B, H]
            let all = self.graph.node("Transpose", &[&all], &[Attribute::integers("perm", &[0, 2, 1, 3])]);
            states = self.graph.node("Reshape", &[&all, &join], &[]); // [T, B, D H]
            last = of_end;
        }
        let graph = &mut *self.graph;
        match self.model.settings().pool {
            Pool::Last => {
                let last = graph.node("Transpose", &[&last], &[Attribute::integers("perm", &[1, 0, 2])]);
                Ok(graph.node("Flatten", &[&last], &[]))
            }
            Pool::MeanMax => {
                let [zero, one, two] = [0, 1, 2].map(|axis| graph.integers(&[axis]));
                let [start, step] = [0, 1].map(|number| graph.integer(number));
                let n_times = graph.node("Shape", &[tokens], &[Attribute::integer("start", 1)]);
                let n_times = graph.node("Squeeze", &[&n_times], &[]);
                let times = graph.node("Range", &[&start, &n_times, &step], &[]);
                let times = graph.node("Unsqueeze", &[&times, &one], &[]); // [T, 1]
                let wide =
                    graph.node("Cast", &[lengths], &[Attribute::integer("to", ElementType::I64 as i64)]);
                let is_word = graph.node("Less", &[&times, &wide], &[]); // [T, B]
                let is_word = graph.node("Unsqueeze", &[&is_word, &two], &[]); // [T, B, 1]
                let numbers =
                    graph.node("Cast", &[lengths], &[Attribute::integer("to", ElementType::F32 as i64)]);
                let numbers = graph.node("Unsqueeze", &[&numbers, &one], &[]); // [B, 1]
                let mut over_words = |operator: &str, padding: f64| {
                    let padding = graph.number(padding);
                    let words = graph.node("Where", &[&is_word, &states, &padding], &[]);
                    graph.node(operator, &[&words, &zero], &[Attribute::integer("keepdims", 0)]) // [B, D H]
                };
                let [sum, maximum] =
                    [over_words("ReduceSum", 0.0), over_words("ReduceMax", f64::NEG_INFINITY)];
                let mean = graph.node("Div", &[&sum, &numbers], &[]);
                Ok(graph.node("Concat", &[&mean, &maximum], &[Attribute::integer("axis", 1)]))
            }
        }
    }

    /// A layer of the LSTM: all states, and the last one of each text and direction.
    fn layer(&mut self, layer: usize, inputs: &str, lengths: &str) -> Result<[Value; 2]> {
        let &LstmSettings { hidden, bidirectional, .. } = self.model.lstm().settings();
        let directions: &[&str] = if bidirectional { &["", "_reverse"] } else { &[""] };
        let order = Tensor::from_slice(&GATES);
        let mut weights = |kinds: &[&str]| {
            let names: Vec<String> = directions
                .iter()
                .flat_map(|direction| {
                    kinds.iter().map(move |kind| format!("lstm.{kind}_l{layer}{direction}"))
                })
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let n = directions.len() as i64;
            let by_gate = |weights: &Tensor| {
                let n_kinds = kinds.len() as i64;
                let gates = weights.f_reshape([n * n_kinds, 4, hidden, -1])?.f_index_select(1, &order)?;
                // Biases have no columns.
                if n_kinds == 1 {
                    gates.f_reshape([n, 4 * hidden, -1])
                } else {
                    gates.f_reshape([n, 8 * hidden])
                }
            };
            self.weights(&names, by_gate)
        };
        let inputs_of = weights(&["weight_ih"])?; // [D, 4 H, inputs]
        let states_of = weights(&["weight_hh"])?; // [D, 4 H, H]
        let biases = weights(&["bias_ih", "bias_hh"])?; // [D, 8 H]
        let direction = if bidirectional { "bidirectional" } else { "forward" };
        let attributes = [Attribute::integer("hidden_size", hidden), Attribute::text("direction", direction)];
        Ok(self.graph.nodes("LSTM", &[inputs, &inputs_of, &states_of, &biases, lengths], &attributes))
    }

    /// A linear layer.
    fn dense(&mut self, name: &str, inputs: &str) -> Result<Value> {
        let weights = self.weight(&format!("{name}.weight"))?;
        let biases = self.weight(&format!("{name}.bias"))?;
        Ok(self.graph.node("Gemm", &[inputs, &weights, &biases], &[Attribute::integer("transB", 1)]))
    }

    /// Adds the weights with this name.
    fn weight(&mut self, name: &str) -> Result<Value> {
        self.weights(&[name], |weights| Ok(weights.shallow_clone()))
    }

    /// Adds the weights with these names, one after the other, in the shape that `shaped` gives them.
    fn weights(
        &mut self,
        names: &[&str],
        shaped: impl Fn(&Tensor) -> std::result::Result<Tensor, TchError>,
    ) -> Result<Value> {
        let parameters = self.model.lstm().parameters();
        let places = names.iter().map(|name| parameters.names().iter().position(|other| other == name));
        let tensors = places.map(|place| place.map(|place| parameters.at(place).detach()));
        let tensors = tensors
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::internal(&"a weight has another name"))?;
        let weights = shaped(&Tensor::f_cat(&tensors, 0)?)?;
        let shape: Vec<usize> = weights.size().iter().map(|&size| size as usize).collect();
        let values: Vec<f32> = Vec::try_from(&weights.f_to_kind(Kind::Float)?.f_flatten(0, -1)?)?;
        Ok(self.graph.floats(&shape, &values))
    }
}

/// Adds the score and the probabilities of outputs, `[B, O]`, as [`scoring::Decision`] computes them.
fn add_outputs(graph: &mut Graph, outputs: &str, scoring: Scoring, calibration: Option<Calibrator>) {
    let (slope, intercept) = calibration.map_or((1.0, 0.0), Calibrator::line);
    let [one, slope, intercept] = [1.0, slope, intercept].map(|number| graph.number(number));
    let columns = graph.integers(&[1]);
    let (score, log_odds) = match scoring {
        Scoring::Classes { classes } => {
            let logits = graph.node("Mul", &[outputs, &slope], &[]);
            let probabilities = graph.node("Softmax", &[&logits], &[]);
            return graph.output(&probabilities, "probabilities", &["batch", &classes.to_string()]);
        }
        Scoring::Logit => (outputs.to_owned(), Some(outputs.to_owned())),
        Scoring::Rating { positive_from } => {
            let middle = graph.number(f64::from(positive_from) - 0.5);
            (graph.node("Sub", &[outputs, &middle], &[]), None)
        }
        Scoring::FiveRatings { positive_from } => {
            let ratings = graph.node("Softmax", &[outputs], &[]);
            let [from, to] = [i64::from(positive_from) - 1, 5].map(|place| graph.integers(&[place]));
            let positive = graph.node("Slice", &[&ratings, &from, &to, &columns], &[]);
            let [none, low, high] = [0.0, -LOG_ODDS_MAX, LOG_ODDS_MAX].map(|limit| graph.number(limit));
            let sum = graph.node("ReduceSum", &[&positive, &columns], &[]);
            // In 32 bits, probabilities can sum to more than 1, which has no log-odds.
            let score = graph.node("Clip", &[&sum, &none, &one], &[]); // [B, 1]
            let other = graph.node("Sub", &[&one, &score], &[]);
            let odds = graph.node("Div", &[&score, &other], &[]);
            let log_odds = graph.node("Log", &[&odds], &[]);
            (score, Some(graph.node("Clip", &[&log_odds, &low, &high], &[])))
        }
    };
    if let Some(log_odds) = log_odds {
        let second = match (scoring, calibration) {
            (Scoring::FiveRatings { .. }, None) => score.clone(),
            _ => {
                let scaled = graph.node("Mul", &[&log_odds, &slope], &[]);
                let calibrated = graph.node("Add", &[&scaled, &intercept], &[]);
                graph.node("Sigmoid", &[&calibrated], &[])
            }
        };
        let first = graph.node("Sub", &[&one, &second], &[]);
        let probabilities = graph.node("Concat", &[&first, &second], &[Attribute::integer("axis", 1)]);
        graph.output(&probabilities, "probabilities", &["batch", "2"]);
    }
    let score = graph.node("Squeeze", &[&score, &columns], &[]);
    graph.output(&score, "score", &["batch"]);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// In 32 bits, the last two probabilities sum to 1.0000001.
    const PREDICT: &str = "
import numpy
invalid = 'strict'
def inputs(texts):
    return {'outputs': numpy.array([[-30, -30, -30, 0, 0.625]] * len(texts), 'float32')}
";

    #[test]
    fn a_confident_text_of_five_ratings_has_probabilities() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("predict.py"), PREDICT).unwrap();
        for (name, calibration, expected) in
            [("none.onnx", None, 1.0), ("warm.onnx", Some(Calibrator::Temperature(2.0)), 0.999_664_6)]
        {
            let mut graph = Graph::default();
            let outputs = graph.input("outputs", ElementType::F32, &["batch", "5"]);
            add_outputs(&mut graph, &outputs, Scoring::FiveRatings { positive_from: 4 }, calibration);
            graph.metadata("labels", "[\"0\", \"1\"]".to_owned());
            let path = folder.path().join(name);
            graph.write(&path, runs::onnx::INLINE_BYTES_MAX).unwrap();
            let Some(found) = ::tests::oracle::onnx(&path, folder.path(), b"one\n") else { return };
            let found: serde_json::Value = serde_json::from_str(&found).unwrap();
            let second = found["probabilities"][1].as_f64().unwrap();
            assert!(found["score"] == 1.0 && (second - expected).abs() < 1e-6, "{name}: {found}");
        }
    }
}
