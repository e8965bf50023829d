mod counted;
mod handshake;
mod layer;
mod peer;
mod serve;

pub use layer::{WsLayer, WsService};
pub use peer::request_parts;
pub use serve::serve;
