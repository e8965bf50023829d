//! Counts what each function allocates: a line a function, with its name, calls, allocations and bytes.
//!
//! It is no part of the other program, whose allocator shall be the one that everybody has.

use budget::FUNCTIONS;

fn main() {
    for function in FUNCTIONS {
        let mut counted = allocation_counter::AllocationInfo::default();
        let calls = function.run(&mut |run| counted = allocation_counter::measure(run));
        println!("{} {calls} {} {}", function.name, counted.count_total, counted.bytes_total);
    }
}
