//! `subscriptions/listen`: a request that is answered when there is nothing more to tell.
//!
//! Specification: *Subscriptions*.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex},
};

use mcp_jsonrpc::{Bytes, Raw, encode};
use serde::Serialize;

use crate::{
    Fault, Limits,
    head::{Head, meta_key},
    hub::{Listener, Subject},
    lock::lock,
    method::{CoreMethod, notification},
    server::{
        Core, Exchange,
        dispatch::Running,
        features::resources,
        reply::Body,
        task::{self, Tasks},
    },
    types::{ListenParams, NotificationFilter, Task},
};

/// How many streams are open, and whose.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_principal: HashMap<[u8; 32], usize>,
}

/// One of them, until it is dropped.
struct Open {
    subscriptions: Arc<Subscriptions>,
    principal: Option<[u8; 32]>,
}

impl Subscriptions {
    fn open(self: &Arc<Self>, principal: Option<[u8; 32]>, limits: &Limits) -> Result<Open, Fault> {
        let mut counts = lock(&self.0);
        if counts.all >= limits.all_subscriptions {
            return Err(Fault::Busy);
        }
        if let Some(principal) = principal {
            let count = counts.by_principal.entry(principal).or_default();
            if *count >= limits.subscriptions {
                return Err(Fault::Busy);
            }
            *count += 1;
        }
        counts.all += 1;
        Ok(Open { subscriptions: self.clone(), principal })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut counts = lock(&self.subscriptions.0);
        counts.all -= 1;
        if let Some(principal) = self.principal
            && let Some(count) = counts.by_principal.get_mut(&principal)
        {
            *count -= 1;
            if *count == 0 {
                counts.by_principal.remove(&principal);
            }
        }
    }
}

/// Starts `subscriptions/listen`.
pub(crate) fn listen(core: &Core, mut exchange: Exchange) -> Result<Running, Fault> {
    if !exchange.outlet.is_open() {
        return Err(Fault::InvalidRequest("what is listened to needs a stream of events to come on".into()));
    }
    let asked = asked(core, &exchange)?;
    let open = core.subscriptions.open(exchange.principal().map(crate::Principal::digest), &core.limits)?;
    if !asked.task_ids.is_empty() {
        task::require(&exchange)?;
    }
    let (listener, tasks) = (core.hub.listener(), core.tasks.clone());
    // From here on nothing is missed.
    let mut agreed = agreed(core, &exchange, asked);
    agreed.subjects().for_each(|subject| listener.listen(subject));
    // The stream may be open for long, and the message that asked for it large.
    (exchange.params, exchange.head) = (None, Head::default());
    let (stopping, closing) = (core.stopping.clone(), exchange.closing.clone().unwrap_or_default());
    Ok(Running::new(
        None,
        Box::pin(async move {
            let _open = open;
            agree_on_tasks(&tasks, &exchange, &listener, &mut agreed).await?;
            acknowledge(&exchange, &agreed);
            // How they are now: what has ended, or asked, before anybody listened changes no more by itself.
            agreed.task_ids.iter().for_each(|id| listener.mark(&Subject::Task(id.as_str().into())));
            let listening = tell(&exchange, &tasks, &listener, agreed.task_ids);
            tokio::select! {
                biased;
                () = stopping.cancelled() => {}
                () = closing.cancelled() => {}
                ended = listening => ended?,
            }
            Ok(Body { meta: subscription(&exchange), ..Body::default() })
        }),
    ))
}

fn asked(core: &Core, exchange: &Exchange) -> Result<NotificationFilter, Fault> {
    let params = exchange.params.as_ref().and_then(|params| params.decode::<ListenParams>().ok());
    let asked = params.ok_or_else(|| Fault::InvalidParams("`notifications` must say what to listen to".into()))?;
    let (most, longest, uris) =
        (core.limits.subscribed_uris, core.limits.uri_bytes, &asked.notifications.resource_subscriptions);
    if uris.len() > most || asked.notifications.task_ids.len() > most {
        return Err(Fault::InvalidParams(format!("more than {most} resources or tasks in one subscription").into()));
    }
    if uris.iter().any(|uri| uri.len() > longest) {
        return Err(Fault::InvalidParams(format!("a URI to listen to is longer than {longest} bytes").into()));
    }
    Ok(asked.notifications)
}

/// What of it there is.
fn agreed(core: &Core, exchange: &Exchange, asked: NotificationFilter) -> NotificationFilter {
    let has_resources = core.offers(CoreMethod::ListResources);
    let is_readable = |uri: &String| has_resources && resources::is_readable(core, exchange, uri);
    NotificationFilter {
        tools_list_changed: asked.tools_list_changed && core.offers(CoreMethod::ListTools),
        prompts_list_changed: asked.prompts_list_changed && core.offers(CoreMethod::ListPrompts),
        resources_list_changed: asked.resources_list_changed && has_resources,
        resource_subscriptions: asked.resource_subscriptions.into_iter().filter(is_readable).collect(),
        task_ids: asked.task_ids,
    }
}

/// Leaves out the tasks that there are not, for whoever asks.
async fn agree_on_tasks(
    tasks: &Tasks,
    exchange: &Exchange,
    listener: &Listener,
    agreed: &mut NotificationFilter,
) -> Result<(), Fault> {
    for id in std::mem::take(&mut agreed.task_ids) {
        match task::owned(tasks, exchange, &id).await? {
            Some(_) => agreed.task_ids.push(id),
            None => listener.ignore(&Subject::Task(id.into())),
        }
    }
    Ok(())
}

/// Tells the client what it will be told of: before all else, even where there will be nothing.
fn acknowledge(exchange: &Exchange, agreed: &NotificationFilter) {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        _meta: Option<Raw>,
        notifications: &'a NotificationFilter,
    }
    let acknowledged = Acknowledged { _meta: subscription(exchange), notifications: agreed };
    say(exchange, notification::ACKNOWLEDGED, &acknowledged);
}

/// Tells the client what has changed, for as long as somebody listens. Until there is room, further changes are one with
/// those that wait. Tasks that other processes may run are looked at again and again.
async fn tell(exchange: &Exchange, tasks: &Tasks, listener: &Listener, ids: Vec<String>) -> Result<(), Fault> {
    let mut watched: HashMap<String, Option<u64>> = ids.into_iter().map(|id| (id, None)).collect();
    let mut next_look = pin!(tasks.next_look());
    loop {
        tokio::select! {
            () = poll_fn(|cx| listener.poll_changed(cx)) => {}
            () = &mut next_look => {
                watched.keys().for_each(|id| listener.mark(&Subject::Task(id.as_str().into())));
                next_look.set(tasks.next_look());
            }
        }
        exchange.outlet.room().await;
        let Some(subject) = listener.next() else { continue };
        #[derive(Serialize)]
        struct Changed<'a> {
            _meta: Option<Raw>,
            #[serde(skip_serializing_if = "Option::is_none")]
            uri: Option<&'a str>,
            #[serde(flatten, skip_serializing_if = "Option::is_none")]
            task: Option<Task>,
        }
        let (uri, task) = match &subject {
            Subject::Resource(uri) => (Some(&**uri), None),
            // Whoever listens asks no more, so that a change which is not told would never be known.
            Subject::Task(id) => match news(exchange, tasks, id, &mut watched).await? {
                Some(task) => (None, Some(task)),
                None => continue,
            },
            _ => (None, None),
        };
        if !say(exchange, subject.method(), &Changed { _meta: subscription(exchange), uri, task }) {
            return Ok(());
        }
    }
}

/// The task as it is, if that was not told before. `watched` has those that may still change, and as which of their changes
/// they were told last.
async fn news(
    exchange: &Exchange,
    tasks: &Tasks,
    id: &str,
    watched: &mut HashMap<String, Option<u64>>,
) -> Result<Option<Task>, Fault> {
    let Some(told) = watched.get_mut(id) else { return Ok(None) };
    let Some((task_id, record)) = task::owned(tasks, exchange, id).await? else {
        // Its time is over.
        watched.remove(id);
        return Ok(None);
    };
    let is_new = told.replace(record.changes()) != Some(record.changes());
    if record.status().is_terminal() {
        watched.remove(id);
    }
    Ok(is_new.then(|| Task::of(task_id, &record)))
}

fn say(exchange: &Exchange, method: &str, params: &impl Serialize) -> bool {
    let frame: Bytes = encode::notification(method, Raw::encode(params).ok().as_ref());
    if let Some(watch) = &exchange.watch {
        watch.notification(method);
    }
    exchange.outlet.must_say(frame)
}

/// What names the subscription in all that is told of it.
fn subscription(exchange: &Exchange) -> Option<Raw> {
    let id = Raw::encode(&exchange.id).ok()?;
    Raw::parse(format!(r#"{{"{}":{}}}"#, meta_key::SUBSCRIPTION_ID, id.as_str())).ok()
}
