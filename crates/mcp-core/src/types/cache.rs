use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a client may keep a result, and whom it may show it to. Told in the modern era.
///
/// Specification: *Caching*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheHint {
    /// For how long it is fresh, in whole milliseconds. Default: it is not.
    pub ttl: Duration,
    /// Whom it is for.
    pub scope: CacheScope,
}

/// Whom a cached result may be shown to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// Anybody: it says nothing about who asked.
    Public,
    /// Who asked, with the same authorization.
    #[default]
    Private,
}

impl CacheScope {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

impl CacheHint {
    /// Fresh for `ttl`, and the same for all.
    #[must_use]
    pub fn public(ttl: Duration) -> Self {
        Self { ttl, scope: CacheScope::Public }
    }

    /// Fresh for `ttl`, for who asked.
    #[must_use]
    pub fn private(ttl: Duration) -> Self {
        Self { ttl, scope: CacheScope::Private }
    }

    /// The same, for who asked alone.
    pub(crate) fn privately(self) -> Self {
        Self { scope: CacheScope::Private, ..self }
    }

    /// The value of the member `ttlMs`.
    #[must_use]
    pub fn ttl_ms(self) -> u64 {
        // What JSON numbers carry everywhere.
        const MOST: u128 = (1 << 53) - 1;
        u64::try_from(self.ttl.as_millis().min(MOST)).unwrap_or(u64::MAX)
    }
}

/// The cache hints of a server's results, each [`CacheHint::default`] unless it is set.
///
/// ```
/// use std::time::Duration;
/// use mcp_core::types::{CacheHint, CacheHints};
///
/// let hints = CacheHints::default().tools(CacheHint::public(Duration::from_secs(300)));
/// ```
///
/// Specification: *Caching*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheHints {
    /// Of `server/discover`.
    pub discover: CacheHint,
    /// Of `tools/list`. Where a filter hides tools, it is for who asked alone, and so with the other lists.
    pub tools: CacheHint,
    /// Of `prompts/list`.
    pub prompts: CacheHint,
    /// Of `resources/list`.
    pub resources: CacheHint,
    /// Of `resources/templates/list`.
    pub templates: CacheHint,
}

/// A setter by value for each field.
macro_rules! setters {
    ($($field:ident),*) => {
        impl CacheHints {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, hint: CacheHint) -> Self {
                    self.$field = hint;
                    self
                }
            )*
        }
    };
}

setters!(discover, tools, prompts, resources, templates);
