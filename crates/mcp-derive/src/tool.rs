use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{Error, Result, Type, ext::IdentExt, parse::Parser};

use crate::{
    call::Call,
    expand::{Function, Kind, Made},
    family::Family,
    parameter::{Argument, Parameter, Role},
    words::{Known, Takes, Words},
};

const KNOWN: Known = &[
    ("name", Takes::Name),
    ("title", Takes::Value),
    ("describe", Takes::Value),
    ("icons", Takes::Value),
    ("meta", Takes::Value),
    ("output_schema", Takes::Value),
    ("validate_output", Takes::Flag),
    ("timeout", Takes::Value),
    ("needs", Takes::Values),
    ("asks", Takes::Types),
    ("blocking", Takes::Blocking),
    ("task", Takes::Bare),
    ("task_when_told", Takes::Bare),
    ("task_only", Takes::Bare),
    ("read_only", Takes::Hint),
    ("destructive", Takes::Hint),
    ("idempotent", Takes::Hint),
    ("open_world", Takes::Hint),
];

/// `Tool::new`, or `Tool::blocking`, of the function or of a closure that calls it.
pub(crate) fn make(words: TokenStream, function: &Function, family: &Family) -> Result<Made> {
    let words = (|input: syn::parse::ParseStream<'_>| Words::read(input, "tool", KNOWN)).parse2(words)?;
    check(&words, function)?;
    let call = Call::new(function, family);
    let constructor = if words.is_blocking { quote!(blocking) } else { quote!(new) };
    let handler = if is_builders(&call) {
        let function = function.ident();
        quote!(#function)
    } else {
        call.closure(&inputs(&call, function, family), &TokenStream::new())
    };
    let (name, describe, state) = (function.wire_name(&words), function.describe(&words), call.state());
    let (asks, calls) = (asks(function), words.calls(family));
    Ok(Made {
        suffix: "tool",
        ty: quote!(#family::Tool),
        items: arguments(function, family),
        value: quote!(#state #family::Tool::#constructor(#name, #handler) #describe #asks #calls),
    })
}

fn check(words: &Words, function: &Function) -> Result<()> {
    let mut beginnings = words.names.iter().filter(|name| *name == "task" || *name == "task_when_told");
    if let (Some(_), Some(second)) = (beginnings.next(), beginnings.next()) {
        let message = "`task` is one from the beginning, `task_when_told` only later: write one of them";
        return Err(Error::new(second.span(), message));
    }
    for (Parameter { ty, .. }, Argument { default, .. }) in function.arguments() {
        refuse_self(quote!(#ty #default))?;
    }
    if !words.is_blocking {
        return function.must_be_async(Kind::Tool);
    }
    if let Some(asyncness) = function.item.sig.asyncness {
        let message = "what blocks is no `async fn`: write `fn`, or leave out `blocking`";
        return Err(Error::new_spanned(asyncness, message));
    }
    match function.parameters.iter().find(|parameter| matches!(parameter.role, Role::Ask { .. })) {
        Some(asked) => Err(Error::new_spanned(&asked.ty, "a question is awaited: only an `async fn` asks")),
        None => Ok(()),
    }
}

/// The struct and the functions of the defaults are items of their own, to which the `impl` around the tool is unknown.
fn refuse_self(tokens: TokenStream) -> Result<()> {
    tokens.into_iter().try_for_each(|token| match token {
        TokenTree::Ident(word) if word == "Self" => {
            Err(Error::new(word.span(), "a tool's arguments do not know `Self`: write the type's name"))
        }
        TokenTree::Group(group) => refuse_self(group.stream()),
        _ => Ok(()),
    })
}

fn is_builders(call: &Call<'_>) -> bool {
    let context: fn(&Role) -> bool = |role| matches!(role, Role::Context { is_borrowed: false });
    let whole: fn(&Role) -> bool = |role| matches!(role, Role::Whole);
    [&[][..], &[context], &[whole], &[context, whole]].iter().any(|takes| call.is_builders(takes))
}

fn asks(function: &Function) -> TokenStream {
    let forms = function.parameters.iter().filter_map(|parameter| match &parameter.role {
        Role::Ask { form, .. } => Some(form),
        _ => None,
    });
    quote!(#(.asks::<#forms>())*)
}

/// The closure's inputs: the context, if anything comes of it, and the arguments, if there are any.
fn inputs(call: &Call<'_>, function: &Function, family: &Family) -> TokenStream {
    let context = &call.context;
    let context = call.needs_context().then(|| quote!(#context: #family::Context,));
    let fields: Vec<_> = function.arguments().map(|(parameter, _)| &parameter.local).collect();
    let arguments = match function.whole() {
        Some(Parameter { local, ty, .. }) => quote!(#local: #ty),
        None if fields.is_empty() => TokenStream::new(),
        None => {
            let name = arguments_name();
            quote!(#name { #(#fields),* }: #name)
        }
    };
    quote!(#context #arguments)
}

/// The struct's name, which hides no type of the user's.
fn arguments_name() -> Ident {
    Ident::new("__Arguments", Span::call_site())
}

/// The struct that the arguments are read into, and the functions of their defaults.
fn arguments(function: &Function, family: &Family) -> TokenStream {
    if function.arguments().next().is_none() {
        return TokenStream::new();
    }
    let (serde, schemars) = (family.private("serde"), family.private("schemars"));
    let name = arguments_name();
    let declared = function.arguments().map(|(Parameter { ty, .. }, argument)| field(argument, ty));
    let defaults = function.arguments().filter_map(|(Parameter { ty, .. }, argument)| {
        let (name, value) = (default_name(argument), argument.default.as_ref()?);
        Some(quote!(fn #name() -> #ty { #value }))
    });
    quote! {
        #[derive(#family::__private::serde::Deserialize, #family::__private::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        struct #name {
            #(#declared),*
        }
        #(#defaults)*
    }
}

fn field(argument: &Argument, ty: &Type) -> TokenStream {
    let Argument { name, attributes, default, .. } = argument;
    let default = default.as_ref().map(|_| {
        let name = default_name(argument).to_string();
        quote!(#[serde(default = #name)])
    });
    quote!(#(#attributes)* #default #name: #ty)
}

/// No name that the user's own default could call.
fn default_name(argument: &Argument) -> Ident {
    format_ident!("__default_of_{}", argument.name.unraw())
}
