//! The words of an attribute, each of which is a call of the builder.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, Expr, Ident, LitBool, Result, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

use crate::family::Family;

/// What a word takes, and becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A value: the name, which is the builder's own argument.
    Name,
    /// A value: the call of that name.
    Value,
    /// The same, as often as it stands there.
    Values,
    /// Nothing or a `bool`: the call of that name.
    Flag,
    /// Nothing or a `bool`: a hint among the annotations.
    Hint,
    /// Types in parentheses: a call each.
    Types,
    /// Nothing: the call of that name, which takes nothing.
    Bare,
    /// Nothing: another constructor.
    Blocking,
}

/// The words that one macro knows.
pub(crate) type Known = &'static [(&'static str, Takes)];

enum Given {
    Nothing,
    Value(Expr),
    Types(Punctuated<Type, Token![,]>),
}

struct Word {
    name: Ident,
    given: Given,
}

/// What an attribute says.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) name: Option<Expr>,
    pub(crate) is_blocking: bool,
    /// It says itself what the doc comment would have said.
    pub(crate) describes: bool,
    /// All, in their order.
    pub(crate) names: Vec<Ident>,
    calls: Vec<TokenStream>,
    hints: Vec<TokenStream>,
}

impl Words {
    /// Reads what stands in `#[attribute(…)]`.
    pub(crate) fn read(input: ParseStream<'_>, attribute: &str, known: Known) -> Result<Self> {
        let mut words = Self::default();
        for word in Punctuated::<Word, Token![,]>::parse_terminated(input)? {
            let Some((_, takes)) = known.iter().find(|(name, _)| word.name == name) else {
                return Err(unknown(&word.name, attribute, known));
            };
            if *takes != Takes::Values && words.names.contains(&word.name) {
                return Err(Error::new(word.name.span(), format!("`{}` stands here twice", word.name)));
            }
            words.names.push(word.name.clone());
            words.add(word, *takes)?;
        }
        Ok(words)
    }

    fn add(&mut self, word: Word, takes: Takes) -> Result<()> {
        let Word { name, given } = word;
        match (takes, given) {
            (Takes::Name, Given::Value(value)) => self.name = Some(value),
            (Takes::Value | Takes::Values, Given::Value(value)) => {
                self.describes |= name == "describe";
                self.calls.push(quote!(.#name(#value)));
            }
            (Takes::Flag, given) => {
                let on = on(&name, given)?;
                self.calls.push(quote!(.#name(#on)));
            }
            (Takes::Hint, given) => {
                let on = on(&name, given)?;
                self.hints.push(quote!(.#name(#on)));
            }
            (Takes::Types, Given::Types(types)) => {
                self.calls.extend(types.iter().map(|form| quote!(.#name::<#form>())))
            }
            (Takes::Bare, Given::Nothing) => self.calls.push(quote!(.#name())),
            (Takes::Blocking, Given::Nothing) => self.is_blocking = true,
            (Takes::Types, _) => return Err(write(&name, "(Type)")),
            (Takes::Bare | Takes::Blocking, _) => return Err(write(&name, "")),
            _ => return Err(write(&name, " = …")),
        }
        Ok(())
    }

    /// The builder's calls, in the order of the words; hints are one call, and the last.
    pub(crate) fn calls(&self, family: &Family) -> TokenStream {
        let Self { calls, hints, .. } = self;
        let annotate =
            (!hints.is_empty()).then(|| quote!(.annotate(#family::types::ToolAnnotations::default() #(#hints)*)));
        quote!(#(#calls)* #annotate)
    }
}

impl Parse for Word {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let given = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Given::Value(input.parse()?)
        } else if input.peek(syn::token::Paren) {
            let types;
            parenthesized!(types in input);
            Given::Types(Punctuated::parse_terminated(&types)?)
        } else {
            Given::Nothing
        };
        Ok(Self { name, given })
    }
}

/// Whether a flag is on, which it is where nothing else is said.
fn on(name: &Ident, given: Given) -> Result<LitBool> {
    match given {
        Given::Nothing => Ok(LitBool::new(true, name.span())),
        Given::Value(Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(on), .. })) => Ok(on),
        _ => Err(Error::new(name.span(), format!("write `{name}`, or `{name} = false`"))),
    }
}

fn write(name: &Ident, rest: &str) -> Error {
    Error::new(name.span(), format!("write `{name}{rest}`"))
}

fn unknown(word: &Ident, attribute: &str, known: Known) -> Error {
    let known: Vec<_> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
    Error::new(word.span(), format!("`{word}` is no word of `#[{attribute}]`, which knows {}", known.join(", ")))
}
