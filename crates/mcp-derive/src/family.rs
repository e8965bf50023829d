//! Where an expansion finds what it names: the crate of the family that its user depends on.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, Ident, Result};

/// The path of `mcp-suite` or `mcp-core`, by the name that the user's manifest gives it.
pub(crate) struct Family(Ident);

impl Family {
    /// The core comes first: a library may have the facade for its tests alone, which its manifest says to nobody who asks.
    pub(crate) fn find() -> Result<Self> {
        let mut found = ["mcp-core", "mcp-suite"].into_iter().filter_map(|name| Some((name, crate_name(name).ok()?)));
        match found.next() {
            Some((_, FoundCrate::Name(name))) => Ok(Self::named(&name)),
            // Its examples and doctests name it as others do.
            Some((name, FoundCrate::Itself)) => Ok(Self::named(&name.replace('-', "_"))),
            None => Err(Error::new(
                Span::call_site(),
                "the macro names what it needs by `mcp-suite` or `mcp-core`: put one of them into Cargo.toml",
            )),
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        Self(Ident::new(name, Span::call_site()))
    }

    /// The path as derives of other crates take it: a string.
    pub(crate) fn private(&self, krate: &str) -> String {
        format!("::{}::__private::{krate}", self.0)
    }
}

impl ToTokens for Family {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let name = &self.0;
        tokens.extend(quote!(::#name));
    }
}
