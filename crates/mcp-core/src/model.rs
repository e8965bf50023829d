//! Random rows of operations, for tests that hold a structure to a simple model of itself.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A small generator of numbers, which a seed tells all of.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Runs a thousand rows. The environment variable `SEED` runs the one again that a failure names.
pub(crate) fn rows(run: impl Fn(&mut Random)) {
    let only: Option<u64> = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..1000, |seed| seed..seed + 1) {
        let random = &mut Random(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(random))) {
            eprintln!("it failed with SEED={seed}");
            resume_unwind(panic);
        }
    }
}
