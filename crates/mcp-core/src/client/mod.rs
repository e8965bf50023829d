//! The client: one API for servers of both eras, over any transport.

mod api;
mod attention;
mod backoff;
mod builder;
mod cache;
mod call;
mod connect;
mod detect;
mod duplex;
mod hearing;
mod input;
mod legacy;
mod listen;
mod lists;
mod modern;
pub(crate) mod remote;
mod renewal;
mod result;
mod rounds;
mod route;
mod tasks;
mod transport;
mod visits;

pub use api::Client;
pub use backoff::Backoff;
pub use builder::ClientBuilder;
pub use cache::ResponseCache;
pub use call::CallOptions;
pub use connect::Verdict;
pub use duplex::{Connector, Duplex, OneWire};
pub use listen::{Changed, ListenEnd, Subscription};
pub use lists::Page;
pub use tasks::{Called, TaskHandle};
pub use tokio_util::sync::CancellationToken;
pub use transport::{Agreed, Inbox, Incoming, IntoTransport, Outgoing, Replies, Transport, about_request};
