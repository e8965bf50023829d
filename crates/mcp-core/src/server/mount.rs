//! A remote server within one of this process: what it offers is offered here, for as long as it does.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

use mcp_jsonrpc::Raw;
use tokio::{sync::Mutex, task::JoinHandle, time::sleep};

use crate::{
    Client, Error, Prompt, Registry, Resource, ResourceTemplate, Revision, Tool,
    client::{Changed, ListenEnd, Subscription, remote},
    server::{Inner, Server, registry::Listed},
    types::NotificationFilter,
};

/// A remote server that is mounted into another; see [`Server::mount`]. Dropping this changes nothing.
#[derive(Debug)]
pub struct Mount {
    server: Weak<Inner>,
    mounted: Arc<Mutex<Mounted>>,
    following: JoinHandle<()>,
}

impl Server {
    /// Offers what another server offers: its tools and prompts under the name `prefix_name` (as they are where `prefix` is
    /// empty), its resources and templates under their own URIs, which links in results name too. What is taken already is
    /// left out, with a warning in the log.
    ///
    /// It is live: what is added there or removed is so here, changes of resources are told to whoever listens here, and
    /// calls pass progress, cancellation, errors and questions both ways, whichever era either side speaks. Questions of a
    /// legacy server need a client that [passes them](crate::ClientBuilder::pass_questions).
    ///
    /// It lasts until it is [unmounted](Mount::unmount) or the client disconnects. While the connection is lost, calls fail,
    /// and listening is tried again.
    ///
    /// ```
    /// # use mcp_core::{Client, Server, implementation};
    /// # async fn example(remote: Server) -> Result<(), mcp_core::Error> {
    /// let gateway = Server::builder(implementation!()).build();
    /// let client = Client::builder(implementation!()).pass_questions().connect(remote).await?;
    /// let mount = gateway.mount("files", client).await?;
    /// mount.unmount().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the remote server does not say what it offers.
    pub async fn mount(&self, prefix: &str, client: Client) -> Result<Mount, Error> {
        let mut mounted = Mounted::new(prefix, client);
        // Listening comes first, so that no change is missed.
        let lists = mounted.listen().await.ok();
        if let Err(error) = mounted.refresh(self).await {
            mounted.clear(self);
            return Err(error);
        }
        let (server, mounted) = (Arc::downgrade(&self.0), Arc::new(Mutex::new(mounted)));
        let following = tokio::spawn(follow(server.clone(), mounted.clone(), lists));
        Ok(Mount { server, mounted, following })
    }
}

impl Mount {
    /// Takes away what the remote server offers. Calls that are under way go on.
    pub async fn unmount(self) {
        self.following.abort();
        if let Some(server) = self.server.upgrade() {
            self.mounted.lock().await.clear(&Server(server));
        }
    }
}

/// When listening is tried again: soon at first, and then ever later.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(60);

/// What is here of the remote server.
#[derive(Debug)]
struct Mounted {
    client: Client,
    prefix: String,
    tools: Entries,
    prompts: Entries,
    resources: Entries,
    templates: Entries,
    /// The resources whose changes are told here, and what hears of them.
    heard: BTreeSet<String>,
    hearing: Option<JoinHandle<()>>,
}

/// What is registered, as it would be listed.
type Entries = HashMap<String, Raw>;

impl Mounted {
    fn new(prefix: &str, client: Client) -> Self {
        let (tools, prompts, resources, templates, heard, hearing) = Default::default();
        Self { client, prefix: prefix.to_owned(), tools, prompts, resources, templates, heard, hearing }
    }

    fn name(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}_{name}", self.prefix) }
    }

    /// Listens to all lists.
    async fn listen(&self) -> Result<Subscription, Error> {
        self.client.listen(NotificationFilter::new().tools().prompts().resources()).await
    }

    /// Listens to the resources of the remote server that somebody listens to here.
    async fn hear(&mut self, server: &Server) {
        let wanted = self.wanted(server);
        let is_over = self.hearing.as_ref().is_none_or(JoinHandle::is_finished);
        if wanted == self.heard && (!is_over || wanted.is_empty()) {
            return;
        }
        let filter = wanted.iter().fold(NotificationFilter::new(), NotificationFilter::resource);
        let changes = if wanted.is_empty() { None } else { self.client.listen(filter).await.ok() };
        let hearing = changes.map(|changes| tokio::spawn(tell(Arc::downgrade(&server.0), changes)));
        self.heard = wanted;
        if let Some(old) = std::mem::replace(&mut self.hearing, hearing) {
            // What it was told before the new one began may still be on its way.
            tokio::spawn(async move {
                sleep(Duration::from_secs(1)).await;
                old.abort();
            });
        }
    }

    /// The resources of the remote server that somebody listens to here.
    fn wanted(&self, server: &Server) -> BTreeSet<String> {
        let templates: Vec<_> = self.templates.keys().filter_map(|key| server.templates().get(key)).collect();
        let fits =
            |uri: &str| templates.iter().any(|one| one.template.as_ref().is_ok_and(|one| one.matches(uri).is_some()));
        let uris = server.0.core.hub.uris().into_iter();
        uris.filter(|uri| self.resources.contains_key(uri) || fits(uri)).collect()
    }

    async fn refresh(&mut self, server: &Server) -> Result<(), Error> {
        self.refresh_tools(server).await?;
        self.refresh_prompts(server).await?;
        self.refresh_resources(server).await
    }

    async fn refresh_tools(&mut self, server: &Server) -> Result<(), Error> {
        if self.client.server_capabilities().tools.is_some() {
            let tools = self.client.tools().await?.into_iter().map(|mut tool| {
                tool.definition.name = self.name(&tool.definition.name);
                tool
            });
            let tools: Vec<Tool> = tools.collect();
            put(server.tools(), &mut self.tools, tools);
        }
        Ok(())
    }

    async fn refresh_prompts(&mut self, server: &Server) -> Result<(), Error> {
        if self.client.server_capabilities().prompts.is_some() {
            let prompts = self.client.prompts().await?.into_iter().map(|definition| {
                let mut named = definition.clone();
                named.name = self.name(&definition.name);
                remote::prompt(&self.client, definition).defined(named)
            });
            let prompts: Vec<Prompt> = prompts.collect();
            put(server.prompts(), &mut self.prompts, prompts);
        }
        Ok(())
    }

    async fn refresh_resources(&mut self, server: &Server) -> Result<(), Error> {
        if self.client.server_capabilities().resources.is_some() {
            let resources = self.client.resources().await?.into_iter();
            let resources: Vec<Resource> = resources.map(|resource| remote::resource(&self.client, resource)).collect();
            put(server.resources(), &mut self.resources, resources);
            let templates = self.client.resource_templates().await?.into_iter();
            let templates: Vec<ResourceTemplate> =
                templates.map(|template| remote::template(&self.client, template)).collect();
            put(server.templates(), &mut self.templates, templates);
        }
        Ok(())
    }

    fn clear(&mut self, server: &Server) {
        self.hearing.take().inspect(JoinHandle::abort);
        put(server.tools(), &mut self.tools, Vec::new());
        put(server.prompts(), &mut self.prompts, Vec::new());
        put(server.resources(), &mut self.resources, Vec::new());
        put(server.templates(), &mut self.templates, Vec::new());
    }

    async fn on_change(&mut self, server: &Server, change: Changed) {
        let refreshed = match change {
            Changed::Tools => self.refresh_tools(server).await,
            Changed::Prompts => self.refresh_prompts(server).await,
            Changed::Resources => self.refresh_resources(server).await,
            Changed::Resource(_) => Ok(()),
        };
        if let Err(error) = refreshed {
            tracing::warn!(prefix = self.prefix, %error, "a mounted server does not say what it offers now");
        }
    }
}

/// Makes what is registered be `items`, touching only what is not so already.
fn put<T: Listed>(registry: &Registry<T>, entries: &mut Entries, items: Vec<T>) {
    let mut gone = std::mem::take(entries);
    for item in items {
        let (key, shown) = (item.key().to_owned(), item.render(Revision::LATEST));
        let put = match gone.remove(&key) {
            Some(old) if old == shown => Ok(()),
            Some(_) => registry.replace(item),
            None => registry.add([item]),
        };
        match put {
            Ok(()) => drop(entries.insert(key, shown)),
            Err(error) => tracing::warn!(kind = T::KIND, key, %error, "what a mounted server offers is left out"),
        }
    }
    for key in gone.keys() {
        registry.remove(key);
    }
}

/// Tells here what changes there; listens anew where the stream was lost.
async fn tell(server: Weak<Inner>, mut changes: Subscription) {
    loop {
        while let Some(change) = changes.next().await {
            let Some(server) = server.upgrade().map(Server) else { return };
            if let Changed::Resource(uri) = change {
                server.resource_updated(&uri);
            }
        }
        if matches!(changes.ended(), Some(ListenEnd::Local)) {
            return;
        }
        sleep(SOON).await;
        let Ok(anew) = changes.again().await else { return };
        changes = anew;
    }
}

/// Follows the remote server until its client disconnects, or the server here is gone.
async fn follow(server: Weak<Inner>, mounted: Arc<Mutex<Mounted>>, mut lists: Option<Subscription>) {
    let mut patience = SOON;
    let Some(mut interest) = server.upgrade().map(|server| server.core.hub.interest()) else { return };
    loop {
        let change = match &mut lists {
            Some(lists) => tokio::select! {
                change = lists.next() => Event::Change(change),
                Ok(()) = interest.changed() => Event::Interest,
                else => return,
            },
            None => {
                sleep(patience).await;
                patience = (patience * 2).min(LATE);
                Event::Again
            }
        };
        let Some(server) = server.upgrade().map(Server) else { return };
        let mut mounted = mounted.lock().await;
        match change {
            Event::Interest => mounted.hear(&server).await,
            Event::Change(Some(change)) => mounted.on_change(&server, change).await,
            Event::Change(None) => {
                if matches!(lists.as_ref().and_then(Subscription::ended), Some(ListenEnd::Local)) {
                    return mounted.clear(&server);
                }
                lists = None;
            }
            Event::Again => {
                lists = mounted.listen().await.ok();
                if lists.is_some() && mounted.refresh(&server).await.is_ok() {
                    patience = SOON;
                    mounted.hear(&server).await;
                }
            }
        }
    }
}

enum Event {
    /// A list has changed; none if nothing more is heard.
    Change(Option<Changed>),
    /// Other resources are listened to here than before.
    Interest,
    /// It is time to listen anew.
    Again,
}
