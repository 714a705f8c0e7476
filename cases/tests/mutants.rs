//! The suite: every test runs in a process of its own, started here.

fn main() {}
