mod accept_header;
mod endpoint;
mod guard;
mod legacy;
mod listener;
mod mirror;
mod peer;
mod post;
mod refusal;
mod reply;
mod requests;
mod respond;
mod routes;
mod single;
mod sse;
mod stop;

#[cfg(fuzzing)]
pub(crate) use accept_header::fuzz as fuzz_accept;
pub use endpoint::RoutesService;
pub use legacy::Sessions;
pub use peer::request_parts;
pub use routes::{Routes, routes, serve, serve_service};
