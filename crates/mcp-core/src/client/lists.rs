//! What a server has, page by page: as one page, as a stream that follows them, or whole.
//!
//! Specification: *Pagination*.

use std::collections::{HashSet, VecDeque};

use futures_core::Stream;
use futures_util::{TryStreamExt, stream};
use mcp_jsonrpc::{ByteString, Raw};
use serde::de::DeserializeOwned;

use crate::{
    Blame, Client, Error, ErrorKind, Tool,
    client::remote,
    method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, Method},
    shown::{misfit, shown},
    types::{PaginatedParams, PromptDefinition, ResourceDefinition, ResourceTemplateDefinition, ToolDefinition},
};

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// What is in it. A definition that cannot be read is left out, with a warning in the log.
    pub items: Vec<T>,
    /// What the next page is asked for with, if there is one.
    pub next_cursor: Option<String>,
}

/// A method that lists things.
trait List: Method<Params = PaginatedParams> {
    /// What it lists.
    type Item: Send;

    /// What is on a page, and where the next one begins.
    fn open(page: Self::Result) -> (Vec<Raw>, Option<ByteString>);

    /// One entry; one that cannot be read costs only itself.
    fn read(client: &Client, entry: &Raw) -> Option<Self::Item>;
}

macro_rules! lists {
    ($($method:ident: $member:ident, $item:ty, $read:expr;)*) => {
        $(
            impl List for $method {
                type Item = $item;

                fn open(page: Self::Result) -> (Vec<Raw>, Option<ByteString>) {
                    (page.$member, page.next_cursor)
                }

                fn read(client: &Client, entry: &Raw) -> Option<$item> {
                    $read(client, entry)
                }
            }
        )*
    };
}

lists! {
    ListTools: tools, Tool, Client::tool;
    ListPrompts: prompts, PromptDefinition, definition;
    ListResources: resources, ResourceDefinition, definition;
    ListResourceTemplates: resource_templates, ResourceTemplateDefinition, definition;
}

fn definition<T: DeserializeOwned>(_: &Client, raw: &Raw) -> Option<T> {
    raw.decode()
        .map_err(|error| tracing::warn!(error = misfit(&error), "a definition cannot be read; it is left out"))
        .ok()
}

/// Lists are followed to their end, which comes at the latest after [`Limits::max_pages`](crate::Limits) pages or
/// [`Limits::list_bytes`](crate::Limits), or where a cursor comes a second time: then with an error.
impl Client {
    /// The server's tools, as tools that can be added to a server of one's own; all pages of them.
    ///
    /// A definition with a bad `x-mcp-header` is left out too. What the others mirror is remembered, so that calls over HTTP
    /// carry the headers that the server wants.
    ///
    /// # Errors
    /// When the server fails, or its pages do not come to an end.
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        let tools: Vec<Tool> = self.follow::<ListTools>().try_collect().await?;
        self.know_tools(&tools);
        Ok(tools)
    }

    /// One page of the tools: the first, or the one that a cursor names.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn tools_page(&self, cursor: Option<&str>) -> Result<Page<Tool>, Error> {
        self.page::<ListTools>(cursor).await
    }

    /// The tools one by one, each page being asked for when it is needed.
    pub fn tools_stream(&self) -> impl Stream<Item = Result<Tool, Error>> + Send + use<> {
        self.follow::<ListTools>()
    }

    /// The server's prompts; all pages of them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn prompts(&self) -> Result<Vec<PromptDefinition>, Error> {
        self.follow::<ListPrompts>().try_collect().await
    }

    /// One page of the prompts.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn prompts_page(&self, cursor: Option<&str>) -> Result<Page<PromptDefinition>, Error> {
        self.page::<ListPrompts>(cursor).await
    }

    /// The prompts one by one, each page being asked for when it is needed.
    pub fn prompts_stream(&self) -> impl Stream<Item = Result<PromptDefinition, Error>> + Send + use<> {
        self.follow::<ListPrompts>()
    }

    /// The server's resources; all pages of them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn resources(&self) -> Result<Vec<ResourceDefinition>, Error> {
        self.follow::<ListResources>().try_collect().await
    }

    /// One page of the resources.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn resources_page(&self, cursor: Option<&str>) -> Result<Page<ResourceDefinition>, Error> {
        self.page::<ListResources>(cursor).await
    }

    /// The resources one by one, each page being asked for when it is needed.
    pub fn resources_stream(&self) -> impl Stream<Item = Result<ResourceDefinition, Error>> + Send + use<> {
        self.follow::<ListResources>()
    }

    /// The server's resource templates; all pages of them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplateDefinition>, Error> {
        self.follow::<ListResourceTemplates>().try_collect().await
    }

    /// One page of the resource templates.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn resource_templates_page(
        &self,
        cursor: Option<&str>,
    ) -> Result<Page<ResourceTemplateDefinition>, Error> {
        self.page::<ListResourceTemplates>(cursor).await
    }

    /// The resource templates one by one, each page being asked for when it is needed.
    pub fn resource_templates_stream(
        &self,
    ) -> impl Stream<Item = Result<ResourceTemplateDefinition, Error>> + Send + use<> {
        self.follow::<ListResourceTemplates>()
    }

    fn tool(&self, raw: &Raw) -> Option<Tool> {
        let read = raw.decode::<ToolDefinition>().map_err(|error| misfit(&error));
        let tool = read.and_then(|definition| remote::tool(self, definition).map_err(|error| error.to_string()));
        tool.map_err(|error| {
            let name = raw.decode::<serde_json::Value>().ok().and_then(|tool| Some(tool["name"].as_str()?.to_owned()));
            tracing::warn!(tool = shown(&name.unwrap_or_default()), %error, "a tool's definition cannot be read; it is left out");
        })
        .ok()
    }

    async fn page<L: List>(&self, cursor: Option<&str>) -> Result<Page<L::Item>, Error> {
        Ok(self.sized_page::<L>(cursor).await?.0)
    }

    /// A page, and how many bytes are in it.
    async fn sized_page<L: List>(&self, cursor: Option<&str>) -> Result<(Page<L::Item>, usize), Error> {
        let page = self.ask::<L>(&PaginatedParams { cursor: cursor.map(Into::into) }).await?;
        let (entries, next) = L::open(page);
        let bytes = entries.iter().map(|entry| entry.as_bytes().len()).sum::<usize>()
            + next.as_ref().map_or(0, |next| next.len());
        let items = entries.iter().filter_map(|entry| L::read(self, entry)).collect();
        Ok((Page { items, next_cursor: next.map(Into::into) }, bytes))
    }

    fn follow<L: List>(&self) -> impl Stream<Item = Result<L::Item, Error>> + Send + use<L> {
        let walk = Walk::<L> {
            client: self.clone(),
            ready: VecDeque::new(),
            next: Some(None),
            seen: HashSet::new(),
            bytes: 0,
        };
        stream::try_unfold(walk, |mut walk| async move { Ok(walk.next().await?.map(|item| (item, walk))) })
    }
}

/// How far a list is read.
struct Walk<L: List> {
    client: Client,
    ready: VecDeque<L::Item>,
    /// What the next page is asked for with; none if there is none.
    next: Option<Option<String>>,
    seen: HashSet<String>,
    bytes: usize,
}

impl<L: List> Walk<L> {
    async fn next(&mut self) -> Result<Option<L::Item>, Error> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            let Some(cursor) = self.next.take() else { return Ok(None) };
            let (page, bytes) = self.client.sized_page::<L>(cursor.as_deref()).await?;
            self.bytes += bytes;
            if self.bytes > self.client.limits().list_bytes {
                return Err(endless());
            }
            self.ready = page.items.into();
            if let Some(next) = page.next_cursor {
                if self.seen.len() + 1 >= self.client.limits().max_pages || !self.seen.insert(next.clone()) {
                    return Err(endless());
                }
                self.next = Some(Some(next));
            }
        }
    }
}

fn endless() -> Error {
    Error::new(ErrorKind::ProtocolInvalid, "the server's pages repeat or do not end").blaming(Blame::Peer)
}
