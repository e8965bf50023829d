//! `skills/list`, `skills/get` and `resources/directory/read`.
//!
//! Specification: *Skills extension, Listing Skills; Getting a Skill; Reading Directories*.

use std::ops::Bound;

use mcp_core::{
    Context, Fault,
    types::{CacheScope, PaginatedParams},
};

use super::{Shared, unknown};
use crate::{
    GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams, ReadDirectoryResult,
    uri::{path_of, uri_of},
};

/// About how many bytes of entries are on a page.
const PAGE_BYTES: usize = 1024 * 1024;

pub(super) fn list(shared: &Shared, context: &Context, params: PaginatedParams) -> Result<ListSkillsResult, Fault> {
    let catalogue = shared.catalogue.load();
    let from = after(params.cursor.as_deref())?;
    let shown = catalogue.skills.range::<str, _>((from, Bound::Unbounded));
    let mut shown = shown.filter(|(uri, _)| context.sees_resource(uri)).peekable();
    let (mut skills, mut bytes, mut last) = (Vec::new(), 0, None);
    while let Some((uri, known)) = shown.next_if(|_| skills.len() < page_size(context) && bytes < PAGE_BYTES) {
        bytes += known.rendered.as_bytes().len();
        skills.push(known.rendered.clone());
        last = Some(uri.clone());
    }
    let next_cursor = last.filter(|_| shown.peek().is_some());
    let (ttl_ms, cache_scope) = freshness(shared, context);
    Ok(ListSkillsResult { skills, next_cursor, ttl_ms, cache_scope })
}

pub(super) fn get(shared: &Shared, context: &Context, params: GetSkillParams) -> Result<GetSkillResult, Fault> {
    let catalogue = shared.catalogue.load();
    let known = catalogue.skills.get(&params.uri).filter(|known| context.sees_resource(&known.entry.uri));
    let skill = known.ok_or_else(|| unknown("That skill"))?.entry.clone();
    let (ttl_ms, cache_scope) = freshness(shared, context);
    Ok(GetSkillResult { skill, ttl_ms, cache_scope })
}

pub(super) async fn read_directory(
    shared: &Shared,
    context: Context,
    params: ReadDirectoryParams,
) -> Result<ReadDirectoryResult, Fault> {
    let catalogue = shared.catalogue.load_full();
    let path =
        path_of(&params.uri).filter(|path| uri_of(path) == params.uri).ok_or_else(|| unknown("That directory"))?;
    let children = catalogue.children(&context, &path).await?.ok_or_else(|| unknown("That directory"))?;
    let mut following = children.range::<str, _>((after(params.cursor.as_deref())?, Bound::Unbounded));
    let page: Vec<_> = following.by_ref().take(page_size(&context)).collect();
    let last = page.last().map(|(name, _)| (*name).clone()).filter(|_| following.next().is_some());
    let resources = page.into_iter().map(|(_, definition)| definition.clone()).collect();
    Ok(ReadDirectoryResult { resources, next_cursor: last })
}

/// A cursor names the last entry of a page, so it stays good whatever is added or removed.
fn after(cursor: Option<&str>) -> Result<Bound<&str>, Fault> {
    match cursor {
        None => Ok(Bound::Unbounded),
        Some("") => Err(Fault::InvalidParams("no such cursor".into())),
        Some(cursor) => Ok(Bound::Excluded(cursor)),
    }
}

fn page_size(context: &Context) -> usize {
    context.server().limits().page_size.max(1)
}

/// What the modern era says of it.
fn freshness(shared: &Shared, context: &Context) -> (Option<u64>, Option<CacheScope>) {
    let hint = Some(shared.cache).filter(|_| context.revision().era() == mcp_core::Era::Modern);
    (hint.map(|hint| hint.ttl_ms()), hint.map(|hint| hint.scope))
}
