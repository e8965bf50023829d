//! What every function is measured on: one thread, a warm-up, and inputs that are made before they count.

use std::hint::black_box;

use tokio::runtime::{Builder, Runtime};

/// Runs what it is given, and measures it.
pub type Meter<'a> = &'a mut dyn FnMut(&mut dyn FnMut());

/// How many inputs a measurement takes: so many that what is done now and then is shared by many calls.
const ROUNDS: u64 = 128;

/// A meter, and the runtime of what is measured.
pub(crate) struct Stand<'a> {
    runtime: Runtime,
    meter: Meter<'a>,
    calls: u64,
}

impl<'a> Stand<'a> {
    pub(crate) fn new(meter: Meter<'a>) -> Self {
        Self { runtime: Builder::new_current_thread().enable_time().build().unwrap(), meter, calls: 0 }
    }

    /// How many calls were measured.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Runs what a function needs before it can be measured, on the runtime that it will run on.
    pub(crate) fn prepare<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Measures `call`, which takes an input of its own each time. `check` sees an output of the warm-up and the last one.
    pub(crate) fn measure<I, O>(&mut self, input: impl Fn() -> I, call: impl AsyncFnMut(I) -> O, check: impl Fn(O)) {
        self.measure_many(1, input, call, check);
    }

    /// The same where each input is `many` calls at once.
    pub(crate) fn measure_many<I, O>(
        &mut self,
        many: u64,
        input: impl Fn() -> I,
        mut call: impl AsyncFnMut(I) -> O,
        check: impl Fn(O),
    ) {
        let mut round = |meter: Meter<'_>| {
            let mut inputs: Vec<I> = (0..ROUNDS).map(|_| input()).collect();
            let mut last = None;
            meter(&mut || {
                self.runtime.block_on(async {
                    for input in inputs.drain(..) {
                        last = Some(black_box(call(black_box(input)).await));
                    }
                });
            });
            check(last.unwrap());
        };
        round(&mut |run| run());
        round(self.meter);
        self.calls = ROUNDS * many;
    }
}
