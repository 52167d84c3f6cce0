//! The Huffman tree of labels of a model with hierarchical softmax (Morin and Bengio 2005), built as the fastText
//! program builds it. The output of an inner node is the log-odds of its right child.

/// The count of a node that is not built yet.
const UNBUILT: u64 = 1_000_000_000_000_000;

/// A binary tree whose leaves are the labels. Inner nodes follow the labels; the last node is the root.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    n_labels: usize,
    /// The left and the right child of each inner node. Children precede their parent.
    children: Vec<(u32, u32)>,
}

impl Tree {
    /// The tree of labels with these counts. The two nodes of the smallest counts are joined first, if the counts
    /// descend; otherwise the result is the program's too.
    pub(crate) fn new(counts: Vec<u64>) -> Self {
        let n_labels = counts.len();
        let n_inner = n_labels.saturating_sub(1);
        let mut sums = counts;
        sums.resize(n_labels + n_inner, UNBUILT);
        let mut n_leaves = n_labels;
        let mut node = n_labels;
        let mut children = Vec::with_capacity(n_inner);
        for parent in n_labels..n_labels + n_inner {
            let mut least = || {
                if n_leaves > 0 && sums[n_leaves - 1] < sums[node] {
                    n_leaves -= 1;
                    n_leaves
                } else {
                    node += 1;
                    node - 1
                }
            };
            let (left, right) = (least(), least());
            sums[parent] = sums[left].saturating_add(sums[right]);
            children.push((left as u32, right as u32));
        }
        Self { n_labels, children }
    }

    /// The number of nodes.
    pub(crate) fn n_nodes(&self) -> usize {
        self.n_labels + self.children.len()
    }

    /// The inner nodes with their children, from the root down. The number of an inner node is its row in the output
    /// matrix.
    pub(crate) fn down(&self) -> impl Iterator<Item = (usize, (usize, usize))> {
        let child = |(left, right): (u32, u32)| (left as usize, right as usize);
        self.children.iter().enumerate().rev().map(move |(at, &children)| (at, child(children)))
    }

    /// The node of an inner node's number.
    pub(crate) fn node(&self, inner: usize) -> usize {
        self.n_labels + inner
    }

    /// The paths to all labels.
    pub(crate) fn paths(&self) -> Paths {
        let mut parents = vec![(0, false); self.n_nodes()];
        for (inner, (left, right)) in self.down() {
            parents[left] = (inner as u32, false);
            parents[right] = (inner as u32, true);
        }
        let (mut nodes, mut ends) = (Vec::new(), Vec::with_capacity(self.n_labels));
        for label in 0..self.n_labels {
            let mut node = label;
            while node + 1 < self.n_nodes() {
                nodes.push(parents[node]);
                node = self.node(parents[node].0 as usize);
            }
            ends.push(nodes.len());
        }
        Paths { nodes, ends }
    }

    /// Writes the probabilities of all labels, from the outputs of inner nodes.
    pub(crate) fn probabilities(&self, output: impl Fn(usize) -> f32, probabilities: &mut Vec<f32>) {
        probabilities.clear();
        probabilities.resize(self.n_nodes(), 1.0);
        for (inner, (left, right)) in self.down() {
            let above = probabilities[self.node(inner)];
            let output = output(inner);
            // 1 - 1 / (1 + e^-x) would be 0 above x = 17.
            probabilities[left] = above / (1.0 + output.exp());
            probabilities[right] = above / (1.0 + (-output).exp());
        }
        probabilities.truncate(self.n_labels);
    }
}

/// The inner nodes above each label.
#[derive(Clone, Debug)]
pub struct Paths {
    nodes: Vec<(u32, bool)>,
    ends: Vec<usize>,
}

impl Paths {
    /// The inner nodes above a label, from the lowest up, and whether the label is to their right.
    #[inline]
    pub fn of(&self, label: u32) -> &[(u32, bool)] {
        let label = label as usize;
        let from = if label == 0 { 0 } else { self.ends[label - 1] };
        &self.nodes[from..self.ends[label]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_labels_have_short_paths_and_probabilities_are_products_along_them() {
        let tree = Tree::new(vec![50, 20, 10, 5, 5, 1]);
        let paths = tree.paths();
        let depths: Vec<usize> = (0..6).map(|label| paths.of(label).len()).collect();
        assert_eq!(depths, [1, 2, 3, 4, 5, 5]);
        let output = |inner: usize| inner as f32 - 2.0;
        let mut found = Vec::new();
        tree.probabilities(output, &mut found);
        assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{found:?}");
        for (label, found) in (0..).zip(found) {
            let share = |&(inner, is_right): &(u32, bool)| {
                let right = 1.0 / (1.0 + (-output(inner as usize)).exp());
                if is_right { right } else { 1.0 - right }
            };
            let expected: f32 = paths.of(label).iter().map(share).product();
            assert!((found - expected).abs() < 1e-6, "{label}: {found} {expected}");
        }
    }

    #[test]
    fn large_outputs_leave_a_probability_to_the_other_side() {
        let tree = Tree::new(vec![2, 1]);
        for output in [30.0_f32, -30.0] {
            let mut found = Vec::new();
            tree.probabilities(|_| output, &mut found);
            // The label of the smaller count is on the left.
            for (found, sign) in found.iter().zip([-1.0, 1.0]) {
                let expected = 1.0 / (1.0 + (sign * f64::from(output)).exp());
                assert!((f64::from(*found) / expected - 1.0).abs() < 1e-5, "{output}: {found} {expected}");
            }
        }
    }

    #[test]
    fn a_single_label_is_certain() {
        let tree = Tree::new(vec![7]);
        let mut found = Vec::new();
        tree.probabilities(|_| 0.0, &mut found);
        assert_eq!((found, tree.paths().of(0).len()), (vec![1.0], 0));
    }
}
