use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, LitStr, Result, Token,
    parse::{ParseStream, Parser},
};

use crate::{
    call::Call,
    expand::{Function, Kind, Made},
    family::Family,
    parameter::{Parameter, Role},
    prompt, uri,
    words::{Known, Takes, Words},
};

const OF_BOTH: [(&str, Takes); 8] = [
    ("name", Takes::Name),
    ("title", Takes::Value),
    ("describe", Takes::Value),
    ("mime_type", Takes::Value),
    ("cache", Takes::Value),
    ("annotate", Takes::Value),
    ("icons", Takes::Value),
    ("meta", Takes::Value),
];
const OF_RESOURCES: Known = &{
    let [name, title, describe, mime_type, cache, annotate, icons, meta] = OF_BOTH;
    [name, title, describe, mime_type, ("size", Takes::Value), cache, annotate, icons, meta]
};
const OF_TEMPLATES: Known = &OF_BOTH;

/// `Resource::new`, or `ResourceTemplate::new` where the URI has variables.
pub(crate) fn make(words: TokenStream, function: &Function, family: &Family) -> Result<Made> {
    let (uri, words) = read.parse2(words)?;
    function.must_be_async(Kind::Resource)?;
    let call = Call::new(function, family);
    let is_template = uri::is_template(&uri.value());
    let handler = if is_template {
        check_variables(&uri, function)?;
        prompt::of_texts(&call, function)
    } else {
        of_context(&call, function)?
    };
    let ty = if is_template { quote!(#family::ResourceTemplate) } else { quote!(#family::Resource) };
    let (name, describe, state) = (function.wire_name(&words), function.describe(&words), call.state());
    let completers = function.arguments().map(|(_, argument)| call.completer(argument));
    let calls = words.calls(family);
    Ok(Made {
        suffix: if is_template { "template" } else { "resource" },
        value: quote!(#state #ty::new(#uri, #name, #handler) #describe #(#completers)* #calls),
        ty,
        items: TokenStream::new(),
    })
}

fn read(input: ParseStream<'_>) -> Result<(LitStr, Words)> {
    let Ok(uri) = input.parse::<LitStr>() else {
        let message = "say which: `#[resource(\"file:///log\")]`, `#[resource(\"users:///{id}\")]`";
        return Err(Error::new(input.span(), message));
    };
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    let known = if uri::is_template(&uri.value()) { OF_TEMPLATES } else { OF_RESOURCES };
    Ok((uri, Words::read(input, "resource", known)?))
}

fn of_context(call: &Call<'_>, function: &Function) -> Result<TokenStream> {
    let is_input = |parameter: &&Parameter| matches!(parameter.role, Role::Argument(_) | Role::Whole);
    if let Some(parameter) = function.parameters.iter().find(is_input) {
        let message = format!("a resource takes no arguments: a URI with `{{{}}}` has them", parameter.local);
        return Err(Error::new_spanned(&parameter.ty, message));
    }
    if call.is_builders(&[|role| matches!(role, Role::Context { is_borrowed: false })]) {
        let function = function.ident();
        return Ok(quote!(#function));
    }
    let context = &call.context;
    let context = if call.needs_context() { quote!(#context) } else { quote!(_) };
    Ok(call.closure(&context, &TokenStream::new()))
}

/// Each variable is a parameter, and each argument a variable.
fn check_variables(uri: &LitStr, function: &Function) -> Result<()> {
    let variables = uri::variables(&uri.value()).map_err(|why| Error::new_spanned(uri, format!("this has {why}")))?;
    if function.whole().is_some() {
        return Ok(());
    }
    let names: Vec<_> = function.arguments().map(|(_, argument)| argument.wire_name()).collect();
    if let Some(variable) = variables.iter().find(|variable| !names.contains(variable)) {
        let message = format!("`{{{variable}}}` is no parameter: write `{variable}: String`");
        return Err(Error::new_spanned(uri, message));
    }
    let stray = function.arguments().find(|(_, argument)| !variables.contains(&argument.wire_name()));
    match stray {
        Some((_, argument)) => {
            let message = format!("the URI has no such variable: write `{{{}}}` in it", argument.wire_name());
            Err(Error::new_spanned(&argument.name, message))
        }
        None => Ok(()),
    }
}
