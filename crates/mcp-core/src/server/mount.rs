//! A remote server within one of this process: what it offers is offered here, for as long as it does.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use mcp_jsonrpc::Raw;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, sleep_until},
};

use crate::{
    Client, Error, Prompt, Registry, Resource, ResourceTemplate, Revision, Tool,
    client::{Changed, ListenEnd, Subscription, remote},
    lock::lock,
    server::{Inner, Server, registry::Listed},
    types::NotificationFilter,
};

/// A remote server that is mounted into another; see [`Server::mount`]. Dropping this changes nothing.
#[derive(Debug)]
pub struct Mount {
    server: Weak<Inner>,
    entries: Arc<Mutex<Entries>>,
    following: AbortHandle,
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
    /// Other things are no call's, and do not pass: what the remote server logs, that a web page that it has sent a user to is
    /// done, and that a caller's roots have changed. The client hears the first two, where it has handlers for them.
    ///
    /// It lasts until it is [unmounted](Mount::unmount), the client disconnects or this server is gone. While the connection
    /// is lost, calls fail. Listening, and reading a list that could not be read, are tried again, after 1 s at first and
    /// ever later up to 60 s.
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
        let remote = Remote { client, prefix: prefix.to_owned() };
        // Listening comes first, so that no change is missed.
        let lists = remote.listen().await.ok();
        let mut offers = Vec::new();
        for list in List::ALL {
            offers.push(remote.fetch(list).await?);
        }
        // Nothing waits from here on, so that whoever gives this up leaves nothing behind.
        let mut entries = Entries::default();
        offers.into_iter().for_each(|offer| entries.put(self, offer));
        let (server, entries) = (Arc::downgrade(&self.0), Arc::new(Mutex::new(entries)));
        let following = Following::new(server.clone(), remote, entries.clone(), lists);
        let following = tokio::spawn(following.run()).abort_handle();
        Ok(Mount { server, entries, following })
    }
}

impl Mount {
    /// Takes away what the remote server offers. Calls that are under way go on.
    pub async fn unmount(self) {
        self.following.abort();
        if let Some(server) = self.server.upgrade() {
            lock(&self.entries).end(&Server::passing(server));
        }
    }
}

/// What may change as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    Tools,
    Prompts,
    /// And templates.
    Resources,
}

impl List {
    const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];
}

/// What a list holds, as it is offered here.
enum Offer {
    Tools(Vec<Tool>),
    Prompts(Vec<Prompt>),
    Resources(Vec<Resource>, Vec<ResourceTemplate>),
}

#[derive(Debug)]
struct Remote {
    client: Client,
    prefix: String,
}

impl Remote {
    fn name(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}_{name}", self.prefix) }
    }

    /// Listens to all lists.
    async fn listen(&self) -> Result<Subscription, Error> {
        self.client.listen(NotificationFilter::new().tools().prompts().resources()).await
    }

    /// Reads a list; it is empty where the server has none.
    async fn fetch(&self, list: List) -> Result<Offer, Error> {
        let has = self.client.server_capabilities();
        Ok(match list {
            List::Tools if has.tools.is_some() => Offer::Tools(self.tools().await?),
            List::Tools => Offer::Tools(Vec::new()),
            List::Prompts if has.prompts.is_some() => Offer::Prompts(self.prompts().await?),
            List::Prompts => Offer::Prompts(Vec::new()),
            List::Resources if has.resources.is_some() => {
                Offer::Resources(self.resources().await?, self.templates().await?)
            }
            List::Resources => Offer::Resources(Vec::new(), Vec::new()),
        })
    }

    async fn tools(&self) -> Result<Vec<Tool>, Error> {
        let tools = self.client.tools().await?.into_iter().map(|mut tool| {
            tool.definition.name = self.name(&tool.definition.name);
            tool
        });
        Ok(tools.collect())
    }

    async fn prompts(&self) -> Result<Vec<Prompt>, Error> {
        let prompts = self.client.prompts().await?.into_iter().map(|definition| {
            let mut named = definition.clone();
            named.name = self.name(&definition.name);
            remote::prompt(&self.client, definition).defined(named)
        });
        Ok(prompts.collect())
    }

    async fn resources(&self) -> Result<Vec<Resource>, Error> {
        let resources = self.client.resources().await?.into_iter();
        Ok(resources.map(|resource| remote::resource(&self.client, resource)).collect())
    }

    async fn templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        let templates = self.client.resource_templates().await?.into_iter();
        Ok(templates.map(|template| remote::template(&self.client, template)).collect())
    }
}

/// What is here of the remote server.
#[derive(Debug, Default)]
struct Entries {
    tools: Shown,
    prompts: Shown,
    resources: Shown,
    templates: Shown,
    /// It was unmounted: nothing comes any more.
    is_over: bool,
}

/// What is registered, as it would be listed.
type Shown = HashMap<String, Raw>;

impl Entries {
    fn put(&mut self, server: &Server, offer: Offer) {
        if self.is_over {
            return;
        }
        match offer {
            Offer::Tools(tools) => put(server.tools(), &mut self.tools, tools),
            Offer::Prompts(prompts) => put(server.prompts(), &mut self.prompts, prompts),
            Offer::Resources(resources, templates) => {
                put(server.resources(), &mut self.resources, resources);
                put(server.templates(), &mut self.templates, templates);
            }
        }
    }

    fn end(&mut self, server: &Server) {
        self.put(server, Offer::Tools(Vec::new()));
        self.put(server, Offer::Prompts(Vec::new()));
        self.put(server, Offer::Resources(Vec::new(), Vec::new()));
        self.is_over = true;
    }

    /// The resources of the remote server that somebody listens to here.
    fn wanted(&self, server: &Server) -> BTreeSet<String> {
        let templates: Vec<_> = self.templates.keys().filter_map(|key| server.templates().get(key)).collect();
        let fits =
            |uri: &str| templates.iter().any(|one| one.template.as_ref().is_ok_and(|one| one.matches(uri).is_some()));
        let uris = server.0.core.hub.uris().into_iter();
        uris.filter(|uri| self.resources.contains_key(uri) || fits(uri)).collect()
    }
}

/// Makes what is registered be `items`, touching only what is not so already.
fn put<T: Listed>(registry: &Registry<T>, shown: &mut Shown, items: Vec<T>) {
    let mut gone = std::mem::take(shown);
    for item in items {
        let (key, now) = (item.key().to_owned(), item.render(Revision::LATEST));
        let put = match gone.remove(&key) {
            Some(old) if old == now => Ok(()),
            Some(_) => registry.replace(item),
            None => registry.add([item]),
        };
        match put {
            Ok(()) => drop(shown.insert(key, now)),
            Err(error) => tracing::warn!(kind = T::KIND, key, %error, "what a mounted server offers is left out"),
        }
    }
    for key in gone.keys() {
        registry.remove(key);
    }
}

/// Follows the remote server until its client disconnects, or the server here is gone.
struct Following {
    server: Weak<Inner>,
    remote: Remote,
    entries: Arc<Mutex<Entries>>,
    /// Changes of the lists; none while nothing is heard of them.
    lists: Option<Subscription>,
    /// What may have changed since it was read.
    stale: BTreeSet<List>,
    /// When what has failed is tried again.
    again: Option<Instant>,
    backoff: Backoff,
    /// The resources whose changes are told here, and what hears of them; dropping that ends it.
    heard: BTreeSet<String>,
    hearing: JoinSet<()>,
}

enum Event {
    Change(List),
    /// Nothing more is heard of the lists.
    Deaf,
    /// Other resources are listened to here than before.
    Interest,
    /// It is time to try again.
    Again,
    /// The client has disconnected.
    Disconnected,
    /// The server here is gone.
    Gone,
}

impl Following {
    fn new(server: Weak<Inner>, remote: Remote, entries: Arc<Mutex<Entries>>, lists: Option<Subscription>) -> Self {
        let (stale, again, backoff, heard, hearing) = Default::default();
        Self { server, remote, entries, lists, stale, again, backoff, heard, hearing }
    }

    async fn run(mut self) {
        let Some(mut interest) = self.server.upgrade().map(|server| server.core.hub.interest()) else { return };
        if self.lists.is_none() {
            self.try_later();
        }
        self.hear().await;
        loop {
            match self.next(&mut interest).await {
                Event::Change(list) => self.on_change(list).await,
                Event::Deaf => self.on_deaf(),
                Event::Interest => self.hear().await,
                Event::Again => self.try_again().await,
                Event::Disconnected => return self.end(),
                Event::Gone => return,
            }
        }
    }

    async fn next(&mut self, interest: &mut watch::Receiver<u64>) -> Event {
        let again = self.again;
        tokio::select! {
            change = next_of(&mut self.lists) => match change {
                Some(Changed::Tools) => Event::Change(List::Tools),
                Some(Changed::Prompts) => Event::Change(List::Prompts),
                Some(Changed::Resources | Changed::Resource(_) | Changed::Task(_)) => Event::Change(List::Resources),
                None if self.lists.as_ref().is_some_and(is_disconnected) => Event::Disconnected,
                None => Event::Deaf,
            },
            changed = interest.changed() => if changed.is_ok() { Event::Interest } else { Event::Gone },
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => Event::Again,
        }
    }

    async fn on_change(&mut self, list: List) {
        self.stale.insert(list);
        // A server that fails is not asked the more often for what it says.
        if self.again.is_none() {
            self.refresh().await;
        }
    }

    fn on_deaf(&mut self) {
        self.lists = None;
        self.try_later();
    }

    async fn try_again(&mut self) {
        self.again = None;
        if self.lists.is_none() {
            self.lists = self.remote.listen().await.ok();
            // What changed meanwhile was not heard of.
            self.stale.extend(self.lists.iter().flat_map(|_| List::ALL));
        }
        self.refresh().await;
    }

    /// Reads what may have changed.
    async fn refresh(&mut self) {
        for list in std::mem::take(&mut self.stale) {
            match self.remote.fetch(list).await {
                Ok(offer) => {
                    let Some(server) = self.server.upgrade().map(Server::passing) else { return };
                    lock(&self.entries).put(&server, offer);
                }
                Err(error) => {
                    let prefix = &self.remote.prefix;
                    tracing::warn!(prefix, error = error.to_log(), "a mounted server does not say what it offers now");
                    self.stale.insert(list);
                }
            }
        }
        if self.stale.is_empty() && self.lists.is_some() {
            self.backoff.works();
        } else {
            self.try_later();
        }
        self.hear().await;
    }

    fn try_later(&mut self) {
        self.again.get_or_insert_with(|| Instant::now() + self.backoff.next());
    }

    /// Listens to the resources of the remote server that somebody listens to here.
    async fn hear(&mut self) {
        let Some(server) = self.server.upgrade().map(Server::passing) else { return };
        let wanted = lock(&self.entries).wanted(&server);
        drop(server);
        if wanted == self.heard {
            return;
        }
        let mut hearing = JoinSet::new();
        if !wanted.is_empty() {
            let filter = wanted.iter().fold(NotificationFilter::new(), NotificationFilter::resource);
            let changes = self.remote.client.listen(filter.clone()).await.ok();
            hearing.spawn(tell(self.server.clone(), self.remote.client.clone(), filter, changes));
        }
        self.heard = wanted;
        let old = std::mem::replace(&mut self.hearing, hearing);
        if !old.is_empty() {
            // What it was told before the new one began may still be on its way.
            tokio::spawn(async move {
                sleep(SOON).await;
                drop(old);
            });
        }
    }

    fn end(&self) {
        if let Some(server) = self.server.upgrade() {
            lock(&self.entries).end(&Server::passing(server));
        }
    }
}

async fn next_of(lists: &mut Option<Subscription>) -> Option<Changed> {
    match lists {
        Some(lists) => lists.next().await,
        None => std::future::pending().await,
    }
}

fn is_disconnected(ended: &Subscription) -> bool {
    matches!(ended.ended(), Some(ListenEnd::Local))
}

/// Tells here what resources change there. Where the stream ends, or none comes about, it listens anew; and then tells that
/// all of them have changed, as they may have.
async fn tell(server: Weak<Inner>, client: Client, filter: NotificationFilter, mut changes: Option<Subscription>) {
    let mut backoff = Backoff::default();
    loop {
        if let Some(mut changes) = changes.take() {
            backoff.works();
            while let Some(change) = changes.next().await {
                let Some(server) = server.upgrade().map(Server::passing) else { return };
                if let Changed::Resource(uri) = change {
                    server.resource_updated(&uri);
                }
            }
            if is_disconnected(&changes) {
                return;
            }
        }
        sleep(backoff.next()).await;
        changes = client.listen(filter.clone()).await.ok();
        let Some(server) = server.upgrade().map(Server::passing) else { return };
        for uri in changes.iter().flat_map(|_| &filter.resource_subscriptions) {
            server.resource_updated(uri);
        }
    }
}

/// How long to wait before something is tried again: not long at first, and then ever longer, until it has worked for a
/// while. What works only to fail at once must not be tried all the time.
#[derive(Debug)]
struct Backoff {
    wait: Duration,
    works_since: Option<Instant>,
}

const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(60);

impl Default for Backoff {
    fn default() -> Self {
        Self { wait: SOON, works_since: None }
    }
}

impl Backoff {
    fn works(&mut self) {
        self.works_since.get_or_insert_with(Instant::now);
    }

    /// It does not work.
    fn next(&mut self) -> Duration {
        let worked = self.works_since.take().is_some_and(|since| since.elapsed() >= LATE);
        let wait = if worked { SOON } else { self.wait };
        self.wait = (wait * 2).min(LATE);
        wait
    }
}
