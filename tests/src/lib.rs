//! What the tests of several programs share: for now the made-up reviews they read.

pub mod corpus;
