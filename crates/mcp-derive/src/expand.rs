//! From a function to what stands beside it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, ItemFn, Lit, LitStr, Receiver, ReceiverKind, Result, ReturnType, Type,
    ext::IdentExt, parse2, spanned::Spanned,
};

use crate::{
    docs,
    family::Family,
    parameter::{self, Argument, Parameter, Role},
    prompt, resource, tool,
    words::Words,
};

/// Which macro it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

/// A function that was found to be one that can be made something of.
pub(crate) struct Function {
    pub(crate) item: ItemFn,
    pub(crate) parameters: Vec<Parameter>,
}

/// What is made: the function beside it returns it.
pub(crate) struct Made {
    /// The word that the function's name gets: `add` becomes `add_tool`.
    pub(crate) suffix: &'static str,
    /// The builder's type.
    pub(crate) ty: TokenStream,
    /// Items that its body begins with.
    pub(crate) items: TokenStream,
    /// Its value.
    pub(crate) value: TokenStream,
}

/// Expands in whatever crate the macro is used in.
pub(crate) fn in_family(kind: Kind, words: TokenStream, item: TokenStream) -> TokenStream {
    expand(kind, words, item, Family::find())
}

/// The function, and beside it the one that makes the builder's value, or the error.
pub(crate) fn expand(kind: Kind, words: TokenStream, item: TokenStream, family: Result<Family>) -> TokenStream {
    let Ok(mut function) = parse2::<ItemFn>(item.clone()) else {
        let message = format!("`#[{}]` stands before an `async fn`", kind.attribute());
        let error = Error::new_spanned(&item, message).into_compile_error();
        return quote!(#error #item);
    };
    let written = parameter::take(&mut function);
    let made = family.and_then(|family| {
        check(kind, &function)?;
        let parameters = parameter::read(written, kind)?;
        make(kind, words, &Function { item: function.clone(), parameters }, &family)
    });
    let made = made.unwrap_or_else(Error::into_compile_error);
    quote!(#function #made)
}

fn make(kind: Kind, words: TokenStream, function: &Function, family: &Family) -> Result<TokenStream> {
    let made = match kind {
        Kind::Tool => tool::make(words, function, family),
        Kind::Prompt => prompt::make(words, function, family),
        Kind::Resource => resource::make(words, function, family),
    }?;
    Ok(function.beside(&made))
}

/// What no macro can make anything of.
fn check(kind: Kind, function: &ItemFn) -> Result<()> {
    let (attribute, signature) = (kind.attribute(), &function.sig);
    if let Some(parameter) = signature.generics.params.first() {
        let message = format!("a {attribute} is one function for all calls: write it without `<…>`");
        return Err(Error::new_spanned(parameter, message));
    }
    if let Some(receiver) = signature.receiver().filter(|receiver| !is_shared(receiver)) {
        let message = format!("the methods of a state are called side by side: a {attribute} takes `&self`");
        return Err(Error::new_spanned(receiver, message));
    }
    match &signature.output {
        ReturnType::Default => Err(Error::new_spanned(&signature.ident, may_fail(kind, "…"))),
        ReturnType::Type(_, ty) => match plain(ty) {
            Some(name) => Err(Error::new_spanned(ty, may_fail(kind, &name))),
            None => Ok(()),
        },
    }
}

fn may_fail(kind: Kind, ty: &str) -> String {
    format!("a {} may fail: write `-> Result<{ty}, ToolError>`", kind.attribute())
}

/// What stands in the place of a `Result`, where it surely is none: any other name may be another for it.
fn plain(ty: &Type) -> Option<String> {
    const PLAIN: [&str; 19] = [
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
        "usize", "String", "Vec", "Json",
    ];
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            PLAIN.contains(&&*name).then(|| if last.arguments.is_none() { name } else { format!("{name}<…>") })
        }
        Type::Tuple(tuple) if tuple.elems.is_empty() => Some("()".into()),
        Type::Tuple(_) | Type::Reference(_) | Type::Array(_) => Some("…".into()),
        _ => None,
    }
}

fn is_shared(receiver: &Receiver) -> bool {
    match &receiver.kind {
        ReceiverKind::Value => false,
        ReceiverKind::Reference(_, _, mutability) => mutability.is_none(),
        _ => true,
    }
}

impl Function {
    pub(crate) fn ident(&self) -> &Ident {
        &self.item.sig.ident
    }

    /// Where the compiler is to point at if the builder does not take it: all else of it was written by the macro.
    pub(crate) fn returns(&self) -> Span {
        let span = match &self.item.sig.output {
            ReturnType::Type(_, ty) => ty.span(),
            ReturnType::Default => self.ident().span(),
        };
        Span::mixed_site().located_at(span)
    }

    pub(crate) fn is_method(&self) -> bool {
        self.item.sig.receiver().is_some()
    }

    /// What it is called on the wire.
    pub(crate) fn wire_name(&self, words: &Words) -> Expr {
        let name = || Lit::Str(LitStr::new(&self.ident().unraw().to_string(), self.ident().span()));
        words.name.clone().unwrap_or_else(|| Expr::Lit(ExprLit { attrs: Vec::new(), lit: name() }))
    }

    /// The builder's call that describes it, unless a word does.
    pub(crate) fn describe(&self, words: &Words) -> Option<TokenStream> {
        let text = docs::description(&self.item.attrs).filter(|_| !words.describes)?;
        Some(quote!(.describe(#text)))
    }

    /// The parameters that are filled in, each by its name.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (&Parameter, &Argument)> {
        self.parameters.iter().filter_map(|parameter| match &parameter.role {
            Role::Argument(argument) => Some((parameter, argument)),
            _ => None,
        })
    }

    /// The one that takes all arguments at once.
    pub(crate) fn whole(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| matches!(parameter.role, Role::Whole))
    }

    /// Only a function that blocks is not `async`.
    pub(crate) fn must_be_async(&self, kind: Kind) -> Result<()> {
        if self.item.sig.asyncness.is_some() {
            return Ok(());
        }
        let attribute = kind.attribute();
        let otherwise = if kind == Kind::Tool { ", or `#[tool(blocking)]` if it blocks" } else { "" };
        let message = format!("a {attribute} is an `async fn`: write `async`{otherwise}");
        Err(Error::new_spanned(self.item.sig.fn_token, message))
    }

    fn beside(&self, made: &Made) -> TokenStream {
        let Made { suffix, ty, items, value } = made;
        let (name, visibility) = (self.ident().unraw(), &self.item.vis);
        let beside = format_ident!("{name}_{suffix}", span = name.span());
        let docs = format!(" The {} of `{name}`, for a server.", suffix);
        let conditions = self.item.attrs.iter().filter(|attribute| is_condition(attribute));
        let receiver = self.is_method().then(|| quote!(self: &::std::sync::Arc<Self>));
        quote! {
            #[doc = #docs]
            #(#conditions)*
            #[must_use]
            #visibility fn #beside(#receiver) -> #ty {
                #items
                #value
            }
        }
    }
}

/// What is there under a condition is made something of under the same.
fn is_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}
