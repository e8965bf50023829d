//! Forms from Rust types: what a user is asked for, as the flat schema that clients can show.
//!
//! Specification: *Elicitation, Requested Schema*.

use std::{
    any::TypeId,
    collections::HashMap,
    marker::PhantomData,
    sync::{LazyLock, Mutex},
};

use mcp_jsonrpc::Raw;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{
    Error, ErrorKind, Revision, ToolError,
    lock::lock,
    types::{ElicitAction, ElicitParams, ElicitResult},
};

/// A question that [`Context::elicit`](crate::Context::elicit) asks a user.
pub trait Question {
    /// What is made of the user's answer.
    type Answer;

    /// What the client is asked in `revision`.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn params(&self, revision: Revision) -> Result<ElicitParams, ToolError>;

    /// What is made of an answer that has the shape that was asked for.
    ///
    /// # Errors
    /// When it is no answer to go on with.
    fn answer(&self, result: ElicitResult) -> Result<Self::Answer, ToolError>;
}

/// The answer is what the user made of it: accepted, declined or cancelled.
impl Question for ElicitParams {
    type Answer = ElicitResult;

    fn params(&self, _: Revision) -> Result<ElicitParams, ToolError> {
        Ok(self.clone())
    }

    fn answer(&self, result: ElicitResult) -> Result<ElicitResult, ToolError> {
        Ok(result)
    }
}

/// A form whose fields are those of a type; made by [`form`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Form<T> {
    message: String,
    fields: PhantomData<fn() -> T>,
}

/// A form that asks for a `T`: a struct of texts, numbers, booleans, and enums without data, or several of an enum. `Option`
/// makes a field one that may be left out, doc comments describe fields and name choices, and constraints and defaults are
/// those of `schemars`.
///
/// A user who declines is a failure of the handler; whoever wants to tell that from an answer asks with [`ElicitParams`].
///
/// ```
/// use mcp_core::{Context, ToolError, server::form};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Approval {
///     /// Whether to go on
///     go: bool,
/// }
///
/// async fn deploy(context: Context) -> Result<&'static str, ToolError> {
///     let Approval { go } = context.elicit("approve", form::<Approval>("Deploy this?")).await?;
///     Ok(if go { "deployed" } else { "left alone" })
/// }
/// ```
///
/// Specification: *Elicitation, Requested Schema*.
pub fn form<T: DeserializeOwned + JsonSchema + 'static>(message: impl Into<String>) -> Form<T> {
    Form { message: message.into(), fields: PhantomData }
}

/// The schema that a form of `T` asks for in `revision`, made once a process. A type that no form carries is found out only when it is asked for,
/// unless [`Tool::asks`](crate::Tool::asks) names it, or a test calls this.
///
/// # Errors
/// [`ErrorKind::InvalidParams`] with the field that a form cannot carry: of a type that forms do not know, or with a
/// constraint that they do not know, as a pattern.
pub fn form_schema<T: JsonSchema + 'static>(revision: Revision) -> Result<Raw, Error> {
    let key = (TypeId::of::<T>(), revision);
    if let Some(known) = lock(&SCHEMAS).get(&key) {
        return Ok(known.clone());
    }
    let schema = made_of::<T>(revision)?;
    lock(&SCHEMAS).insert(key, schema.clone());
    Ok(schema)
}

/// Those that were asked for, as a question is put together anew in each of its rounds.
static SCHEMAS: LazyLock<Mutex<HashMap<(TypeId, Revision), Raw>>> = LazyLock::new(Mutex::default);

fn made_of<T: JsonSchema>(revision: Revision) -> Result<Raw, Error> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let flat = flat(schema.as_value(), revision).map_err(|why| Error::new(ErrorKind::InvalidParams, why))?;
    Raw::encode(&flat).map_err(|error| Error::caused(ErrorKind::InvalidParams, "the schema cannot be written", error))
}

impl<T: DeserializeOwned + JsonSchema + 'static> Question for Form<T> {
    type Answer = T;

    fn params(&self, revision: Revision) -> Result<ElicitParams, ToolError> {
        Ok(ElicitParams::form(self.message.clone(), form_schema::<T>(revision)?))
    }

    fn answer(&self, result: ElicitResult) -> Result<T, ToolError> {
        match result.action {
            ElicitAction::Accept => Ok(result.content.unwrap_or(Raw::empty_object()).decode()?),
            ElicitAction::Decline => Err(ToolError::new("The user declined")),
            ElicitAction::Cancel => Err(ToolError::new("The user did not answer")),
        }
    }
}

fn flat(schema: &Value, revision: Revision) -> Result<Value, String> {
    let none = Map::new();
    // Whatever else may say of fields, beside their names, would be lost: maps, and variants of an enum.
    let carried = ["type", "properties", "required", "additionalProperties", "$schema", "$defs"];
    let has_more = schema.as_object().is_none_or(|about| !says_only(about, &carried));
    let is_open = schema.get("additionalProperties").is_some_and(|others| *others != false);
    if schema["type"] != "object" || has_more || is_open {
        return Err("a form asks for a struct with named fields, and each of them alone".into());
    }
    let mut properties = Map::new();
    for (name, property) in schema["properties"].as_object().unwrap_or(&none) {
        let field = field(property, revision).ok_or_else(|| format!("a form cannot ask for the field `{name}`"))?;
        properties.insert(name.clone(), field.into());
    }
    let required = schema.get("required").cloned().unwrap_or_else(|| json!([]));
    Ok(json!({ "type": "object", "properties": properties, "required": required }))
}

/// A field as clients know it; `None` where they know none like it.
fn field(schema: &Value, revision: Revision) -> Option<Map<String, Value>> {
    let about = schema.as_object()?;
    // An `Option` around something else.
    if let Some([one, other]) = about.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        let inner = if other["type"] == "null" { one } else { Some(other).filter(|_| one["type"] == "null")? };
        says_only(about, &["anyOf"]).then_some(())?;
        return Some(with(field(inner, revision)?, about, &["title", "description", "default"]));
    }
    let choices = choices(schema);
    let kind = match &schema["type"] {
        Value::String(kind) => kind.as_str(),
        // Or `null`, which is what leaving it out comes to.
        Value::Array(kinds) => match kinds.iter().filter(|kind| *kind != "null").collect::<Vec<_>>()[..] {
            [kind] => kind.as_str()?,
            _ => return None,
        },
        _ if choices.is_some() => "string",
        _ => return None,
    };
    let (said, made): (&[&str], &[&str]) = match kind {
        "string" if choices.is_some() => (&["title", "description", "default"], &["type", "enum", "oneOf"]),
        "string" => (&["title", "description", "default", "minLength", "maxLength", "format"], &["type"]),
        "integer" | "number" => (&["title", "description", "default", "minimum", "maximum"], &["type"]),
        "boolean" => (&["title", "description", "default"], &["type"]),
        // A set makes one of two that are the same.
        "array" if revision >= Revision::V2025_11_25 => {
            (&["title", "description", "default", "minItems", "maxItems"], &["type", "items", "uniqueItems"])
        }
        _ => return None,
    };
    says_only(about, &[said, made].concat()).then_some(())?;
    let mut flat = with(Map::from_iter([("type".to_owned(), kind.into())]), about, said);
    match kind {
        "array" => {
            says_only(schema["items"].as_object()?, &["type", "enum", "oneOf"]).then_some(())?;
            let choices = self::choices(&schema["items"])?;
            let items = if choices.is_titled { json!({ "anyOf": choices.titled() }) } else { choices.plain() };
            flat.insert("items".into(), items);
        }
        "string" => {
            let known = |format: &Value| ["email", "uri", "date", "date-time"].iter().any(|known| format == known);
            if flat.get("format").is_some_and(|format| !known(format)) {
                flat.remove("format");
            }
            if let Some(choices) = choices {
                choose(&mut flat, &choices, revision);
            }
        }
        _ => {}
    }
    Some(flat)
}

/// Whether a schema has no keywords but these, and such as say nothing of which values it takes.
fn says_only(about: &Map<String, Value>, keywords: &[&str]) -> bool {
    const REMARKS: [&str; 9] =
        ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "format"];
    let is_known = |keyword: &str| keywords.contains(&keyword) || REMARKS.contains(&keyword);
    about.keys().all(|keyword| is_known(keyword) || keyword.starts_with("x-"))
}

/// Adds what `about` says with these keywords.
fn with(mut flat: Map<String, Value>, about: &Map<String, Value>, keywords: &[&str]) -> Map<String, Value> {
    for keyword in keywords {
        if let Some(value) = about.get(*keyword).filter(|value| !value.is_null()) {
            flat.insert((*keyword).to_owned(), value.clone());
        }
    }
    flat
}

/// The values of an enum without data, and what they are called.
struct Choices {
    values: Vec<(String, String)>,
    is_titled: bool,
}

impl Choices {
    fn titled(&self) -> Value {
        self.values.iter().map(|(value, title)| json!({ "const": value, "title": title })).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.values.iter().map(|(value, _)| value.as_str()).collect()
    }

    fn plain(&self) -> Value {
        json!({ "type": "string", "enum": self.names() })
    }
}

fn choices(schema: &Value) -> Option<Choices> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter(|value| !value.is_null());
        let values = values.map(|value| Some((text(value)?, text(value)?))).collect::<Option<Vec<_>>>()?;
        return Some(Choices { values, is_titled: false });
    }
    let mut values = Vec::new();
    // Variants with doc comments stand alone; those without are together.
    for variant in schema["oneOf"].as_array()? {
        if let Some(several) = variant["enum"].as_array() {
            values.extend(several.iter().map(|value| Some((text(value)?, text(value)?))).collect::<Option<Vec<_>>>()?);
        } else {
            let value = text(&variant["const"])?;
            let title = text(&variant["title"]).or_else(|| text(&variant["description"]));
            values.push((value.clone(), title.unwrap_or(value)));
        }
    }
    Some(Choices { values, is_titled: true })
}

/// Titles came into the schema with 2025-11-25; before, they stand beside it.
fn choose(flat: &mut Map<String, Value>, choices: &Choices, revision: Revision) {
    if choices.is_titled && revision >= Revision::V2025_11_25 {
        flat.insert("oneOf".into(), choices.titled());
        return;
    }
    flat.insert("enum".into(), choices.names().into());
    if choices.is_titled {
        let titles: Vec<_> = choices.values.iter().map(|(_, title)| title.as_str()).collect();
        flat.insert("enumNames".into(), titles.into());
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "only their schemas are looked at")]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, serde::Serialize, JsonSchema, Default, PartialEq, Eq, PartialOrd, Ord)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        #[default]
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Color {
        /// As blood
        Red,
        /// As grass
        Green,
        Blue,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Order {
        /// Who orders
        #[schemars(length(min = 1, max = 20))]
        name: String,
        #[schemars(email)]
        email: Option<String>,
        #[schemars(range(min = 1, max = 9))]
        #[serde(default = "one")]
        count: u8,
        weight: Option<f64>,
        #[serde(default)]
        gift: bool,
        #[serde(default)]
        size: Size,
        color: Color,
        other: Option<Color>,
        extras: Vec<Color>,
    }

    fn one() -> u8 {
        1
    }

    fn schema<T: JsonSchema + 'static>(revision: Revision) -> Value {
        form_schema::<T>(revision).unwrap().decode().unwrap()
    }

    #[test]
    fn a_struct_becomes_a_flat_form_with_constraints_defaults_and_choices() {
        let colors = json!([
            { "const": "Red", "title": "As blood" }, { "const": "Green", "title": "As grass" },
            { "const": "Blue", "title": "Blue" },
        ]);
        let schema = schema::<Order>(Revision::V2025_11_25);
        let sorted = |colors: &Value| {
            let mut colors = colors.as_array().unwrap().clone();
            colors.sort_by_key(|color| color["const"].to_string());
            Value::from(colors)
        };
        let properties = &schema["properties"];
        let name = json!({ "type": "string", "description": "Who orders", "minLength": 1, "maxLength": 20 });
        assert_eq!(properties["name"], name);
        assert_eq!(properties["email"], json!({ "type": "string", "format": "email" }));
        assert_eq!(properties["count"], json!({ "type": "integer", "minimum": 1, "maximum": 9, "default": 1 }));
        assert_eq!(properties["weight"], json!({ "type": "number" }));
        assert_eq!(properties["gift"], json!({ "type": "boolean", "default": false }));
        assert_eq!(properties["size"], json!({ "type": "string", "enum": ["small", "large"], "default": "small" }));
        for choice in ["color", "other"] {
            assert_eq!(sorted(&properties[choice]["oneOf"]), sorted(&colors), "{properties}");
        }
        assert_eq!(sorted(&properties["extras"]["items"]["anyOf"]), sorted(&colors));
        assert_eq!(schema["required"], json!(["name", "color", "extras"]));
    }

    #[test]
    fn before_2025_11_25_titles_stand_beside_the_values() {
        #[derive(Deserialize, JsonSchema)]
        struct Choice {
            color: Color,
        }
        let color = &schema::<Choice>(Revision::V2025_06_18)["properties"]["color"];
        let names = ["enum", "enumNames"].map(|member| color[member].as_array().unwrap().len());
        assert!(color.get("oneOf").is_none() && names == [3, 3], "{color}");
    }

    /// Else the user would fill in what is then refused, or get past what the type asserts.
    #[test]
    fn what_a_schema_asserts_and_no_form_carries_is_refused() {
        use std::collections::BTreeSet;

        use schemars::{Schema, SchemaGenerator, json_schema};
        macro_rules! refused {
            ($($(#[$meta:meta])* $field:ident: $kind:ty),* $(,)?) => {$(
                #[derive(Deserialize, JsonSchema)]
                struct $field {
                    $(#[$meta])*
                    field: $kind,
                }
                let error = form_schema::<$field>(Revision::LATEST).expect_err(stringify!($field)).to_string();
                assert!(error.contains("`field`"), "{error}");
            )*};
        }
        fn numbers(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "integer", "enum": [1, 2] })
        }
        fn two_kinds(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": ["string", "integer"] })
        }
        #[derive(Deserialize, JsonSchema)]
        struct Tree {
            branches: Vec<Tree>,
        }
        refused! {
            #[schemars(regex(pattern = r"^\d{4}$"))] Pattern: String,
            #[schemars(regex(pattern = r"^\d{4}$"))] Optional: Option<String>,
            #[schemars(extend("exclusiveMinimum" = 0))] Exclusive: f64,
            #[schemars(extend("multipleOf" = 2))] Multiple: i64,
            #[schemars(extend("const" = "yes"))] Constant: String,
            #[schemars(extend("not" = { "const": 5 }))] Not: u8,
            #[schemars(extend("anyOf" = [{ "minimum": 3 }, { "maximum": 1 }]))] AnyOf: u8,
            #[schemars(extend("minLength" = 3))] OfAnotherKind: u8,
            #[schemars(extend("contains" = { "const": "Red" }))] Contains: Vec<Color>,
            #[schemars(schema_with = "numbers")] Numbers: u8,
            #[schemars(schema_with = "two_kinds")] TwoKinds: String,
            Recursive: Tree,
            Entries: HashMap<String, String>,
            Anything: Value,
            Object: Map<String, Value>,
        }
        // What says nothing of answers, or what the type itself sees to, is no hindrance.
        #[derive(Deserialize, JsonSchema)]
        #[schemars(extend("x-about" = "orders"))]
        #[serde(deny_unknown_fields)]
        struct Fine {
            #[schemars(extend("x-about" = 1, "examples" = [1], "readOnly" = false, "$comment" = "c"))]
            #[deprecated]
            number: u8,
            several: BTreeSet<Size>,
        }
        assert!(form_schema::<Fine>(Revision::LATEST).is_ok());
        #[derive(Deserialize, JsonSchema)]
        #[schemars(extend("dependentRequired" = { "a": ["b"] }))]
        struct Dependent {
            a: Option<u8>,
            b: Option<u8>,
        }
        assert!(form_schema::<Dependent>(Revision::LATEST).is_err());
    }

    #[test]
    fn what_no_form_carries_is_refused_with_its_name() {
        #[derive(Deserialize, JsonSchema)]
        struct Inner {
            a: bool,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Nested {
            inner: Inner,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Many {
            names: Vec<String>,
        }
        #[derive(Deserialize, JsonSchema)]
        enum Data {
            Some(u8),
        }
        #[derive(Deserialize, JsonSchema)]
        struct OfData {
            data: Data,
        }
        let refused = |error: Error| error.to_string();
        assert!(refused(form_schema::<Nested>(Revision::LATEST).unwrap_err()).contains("`inner`"));
        assert!(refused(form_schema::<Many>(Revision::LATEST).unwrap_err()).contains("`names`"));
        assert!(refused(form_schema::<OfData>(Revision::LATEST).unwrap_err()).contains("`data`"));
        // Fields that nobody has named cannot be shown; the form would be empty, or lack them.
        #[derive(Deserialize, JsonSchema)]
        struct Open {
            a: bool,
            #[serde(flatten)]
            others: HashMap<String, String>,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Either {
            a: bool,
            #[serde(flatten)]
            data: Data,
        }
        assert!(form_schema::<u8>(Revision::LATEST).is_err());
        assert!(form_schema::<HashMap<String, String>>(Revision::LATEST).is_err());
        assert!(form_schema::<Open>(Revision::LATEST).is_err());
        assert!(form_schema::<Either>(Revision::LATEST).is_err());
        #[derive(Deserialize, JsonSchema)]
        struct Several {
            colors: Vec<Size>,
        }
        assert!(
            form_schema::<Several>(Revision::V2025_06_18).is_err() && form_schema::<Several>(Revision::LATEST).is_ok()
        );
    }
}
