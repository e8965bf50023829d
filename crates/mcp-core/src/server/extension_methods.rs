//! What extensions of the protocol add to a server: methods, which stand beside the table of the core's.
//!
//! Specification: *Overview, Extensions*.

use std::collections::{BTreeMap, HashMap};

use mcp_jsonrpc::Raw;
use serde::Serialize;

use crate::{
    Blame, Context, Era, Error, ErrorKind, Exchange, Fault, ServerBuilder,
    method::{CoreMethod, Method},
    server::{
        Core,
        dispatch::{Handling, Running},
        reply::Body,
        tool::read,
    },
};

/// An extension of the protocol, with all that it adds to a server: its settings, its methods, tools, resources.
///
/// ```
/// use mcp_core::{Server, ServerBuilder, implementation, jsonrpc::Raw, server::ServerExtension};
///
/// struct Greetings;
///
/// impl ServerExtension for Greetings {
///     fn extend(self, builder: ServerBuilder) -> ServerBuilder {
///         builder.extension("com.example/greetings", Raw::empty_object())
///     }
/// }
///
/// let server = Server::builder(implementation!()).with(Greetings).build();
/// ```
pub trait ServerExtension {
    /// Adds it.
    fn extend(self, builder: ServerBuilder) -> ServerBuilder;
}

/// What answers a method of an extension.
pub(crate) struct ExtensionMethod {
    name: &'static str,
    eras: &'static [Era],
    may_ask: bool,
    notifies: bool,
    start: Box<Start>,
}

/// Reads the parameters, and gives what answers them.
type Start = dyn Fn(Context, Option<Raw>) -> Result<Handling, Fault> + Send + Sync;

impl ExtensionMethod {
    pub(crate) fn new<M, Fut>(handler: impl Fn(Context, M::Params) -> Fut + Send + Sync + 'static) -> Self
    where
        M: Method,
        M::Result: Serialize,
        Fut: Future<Output = Result<M::Result, Fault>> + Send + 'static,
    {
        let start = move |context, params: Option<Raw>| {
            let params = read::<M::Params>(params.as_ref().map_or("{}", Raw::as_str));
            let answer = handler(context, params.map_err(|why| Fault::InvalidParams(why.into()))?);
            Ok(Box::pin(async move { body(M::NAME, &answer.await?) }) as Handling)
        };
        let (name, eras, may_ask, notifies) = (M::NAME, M::ERAS, M::MAY_ASK, M::NOTIFIES);
        Self { name, eras, may_ask, notifies, start: Box::new(start) }
    }
}

/// The methods of all extensions.
#[derive(Default)]
pub(crate) struct ExtensionMethods {
    by_name: HashMap<&'static str, ExtensionMethod>,
    /// Whether any of them has notifications; mostly none has, and then nothing is looked up for that.
    any_notifies: bool,
}

impl ExtensionMethods {
    /// # Errors
    /// When two have one name, or the core has a method of that name.
    pub(super) fn new(methods: Vec<ExtensionMethod>) -> Result<Self, Error> {
        let mut all = Self::default();
        for method in methods {
            let name = method.name;
            all.any_notifies |= method.notifies;
            let is_core = [Era::Legacy, Era::Modern].into_iter().any(|era| CoreMethod::find(name, era).is_some());
            if is_core || all.by_name.insert(name, method).is_some() {
                let message = format!("the method `{name}` is there already");
                return Err(Error::new(ErrorKind::DuplicateRegistration, message).blaming(Blame::Caller));
            }
        }
        Ok(all)
    }

    /// Whether a method has notifications of its own.
    pub(crate) fn notifies(&self, method: &str) -> bool {
        self.any_notifies && self.by_name.get(method).is_some_and(|method| method.notifies)
    }
}

/// Starts a method that is not the core's.
pub(super) fn call(core: &Core, mut exchange: Exchange) -> Result<Running, Fault> {
    let found =
        core.methods.by_name.get(&*exchange.method).filter(|method| method.eras.contains(&exchange.revision.era()));
    let method = found.ok_or_else(|| Fault::MethodNotFound(exchange.method.clone()))?;
    // Which members there are, and of which shape, is the extension's to say.
    let params = exchange.params.clone();
    if params.as_ref().is_some_and(|params| !params.is_object()) {
        return Err(Fault::InvalidParams("`params` must be an object".into()));
    }
    if method.may_ask {
        exchange.may_ask()?;
    }
    let asking = exchange.replay.is_some().then(|| exchange.clone());
    let (context, guard) = Context::new(exchange);
    let answer = (method.start)(context, params)?;
    Ok(Running::new(core.handler_timeout(), Box::pin(guard.during(answer))).of_call(asking))
}

/// A result without what the exit seam puts around it; its own `_meta` is joined there with the server's.
fn body(method: &str, result: &impl Serialize) -> Result<Body, Fault> {
    let raw = Raw::encode(result).ok().filter(Raw::is_object).ok_or_else(|| {
        tracing::error!(method, "a result is no object");
        Fault::Internal
    })?;
    let meta = raw.member("_meta");
    if meta.is_none() && raw.member("resultType").is_none() {
        return Body::encode(&raw);
    }
    let mut members: BTreeMap<String, Raw> = raw.decode().map_err(|_| Fault::Internal)?;
    members.retain(|name, _| name != "_meta" && name != "resultType");
    Ok(Body { meta, ..Body::encode(&members)? })
}
