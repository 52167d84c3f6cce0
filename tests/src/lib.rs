//! What the tests of several programs share: the made-up reviews they read, real ones where they lie beside the
//! project, and the programs themselves as processes.

pub mod corpus;
pub mod lines;
pub mod oracle;
pub mod pipe;
pub mod programs;
pub mod real_data;
