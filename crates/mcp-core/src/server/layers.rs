//! Server path 5 of 11 (with layers): `tower` layers sit between accepting a request and dispatching it. Before: `crates/mcp-core/src/server/modern/mod.rs` | `crates/mcp-core/src/server/legacy/mod.rs`. After: `crates/mcp-core/src/server/dispatch.rs`.

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use mcp_jsonrpc::RequestId;
use tower::{BoxError, Layer, Service, ServiceExt, util::BoxCloneSyncService};

use crate::{
    BoxFuture, Exchange, Fault, Reply, Revision,
    contained::Contained,
    server::{Core, dispatch, dispatch::Call},
};

/// All that lies inside a layer: further layers, and the dispatch itself. A layer wraps it and calls it.
#[derive(Clone, Debug)]
pub struct InnerService(BoxCloneSyncService<Exchange, Reply, BoxError>);

impl InnerService {
    fn new<S>(service: S) -> Self
    where
        S: Service<Exchange, Response = Reply> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        Self(BoxCloneSyncService::new(service.map_err(Into::into)))
    }
}

impl Service<Exchange> for InnerService {
    type Response = Reply;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Reply, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        self.0.call(exchange)
    }
}

/// The way from an exchange to its reply.
#[derive(Clone)]
pub(super) enum Stack {
    /// Straight to dispatch.
    Bare,
    /// Through layers first.
    Layered(InnerService),
}

/// The innermost service: the dispatch itself. It never fails; what goes wrong is a reply too.
#[derive(Clone)]
struct Dispatch(Arc<Core>);

impl Service<Exchange> for Dispatch {
    type Response = Reply;
    type Error = Infallible;
    type Future = Dispatching;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, exchange: Exchange) -> Dispatching {
        Dispatching(dispatch::dispatch(&self.0, exchange))
    }
}

/// What [`Dispatch`] returns.
struct Dispatching(Call);

impl Future for Dispatching {
    type Output = Result<Reply, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Ok)
    }
}

/// Builds the stack of one layer around all that are inside it.
pub(super) trait BuildStack: Send {
    fn build(self: Box<Self>, inner: InnerService) -> InnerService;
}

impl<L, S> BuildStack for L
where
    L: Layer<InnerService, Service = S> + Send,
    S: Service<Exchange, Response = Reply> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn build(self: Box<Self>, inner: InnerService) -> InnerService {
        InnerService::new(self.layer(inner))
    }
}

impl Stack {
    /// `layers` in the order in which they were added: the last one is met first.
    pub(super) fn new(core: &Arc<Core>, layers: Vec<Box<dyn BuildStack>>) -> Self {
        if layers.is_empty() {
            return Self::Bare;
        }
        Self::Layered(
            layers.into_iter().fold(InnerService::new(Dispatch(core.clone())), |inner, layer| layer.build(inner)),
        )
    }

    /// A layer's error is answered as a fault, and told to nobody but the log.
    pub(super) fn call(service: &InnerService, exchange: Exchange) -> BoxFuture<'static, Reply> {
        let (id, revision) = (exchange.id.clone(), exchange.revision);
        let answer = service.clone().oneshot(exchange);
        Box::pin(async move {
            match Contained(pin!(answer)).await {
                Ok(Ok(reply)) => reply,
                Ok(Err(error)) => refused(&error, id, revision),
                Err(panicked) => Reply::refusal(Some(id), revision, dispatch::panicked(panicked)),
            }
        })
    }
}

fn refused(error: &BoxError, id: RequestId, revision: Revision) -> Reply {
    let fault = match error.downcast_ref::<Fault>() {
        Some(fault) => fault.clone(),
        None if error.is::<tower::timeout::error::Elapsed>() => Fault::TimedOut,
        None if error.is::<tower::load_shed::error::Overloaded>() => Fault::Busy,
        None => Fault::Internal,
    };
    tracing::debug!(%error, "a layer refused a request");
    Reply::refusal(Some(id), revision, fault)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tower::{filter::FilterLayer, timeout::TimeoutLayer};

    use super::*;
    use crate::{Server, Tool, ToolError, implementation};

    async fn slow() -> Result<(), ToolError> {
        std::future::pending().await
    }

    async fn call(server: Server, name: &str) -> String {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
        String::from_utf8(server.handle(message).await.unwrap().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn towers_own_time_out_fits_and_its_error_is_a_fault() {
        let limit = TimeoutLayer::new(Duration::from_secs(1));
        let server = Server::builder(implementation!()).tool(Tool::new("slow", slow)).layer(limit).build();
        let reply = call(server, "slow").await;
        assert!(reply.contains("-32603") && reply.contains("timed out") && reply.contains("\"id\":1"), "{reply}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_layer_refuses_with_a_fault_and_hides_any_other_error() {
        let refuse = |exchange: Exchange| match exchange.name() {
            Some("slow") => Err(BoxError::from(Fault::InvalidRequest("not you".into()))),
            _ => Err(BoxError::from("a secret")),
        };
        let builder = || Server::builder(implementation!()).tool(Tool::new("slow", slow));
        let server = builder().layer(FilterLayer::new(refuse)).build();
        let reply = call(server.clone(), "slow").await;
        assert!(reply.contains("-32600") && reply.contains("not you"), "{reply}");
        let reply = call(server, "other").await;
        assert!(reply.contains("-32603") && !reply.contains("secret"), "{reply}");
    }

    #[tokio::test]
    async fn d01_a_layer_that_panics_is_answered_for() {
        let burst = tower::util::MapRequestLayer::new(|_: Exchange| -> Exchange { panic!("a secret") });
        let server = Server::builder(implementation!()).tool(Tool::new("slow", slow)).layer(burst).build();
        let reply = call(server, "slow").await;
        assert!(reply.contains("-32603") && reply.contains("\"id\":1") && !reply.contains("secret"), "{reply}");
    }
}
