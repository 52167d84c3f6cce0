//! The fields that are read, as a tree of their names, so that a parser can follow all paths at once.

use super::{FieldPath, Fields};

/// A tree whose root is the top-level object.
#[derive(Debug)]
pub(crate) struct FieldTree {
    nodes: Vec<Node>,
    /// The field whose list has a review in each element.
    pub list: Option<NodeId>,
}

/// The number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// A field on the way to a field that is read, or such a field itself.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The fields of an object in this field, by name.
    pub children: Vec<(String, NodeId)>,
    /// The index of the text field that ends here.
    pub text: Option<usize>,
    /// Whether the path of the rating ends here.
    pub is_rating: bool,
    /// The indexes of the text fields that end here or below.
    pub texts_below: Vec<usize>,
    /// Whether the path of the rating ends here or below.
    pub has_rating_below: bool,
    /// Whether the elements of a list in this field are reviews.
    pub is_list: bool,
    /// Whether that list is here or below.
    pub has_list_below: bool,
}

impl FieldTree {
    /// The top-level object.
    pub const ROOT: NodeId = NodeId(0);

    /// The tree of these fields.
    pub fn of(fields: &Fields) -> Self {
        let mut tree = Self { nodes: vec![Node::default()], list: None };
        for (number, path) in fields.text.iter().enumerate() {
            let end = tree.extend(path.names(), |node| node.texts_below.push(number));
            tree.nodes[end].text = Some(number);
        }
        let end = tree.extend(fields.rating.names(), |node| node.has_rating_below = true);
        tree.nodes[end].is_rating = true;
        let mut paths = fields.text.iter().chain([&fields.rating]);
        if let Some(list) = paths.find_map(FieldPath::list) {
            let end = tree.extend(list.names(), |node| node.has_list_below = true);
            tree.nodes[end].is_list = true;
            tree.list = Some(NodeId(end as u32));
        }
        tree
    }

    /// Adds the nodes of a path and calls `mark` for each. Returns the index of the last.
    fn extend(&mut self, names: &[String], mark: impl Fn(&mut Node)) -> usize {
        let mut at = 0;
        for name in names {
            at = match self.child(NodeId(at as u32), name) {
                Some(NodeId(child)) => child as usize,
                None => {
                    let child = self.nodes.len();
                    self.nodes[at].children.push((name.clone(), NodeId(child as u32)));
                    self.nodes.push(Node::default());
                    child
                }
            };
            mark(&mut self.nodes[at]);
        }
        at
    }

    /// The field with this name in an object.
    pub fn child(&self, object: NodeId, name: &str) -> Option<NodeId> {
        self.node(object).children.iter().find(|(known, _)| known == name).map(|&(_, child)| child)
    }

    /// The node with this number.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }
}

impl Node {
    /// Whether fields of an object in this field are read.
    pub fn has_children(&self) -> bool {
        !self.children.is_empty()
    }
}
