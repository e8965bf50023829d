//! The stream on which a modern server tells of changes.
//!
//! Specification: *Subscriptions*.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::sync::{oneshot, watch};

use crate::{
    Era, Error, ErrorKind,
    client::{
        Incoming, ListenEnd, Replies,
        hearing::{Listening, listener, mark, subject},
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

/// Takes down what has changed, at once, so that neither the server nor the connection waits for whoever listens.
pub(crate) struct Pump {
    pub(crate) replies: Replies,
    pub(crate) hub: Arc<Hub>,
    pub(crate) listening: Arc<Listening>,
}

impl Pump {
    pub(crate) async fn run(
        mut self,
        asked: NotificationFilter,
        begun: oneshot::Sender<Result<Begun, Error>>,
        end: watch::Sender<Option<ListenEnd>>,
    ) {
        let (acknowledged, is_over) = match acknowledgement(&mut self.replies).await {
            Ok(Some(theirs)) => (asked.within(theirs), false),
            Ok(None) => (NotificationFilter::default(), true),
            // Where nobody waits for it any more, nobody need know.
            Err(error) => return drop(begun.send(Err(error))),
        };
        let uris = acknowledged.resource_subscriptions.clone();
        let listener = listener(&self.hub, &acknowledged);
        if begun.send(Ok((acknowledged, listener))).is_ok() {
            end.send_replace(Some(if is_over { ListenEnd::Graceful } else { self.read(&uris).await }));
        }
    }

    async fn read(&mut self, uris: &[String]) -> ListenEnd {
        loop {
            match self.replies.next().await {
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

pub(crate) fn cut() -> Error {
    Error::new(ErrorKind::TransportClosed, "the stream of changes ended without a word")
}
