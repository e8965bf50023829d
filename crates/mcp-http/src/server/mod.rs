mod accept_header;
mod guard;
mod mirror;
mod post;
mod refuse;
mod respond;
mod routes;
mod sse;

pub use routes::{DEFAULT_PATH, Routes, routes, serve};
