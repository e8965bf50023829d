//! The macros `#[tool]`, `#[prompt]` and `#[resource]`: thin sugar over the builders of `mcp-core`.
//!
//! This crate is used through `mcp-suite` or `mcp-core`, behind their feature `derive`. A macro leaves its function as it
//! is, to be called and tested, and puts another one beside it, which makes the builder's value:
//!
//! | written | made of a function | of a method with `&self` |
//! |---|---|---|
//! | `#[tool] async fn add(…)` | `fn add_tool() -> Tool` | `fn add_tool(self: &Arc<Self>) -> Tool` |
//! | `#[prompt] async fn greet(…)` | `fn greet_prompt() -> Prompt` | `fn greet_prompt(self: &Arc<Self>) -> Prompt` |
//! | `#[resource("file:///log")] async fn log(…)` | `fn log_resource() -> Resource` | `fn log_resource(self: &Arc<Self>) -> Resource` |
//! | `#[resource("users:///{id}")] async fn user(…)` | `fn user_template() -> ResourceTemplate` | `fn user_template(self: &Arc<Self>) -> ResourceTemplate` |
//!
//! The doc comment describes it to a model, up to the first heading. What a parameter is goes by its type, as it is
//! written:
//!
//! | type | what it gets | as if written by hand |
//! |---|---|---|
//! | `Context`, `&Context` | the call | the builder's first argument |
//! | `&T` | the server's state of that type | `context.state::<T>()?` |
//! | `Principal`, `&Principal` | who asks; without one the call fails | `context.require_principal()?` |
//! | `Option<Principal>`, `Option<&Principal>` | who asks, if that is known | `context.principal()` |
//! | `Ask<T>`, with `#[ask("Deploy {service}?")]` | the user's answer, asked for before the body runs | `context.elicit("name", form::<T>(…)).await?` |
//! | any other | an argument of its name; `Option` may be left out | a field of the arguments' struct |
//!
//! Another name for `Context` or `Principal`, as by `use … as …`, is not seen through.

mod call;
mod docs;
mod expand;
mod family;
mod parameter;
mod prompt;
mod resource;
mod tool;
mod uri;
mod words;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

use crate::expand::Kind;

/// Makes a tool of an `async fn` that returns `Result<R, ToolError>`.
///
/// Each word is the builder's call of that name, and its value any expression:
///
/// | word | the same by hand |
/// |---|---|
/// | `name = "…"` | the first argument of `Tool::new`; the function's name without it |
/// | `title = "…"`, `describe = "…"`, `icons = …`, `meta = …`, `output_schema = …`, `timeout = …`, `needs = …` | `.title("…")` and so on; `describe` replaces the doc comment |
/// | `validate_output` | `.validate_output(true)` |
/// | `read_only`, `destructive`, `idempotent`, `open_world`, each with `= false` too | `.annotate(ToolAnnotations::default().read_only(true))` |
/// | `asks(Form, …)` | `.asks::<Form>()`; each parameter `Ask<Form>` brings its own |
/// | `task`, `task_when_told`, `task_only` | `.task()` and so on |
/// | `blocking` | `Tool::blocking` of a `fn` that is not `async` |
///
/// An argument's doc comment describes it in the schema. `#[serde(…)]` and `#[schemars(…)]` stand before it as before a
/// field, and `#[arg(default = 10)]` is what it is when it is left out. One that is marked `#[args]`, or has no name as
/// in `Add { a, b }: Add`, is all arguments at once.
#[proc_macro_attribute]
pub fn tool(words: TokenStream, item: TokenStream) -> TokenStream {
    expand::in_family(Kind::Tool, words.into(), item.into()).into()
}

/// Makes a prompt of an `async fn` that returns `Result<R, ToolError>` of messages, or of a text.
///
/// The words are `name`, `title`, `describe`, `icons` and `meta`. Arguments are texts on the wire, and may be of any type
/// that is read from a text (`FromStr`); `Option`, and `#[arg(default = …)]`, make them ones that may be left out. Their doc
/// comments describe them. `#[complete(function)]` completes one, as `Prompt::complete` does; in a method
/// `#[complete(self.method)]` too. One that is marked `#[args]` is the `PromptArguments` as they came.
#[proc_macro_attribute]
pub fn prompt(words: TokenStream, item: TokenStream) -> TokenStream {
    expand::in_family(Kind::Prompt, words.into(), item.into()).into()
}

/// Makes a resource, or of a URI with variables a template, of an `async fn` that returns `Result<R, ToolError>` of text,
/// bytes or contents.
///
/// The words after the URI are `name`, `title`, `describe`, `mime_type`, `cache`, `annotate`, `icons`, `meta` and, of a
/// resource alone, `size`. Each variable of a template is a parameter of its name: of any type that is read from a text
/// (`FromStr`), where a text that cannot be read is a resource that is not there; `Option` for those that a URI may lack.
/// `#[complete(function)]` completes one, as `ResourceTemplate::complete` does; in a method `#[complete(self.method)]` too.
/// One that is marked `#[args]` is the `Variables` as they came.
#[proc_macro_attribute]
pub fn resource(words: TokenStream, item: TokenStream) -> TokenStream {
    expand::in_family(Kind::Resource, words.into(), item.into()).into()
}
