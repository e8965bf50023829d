//! How a client and a server find their era and revision.

use mcp_jsonrpc::Response;
use serde::{Deserialize, Serialize};

use crate::{
    Era, Error, ErrorKind, Revision,
    client::{
        Agreed, CallOptions, Inbox,
        builder::ClientBuilder,
        call::{Ask, Caller, Speech},
        detect::{Next, Probe, judge},
        legacy,
        modern::Modern,
        result,
    },
    head::meta_key,
    method::{Discover, Empty},
    types::{DiscoverResult, Implementation, InitializeResult, ServerCapabilities},
};

/// What a connection is, once both sides agree.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) speech: Speech,
    pub(crate) verdict: Verdict,
}

/// What a client has found out of a server. It can be stored, and handed to the next client of the same server
/// ([`ClientBuilder::verdict`]), which then asks less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verdict {
    /// The revision that is spoken.
    pub revision: Revision,
    /// Who the server says it is.
    #[serde(default)]
    pub server_info: Option<Implementation>,
    /// What the server offers.
    #[serde(default)]
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    #[serde(default)]
    pub instructions: Option<String>,
}

/// Modern first, where the client speaks it; then what the server's answer calls for.
///
/// Specification: *Versioning and Compatibility, Backward Compatibility*.
pub(crate) async fn connect(caller: &Caller, client: &ClientBuilder, inbox: &Inbox) -> Result<Connected, Error> {
    caller.transport.open(inbox.clone()).await?;
    let known = client.verdict.clone().filter(|known| client.revisions.contains(known.revision));
    let is_legacy = |known: &Verdict| known.revision.era() == Era::Legacy;
    match (client.revisions.newest(Era::Modern), known) {
        (Some(_), Some(known)) if !is_legacy(&known) => modern_connection(client, known),
        (Some(modern), None) => detect(caller, client, inbox, modern).await,
        _ => handshake(caller, client, None).await,
    }
}

async fn detect(caller: &Caller, client: &ClientBuilder, inbox: &Inbox, modern: Revision) -> Result<Connected, Error> {
    let (mut revision, mut first) = (modern, true);
    loop {
        let speech = speech(client, revision)?;
        let (probe, answer) = probe(caller, client, speech.clone()).await?;
        match judge(probe, client.revisions, revision, first) {
            Next::Modern(spoken) => return modern_connection(client, discovered(spoken, answer)),
            Next::Again(other) => (revision, first) = (other, false),
            Next::Nothing { theirs } => return Err(nothing_in_common(&theirs)),
            Next::Legacy { reconnect } => {
                if reconnect {
                    caller.transport.open(inbox.clone()).await?;
                }
                return handshake(caller, client, Some(answer)).await;
            }
        }
    }
}

/// What the probe was answered with: the result, or why there is none in words.
type Answer = Result<DiscoverResult, String>;

async fn probe(caller: &Caller, client: &ClientBuilder, speech: Modern) -> Result<(Probe, Answer), Error> {
    let speech = Speech::Modern(speech);
    let is_shared = caller.transport.is_shared();
    let patience = if is_shared { caller.limits.probe_timeout } else { caller.limits.request_timeout };
    let (params, mut options) = (Empty::default(), CallOptions::new().timeout(patience));
    let outcome = match caller.respond::<Discover>(&speech, &Ask::new(&params), &mut options).await {
        Ok(Response { outcome: Err(object), .. }) => Ok(Err(object)),
        Ok(response) => result::read::<Discover>(response, Era::Modern).map(Ok),
        Err(error) => Err(error),
    };
    let answer = match &outcome {
        Ok(Ok(result)) => Ok(result.clone()),
        Ok(Err(object)) => Err(format!("error {}: {}", object.code, object.message)),
        Err(error) => Err(error.to_string()),
    };
    let falls_back = client.revisions.newest(Era::Legacy).is_some();
    let probe = Probe::read(outcome, is_shared, falls_back).map_err(|error| match error.kind() {
        ErrorKind::TransportClosed => {
            let message = format!("the connection was lost while server/discover was asked: {error}");
            error.saying(message)
        }
        _ => error,
    })?;
    Ok((probe, answer))
}

fn speech(client: &ClientBuilder, revision: Revision) -> Result<Modern, Error> {
    Modern::new(revision, &client.info, &client.handlers.capabilities(Era::Modern))
}

fn modern_connection(client: &ClientBuilder, verdict: Verdict) -> Result<Connected, Error> {
    Ok(Connected { speech: Speech::Modern(speech(client, verdict.revision)?), verdict })
}

fn discovered(revision: Revision, answer: Answer) -> Verdict {
    match answer {
        Ok(result) => Verdict {
            revision,
            server_info: server_info(&result),
            capabilities: result.capabilities,
            instructions: result.instructions,
        },
        Err(_) => {
            Verdict { revision, server_info: None, capabilities: ServerCapabilities::default(), instructions: None }
        }
    }
}

fn server_info(result: &DiscoverResult) -> Option<Implementation> {
    result.meta.as_ref()?.member(meta_key::SERVER_INFO)?.decode().ok()
}

/// `probed` is what the server said to the probe before; where the handshake fails too, the error tells both.
async fn handshake(caller: &Caller, client: &ClientBuilder, probed: Option<Answer>) -> Result<Connected, Error> {
    let known = client.verdict.as_ref().map(|known| known.revision);
    let known = known.filter(|known| known.era() == Era::Legacy && client.revisions.contains(*known));
    let Some(offered) = known.or(client.revisions.newest(Era::Legacy)) else { return Err(only_legacy(probed)) };
    let shaken = shake_hands(caller, client, offered).await;
    let (revision, result) = match (shaken, probed) {
        (Ok(shaken), _) => shaken,
        (Err(error), Some(Err(answer))) => {
            let message = format!("neither era worked: server/discover gave {answer}; initialize gave {error}");
            return Err(error.saying(message));
        }
        (Err(error), _) => return Err(error),
    };
    let verdict = Verdict {
        revision,
        server_info: Some(result.server_info),
        capabilities: result.capabilities,
        instructions: result.instructions,
    };
    Ok(Connected { speech: Speech::Legacy(revision), verdict })
}

async fn shake_hands(
    caller: &Caller,
    client: &ClientBuilder,
    offered: Revision,
) -> Result<(Revision, InitializeResult), Error> {
    let capabilities = client.handlers.capabilities(Era::Legacy);
    legacy::shake_hands(caller, offered, client.revisions, &client.info, &capabilities).await
}

/// Begins anew what was lost, in the revision that was agreed on: in the legacy era with a handshake.
pub(crate) async fn renew(
    caller: &Caller,
    client: &ClientBuilder,
    inbox: &Inbox,
    revision: Revision,
) -> Result<(), Error> {
    caller.transport.open(inbox.clone()).await?;
    if revision.era() == Era::Legacy {
        let (agreed, _) = shake_hands(caller, client, revision).await?;
        if agreed != revision {
            let message = format!("the server speaks {agreed} now, and no longer {revision}");
            return Err(Error::new(ErrorKind::ProtocolVersionMismatch, message));
        }
    }
    caller.transport.agreed(&Agreed::new(revision));
    Ok(())
}

fn only_legacy(probed: Option<Answer>) -> Error {
    let answer = probed.and_then(Result::err).unwrap_or_else(|| "only legacy revisions".into());
    let message =
        format!("the server does not speak the modern era (server/discover gave {answer}), and this client no other");
    Error::new(ErrorKind::ProtocolVersionMismatch, message)
}

fn nothing_in_common(theirs: &[String]) -> Error {
    let theirs: Vec<_> = theirs.iter().take(16).map(|date| crate::shown(date)).collect();
    let theirs = match theirs.as_slice() {
        [] => "does not say what it speaks".to_owned(),
        some => format!("speaks {}", some.join(", ")),
    };
    Error::new(ErrorKind::ProtocolVersionMismatch, format!("no revision in common; the server {theirs}"))
}
