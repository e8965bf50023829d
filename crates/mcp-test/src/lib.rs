//! What servers and clients of the Model Context Protocol are tested with.
//!
//! | to test | there is |
//! |---|---|
//! | a client | [`ScriptedServer`], which plays a [`script`] of either era, in memory |
//! | a server | [`RawClient`], which says JSON as it is told, in memory or over any wire |
//! | what a server says, as text | [`golden`], which runs a file of a [`transcript`], and a [`Recorder`] to make one |
//! | a server over HTTP | `HttpServer` on a free port, behind the feature `http` |
//! | authorization | `AuthorizationServer` on a free port, behind the feature `auth` |
//! | JSON | [`mismatch`] and [`assert_like`], which name the first place that is not as expected |
//!
//! In memory nothing waits for the world, so that tests may pause tokio's time: `#[tokio::test(start_paused = true)]`.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "auth")]
mod auth;
mod failure;
#[cfg(feature = "http")]
mod http;
mod like;
mod lock;
mod message;
mod patience;
mod raw_client;
pub mod script;
mod scripted_server;
pub mod transcript;

#[cfg(feature = "auth")]
pub use auth::{AuthorizationServer, SigningKey};
pub use failure::Failure;
#[cfg(feature = "http")]
pub use http::HttpServer;
pub use like::{Mismatch, assert_like, mismatch};
pub use raw_client::RawClient;
pub use scripted_server::ScriptedServer;
pub use transcript::{Recorder, golden};

/// The README's examples.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../README.md")]
mod readme {}
