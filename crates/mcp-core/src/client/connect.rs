//! How a client and a server find their era and revision.

use mcp_jsonrpc::Response;

use crate::{
    Era, Error, ErrorKind, Revision,
    client::{
        CallOptions, Inbox,
        builder::ClientBuilder,
        call::{Caller, Speech},
        detect::{Probe, Verdict, judge},
        legacy,
        modern::Modern,
        result,
    },
    head::meta_key,
    method::Discover,
    types::{DiscoverResult, Implementation, ServerCapabilities},
};

/// What a connection is, once both sides agree.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) speech: Speech,
    pub(crate) revision: Revision,
    pub(crate) server_info: Option<Implementation>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
}

/// Modern first, where the client speaks it; then what the server's answer calls for.
///
/// Specification: *Versioning and Compatibility, Backward Compatibility*.
pub(crate) async fn connect(caller: &Caller, client: &ClientBuilder, inbox: &Inbox) -> Result<Connected, Error> {
    caller.transport.open(inbox.clone()).await?;
    let Some(modern) = client.revisions.newest(Era::Modern) else { return handshake(caller, client, None).await };
    let (mut revision, mut first) = (modern, true);
    loop {
        let speech = Modern::new(revision, &client.info, &client.capabilities)?;
        let (probe, answer) = probe(caller, speech.clone()).await?;
        match judge(probe, client.revisions, revision, first) {
            Verdict::Modern(spoken) => return modern_connection(client, spoken, answer),
            Verdict::Again(other) => (revision, first) = (other, false),
            Verdict::Nothing { theirs } => return Err(nothing_in_common(&theirs)),
            Verdict::Legacy { reconnect } => {
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

async fn probe(caller: &Caller, speech: Modern) -> Result<(Probe, Answer), Error> {
    let speech = Speech::Modern(speech);
    let is_shared = caller.transport.is_shared();
    let patience = if is_shared { caller.limits.probe_timeout } else { caller.limits.request_timeout };
    let options = CallOptions::new().timeout(patience);
    let outcome = match caller.respond::<Discover>(&speech, &Default::default(), None, options).await {
        Ok(Response { outcome: Err(object), .. }) => Ok(Err(object)),
        Ok(response) => result::read::<Discover>(response, Era::Modern).map(Ok),
        Err(error) => Err(error),
    };
    let answer = match &outcome {
        Ok(Ok(result)) => Ok(result.clone()),
        Ok(Err(object)) => Err(format!("error {}: {}", object.code, object.message)),
        Err(error) => Err(error.to_string()),
    };
    Ok((Probe::read(outcome, is_shared)?, answer))
}

fn modern_connection(client: &ClientBuilder, revision: Revision, answer: Answer) -> Result<Connected, Error> {
    let speech = Speech::Modern(Modern::new(revision, &client.info, &client.capabilities)?);
    let Ok(result) = answer else {
        return Ok(Connected {
            speech,
            revision,
            server_info: None,
            capabilities: Default::default(),
            instructions: None,
        });
    };
    Ok(Connected {
        speech,
        revision,
        server_info: server_info(&result),
        capabilities: result.capabilities,
        instructions: result.instructions,
    })
}

fn server_info(result: &DiscoverResult) -> Option<Implementation> {
    result.meta.as_ref()?.member(meta_key::SERVER_INFO)?.decode().ok()
}

/// `probed` is what the server said to the probe before; where the handshake fails too, the error tells both.
async fn handshake(caller: &Caller, client: &ClientBuilder, probed: Option<Answer>) -> Result<Connected, Error> {
    let Some(offered) = client.revisions.newest(Era::Legacy) else { return Err(only_legacy(probed)) };
    let shaken = legacy::shake_hands(caller, offered, client.revisions, &client.info, &client.capabilities).await;
    let (revision, result) = match (shaken, probed) {
        (Ok(shaken), _) => shaken,
        (Err(error), Some(Err(answer))) => {
            let message = format!("neither era worked: server/discover gave {answer}; initialize gave {error}");
            return Err(error.saying(message));
        }
        (Err(error), _) => return Err(error),
    };
    Ok(Connected {
        speech: Speech::Legacy(revision),
        revision,
        server_info: Some(result.server_info),
        capabilities: result.capabilities,
        instructions: result.instructions,
    })
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
