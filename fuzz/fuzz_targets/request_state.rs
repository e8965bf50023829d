#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::request_state(data));
