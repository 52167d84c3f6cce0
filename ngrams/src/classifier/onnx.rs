//! A model as a graph of ONNX.
//!
//! Inputs are the rows of n-grams in the table of weights, `rows`, `[B, N]`, and their factors, `values`, `[B, N]`, which are 0
//! after the last n-gram of a text. The output is `probabilities`, `[B, labels]`, in the order in which users see labels.
//! `predict.py` of the exported folder makes the inputs of texts.
//!
//! B: texts; N: n-grams of the longest; C: classifiers; D: embedding dimension.

use classifiers::fasttext::{FastTextModel, Loss};
use classifiers::files::{ModelRef, described};
use classifiers::linear::{LinearModel, Outputs};
use classifiers::{Labels, Words, linear};
use runs::onnx::{Attribute, ElementType, Graph, Value};

/// The graph of a model with these labels.
pub fn graph(model: ModelRef<'_>, labels: &Labels) -> Graph {
    let mut graph = Graph::default();
    let rows = graph.input("rows", ElementType::I64, &["batch", "ngrams"]);
    let values = graph.input("values", ElementType::F32, &["batch", "ngrams"]);
    let probabilities = match model {
        ModelRef::Linear(model) => of_linear(&mut graph, model, &rows, &values),
        ModelRef::FastText(model) => of_embeddings(&mut graph, model, &rows, &values),
    };
    let order: Vec<i64> = labels.in_order().map(i64::from).collect();
    let order = graph.integers(&order);
    let probabilities = graph.node("Gather", &[&probabilities, &order], &[Attribute::integer("axis", 1)]);
    let probabilities = calibrated(&mut graph, probabilities, labels);
    graph.output(&probabilities, "probabilities", &["batch", &labels.n_labels().to_string()]);
    let (config, words) = described(model);
    graph.metadata("labels", serde_json::Value::from(labels.names()).to_string());
    graph.metadata("config", config);
    graph.metadata("vocabulary", String::from_utf8_lossy(&words).into_owned());
    graph
}

/// The calibrated probabilities, as [`Labels::calibrated`] has them, of those in the order of users.
fn calibrated(graph: &mut Graph, probabilities: Value, labels: &Labels) -> Value {
    let Some(calibration) = labels.choice().calibration else { return probabilities };
    let (slope, intercept) = calibration.line();
    let [least, one, slope, intercept] =
        [f64::from(f32::MIN_POSITIVE), 1.0, slope, intercept].map(|number| graph.number(number));
    let probabilities = graph.node("Max", &[&probabilities, &least], &[]);
    let logits = graph.node("Log", &[&probabilities], &[]);
    if labels.n_labels() > 2 {
        let logits = graph.node("Mul", &[&logits, &slope], &[]);
        return graph.node("Softmax", &[&logits], &[]);
    }
    let difference = graph.floats(&[2, 1], &[-1.0, 1.0]);
    let log_odds = graph.node("MatMul", &[&logits, &difference], &[]); // [B, 1]
    let scaled = graph.node("Mul", &[&log_odds, &slope], &[]);
    let log_odds = graph.node("Add", &[&scaled, &intercept], &[]);
    let second = graph.node("Sigmoid", &[&log_odds], &[]);
    let first = graph.node("Sub", &[&one, &second], &[]);
    graph.node("Concat", &[&first, &second], &[Attribute::integer("axis", 1)])
}

fn of_linear(graph: &mut Graph, model: &LinearModel, rows: &str, values: &str) -> Value {
    let stored = model.stored();
    let n = stored.biases.len();
    let biases = graph.floats(&[n], &stored.biases);
    let sums = graph.weighted_rows(n, &stored.weights, rows, values);
    let scores = graph.node("Add", &[&sums, &biases], &[]); // [B, C]
    let mut of_sigmoids = |number: fn(&linear::Sigmoid) -> f32| {
        let numbers: Vec<f32> = stored.sigmoids.iter().map(number).collect();
        graph.floats(&[n], &numbers)
    };
    let [slopes, offsets] = [of_sigmoids(|sigmoid| sigmoid.slope), of_sigmoids(|sigmoid| sigmoid.offset)];
    let scaled = graph.node("Mul", &[&scores, &slopes], &[]);
    let log_odds = graph.node("Add", &[&scaled, &offsets], &[]);
    let found = graph.node("Sigmoid", &[&log_odds], &[]);
    match stored.outputs {
        Outputs::Two => {
            let one = graph.number(1.0);
            let other = graph.node("Sub", &[&one, &found], &[]);
            graph.node("Concat", &[&found, &other], &[Attribute::integer("axis", 1)])
        }
        Outputs::OneOf => {
            let columns = graph.integers(&[1]);
            let sum = graph.node("ReduceSum", &[&found, &columns], &[]);
            let least = graph.number(f32::MIN_POSITIVE.into());
            let sum = graph.node("Max", &[&sum, &least], &[]);
            graph.node("Div", &[&found, &sum], &[])
        }
        Outputs::AnyOf => found,
    }
}

fn of_embeddings(graph: &mut Graph, model: &FastTextModel, rows: &str, values: &str) -> Value {
    let [input, output] = [model.input(), model.output()].map(|table| {
        let mut values = vec![0.0; table.n_rows() * table.dim()];
        (0..).zip(values.chunks_exact_mut(table.dim())).for_each(|(row, values)| table.read(row, 0, values));
        values
    });
    let mean = graph.weighted_rows(model.dim(), &input, rows, values); // [B, D]
    let output = graph.floats(&[model.output().n_rows(), model.dim()], &output);
    let logits = graph.node("Gemm", &[&mean, &output], &[Attribute::integer("transB", 1)]);
    match model.loss() {
        Loss::Softmax => graph.node("Softmax", &[&logits], &[]),
        Loss::HierarchicalSoftmax => along_paths(graph, model, &logits),
        Loss::Bce if model.words() == Words::Spaces => in_steps(graph, &logits),
        Loss::Bce => graph.node("Sigmoid", &[&logits], &[]),
    }
}

/// The maximum number of labels of a tree, whose paths are matrices of this many rows and columns.
pub const TREE_LABELS_MAX: usize = 4096;

/// The probabilities of labels from the outputs of the inner nodes of their tree: the logarithm of a product is the sum of
/// x - ln(1 + e^x) at each node to whose right the label is, and of -ln(1 + e^x) at the others.
fn along_paths(graph: &mut Graph, model: &FastTextModel, outputs: &str) -> Value {
    let n_labels = model.output().n_rows();
    let [mut rights, mut nodes] = [(); 2].map(|()| vec![0.0; n_labels * n_labels]);
    if let Some(paths) = model.paths() {
        for label in 0..n_labels {
            for &(node, is_right) in paths.of(label as u32) {
                let at = node as usize * n_labels + label;
                nodes[at] = 1.0;
                rights[at] = f32::from(u8::from(is_right));
            }
        }
    }
    let [rights, nodes] = [rights, nodes].map(|matrix| graph.floats(&[n_labels, n_labels], &matrix));
    let logarithms = graph.node("Softplus", &[outputs], &[]);
    let rights = graph.node("MatMul", &[outputs, &rights], &[]);
    let nodes = graph.node("MatMul", &[&logarithms, &nodes], &[]);
    let logarithms = graph.node("Sub", &[&rights, &nodes], &[]);
    graph.node("Exp", &[&logarithms], &[])
}

/// The logistic function as the fastText program looks it up: in steps of 1/32 from -8 to 8, beyond which it is 0 or 1.
fn in_steps(graph: &mut Graph, logits: &str) -> Value {
    let [low, high, n_steps, none, all] = [-8.0, 8.0, 32.0, 0.0, 1.0].map(|number| graph.number(number));
    let clipped = graph.node("Clip", &[logits, &low, &high], &[]);
    // In the order of the program: a sum is rounded.
    let from_low = graph.node("Add", &[&clipped, &high], &[]);
    let scaled = graph.node("Mul", &[&from_low, &n_steps], &[]);
    let step = graph.node("Floor", &[&scaled], &[]);
    let step = graph.node("Div", &[&step, &n_steps], &[]);
    let step = graph.node("Sub", &[&step, &high], &[]);
    let found = graph.node("Sigmoid", &[&step], &[]);
    let is_above = graph.node("Greater", &[logits, &high], &[]);
    let found = graph.node("Where", &[&is_above, &all, &found], &[]);
    let is_below = graph.node("Less", &[logits, &low], &[]);
    graph.node("Where", &[&is_below, &none, &found], &[])
}
