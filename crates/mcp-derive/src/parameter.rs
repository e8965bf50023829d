//! What a parameter is: a part of the call, or an argument that the peer fills in.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, Ident, ItemFn, LitStr, Pat, PatType, PathArguments, PathSegment,
    Result, Token, Type, TypeReference, ext::IdentExt, parse::ParseStream,
};

use crate::{docs, expand::Kind};

/// A parameter of a function, `self` aside.
pub(crate) struct Parameter {
    /// What the expansion calls its value.
    pub(crate) local: Ident,
    /// As it is written.
    pub(crate) ty: Type,
    pub(crate) role: Role,
}

/// Where its value comes from.
pub(crate) enum Role {
    Context {
        is_borrowed: bool,
    },
    Principal {
        is_borrowed: bool,
        is_optional: bool,
    },
    /// The server's state of that type.
    State(Type),
    /// A form that the user fills in.
    Ask {
        form: Type,
        message: LitStr,
    },
    Argument(Argument),
    /// All arguments at once.
    Whole,
}

/// What the peer fills in.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// Doc comments, and what is said to serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<Expr>,
    pub(crate) completer: Option<Expr>,
    pub(crate) is_optional: bool,
}

impl Argument {
    /// Its name on the wire.
    pub(crate) fn wire_name(&self) -> String {
        self.name.unraw().to_string()
    }
}

/// What is written before a parameter and read by the macro alone.
#[derive(Default)]
struct Marks {
    field: Vec<Attribute>,
    ask: Option<(Attribute, LitStr)>,
    default: Option<Expr>,
    completer: Option<Expr>,
    is_whole: bool,
}

/// A parameter with its attributes, which the function then lacks: the compiler would refuse them.
pub(crate) struct Written {
    attributes: Vec<Attribute>,
    parameter: PatType,
}

/// Takes from a function's parameters what only the macro reads.
pub(crate) fn take(function: &mut ItemFn) -> Vec<Written> {
    let parameters = function.sig.inputs.iter_mut().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    });
    let written = parameters.map(|parameter| {
        let attributes = parameter.attrs.extract_if(.., |attribute| is_ours(attribute)).collect();
        Written { attributes, parameter: parameter.clone() }
    });
    written.collect()
}

fn is_ours(attribute: &Attribute) -> bool {
    let ours = ["ask", "arg", "args", "complete", "serde", "schemars"];
    docs::is_doc(attribute) || ours.iter().any(|name| attribute.path().is_ident(name))
}

/// Says of each parameter what it is.
pub(crate) fn read(written: Vec<Written>, kind: Kind) -> Result<Vec<Parameter>> {
    let read = written.into_iter().enumerate().map(|(index, written)| Parameter::read(written, index, kind));
    let parameters: Vec<_> = read.collect::<Result<_>>()?;
    check(&parameters)?;
    Ok(parameters)
}

fn check(parameters: &[Parameter]) -> Result<()> {
    let is_context = |parameter: &&Parameter| matches!(parameter.role, Role::Context { .. });
    if let Some(second) = parameters.iter().filter(is_context).nth(1) {
        return Err(Error::new_spanned(&second.ty, "there is one `Context` a call: take it once"));
    }
    let is_input = |parameter: &&Parameter| matches!(parameter.role, Role::Whole | Role::Argument(_));
    let is_whole = |parameter: &Parameter| matches!(parameter.role, Role::Whole);
    let inputs: Vec<_> = parameters.iter().filter(is_input).collect();
    match inputs.iter().find(|parameter| is_whole(parameter)) {
        Some(whole) if inputs.len() > 1 => Err(Error::new_spanned(
            &whole.ty,
            "this is all arguments at once: put the others into its type, or give it a name and no `#[args]`",
        )),
        _ => Ok(()),
    }
}

impl Parameter {
    fn read(written: Written, index: usize, kind: Kind) -> Result<Self> {
        let Written { attributes, parameter: PatType { attrs, pat, ty, .. } } = written;
        let is_conditional =
            |attribute: &&Attribute| ["cfg", "cfg_attr"].iter().any(|name| attribute.path().is_ident(name));
        if let Some(condition) = attrs.iter().find(is_conditional) {
            return Err(Error::new_spanned(condition, "what a call takes has no condition: write two functions"));
        }
        let name = match *pat {
            Pat::Ident(pattern) if pattern.subpat.is_none() => Some(pattern.ident),
            _ => None,
        };
        let marks = Marks::read(attributes, kind)?;
        let role = role(name.as_ref(), &ty, marks)?;
        let local = name.unwrap_or_else(|| Ident::new(&format!("parameter_{index}"), Span::call_site()));
        Ok(Self { local: hygienic(local), ty: *ty, role })
    }
}

/// A name that hides none of the function's surroundings: a parameter may have the name of its function.
fn hygienic(mut name: Ident) -> Ident {
    name.set_span(Span::mixed_site().located_at(name.span()));
    name
}

/// What a parameter is goes by its type, as far as it is seen by its name.
fn role(name: Option<&Ident>, ty: &Type, marks: Marks) -> Result<Role> {
    let role = match ty {
        _ if marks.is_whole => Some(Role::Whole),
        Type::Reference(reference) => borrowed(reference)?,
        Type::ImplTrait(_) => return Err(Error::new_spanned(ty, "an argument has one type: write which")),
        _ => owned(ty, marks.ask.as_ref())?,
    };
    match (role, name) {
        (None, Some(name)) => argument(name, ty, marks),
        // What has no name can be no field.
        (role, _) => {
            let role = role.unwrap_or(Role::Whole);
            marks.refuse(&role).map(|()| role)
        }
    }
}

fn borrowed(reference: &TypeReference) -> Result<Option<Role>> {
    let owns = |ty| Error::new_spanned(reference, format!("an argument owns what it holds: write `{ty}`"));
    if reference.mutability.is_some() {
        let message = match last(&reference.elem) {
            Some(segment) if segment.ident == "Context" => "nothing of a context is to be changed: write `&Context`",
            _ => "state is shared by all calls: write `&T`, with a lock inside",
        };
        return Err(Error::new_spanned(reference, message));
    }
    Ok(Some(match &*reference.elem {
        Type::Slice(_) => return Err(owns("Vec<…>")),
        ty => match last(ty).map(|segment| segment.ident.to_string()).as_deref() {
            Some("str") => return Err(owns("String")),
            Some("Context") => Role::Context { is_borrowed: true },
            Some("Principal") => Role::Principal { is_borrowed: true, is_optional: false },
            _ => Role::State(ty.clone()),
        },
    }))
}

fn owned(ty: &Type, ask: Option<&(Attribute, LitStr)>) -> Result<Option<Role>> {
    let Some(segment) = last(ty) else { return Ok(None) };
    Ok(match (segment.ident.to_string().as_str(), inner(segment)) {
        ("Context", None) => Some(Role::Context { is_borrowed: false }),
        ("Principal", None) => Some(Role::Principal { is_borrowed: false, is_optional: false }),
        ("Option", Some(inner)) => optional(inner)?,
        ("Arc", Some(_)) => return Err(Error::new_spanned(ty, "what calls share is state, and borrowed: write `&T`")),
        ("Ask", Some(form)) => match ask {
            Some((_, message)) => Some(Role::Ask { form: form.clone(), message: message.clone() }),
            None => return Err(Error::new_spanned(ty, "say what is asked: `#[ask(\"Deploy this?\")]` before it")),
        },
        _ => None,
    })
}

fn optional(inner: &Type) -> Result<Option<Role>> {
    let (ty, is_borrowed) = match inner {
        Type::Reference(reference) => (&*reference.elem, true),
        ty => (ty, false),
    };
    match last(ty) {
        Some(segment) if segment.ident == "Principal" => Ok(Some(Role::Principal { is_borrowed, is_optional: true })),
        Some(segment) if segment.ident == "Context" && segment.arguments.is_none() => {
            Err(Error::new_spanned(inner, "every call has its `Context`: take it without `Option`"))
        }
        Some(segment) if segment.ident == "Ask" && !segment.arguments.is_none() => {
            Err(Error::new_spanned(inner, "an `Ask` has an answer: take it without `Option`"))
        }
        _ if is_borrowed => Err(Error::new_spanned(
            inner,
            "what a call may lack is asked of its `Context`, as `context.extension::<T>()`",
        )),
        _ => Ok(None),
    }
}

fn argument(name: &Ident, ty: &Type, marks: Marks) -> Result<Role> {
    if let Some((attribute, _)) = &marks.ask {
        return Err(Error::new_spanned(attribute, format!("what is asked is an `Ask<{}>`", ty.to_token_stream())));
    }
    Ok(Role::Argument(Argument {
        name: name.clone(),
        attributes: marks.field,
        is_optional: last(ty).is_some_and(|segment| segment.ident == "Option"),
        default: marks.default,
        completer: marks.completer,
    }))
}

/// The last segment of a type's path.
fn last(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        // A type that came through a `macro_rules!` macro.
        Type::Group(group) => last(&group.elem),
        _ => None,
    }
}

/// The type in its angle brackets.
fn inner(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

impl Marks {
    fn read(attributes: Vec<Attribute>, kind: Kind) -> Result<Self> {
        let mut marks = Self::default();
        for attribute in attributes {
            let name = attribute.path().get_ident().map(Ident::to_string).unwrap_or_default();
            match name.as_str() {
                "ask" => marks.ask = Some((attribute.clone(), attribute.parse_args_with(message)?)),
                "arg" => marks.default = Some(attribute.parse_args_with(default)?),
                "args" => {
                    attribute.meta.require_path_only()?;
                    marks.is_whole = true;
                }
                "complete" if kind == Kind::Tool => {
                    return Err(Error::new_spanned(attribute, "only arguments of prompts and templates are completed"));
                }
                "complete" => marks.completer = Some(attribute.parse_args()?),
                "serde" | "schemars" if kind != Kind::Tool => {
                    let message =
                        "here an argument is a text, and has no schema: only tools have `#[serde]`, `#[schemars]`";
                    return Err(Error::new_spanned(attribute, message));
                }
                _ => marks.field.push(attribute),
            }
        }
        Ok(marks)
    }

    /// What only an argument of its own has, before what is none.
    fn refuse(&self, role: &Role) -> Result<()> {
        const MESSAGE: &str = "this is no argument of its own, and cannot have that";
        let asked = self.ask.as_ref().filter(|_| !matches!(role, Role::Ask { .. })).map(|(attribute, _)| attribute);
        let said = self.field.iter().find(|attribute| !docs::is_doc(attribute));
        if let Some(attribute) = asked.or(said) {
            return Err(Error::new_spanned(attribute, MESSAGE));
        }
        match self.default.as_ref().or(self.completer.as_ref()) {
            Some(value) => Err(Error::new_spanned(value, MESSAGE)),
            None => Ok(()),
        }
    }
}

fn message(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse().map_err(|error| Error::new(error.span(), "write the question: `#[ask(\"Deploy {service}?\")]`"))
}

fn default(input: ParseStream<'_>) -> Result<Expr> {
    let word = input.call(Ident::parse_any)?;
    if word != "default" {
        return Err(Error::new(word.span(), "write `#[arg(default = …)]`"));
    }
    input.parse::<Token![=]>()?;
    input.parse()
}
