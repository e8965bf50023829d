//! What the macros write, as files to be read: `MCP_TEST_BLESS=1` writes them anew.

use std::fs;

use proc_macro2::TokenStream;
use syn::parse_str;

use crate::{
    expand::{Kind, expand},
    family::Family,
};

fn written(kind: Kind, words: &str, item: &str) -> String {
    let [words, item] = [words, item].map(|text| parse_str::<TokenStream>(text).unwrap());
    let made = expand(kind, words, item, Ok(Family::named("mcp_suite")));
    prettyplease::unparse(&syn::parse2(made).unwrap())
}

fn golden(name: &str, kind: Kind, words: &str, item: &str) {
    compare(name, &written(kind, words, item));
}

/// The same of a method: what stands beside it stands in its `impl` block.
fn golden_method(name: &str, kind: Kind, words: &str, item: &str) {
    let [words, item] = [words, item].map(|text| parse_str::<TokenStream>(text).unwrap());
    let made = expand(kind, words, item, Ok(Family::named("mcp_suite")));
    compare(name, &prettyplease::unparse(&syn::parse_quote!(impl Ship { #made })));
}

fn compare(name: &str, written: &str) {
    // Relative: cargo runs tests in their package's folder, wherever they were built.
    let path = format!("tests/golden/{name}.rs");
    if std::env::var_os("MCP_TEST_BLESS").is_some() {
        fs::write(&path, written).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), written, "{name}.rs");
}

#[test]
fn a_tool() {
    let add = "/// Add two integers
        async fn add(/// The first one
            a: i64, b: i64) -> Result<i64, ToolError> { Ok(a + b) }";
    golden("add", Kind::Tool, "read_only, timeout = SHORT", add);
}

#[test]
fn what_the_builder_takes_is_given_to_it_as_it_is() {
    let add = "pub(crate) async fn add(context: Context, Add { a, b }: Add) -> Result<i64, ToolError> { Ok(a + b) }";
    golden("whole", Kind::Tool, r#"name = "sum", describe = ABOUT"#, add);
}

#[test]
fn a_method_that_asks() {
    let deploy = r#"/// Deploy a service
        pub async fn deploy(&self, context: Context, log: &Log, who: Option<Principal>, service: String,
            #[serde(rename = "in")] #[arg(default = 3)] hours: u32,
            #[ask("Deploy {service}?")] approval: Ask<Approval>, #[ask("Which size?")] size: Ask<Size>,
        ) -> Result<String, ToolError> { Ok(service) }"#;
    golden_method("deploy", Kind::Tool, "destructive", deploy);
}

#[test]
fn a_function_that_blocks() {
    let hash = "fn hash(text: String, salt: &Salt) -> Result<u64, ToolError> { Ok(0) }";
    golden("hash", Kind::Tool, "blocking", hash);
}

#[test]
fn a_prompt() {
    let review = "/// Ask for a review
        async fn review(/// What is to be reviewed
            code: String, #[complete(styles)] style: Option<String>, #[arg(default = 3)] lines: u32,
        ) -> Result<String, ToolError> { Ok(code) }";
    golden("review", Kind::Prompt, "", review);
}

#[test]
fn a_template_of_a_state() {
    let user = "async fn user(&self, context: &Context, #[complete(self.ids)] id: u64, page: Option<u32>)
        -> Result<String, ToolError> { Ok(String::new()) }";
    golden_method("user", Kind::Resource, r#""users:///{id}{?page}", mime_type = "text/plain""#, user);
}

#[test]
fn a_resource() {
    golden(
        "log",
        Kind::Resource,
        r#""file:///log", size = 7"#,
        "async fn log() -> Result<String, ToolError> { read() }",
    );
}
