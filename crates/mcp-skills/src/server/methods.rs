//! `skills/list`, `skills/get` and `resources/directory/read`.
//!
//! Specification: *Skills extension, Listing Skills; Getting a Skill; Reading Directories*.

use std::ops::Bound;

use mcp_core::{Context, Era, Fault, types::PaginatedParams};

use super::{Skills, encoded, sees, unknown};
use crate::{
    GetSkillParams, GetSkillResult, ListSkillsResult, ReadResourceDirectoryParams, ReadResourceDirectoryResult,
    uri::path_of,
};

/// About how many bytes of entries are on a page.
const PAGE_BYTES: usize = 1024 * 1024;

pub(super) async fn list(skills: Skills, context: Context, params: PaginatedParams) -> Result<ListSkillsResult, Fault> {
    let catalogue = skills.0.catalogue.load_full();
    let following = catalogue.skills.range::<str, _>((after(params.cursor.as_deref())?, Bound::Unbounded));
    let mut shown = following.filter(|(_, known)| sees(context.exchange(), &known.entry)).peekable();
    let (mut page, mut bytes, mut last) = (Vec::new(), 0, None);
    while let Some((uri, known)) = shown.next_if(|_| page.len() < page_size(&context) && bytes < PAGE_BYTES) {
        bytes += known.rendered.as_bytes().len();
        page.push(known.rendered.clone());
        last = Some(uri.clone());
    }
    let page = ListSkillsResult::new(page, last.filter(|_| shown.peek().is_some()));
    Ok(if is_modern(&context) { page.cached(skills.0.cache) } else { page })
}

pub(super) async fn get(skills: Skills, context: Context, params: GetSkillParams) -> Result<GetSkillResult, Fault> {
    let catalogue = skills.0.catalogue.load();
    let known = catalogue.skills.get(&params.uri).filter(|known| sees(context.exchange(), &known.entry));
    let skill = GetSkillResult::new(known.ok_or_else(|| unknown("That skill"))?.rendered.clone());
    Ok(if is_modern(&context) { skill.cached(skills.0.cache) } else { skill })
}

pub(super) async fn read_directory(
    skills: Skills,
    context: Context,
    params: ReadResourceDirectoryParams,
) -> Result<ReadResourceDirectoryResult, Fault> {
    let catalogue = skills.0.catalogue.load_full();
    let path = path_of(&params.uri).ok_or_else(|| unknown("That directory"))?;
    let children = catalogue.children(&context, &path).await?.ok_or_else(|| unknown("That directory"))?;
    let mut following = children.range::<str, _>((after(params.cursor.as_deref())?, Bound::Unbounded));
    let page: Vec<_> = following.by_ref().take(page_size(&context)).collect();
    let last = page.last().map(|(name, _)| (*name).clone()).filter(|_| following.next().is_some());
    let resources = page.into_iter().map(|(_, child)| encoded(child)).collect::<Result<_, _>>()?;
    Ok(ReadResourceDirectoryResult::new(resources, last))
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

fn is_modern(context: &Context) -> bool {
    context.revision().era() == Era::Modern
}
