//! The list methods: rendered definitions one after another, a page at a time.
//!
//! Specification: *Pagination*.

use std::sync::Arc;

use crate::{
    Fault,
    server::{
        Core, Exchange, Listed, Registry,
        registry::Entry,
        reply::{Body, Entries, Listing, Rendered},
    },
    types::CacheHint,
};

/// Answers a list method; `member` is the result's array.
pub(crate) fn list<T: Listed>(
    core: &Core,
    exchange: &Exchange,
    member: &'static str,
    registry: &Registry<T>,
    hint: CacheHint,
) -> Result<Body, Fault> {
    let after = exchange.head.cursor.as_deref();
    let after = after.map(|cursor| read_cursor(cursor, core.limits.cursor_bytes)).transpose()?;
    if after.is_some_and(|after| !registry.knows(after)) {
        return Err(no_such_cursor());
    }
    let whole = after.is_none().then(|| registry.whole(core.limits.page_size, exchange.revision)).flatten();
    let (entries, last) = match whole {
        Some(text) => (Entries::Whole(text), None),
        None => page(core, exchange, registry, after),
    };
    let next = last.map(|last| format!(r#""nextCursor":"{}""#, write_cursor(last)));
    let hint = if registry.is_one_for_all() { hint } else { hint.privately() };
    Ok(Body {
        members: next.as_deref().unwrap_or_default().into(),
        listed: Some(Box::new(Listing { member, entries })),
        ..Body::default()
    }
    .cached(hint))
}

/// What the exchange sees behind that entry, and the number of the last of it, if more follows.
fn page<T: Listed>(
    core: &Core,
    exchange: &Exchange,
    registry: &Registry<T>,
    after: Option<u64>,
) -> (Entries, Option<u64>) {
    let shows = |item: &T| registry.shows(exchange, item);
    let show = |entry: &Arc<Entry<T>>| entry.clone() as Arc<dyn Rendered>;
    let (entries, last) = registry.page(after, core.limits.page_size, shows, show);
    (Entries::Each { entries, revision: exchange.revision }, last)
}

/// A cursor names the last entry of a page, so it stays good whatever is added or removed.
fn write_cursor(number: u64) -> String {
    format!("{number:x}")
}

fn read_cursor(cursor: &str, most: usize) -> Result<u64, Fault> {
    let is_ours = !cursor.is_empty() && cursor.len() <= most && cursor.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_ours.then(|| u64::from_str_radix(cursor, 16).ok()).flatten();
    number.ok_or_else(no_such_cursor)
}

fn no_such_cursor() -> Fault {
    Fault::InvalidParams("no such cursor".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back_and_foreign_ones_are_refused() {
        assert_eq!(read_cursor(&write_cursor(u64::MAX), 1024).unwrap(), u64::MAX);
        for foreign in ["", "xyz", "-1", "+1", " 1", "ffffffffffffffffff"] {
            assert!(read_cursor(foreign, 1024).is_err(), "{foreign}");
        }
        let longest = format!("{:0>1024}", "1");
        assert!(read_cursor(&longest, 1024).is_ok());
        assert!(read_cursor(&format!("0{longest}"), 1024).is_err());
    }
}
