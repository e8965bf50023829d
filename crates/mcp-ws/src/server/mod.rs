mod counted;
mod handshake;
mod layer;
mod serve;

pub use layer::{WsLayer, WsService};
pub use serve::serve;
