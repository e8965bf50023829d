mod accept_header;
mod guard;
mod listener;
mod mirror;
mod post;
mod reply;
mod respond;
mod routes;
mod single;
mod sse;

pub use routes::{Routes, routes, serve, serve_router};
