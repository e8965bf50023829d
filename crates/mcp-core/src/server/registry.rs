use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use bytes::{Bytes, BytesMut};
use mcp_jsonrpc::{ByteString, Raw, encode};

use crate::{
    Blame, Era, Error, ErrorKind, Exchange, Prompt, Resource, ResourceTemplate, Revision, Tool,
    hub::{Hub, Subject},
    server::reply::{self, Rendered},
    shown,
};

/// What a server offers of one kind, added to and removed from while it serves.
///
/// Readers take a snapshot and never wait. Each change copies the table, so many entries are best added at once. They are
/// listed in the order in which they were added.
///
/// ```
/// # use mcp_core::{Server, Tool, ToolError, implementation};
/// # async fn now() -> Result<String, ToolError> { Ok("now".into()) }
/// let server = Server::builder(implementation!()).build();
/// server.tools().add(Tool::new("now", now))?;
/// assert!(server.tools().remove("now"));
/// # Ok::<(), mcp_core::Error>(())
/// ```
pub struct Registry<T> {
    snapshot: ArcSwap<Snapshot<T>>,
    /// Whom an entry is shown to; everybody where there is none.
    filter: Option<Filter<T>>,
    /// Whether there ever was an entry with extras.
    has_extras: AtomicBool,
    /// Who is told of changes.
    hub: Arc<Hub>,
    subject: Subject,
}

/// Whether an exchange sees an entry.
pub(crate) type Filter<T> = Arc<dyn Fn(&Exchange, &T) -> bool + Send + Sync>;

/// The tools of a server.
pub type ToolRegistry = Registry<Tool>;
/// The prompts of a server.
pub type PromptRegistry = Registry<Prompt>;
/// The resources of a server.
pub type ResourceRegistry = Registry<Resource>;
/// The resource templates of a server.
pub type TemplateRegistry = Registry<ResourceTemplate>;

#[derive(Debug)]
struct Snapshot<T> {
    by_key: HashMap<String, Arc<Entry<T>>>,
    /// In the order in which they were added.
    ordered: Vec<Arc<Entry<T>>>,
    /// What the next one is numbered.
    next: u64,
    /// All of them as JSON text, with their commas, by revision.
    whole: [OnceLock<Bytes>; Revision::ALL.len()],
}

/// A copy is made to be changed.
impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self { by_key: self.by_key.clone(), ordered: self.ordered.clone(), next: self.next, whole: Default::default() }
    }
}

/// Keeps what can be listed to what the protocol lists.
pub(crate) mod sealed {
    /// One of the four kinds.
    pub trait Sealed {}
}

/// Something that a server lists.
pub trait Listed: sealed::Sealed + Clone + Send + Sync + 'static {
    /// What it is called in errors.
    const KIND: &'static str;

    /// What it is found by: its name, or its URI.
    fn key(&self) -> &str;

    /// The same, with all made that its use needs.
    ///
    /// # Errors
    /// Why it may not be listed.
    fn prepared(self) -> Result<Self, Error>;

    /// Whether it has what only some have, and what has methods of its own: something to complete, or the word that it may run
    /// as a task.
    fn has_extras(&self) -> bool {
        false
    }

    /// Its definition as JSON text, with what `revision` has of it.
    fn render(&self, revision: Revision) -> Raw;
}

/// What every listed kind can say of itself, and that one of it is a collection of one.
macro_rules! describes_itself {
    ($kind:ident, $definition:ty) => {
        impl $kind {
            /// Says what it is for, or what it holds, for a model.
            #[must_use]
            pub fn describe(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// Names it for people. From 2025-06-18 on.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Sets its pictures. From 2025-11-25 on.
            #[must_use]
            pub fn icons(mut self, icons: impl IntoIterator<Item = $crate::types::Icon>) -> Self {
                self.definition.icons = $crate::types::Icon::all(icons);
                self
            }

            /// Sets its metadata, an object. From 2025-06-18 on.
            #[must_use]
            pub fn meta(mut self, meta: $crate::jsonrpc::Raw) -> Self {
                self.definition.meta = Some(meta);
                self
            }

            /// The same with all that another says of itself.
            pub(crate) fn defined(mut self, definition: $definition) -> Self {
                self.definition = definition;
                self
            }

            /// What it says of itself.
            #[must_use]
            pub fn definition(&self) -> &$definition {
                &self.definition
            }
        }

        impl $crate::server::registry::sealed::Sealed for $kind {}

        /// One is a collection of one, so that registries take either.
        impl IntoIterator for $kind {
            type Item = Self;
            type IntoIter = std::iter::Once<Self>;

            fn into_iter(self) -> Self::IntoIter {
                std::iter::once(self)
            }
        }
    };
}
pub(crate) use describes_itself;

/// Something that is listed, and what has been rendered of it.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) item: T,
    /// Where it stands in the list, whatever is added or removed beside it.
    number: u64,
    /// Its definition as JSON text, by revision.
    rendered: [OnceLock<Raw>; Revision::ALL.len()],
}

impl<T> std::fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("subject", &self.subject).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Listed> Registry<T> {
    /// Adds an entry, or all of several.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateRegistration`] when one is there already, and [`ErrorKind::InvalidParams`] when one is not
    /// valid, as without a name or with a schema that is no good; then none is added.
    pub fn add(&self, items: impl IntoIterator<Item = T>) -> Result<(), Error> {
        let items = items.into_iter().map(T::prepared).collect::<Result<Vec<T>, Error>>()?;
        if items.is_empty() {
            return Ok(());
        }
        self.note_extras(&items);
        self.change(|snapshot| items.iter().try_for_each(|item| snapshot.insert(item.clone())))
    }

    /// Adds an entry in the place of the one of its name, or at the end where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidParams`] when it is not valid.
    pub fn replace(&self, item: T) -> Result<(), Error> {
        let item = item.prepared()?;
        self.note_extras(std::slice::from_ref(&item));
        self.change(|snapshot| {
            let Some(old) = snapshot.by_key.get(item.key()).cloned() else {
                return snapshot.insert(item.clone());
            };
            let entry = Arc::new(Entry::new(item.clone(), old.number));
            snapshot.by_key.insert(entry.item.key().into(), entry.clone());
            for slot in snapshot.ordered.iter_mut().filter(|slot| slot.number == old.number) {
                *slot = entry.clone();
            }
            Ok(())
        })
    }

    /// Removes an entry; false if there was none of that name. Requests that run go on.
    pub fn remove(&self, key: &str) -> bool {
        // So that nobody is told of a change that is none.
        if self.find(key).is_none() {
            return false;
        }
        let mut removed = false;
        // Removing has no way to fail.
        let _ = self.change(|snapshot| {
            removed = snapshot.by_key.remove(key).is_some();
            snapshot.ordered.retain(|entry| entry.item.key() != key);
            Ok(())
        });
        removed
    }

    fn note_extras(&self, items: &[T]) {
        self.has_extras.fetch_or(items.iter().any(T::has_extras), Ordering::Relaxed);
    }

    /// The entry of that name, as it is now.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<T> {
        self.find(key).map(|entry| entry.item.clone())
    }

    /// All entries, as they are now, in the order in which they are listed.
    #[must_use]
    pub fn all(&self) -> Vec<T> {
        self.snapshot.load().ordered.iter().map(|entry| entry.item.clone()).collect()
    }

    fn find(&self, key: &str) -> Option<Arc<Entry<T>>> {
        self.snapshot.load().by_key.get(key).cloned()
    }

    /// The entry of that name, if the exchange sees it: what is hidden is like what is not there.
    pub(crate) fn find_for(&self, exchange: &Exchange, key: &str) -> Option<Arc<Entry<T>>> {
        self.find(key).filter(|entry| self.shows(exchange, &entry.item))
    }

    /// Applies `change` to a copy and puts it in place, again if somebody else was quicker.
    fn change(&self, mut change: impl FnMut(&mut Snapshot<T>) -> Result<(), Error>) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.snapshot.rcu(|old| {
            let mut new = Snapshot::clone(old);
            outcome = change(&mut new);
            if outcome.is_ok() { Arc::new(new) } else { old.clone() }
        });
        if outcome.is_ok() {
            self.hub.changed(&self.subject);
        }
        outcome
    }
}

impl<T> Registry<T> {
    /// One that is empty, and tells `hub` of changes to `subject`.
    pub(crate) fn new(filter: Option<Filter<T>>, hub: &Arc<Hub>, subject: Subject) -> Self {
        let (by_key, ordered) = (HashMap::new(), Vec::new());
        let empty = Snapshot { by_key, ordered, next: 0, whole: Default::default() };
        Self {
            snapshot: ArcSwap::from_pointee(empty),
            filter,
            has_extras: AtomicBool::new(false),
            hub: hub.clone(),
            subject,
        }
    }

    /// Whether the exchange sees an entry.
    pub(crate) fn shows(&self, exchange: &Exchange, item: &T) -> bool {
        self.filter.as_ref().is_none_or(|shows| shows(exchange, item))
    }

    /// Whether all see the same.
    pub(crate) fn is_one_for_all(&self) -> bool {
        self.filter.is_none()
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.snapshot.load().ordered.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there ever was one.
    pub(crate) fn was_used(&self) -> bool {
        self.snapshot.load().next > 0
    }

    /// Whether there ever was one with extras.
    pub(crate) fn has_extras(&self) -> bool {
        self.has_extras.load(Ordering::Relaxed)
    }

    /// Whether an entry of that number was ever there.
    pub(crate) fn knows(&self, number: u64) -> bool {
        number < self.snapshot.load().next
    }

    /// Of the entries that have a rank, the one with the lowest, and of several the first.
    pub(crate) fn best<R: Ord, M>(&self, rank: impl Fn(&T) -> Option<(R, M)>) -> Option<(Arc<Entry<T>>, M)> {
        let snapshot = self.snapshot.load();
        let mut ranked = snapshot.ordered.iter().filter_map(|entry| Some((entry, rank(&entry.item)?)));
        let first = ranked.next()?;
        let best = ranked.fold(first, |best, next| if next.1.0 < best.1.0 { next } else { best });
        Some((best.0.clone(), best.1.1))
    }

    /// What `show` makes of the entries that `shows` shows after the one numbered `after`, at most `most` of them; and the
    /// number of the last one, if more follow.
    pub(crate) fn page<R>(
        &self,
        after: Option<u64>,
        most: usize,
        shows: impl Fn(&T) -> bool,
        show: impl Fn(&Arc<Entry<T>>) -> R,
    ) -> (Vec<R>, Option<u64>) {
        let snapshot = self.snapshot.load();
        let start = after.map_or(0, |after| snapshot.ordered.partition_point(|entry| entry.number <= after));
        let rest = &snapshot.ordered[start..];
        let mut shown = rest.iter().filter(|entry| shows(&entry.item));
        let (mut page, mut last) = (Vec::with_capacity(rest.len().min(most)), None);
        for entry in shown.by_ref().take(most) {
            page.push(show(entry));
            last = Some(entry.number);
        }
        (page, last.filter(|_| shown.next().is_some()))
    }
}

impl<T: Listed> Registry<T> {
    /// All entries as JSON text, where all see the same, and it is no more than `most`.
    pub(crate) fn whole(&self, most: usize, revision: Revision) -> Option<Bytes> {
        let snapshot = self.snapshot.load();
        if !self.is_one_for_all() || snapshot.ordered.len() > most {
            return None;
        }
        let whole = snapshot.whole[revision as usize].get_or_init(|| {
            let mut text = BytesMut::with_capacity(reply::size(&snapshot.ordered, revision));
            reply::write(&mut text, &snapshot.ordered, revision);
            text.freeze()
        });
        Some(whole.clone())
    }
}

impl<T: Listed> Snapshot<T> {
    fn insert(&mut self, item: T) -> Result<(), Error> {
        if self.by_key.contains_key(item.key()) {
            let message = format!("there is a {} `{}` already", T::KIND, item.key());
            return Err(Error::new(ErrorKind::DuplicateRegistration, message));
        }
        let entry = Arc::new(Entry::new(item, self.next));
        self.next += 1;
        self.by_key.insert(entry.item.key().to_owned(), entry.clone());
        self.ordered.push(entry);
        Ok(())
    }
}

impl<T: Listed> Entry<T> {
    fn new(item: T, number: u64) -> Self {
        Self { item, number, rendered: Default::default() }
    }
}

/// The definition.
impl<T: Listed> Rendered for Entry<T> {
    fn rendered(&self, revision: Revision) -> &Raw {
        self.rendered[revision as usize].get_or_init(|| one_line(self.item.render(revision)))
    }
}

/// Leaves a member out before the revision that brought it.
pub(crate) fn since<T>(revision: Revision, first: Revision, member: &mut Option<T>) {
    if revision < first {
        *member = None;
    }
}

/// A name that is empty names nothing, and metadata is an object.
pub(crate) fn check(kind: &str, key: &str, name: &str, meta: Option<&Raw>) -> Result<(), Error> {
    let wrong = |why: String| Err(Error::new(ErrorKind::InvalidParams, why).blaming(Blame::Caller));
    if key.is_empty() || name.is_empty() {
        return wrong(format!("a {kind}'s name must not be empty"));
    }
    match meta {
        Some(meta) if !meta.is_object() => {
            wrong(format!("the {kind} `{}`: its metadata must be an object", shown(key)))
        }
        _ => Ok(()),
    }
}

impl Listed for Tool {
    const KIND: &'static str = "tool";

    fn key(&self) -> &str {
        &self.definition.name
    }

    fn has_extras(&self) -> bool {
        self.tasks.is_some()
    }

    /// What is wrong with a schema is told with the tool's name.
    fn prepared(self) -> Result<Self, Error> {
        check(Self::KIND, self.key(), self.key(), self.definition.meta.as_ref())?;
        warn_of_odd_name(self.key());
        let name = self.definition.name.clone();
        Tool::prepared(self).map_err(|error| {
            Error::new(error.kind(), format!("the tool `{}`: {error}", shown(&name))).blaming(Blame::Caller)
        })
    }

    fn render(&self, revision: Revision) -> Raw {
        let mut shown = self.definition.clone();
        since(revision, Revision::V2025_06_18, &mut shown.title);
        since(revision, Revision::V2025_11_25, &mut shown.icons);
        since(revision, Revision::V2025_03_26, &mut shown.annotations);
        since(revision, Revision::V2025_06_18, &mut shown.meta);
        shown.output_schema = shown.output_schema.filter(|schema| may_be_promised(schema, revision));
        Raw::encode(&shown).unwrap_or(Raw::empty_object())
    }
}

/// The specification's rule is only a SHOULD, so a name that breaks it works.
///
/// Specification: *Tools, Tool Names*.
fn warn_of_odd_name(name: &str) {
    let usual = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    if name.len() > 128 || !name.chars().all(usual) {
        tracing::warn!(tool = name, "tool names should be 1 to 128 of A-Z, a-z, 0-9, `_`, `-` and `.`");
    }
}

/// What was given as JSON, as schemas, icons and hints, keeps its text; but a line end in it would end the frame on wires of
/// lines.
fn one_line(raw: Raw) -> Raw {
    if !raw.as_bytes().iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return raw;
    }
    let mut text = BytesMut::with_capacity(raw.as_bytes().len());
    encode::one_line(&mut text, raw.as_bytes());
    ByteString::try_from(text.freeze()).map(Raw::assume_valid).unwrap_or(raw)
}

/// What is promised must be kept: where structured content is an object, its schema is an object's.
fn may_be_promised(output_schema: &Raw, revision: Revision) -> bool {
    let is_objects = || output_schema.member("type").is_some_and(|kind| kind.as_str() == r#""object""#);
    revision.era() == Era::Modern || (revision >= Revision::V2025_06_18 && is_objects())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::{
        ToolError,
        types::{Icon, IconTheme, ToolAnnotations},
    };

    fn tool(name: &str) -> Tool {
        async fn nothing() -> Result<(), ToolError> {
            Ok(())
        }
        Tool::new(name, nothing)
    }

    fn registry() -> ToolRegistry {
        Registry::new(None, &Arc::default(), Subject::Tools)
    }

    fn page(registry: &ToolRegistry, after: Option<u64>, most: usize) -> (Vec<String>, Option<u64>) {
        registry.page(after, most, |_| true, |entry| entry.item.key().to_owned())
    }

    fn names(registry: &ToolRegistry) -> Vec<String> {
        page(registry, None, 100).0
    }

    #[test]
    fn order_is_that_of_adding_and_a_replacement_keeps_its_place() {
        let registry = registry();
        registry.add(["c", "a", "b"].map(tool)).unwrap();
        registry.replace(tool("a").describe("new")).unwrap();
        assert!(registry.remove("c") && !registry.remove("c"));
        registry.add(tool("c")).unwrap();
        assert_eq!(names(&registry), ["a", "b", "c"]);
        assert_eq!(registry.find("a").unwrap().item.definition.description.as_deref(), Some("new"));
    }

    #[test]
    fn a_name_is_taken_once_and_a_failed_add_adds_nothing() {
        let registry = registry();
        registry.add(tool("a")).unwrap();
        let error = registry.add(["b", "a"].map(tool)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateRegistration);
        assert_eq!(registry.add(tool("")).unwrap_err().kind(), ErrorKind::InvalidParams);
        assert_eq!(names(&registry), ["a"]);
    }

    #[test]
    fn a_bad_header_annotation_is_told_with_tool_and_property() {
        let annotated = |name: &str| {
            let schema = format!(r#"{{"properties":{{"p":{{"type":"string","x-mcp-header":"{name}"}}}}}}"#);
            Tool::raw("a", Raw::parse(schema).unwrap(), tool("a").handler)
        };
        let registry = registry();
        let error = registry.add(annotated("not a name")).unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::InvalidParams, Blame::Caller));
        assert!(error.to_string().contains("`a`") && error.to_string().contains("`p`"), "{error}");
        registry.add(tool("a")).unwrap();
        assert!(registry.replace(annotated("")).is_err() && registry.get("a").unwrap().mirror.is_empty());
        registry.replace(annotated("P")).unwrap();
        assert!(!registry.get("a").unwrap().mirror.is_empty());
    }

    #[test]
    fn pages_go_on_where_they_stopped_whatever_changes_between() {
        let registry = registry();
        registry.add(["a", "b", "c", "d"].map(tool)).unwrap();
        let (first, last) = page(&registry, None, 2);
        assert_eq!(first, ["a", "b"]);
        assert!(last.is_some());
        registry.remove("b");
        registry.remove("c");
        assert_eq!(page(&registry, last, 2), (vec!["d".into()], None));
    }

    #[test]
    fn hidden_entries_count_in_no_page() {
        let registry = registry();
        registry.add(["a", "b", "c", "d"].map(tool)).unwrap();
        let visible = |tool: &Tool| !matches!(tool.key(), "b" | "d");
        let page = |after, most| registry.page(after, most, visible, |entry| entry.item.key().to_owned());
        assert_eq!(page(None, 2), (vec!["a".into(), "c".into()], None));
        let (first, last) = page(None, 1);
        assert_eq!((first, page(last, 1)), (vec!["a".into()], (vec!["c".into()], None)));
    }

    #[test]
    fn what_was_rendered_once_is_shown_to_whoever_sees_it() {
        #[derive(Clone)]
        struct Counted(String, Arc<AtomicUsize>);
        impl sealed::Sealed for Counted {}

        impl Listed for Counted {
            const KIND: &'static str = "counted";
            fn key(&self) -> &str {
                &self.0
            }
            fn prepared(self) -> Result<Self, Error> {
                Ok(self)
            }
            fn render(&self, _: Revision) -> Raw {
                self.1.fetch_add(1, Ordering::Relaxed);
                Raw::empty_object()
            }
        }
        let (registry, renderings) = (Registry::new(None, &Arc::default(), Subject::Tools), Arc::default());
        registry.add((0..700).map(|index| Counted(index.to_string(), Arc::clone(&renderings)))).unwrap();
        let list = |least: usize| {
            let shows = |item: &Counted| item.0.parse::<usize>().unwrap() >= least;
            registry.page(None, 1000, shows, |entry| entry.rendered(Revision::LATEST).clone()).0.len()
        };
        assert_eq!((list(600), renderings.load(Ordering::Relaxed)), (100, 100));
        assert_eq!((list(0), renderings.load(Ordering::Relaxed)), (700, 700));
        assert_eq!((list(600), list(0), renderings.load(Ordering::Relaxed)), (100, 700, 700));
        registry.replace(Counted("5".into(), renderings.clone())).unwrap();
        assert_eq!((list(0), renderings.load(Ordering::Relaxed)), (700, 701));
    }

    #[test]
    fn a_schema_of_several_lines_is_listed_on_one() {
        let schema = Raw::parse("{\n\t\"type\":\r\n\"object\", \"title\": \"a\\nb\"}").unwrap();
        let entry = Entry::new(Tool::raw("a", schema, tool("a").handler), 0);
        let text = r#"{"name":"a","inputSchema":{ 	"type":  "object", "title": "a\nb"}}"#.replace(r"\t", "\t");
        assert_eq!(entry.rendered(Revision::V2024_11_05).as_str(), text);
    }

    #[test]
    fn what_else_is_given_as_json_is_listed_on_one_line_too() {
        let hints = || Raw::parse("{\n\"priority\":1\r\n}").unwrap();
        let resource = Entry::new(Resource::fixed("x:a", "a", "text").annotate(hints()).meta(hints()), 0);
        let text = resource.rendered(Revision::LATEST).as_str();
        assert!(text.contains(r#""priority":1"#) && !text.contains(['\n', '\r']), "{text}");
    }

    #[test]
    fn a_revision_has_only_its_own_members() {
        let tool = tool("a")
            .title("A")
            .annotate(
                ToolAnnotations::default()
                    .title("B")
                    .read_only(true)
                    .destructive(false)
                    .idempotent(true)
                    .open_world(false),
            )
            .icons([Icon::new("https://x/i.png").mime_type("image/png").size("48x48").theme(IconTheme::Dark)])
            .meta(Raw::parse(r#"{"k":1}"#).unwrap());
        let entry = Entry::new(tool, 0);
        assert_eq!(entry.rendered(Revision::V2024_11_05).as_str(), r#"{"name":"a","inputSchema":{"type":"object"}}"#);
        let newest = entry.rendered(Revision::V2026_07_28).as_str();
        let members = r#"{"name":"a","title":"A","icons":[{"src":"https://x/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}],"inputSchema":{"type":"object"},"annotations":{"title":"B","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"_meta":{"k":1}}"#;
        assert_eq!(newest, members);
    }
}
