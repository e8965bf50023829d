//! What the macros say to what they cannot make anything of, and that what they write needs one crate, by any name.
//!
//! `TRYBUILD=overwrite cargo test -p macro-errors` writes the errors anew. Only errors are tested whose words are ours, or
//! short: a compiler's own change with each release.

#[test]
fn errors_say_what_to_write() {
    let cases = trybuild::TestCases::new();
    cases.pass("cases/fine.rs");
    cases.compile_fail("cases/*_refused.rs");
}
