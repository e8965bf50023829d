//! GET: a stream of events that is opened anew, or gone back to.

use std::time::Duration;

use http::{HeaderValue, Method, header};
use mcp_core::Error;
use reqwest::StatusCode;

use super::{Session, lost};
use crate::{
    client::{
        events::Events,
        refused::{media_type, refused, retry_after, wants_credentials},
        target::Target,
    },
    headers::LAST_EVENT_ID,
};

/// What came of a GET.
pub(super) enum Opened {
    Stream(Box<Events>),
    /// There is no such stream, and asking again would not help.
    Refused(Error),
    /// It did not work this time; the server may have said when to ask again.
    Failed(Error, Option<Duration>),
}

/// Opens the stream that `last` is of, or else the one for what belongs to no call.
///
/// Specification: *2025-11-25, Transports, Listening for Messages from the Server*.
pub(super) async fn open(target: &Target, session: &Session, last: Option<&HeaderValue>) -> Opened {
    let mut headers = session.headers();
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.extend(last.map(|last| (LAST_EVENT_ID, last.clone())));
    let answer = match target.send(Method::GET, headers).await {
        Ok(answer) => answer,
        Err(error) => return Opened::Failed(error, None),
    };
    let response = &answer.response;
    let (status, wait) = (response.status(), retry_after(response));
    if status.is_success() && media_type(response) == "text/event-stream" {
        Opened::Stream(Box::new(Events::new(answer.response, &target.limits)))
    } else if session.is_lost(response) {
        Opened::Refused(lost(answer.response))
    } else if is_about_now(status) && !wants_credentials(response) {
        Opened::Failed(refused(answer).await, wait)
    } else {
        Opened::Refused(refused(answer).await)
    }
}

/// Whether the status is one that passes.
fn is_about_now(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED || matches!(status.as_u16(), 408 | 425 | 429)
}
