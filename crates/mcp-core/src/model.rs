//! Random rows of operations, for tests that hold a structure to a simple model of itself.

use std::{
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// One row: what is drawn for it, which a seed tells all of, and what was done so far.
pub(crate) struct Random {
    numbers: fastrand::Rng,
    done: Vec<String>,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { numbers: fastrand::Rng::with_seed(seed), done: Vec::new() }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.numbers.usize(..bound)
    }

    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Keeps what is done next, for whoever reads of its failure.
    pub(crate) fn does(&mut self, operation: impl Debug) {
        self.done.push(format!("{operation:?}"));
    }
}

/// Under Miri each operation takes some thousand times as long.
const ROWS: u64 = if cfg!(miri) { 2 } else { 1000 };

/// Runs a thousand rows. A failure tells what was done up to it; the environment variable `SEED` runs that row again.
pub(crate) fn rows(run: impl Fn(&mut Random)) {
    let only: Option<u64> = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..ROWS, |seed| seed..seed + 1) {
        let mut random = Random::new(seed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&mut random))) {
            eprintln!("the last of this failed, with SEED={seed}:");
            random.done.iter().for_each(|operation| eprintln!("  {operation}"));
            resume_unwind(panic);
        }
    }
}
