use std::sync::{Arc, atomic::Ordering};

use mcp_jsonrpc::{ByteString, Raw, Request, RequestId};
use tokio_util::sync::CancellationToken;

use crate::{
    Era, Fault, Revision,
    head::{Head, ProgressToken, meta_key},
    method::{Listen, Method},
    observer::{ConnectionEvent, Watch},
    server::{
        Arrival, Extensions, Peer, Principal, RequestHead, Server,
        accept::Admitted,
        legacy::{Handshake, Session},
        modern::Replay,
        outlet::Outlet,
        task::Tasking,
    },
    types::{ClientCapabilities, Implementation, LogLevel},
    validate::Checks,
};

/// One request on its way through the server: what was asked, by whom, in which revision.
///
/// It owns shares of the message it came in and is `'static`, so layers and tasks can hold it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub(crate) server: Server,
    /// Its place among all that the server has accepted.
    pub(crate) sequence: u64,
    pub(crate) id: RequestId,
    pub(crate) method: ByteString,
    pub(crate) params: Option<Raw>,
    pub(crate) head: Head,
    pub(crate) revision: Revision,
    pub(crate) session: Option<Arc<Session>>,
    /// What the handshake that it is says of its client.
    pub(crate) introduced: Option<Box<Introduced>>,
    pub(crate) peer: Peer,
    /// What observers are told that it came over.
    pub(crate) connection: ConnectionEvent,
    pub(crate) extensions: Extensions,
    /// From which level on the client wants to be told what handlers say.
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) outlet: Outlet,
    /// Who hears of it; mostly nobody.
    pub(crate) watch: Option<Arc<Watch>>,
    /// Fires when its connection ends in good order.
    pub(crate) closing: Option<CancellationToken>,
    /// What earlier rounds of this call came to, where its handler may ask.
    pub(crate) replay: Option<Arc<Replay>>,
    /// What is checked of this call, once its tool is found.
    pub(crate) checks: Option<Arc<Checks>>,
    /// The task that it is or may become.
    pub(crate) task: Option<Arc<Tasking>>,
}

/// What `initialize` says of a client.
#[derive(Debug, Clone)]
pub(crate) struct Introduced {
    pub(crate) client_info: Raw,
    pub(crate) capabilities: Raw,
}

impl Exchange {
    pub(super) fn new(server: &Server, request: Request, admitted: Admitted, arrival: &Arrival<'_>) -> Self {
        let (Request { id, method, params, .. }, Admitted { head, revision, log_level }) = (request, admitted);
        let mut exchange = Self {
            server: Server::passing(server.0.clone()),
            sequence: server.0.core.sequence.fetch_add(1, Ordering::Relaxed),
            id,
            method,
            params,
            head,
            revision,
            session: None,
            introduced: None,
            peer: arrival.peer.cloned().unwrap_or_default(),
            connection: arrival.connection(),
            extensions: Extensions::default(),
            log_level,
            outlet: Outlet::None,
            watch: None,
            closing: None,
            replay: None,
            checks: None,
            task: None,
        };
        // In the modern era a session is where its connection's calls are kept, and no more.
        if let Some(session) = arrival.session.filter(|_| revision.era() == Era::Legacy) {
            exchange.join(session);
        }
        exchange
    }

    /// The server that answers it.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Its place among all requests that the server has accepted, from 1 on. Ids come again; this does not.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The request's id.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The revision that the request speaks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The parameters as they came in.
    #[must_use]
    pub fn params(&self) -> Option<&Raw> {
        self.params.as_ref()
    }

    /// The parameter `name`: of a tool or a prompt.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.head.name.as_deref()
    }

    /// The parameter `uri`: of a resource.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        self.head.uri.as_deref()
    }

    /// The parameter `taskId`: of a task.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        self.head.task_id.as_ref().map(|id| &*id.0)
    }

    /// The parameter `arguments`: of a tool or a prompt.
    #[must_use]
    pub fn arguments(&self) -> Option<&Raw> {
        self.head.arguments.as_ref()
    }

    /// The parameter `_meta` as it came in.
    #[must_use]
    pub fn meta(&self) -> Option<&Raw> {
        self.head.meta.raw.as_ref()
    }

    /// What progress notifications about this request name, if the client wants any.
    #[must_use]
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.head.meta.progress_token.as_ref()
    }

    /// Whether anything may be told before the answer: progress, what the handler says, or what is listened to.
    #[must_use]
    pub fn may_notify(&self) -> bool {
        let may_tell = self.progress_token().is_some() || self.log_level.is_some();
        may_tell || self.method == Listen::NAME || self.notifies()
    }

    /// Whether it calls a method of an extension that has notifications of its own.
    pub(crate) fn notifies(&self) -> bool {
        self.server.0.core.methods.notifies(&self.method)
    }

    /// Whether anything at all may go to the client before the answer: the same, or a question.
    pub(crate) fn may_say(&self) -> bool {
        self.may_notify() || self.session.as_ref().is_some_and(|session| session.is_askable())
    }

    /// Notes what earlier rounds came to; in the legacy era there are none.
    pub(crate) fn may_ask(&mut self) -> Result<(), Fault> {
        if self.revision.era() == Era::Modern {
            let server = self.server.clone();
            self.replay = Some(Replay::of(&server.0.core, self)?);
        }
        Ok(())
    }

    /// Whether whoever asks sees a resource of exactly that URI: one that is there, and that no filter hides.
    #[must_use]
    pub fn sees_resource(&self, uri: &str) -> bool {
        self.server.resources().find_for(self, uri).is_some()
    }

    /// Who asks, if something in front of the server has made sure of it.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.peer.principal.as_ref()
    }

    /// The HTTP request that it came in, or that its connection began with.
    #[must_use]
    pub fn request_head(&self) -> Option<&dyn RequestHead> {
        self.peer.head.as_deref()
    }

    /// What layers have put in.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The same, to put something in: handlers and filters can see it.
    #[must_use]
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// Who the client says it is: in this request, or in the handshake of its session.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        let said = self.said(meta_key::CLIENT_INFO, |introduced| &introduced.client_info, |known| &known.client_info);
        said?.decode().ok()
    }

    /// What the client can do: as this request says, or the handshake of its session.
    #[must_use]
    pub fn client_capabilities(&self) -> ClientCapabilities {
        let key = meta_key::CLIENT_CAPABILITIES;
        let said = self.said(key, |introduced| &introduced.capabilities, |known| &known.capabilities);
        said.and_then(|raw| raw.decode().ok()).unwrap_or_default()
    }

    /// What is said of the client: in the handshake that this is, in `_meta`, or in the handshake before.
    fn said(&self, key: &str, now: fn(&Introduced) -> &Raw, before: fn(&Handshake) -> &Raw) -> Option<Raw> {
        let now = self.introduced.as_deref().map(now).cloned();
        let before = || self.session.as_ref().and_then(|session| session.handshake()).map(before).cloned();
        now.or_else(|| self.head.meta.member(key)).or_else(before)
    }
}
