//! The Huffman tree of labels of a model with hierarchical softmax, built as the program builds it.

/// The count of a node that is not built yet.
const UNBUILT: u64 = 1_000_000_000_000_000;

/// A binary tree whose leaves are the labels. Inner nodes follow the labels; the last node is the root.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    n_labels: usize,
    /// The left and the right child of each inner node. Children precede their parent.
    children: Vec<(u32, u32)>,
}

impl Tree {
    /// The tree of labels with these counts. The two nodes of the smallest counts are joined first, if the counts
    /// descend; otherwise the result is the program's too.
    pub(super) fn new(counts: Vec<u64>) -> Self {
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
    pub(super) fn n_nodes(&self) -> usize {
        self.n_labels + self.children.len()
    }

    /// The inner nodes with their children, from the root down. The number of an inner node is its row in the output
    /// matrix.
    pub(super) fn down(&self) -> impl Iterator<Item = (usize, (usize, usize))> {
        let child = |(left, right): (u32, u32)| (left as usize, right as usize);
        self.children.iter().enumerate().rev().map(move |(at, &children)| (at, child(children)))
    }

    /// The node of an inner node's number.
    pub(super) fn node(&self, inner: usize) -> usize {
        self.n_labels + inner
    }
}
