//! The client: one API for servers of both eras, over any transport.

mod api;
mod builder;
mod call;
mod connect;
mod detect;
mod duplex;
mod legacy;
mod modern;
mod remote;
mod result;
mod route;
mod transport;

pub use api::Client;
pub use builder::ClientBuilder;
pub use call::CallOptions;
pub use duplex::{Connector, Duplex};
pub use transport::{Agreed, Inbox, Incoming, IntoTransport, Outgoing, Replies, Transport, progress_token};
