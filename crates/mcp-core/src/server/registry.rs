use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use bytes::BytesMut;
use mcp_jsonrpc::{ByteString, Raw, encode};
use serde::Serialize;

use crate::{
    Blame, Era, Error, ErrorKind, MirrorPlan, Revision, Tool, shown,
    types::{ToolAnnotations, ToolDefinition},
};

/// The tools of a server, added to and removed from while it serves.
///
/// Readers take a snapshot and never wait. Tools are listed in the order in which they were added.
///
/// ```
/// # use mcp_core::{Server, Tool, ToolError, implementation};
/// # async fn now() -> Result<String, ToolError> { Ok("now".into()) }
/// let server = Server::builder(implementation!()).build();
/// server.tools().add(Tool::new("now", now))?;
/// assert!(server.tools().remove("now"));
/// # Ok::<(), mcp_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ToolRegistry {
    snapshot: ArcSwap<Snapshot>,
}

#[derive(Debug, Default, Clone)]
struct Snapshot {
    by_name: HashMap<String, Arc<Entry>>,
    /// In the order in which they were added.
    ordered: Vec<Arc<Entry>>,
    /// What the next one is numbered.
    next: u64,
}

/// A tool and what has been rendered of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) tool: Tool,
    /// Where it stands in the list, whatever is added or removed beside it.
    number: u64,
    /// Its definition as JSON text, by revision.
    rendered: [OnceLock<Raw>; Revision::ALL.len()],
}

impl ToolRegistry {
    /// Adds a tool, or all of several.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateRegistration`] when a name is taken, and [`ErrorKind::InvalidParams`] when one is empty or a
    /// schema is no good; then none is added.
    pub fn add(&self, tools: impl IntoIterator<Item = Tool>) -> Result<(), Error> {
        let tools = tools.into_iter().map(prepared).collect::<Result<Vec<Tool>, Error>>()?;
        self.change(|snapshot| tools.iter().try_for_each(|tool| snapshot.insert(tool.clone())))
    }

    /// Adds a tool in the place of the one of its name, or at the end where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidParams`] when the name is empty or a schema is no good.
    pub fn replace(&self, tool: Tool) -> Result<(), Error> {
        let tool = prepared(tool)?;
        self.change(|snapshot| {
            let Some(old) = snapshot.by_name.get(&tool.definition.name).cloned() else {
                return snapshot.insert(tool.clone());
            };
            let entry = Arc::new(Entry::new(tool.clone(), old.number));
            snapshot.by_name.insert(entry.name().into(), entry.clone());
            for slot in snapshot.ordered.iter_mut().filter(|slot| slot.number == old.number) {
                *slot = entry.clone();
            }
            Ok(())
        })
    }

    /// Removes a tool; false if there was none of that name. Calls that run go on.
    pub fn remove(&self, name: &str) -> bool {
        let mut removed = false;
        // Removing has no way to fail.
        let _ = self.change(|snapshot| {
            removed = snapshot.by_name.remove(name).is_some();
            snapshot.ordered.retain(|entry| entry.name() != name);
            Ok(())
        });
        removed
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.snapshot.load().ordered.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the tool of that name mirrors in HTTP headers; `None` where it mirrors nothing, or is not there.
    #[must_use]
    pub fn mirror_plan(&self, name: &str) -> Option<MirrorPlan> {
        self.find(name).map(|entry| entry.tool.mirror.clone()).filter(|plan| !plan.is_empty())
    }

    /// Whether there ever was one.
    pub(crate) fn was_used(&self) -> bool {
        self.snapshot.load().next > 0
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Entry>> {
        self.snapshot.load().by_name.get(name).cloned()
    }

    /// The entries after the one numbered `after`, at most `most`, and whether more follow.
    pub(crate) fn page(&self, after: Option<u64>, most: usize) -> (Vec<Arc<Entry>>, bool) {
        let snapshot = self.snapshot.load();
        let start = after.map_or(0, |after| snapshot.ordered.partition_point(|entry| entry.number <= after));
        let rest = &snapshot.ordered[start..];
        (rest.iter().take(most).cloned().collect(), rest.len() > most)
    }

    /// Applies `change` to a copy and puts it in place, again if somebody else was quicker.
    fn change(&self, mut change: impl FnMut(&mut Snapshot) -> Result<(), Error>) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.snapshot.rcu(|old| {
            let mut new = Snapshot::clone(old);
            outcome = change(&mut new);
            if outcome.is_ok() { Arc::new(new) } else { old.clone() }
        });
        outcome
    }
}

/// What is wrong with a schema is told with the tool's name.
fn prepared(tool: Tool) -> Result<Tool, Error> {
    let name = tool.definition.name.clone();
    tool.prepared().map_err(|error| {
        Error::new(error.kind(), format!("the tool `{}`: {error}", shown(&name))).blaming(Blame::Caller)
    })
}

impl Snapshot {
    fn insert(&mut self, tool: Tool) -> Result<(), Error> {
        let name = tool.definition.name.clone();
        if name.is_empty() {
            return Err(Error::new(ErrorKind::InvalidParams, "a tool's name must not be empty").blaming(Blame::Caller));
        }
        if self.by_name.contains_key(&name) {
            return Err(Error::new(ErrorKind::DuplicateRegistration, format!("there is a tool `{name}` already")));
        }
        warn_of_odd_name(&name);
        let entry = Arc::new(Entry::new(tool, self.next));
        self.next += 1;
        self.by_name.insert(name, entry.clone());
        self.ordered.push(entry);
        Ok(())
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

impl Entry {
    fn new(tool: Tool, number: u64) -> Self {
        Self { tool, number, rendered: Default::default() }
    }

    fn name(&self) -> &str {
        &self.tool.definition.name
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The definition as `revision` has it, rendered once.
    pub(crate) fn rendered(&self, revision: Revision) -> &Raw {
        self.rendered[revision as usize].get_or_init(|| render(&self.tool.definition, revision))
    }
}

/// Leaves out what a revision does not have.
fn render(definition: &ToolDefinition, revision: Revision) -> Raw {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Shape<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        icons: Option<&'a Raw>,
        input_schema: &'a Raw,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_schema: Option<&'a Raw>,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a ToolAnnotations>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a Raw>,
    }
    let since = |first| revision >= first;
    let shape = Shape {
        name: &definition.name,
        title: definition.title.as_ref().filter(|_| since(Revision::V2025_06_18)),
        description: definition.description.as_ref(),
        icons: definition.icons.as_ref().filter(|_| since(Revision::V2025_11_25)),
        input_schema: &definition.input_schema,
        output_schema: definition.output_schema.as_ref().filter(|schema| may_be_promised(schema, revision)),
        annotations: definition.annotations.as_ref().filter(|_| since(Revision::V2025_03_26)),
        meta: definition.meta.as_ref().filter(|_| since(Revision::V2025_06_18)),
    };
    one_line(Raw::encode(&shape).unwrap_or(Raw::empty_object()))
}

/// A schema keeps the text that it was given, but a line end in it would end the frame on wires of lines.
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
    use super::*;
    use crate::ToolError;

    fn tool(name: &str) -> Tool {
        async fn nothing() -> Result<(), ToolError> {
            Ok(())
        }
        Tool::new(name, nothing)
    }

    fn names(registry: &ToolRegistry) -> Vec<String> {
        registry.page(None, 100).0.iter().map(|entry| entry.name().to_owned()).collect()
    }

    #[test]
    fn order_is_that_of_adding_and_a_replacement_keeps_its_place() {
        let registry = ToolRegistry::default();
        registry.add(["c", "a", "b"].map(tool)).unwrap();
        registry.replace(tool("a").describe("new")).unwrap();
        assert!(registry.remove("c") && !registry.remove("c"));
        registry.add(tool("c")).unwrap();
        assert_eq!(names(&registry), ["a", "b", "c"]);
        assert_eq!(registry.find("a").unwrap().tool.definition.description.as_deref(), Some("new"));
    }

    #[test]
    fn a_name_is_taken_once_and_a_failed_add_adds_nothing() {
        let registry = ToolRegistry::default();
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
        let registry = ToolRegistry::default();
        let error = registry.add(annotated("not a name")).unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::InvalidParams, Blame::Caller));
        assert!(error.to_string().contains("`a`") && error.to_string().contains("`p`"), "{error}");
        registry.add(tool("a")).unwrap();
        assert!(registry.replace(annotated("")).is_err() && registry.mirror_plan("a").is_none());
        registry.replace(annotated("P")).unwrap();
        assert!(registry.mirror_plan("a").is_some());
    }

    #[test]
    fn pages_go_on_where_they_stopped_whatever_changes_between() {
        let registry = ToolRegistry::default();
        registry.add(["a", "b", "c", "d"].map(tool)).unwrap();
        let (first, more) = registry.page(None, 2);
        assert!(more);
        registry.remove("b");
        registry.remove("c");
        let (second, more) = registry.page(Some(first[1].number()), 2);
        assert_eq!((second[0].name(), second.len(), more), ("d", 1, false));
    }

    #[test]
    fn a_schema_of_several_lines_is_listed_on_one() {
        let schema = Raw::parse("{\n\t\"type\":\r\n\"object\", \"title\": \"a\\nb\"}").unwrap();
        let entry = Entry::new(Tool::raw("a", schema, tool("a").handler), 0);
        let text = r#"{"name":"a","inputSchema":{ 	"type":  "object", "title": "a\nb"}}"#.replace(r"\t", "\t");
        assert_eq!(entry.rendered(Revision::V2024_11_05).as_str(), text);
    }

    #[test]
    fn a_revision_has_only_its_own_members() {
        let mut tool = tool("a").title("A").annotate(ToolAnnotations::default());
        tool.definition.icons = Some(Raw::parse("[]").unwrap());
        let entry = Entry::new(tool, 0);
        assert_eq!(entry.rendered(Revision::V2024_11_05).as_str(), r#"{"name":"a","inputSchema":{"type":"object"}}"#);
        let newest = entry.rendered(Revision::V2026_07_28).as_str();
        assert!(newest.contains("\"title\"") && newest.contains("\"icons\"") && newest.contains("\"annotations\""));
    }
}
