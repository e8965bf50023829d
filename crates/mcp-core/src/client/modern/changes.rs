//! The stream on which a modern server tells of changes.
//!
//! Specification: *Subscriptions*.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use crate::{
    Era, Error, ErrorKind,
    client::{
        Incoming, ListenEnd, Replies,
        hearing::{Listening, listener, mark, subject},
        renewal::WeakClient,
        result,
    },
    hub::{Hub, Listener},
    method::{Listen, notification},
    types::{ListenParams, NotificationFilter},
};

/// Reads up to what the server agrees to; none if it has ended by then.
async fn acknowledgement(replies: &mut Replies) -> Result<Option<NotificationFilter>, Error> {
    loop {
        match replies.next().await {
            Some(Ok(Incoming::Notification(notification))) if notification.method == notification::ACKNOWLEDGED => {
                let params = notification.params.as_ref().and_then(|params| params.decode::<ListenParams>().ok());
                let invalid =
                    || Error::new(ErrorKind::ProtocolInvalid, "what the server agrees to does not have its shape");
                return params.map(|params| Some(params.notifications)).ok_or_else(invalid);
            }
            Some(Ok(Incoming::Notification(notification))) if notification.method == notification::CANCELLED => {
                return Ok(None);
            }
            Some(Ok(Incoming::Notification(_))) => {}
            Some(Ok(Incoming::Response(response))) => {
                return result::read::<Listen>(response, Era::Modern).map(|_| None);
            }
            Some(Err(error)) => return Err(error),
            None => return Err(cut()),
        }
    }
}

/// What a subscription begins with.
pub(crate) type Begun = (NotificationFilter, Listener);

/// A stream that was asked for.
pub(crate) struct Opened {
    pub(crate) replies: Replies,
    /// How often the connection was begun anew by then.
    pub(crate) session: u64,
}

/// Takes down what has changed, at once, so that neither the server nor the connection waits for whoever listens.
pub(crate) struct Pump {
    pub(crate) opened: Opened,
    pub(crate) hub: Arc<Hub>,
    pub(crate) listening: Arc<Listening>,
    pub(crate) client: WeakClient,
}

impl Pump {
    pub(crate) async fn run(
        mut self,
        asked: NotificationFilter,
        begun: oneshot::Sender<Result<Begun, Error>>,
        end: watch::Sender<Option<ListenEnd>>,
    ) {
        let (acknowledged, is_over) = match acknowledgement(&mut self.opened.replies).await {
            Ok(Some(theirs)) => (asked.within(theirs), false),
            Ok(None) => (NotificationFilter::default(), true),
            // Where nobody waits for it any more, nobody need know.
            Err(error) => return drop(begun.send(Err(error))),
        };
        let listener = listener(&self.hub, &acknowledged);
        if begun.send(Ok((acknowledged.clone(), listener))).is_ok() {
            end.send_replace(Some(if is_over { ListenEnd::Graceful } else { self.read_on(&acknowledged).await }));
        }
    }

    /// Reads, and listens anew where the connection is lost and comes back.
    async fn read_on(&mut self, acknowledged: &NotificationFilter) -> ListenEnd {
        loop {
            let end = self.read(&acknowledged.resource_subscriptions).await;
            let is_lost = matches!(&end, ListenEnd::Lost(error) if error.kind() == ErrorKind::TransportClosed);
            if !is_lost || !self.client.client().is_ok_and(|client| client.has_lost(self.opened.session)) {
                return end;
            }
            match self.listen_again(acknowledged).await {
                Ok(true) => {}
                Ok(false) => return ListenEnd::Graceful,
                Err(error) => return ListenEnd::Lost(error.into()),
            }
        }
    }

    /// Whether the server tells of it still.
    async fn listen_again(&mut self, acknowledged: &NotificationFilter) -> Result<bool, Error> {
        loop {
            let client = self.client.client()?;
            client.renewed(self.opened.session).await?;
            self.opened = client.open_stream(acknowledged.clone())?;
            let patience = client.limits().request_timeout;
            match timeout(patience, acknowledgement(&mut self.opened.replies)).await.unwrap_or_else(|_| Err(silent())) {
                Err(error) if error.kind() == ErrorKind::TransportClosed => {}
                Err(error) => return Err(error),
                Ok(theirs) => {
                    // Anything may have changed meanwhile.
                    for subject in acknowledged.subjects() {
                        self.hub.changed(&subject);
                    }
                    return Ok(theirs.is_some());
                }
            }
        }
    }

    async fn read(&mut self, uris: &[String]) -> ListenEnd {
        loop {
            match self.opened.replies.next().await {
                Some(Ok(Incoming::Notification(notification))) => {
                    if notification.method == notification::CANCELLED {
                        return ListenEnd::Graceful;
                    }
                    if let Some(subject) = subject(&notification) {
                        self.listening.heard(&subject);
                        mark(&self.hub, uris, &subject);
                    }
                }
                Some(Ok(Incoming::Response(response))) => match result::read::<Listen>(response, Era::Modern) {
                    Ok(_) => return ListenEnd::Graceful,
                    Err(error) => return ListenEnd::Lost(error.into()),
                },
                Some(Err(error)) => return ListenEnd::Lost(error.into()),
                None => return ListenEnd::Lost(cut().into()),
            }
        }
    }
}

pub(crate) fn silent() -> Error {
    Error::new(ErrorKind::Timeout, "the server did not say what it agrees to tell")
}

pub(crate) fn cut() -> Error {
    Error::new(ErrorKind::TransportClosed, "the stream of changes ended without a word")
}
