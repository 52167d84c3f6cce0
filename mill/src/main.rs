//! The program `sentimill`.

fn main() {}
