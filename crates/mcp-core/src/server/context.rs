use std::{
    future::{Future, IntoFuture},
    sync::{Arc, Mutex},
};

use mcp_jsonrpc::{Raw, RequestId, encode};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, Exchange, Revision,
    head::ProgressToken,
    lock::lock,
    method::notification,
    types::{ClientCapabilities, Implementation},
};

/// What a handler knows of the call that it answers, and what it can say while it runs. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    exchange: Exchange,
    ended: CancellationToken,
    /// The last progress told, which the next one must exceed.
    progress: Mutex<f64>,
}

impl Context {
    pub(crate) fn new(exchange: Exchange) -> (Self, Guard) {
        let inner = Inner { exchange, ended: CancellationToken::new(), progress: Mutex::new(f64::NEG_INFINITY) };
        let context = Self(Arc::new(inner));
        (context.clone(), Guard(context))
    }

    /// The revision that the request speaks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.exchange.revision
    }

    /// The request's id.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.0.exchange.id
    }

    /// The request's `_meta`, as it came in.
    #[must_use]
    pub fn meta(&self) -> Option<&Raw> {
        self.0.exchange.meta()
    }

    /// Who the client says it is. Not to be trusted.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.0.exchange.client_info()
    }

    /// What the client can do.
    #[must_use]
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.0.exchange.client_capabilities()
    }

    /// Waits until the call is over: answered, timed out, or given up by the client.
    ///
    /// The handler's own future is dropped then, so this is for what it has spawned.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.0.ended.clone().cancelled_owned()
    }

    /// Tells the client how far the call is, if it asked to be told; it is queued at once.
    ///
    /// `progress` must grow from one call to the next; what does not is left out. Where the client reads slower than
    /// this is called, newer progress replaces what is still queued; await what is returned to wait for room
    /// instead.
    ///
    /// Specification: *Progress*.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) -> Told {
        if let Some(token) = self.0.exchange.progress_token().filter(|_| self.0.exchange.outlet.is_open()) {
            self.tell(token, progress, total, message.into());
        }
        Told(self.clone())
    }

    fn tell(&self, token: &ProgressToken, progress: f64, total: Option<f64>, message: String) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            progress_token: &'a ProgressToken,
            progress: f64,
            #[serde(skip_serializing_if = "Option::is_none")]
            total: Option<f64>,
            #[serde(skip_serializing_if = "String::is_empty")]
            message: String,
        }
        // Held while queueing, so that two threads cannot queue in the wrong order.
        let mut last = lock(&self.0.progress);
        if !progress.is_finite() || progress <= *last {
            return;
        }
        *last = progress;
        let total = total.filter(|total| total.is_finite());
        if let Ok(params) = Raw::encode(&Params { progress_token: token, progress, total, message }) {
            if let Some(watch) = &self.0.exchange.watch {
                watch.notification(notification::PROGRESS);
            }
            self.0.exchange.outlet.progress(encode::notification(notification::PROGRESS, Some(&params)));
        }
    }
}

/// What [`Context::progress`] returns. The progress is queued already; awaiting this waits until the client's queue has
/// room for more.
#[derive(Debug)]
pub struct Told(Context);

impl IntoFuture for Told {
    type Output = ();
    type IntoFuture = BoxFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.0.exchange.outlet.room().await })
    }
}

/// Fires the context's cancellation token when the call is over, however it ends.
#[derive(Debug)]
pub(crate) struct Guard(Context);

impl Guard {
    pub(crate) async fn during<F: Future>(self, future: F) -> F::Output {
        let _guard = self;
        future.await
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.ended.cancel();
    }
}
