#![no_main]

// Text as JSON by itself, and as the parameters of a request.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    mcp_jsonrpc::fuzz::json(data);
    mcp_core::fuzz::head(data);
});
