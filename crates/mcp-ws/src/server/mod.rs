mod bearer;
mod connections;
mod greeting;
mod handshake;
mod layer;
mod parked;
mod peer;
mod refusal;
mod serve;

pub use bearer::{BearerSubprotocol, BearerSubprotocolService};
pub use layer::{WsLayer, WsService};
pub use peer::request_parts;
pub use serve::serve;
