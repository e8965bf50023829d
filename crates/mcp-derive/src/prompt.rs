use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Result, parse::Parser, spanned::Spanned};

use crate::{
    call::Call,
    docs,
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
];

/// `Prompt::new` of the function or of a closure that calls it.
pub(crate) fn make(words: TokenStream, function: &Function, family: &Family) -> Result<Made> {
    let words = (|input: syn::parse::ParseStream<'_>| Words::read(input, "prompt", KNOWN)).parse2(words)?;
    function.must_be_async(Kind::Prompt)?;
    let call = Call::new(function, family);
    let handler = of_texts(&call, function);
    let (name, describe, state) = (function.wire_name(&words), function.describe(&words), call.state());
    let arguments = function.arguments().map(|(_, argument)| {
        let (told, completer) = (told(argument, family), call.completer(argument));
        quote!(.argument(#told) #completer)
    });
    let calls = words.calls(family);
    Ok(Made {
        suffix: "prompt",
        ty: quote!(#family::Prompt),
        items: TokenStream::new(),
        value: quote!(#state #family::Prompt::new(#name, #handler) #describe #(#arguments)* #calls),
    })
}

/// What a prompt says of an argument.
fn told(argument: &Argument, family: &Family) -> TokenStream {
    let name = argument.wire_name();
    let describe = docs::description(&argument.attributes).map(|text| quote!(.describe(#text)));
    let required = (!argument.is_optional && argument.default.is_none()).then(|| quote!(.required()));
    quote!(#family::types::PromptArgument::new(#name) #describe #required)
}

/// The handler of a builder that gives the context, and texts by their names: a prompt's or a template's.
pub(crate) fn of_texts(call: &Call<'_>, function: &Function) -> TokenStream {
    if call
        .is_builders(&[|role| matches!(role, Role::Context { is_borrowed: false }), |role| matches!(role, Role::Whole)])
    {
        let function = function.ident();
        return quote!(#function);
    }
    let reads: TokenStream =
        function.arguments().map(|(parameter, argument)| read(call, parameter, argument)).collect();
    let used = |is_used: bool, name: &Ident| if is_used { quote!(#name) } else { quote!(_) };
    let context = used(call.needs_context(), &call.context);
    let texts = match function.whole() {
        Some(Parameter { local, .. }) => quote!(#local),
        None => used(!reads.is_empty(), &call.arguments),
    };
    call.closure(&quote!(#context, #texts), &reads)
}

/// Where a type cannot be read from a text, the compiler points at it.
fn read(call: &Call<'_>, parameter: &Parameter, argument: &Argument) -> TokenStream {
    let (Parameter { local, ty, .. }, texts) = (parameter, &call.arguments);
    let span = Span::mixed_site().located_at(ty.span());
    let name = argument.wire_name();
    let value = match &argument.default {
        Some(default) => quote_spanned!(span=> #texts.parse_optional(#name)?.unwrap_or_else(|| #default)),
        None if argument.is_optional => quote_spanned!(span=> #texts.parse_optional(#name)?),
        None => quote_spanned!(span=> #texts.parse(#name)?),
    };
    quote!(let #local: #ty = #value;)
}
