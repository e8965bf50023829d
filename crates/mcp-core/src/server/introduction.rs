use std::sync::Arc;

use mcp_jsonrpc::Raw;

use crate::{Exchange, server::Core, types::Implementation};

/// What a server says of itself to a client that comes: in `initialize`, and in `server/discover`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Introduction {
    /// Who the server is. Told to legacy clients; the modern era has one name for all, told with every result.
    pub info: Implementation,
    /// How to use the server, for a model.
    pub instructions: Option<String>,
    /// Metadata, an object.
    pub meta: Option<Raw>,
}

/// What makes an introduction one for a certain client.
pub(crate) type Introducer = Arc<dyn Fn(&Exchange, Introduction) -> Introduction + Send + Sync>;

impl Core {
    /// What the client of this exchange is told.
    pub(crate) fn introduction(&self, exchange: &Exchange) -> Introduction {
        let usual = Introduction { info: self.info.clone(), instructions: self.instructions.clone(), meta: None };
        match &self.introducer {
            Some(introduce) => introduce(exchange, usual),
            None => usual,
        }
    }
}
