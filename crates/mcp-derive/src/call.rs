//! The closure that the builder is given: it gets together what the function takes, and calls it.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Ident, LitStr, Type, ext::IdentExt};

use crate::{
    expand::Function,
    family::Family,
    parameter::{Argument, Parameter, Role},
};

/// A function, to be called by a closure.
pub(crate) struct Call<'a> {
    function: &'a Function,
    family: &'a Family,
    /// What the closure calls the context.
    pub(crate) context: Ident,
    /// What it calls the arguments as they came.
    pub(crate) arguments: Ident,
    this: Ident,
}

impl<'a> Call<'a> {
    pub(crate) fn new(function: &'a Function, family: &'a Family) -> Self {
        let free = |name: &str| free(name, &function.parameters);
        Self { function, family, context: free("context"), arguments: free("arguments"), this: free("this") }
    }

    /// Whether the function is what the builder takes: a free one, of these parameters in this order.
    pub(crate) fn is_builders(&self, takes: &[fn(&Role) -> bool]) -> bool {
        let parameters = &self.function.parameters;
        !self.function.is_method()
            && takes.len() == parameters.len()
            && takes.iter().zip(parameters).all(|(takes, parameter)| takes(&parameter.role))
    }

    pub(crate) fn needs_context(&self) -> bool {
        let comes_with_it = |parameter: &Parameter| !matches!(parameter.role, Role::Argument(_) | Role::Whole);
        self.function.parameters.iter().any(comes_with_it)
    }

    /// A closure of `inputs`, whose values `reads` makes the arguments' of.
    pub(crate) fn closure(&self, inputs: &TokenStream, reads: &TokenStream) -> TokenStream {
        let span = self.function.returns();
        let (setup, call, this) = (self.setup(), self.invocation(span), &self.this);
        let is_async = self.function.item.sig.asyncness.is_some();
        let is_ready = setup.is_empty() && reads.is_empty() && !self.borrows() && !self.function.is_method();
        let body = match (is_async, is_ready) {
            (_, true) => return quote_spanned!(span=> |#inputs| #call),
            (true, false) => quote_spanned!(span=> async move { #reads #setup #call.await }),
            (false, false) => quote!(#reads #setup #call),
        };
        match (self.function.is_method(), is_async) {
            (true, _) => quote_spanned! {span=>
                move |#inputs| {
                    let #this = ::std::sync::Arc::clone(&#this);
                    #body
                }
            },
            (false, true) => quote_spanned!(span=> |#inputs| #body),
            (false, false) => quote_spanned!(span=> |#inputs| { #body }),
        }
    }

    /// What stands before the builder's value in a method: it is the state's.
    pub(crate) fn state(&self) -> Option<TokenStream> {
        let this = &self.this;
        self.function.is_method().then(|| quote!(let #this = ::std::sync::Arc::clone(self);))
    }

    /// A function of the user's as the builder takes it: `self.cities` is a method of the state.
    pub(crate) fn completer(&self, argument: &Argument) -> Option<TokenStream> {
        let completer = argument.completer.as_ref()?;
        let name = argument.wire_name();
        let method = match completer {
            Expr::Field(field) if matches!(&*field.base, Expr::Path(path) if path.path.is_ident("self")) => {
                &field.member
            }
            _ => return Some(quote!(.complete(#name, #completer))),
        };
        let this = &self.this;
        Some(quote! {
            .complete(#name, {
                let #this = ::std::sync::Arc::clone(self);
                move |context, typed, known| {
                    let #this = ::std::sync::Arc::clone(&#this);
                    async move { #this.#method(context, typed, known).await }
                }
            })
        })
    }

    fn borrows(&self) -> bool {
        let borrows = |parameter: &Parameter| matches!(parameter.role, Role::Context { is_borrowed: true });
        self.function.parameters.iter().any(borrows)
    }

    fn setup(&self) -> TokenStream {
        let known = self.function.parameters.iter().filter_map(|parameter| self.known(parameter));
        let asked = self.asked();
        quote!(#(#known)* #asked)
    }

    /// What the context knows.
    fn known(&self, parameter: &Parameter) -> Option<TokenStream> {
        let (local, context) = (&parameter.local, &self.context);
        let value = match &parameter.role {
            Role::State(ty) => quote!(#context.state::<#ty>()?),
            Role::Principal { is_borrowed: true, is_optional: true } => quote!(#context.principal()),
            Role::Principal { is_borrowed: false, is_optional: true } => quote!(#context.principal().cloned()),
            Role::Principal { is_borrowed: true, is_optional: false } => quote!(#context.require_principal()?),
            Role::Principal { is_borrowed: false, is_optional: false } => quote!(#context.require_principal()?.clone()),
            Role::Context { .. } | Role::Ask { .. } | Role::Argument(_) | Role::Whole => return None,
        };
        Some(quote!(let #local = #value;))
    }

    /// What the user is asked, all of it at once.
    fn asked(&self) -> Option<TokenStream> {
        let asks = self.function.parameters.iter().filter_map(|parameter| match &parameter.role {
            Role::Ask { form, message } => Some((&parameter.local, self.elicit(&parameter.local, form, message))),
            _ => None,
        });
        let (locals, questions): (Vec<_>, Vec<_>) = asks.unzip();
        let family = self.family;
        match (&*locals, &*questions) {
            ([], _) => None,
            ([local], [question]) => Some(quote!(let #local = #question.await?;)),
            _ => Some(quote!(let (#(#locals),*) = #family::__private::try_join!(#(#questions),*)?;)),
        }
    }

    fn elicit(&self, local: &Ident, form: &Type, message: &LitStr) -> TokenStream {
        let (context, family) = (&self.context, self.family);
        let key = local.unraw().to_string();
        let message = if message.value().contains(['{', '}']) {
            // It names arguments, which only the expansion's own tokens see.
            let mut format = message.clone();
            format.set_span(Span::mixed_site().located_at(message.span()));
            quote!(::std::format!(#format))
        } else {
            quote!(#message)
        };
        quote!(#context.elicit(#key, #family::server::form::<#form>(#message)))
    }

    fn invocation(&self, span: Span) -> TokenStream {
        let (name, this, family) = (self.function.ident(), &self.this, self.family);
        let values = self.function.parameters.iter().map(|parameter| {
            let local = &parameter.local;
            match &parameter.role {
                Role::Context { is_borrowed: true } => {
                    let context = &self.context;
                    quote!(&#context)
                }
                Role::Context { is_borrowed: false } => self.own_context(),
                Role::Ask { .. } => quote!(#family::Ask(#local)),
                _ => quote!(#local),
            }
        });
        let method = self.function.is_method().then(|| quote!(#this.));
        quote_spanned!(span=> #method #name(#(#values),*))
    }

    /// It may be given away only where nothing else is borrowed of it.
    fn own_context(&self) -> TokenStream {
        let context = &self.context;
        let borrows = |parameter: &Parameter| {
            matches!(parameter.role, Role::State(_) | Role::Principal { is_borrowed: true, .. })
        };
        if self.function.parameters.iter().any(borrows) { quote!(#context.clone()) } else { quote!(#context) }
    }
}

/// A name for the closure's own, that no parameter has.
fn free(name: &str, parameters: &[Parameter]) -> Ident {
    let is_taken = |name: &str| parameters.iter().any(|parameter| parameter.local == name && !is_context(parameter));
    let mut name = name.to_owned();
    while is_taken(&name) {
        name.push('_');
    }
    Ident::new(&name, Span::mixed_site())
}

fn is_context(parameter: &Parameter) -> bool {
    matches!(parameter.role, Role::Context { .. })
}
