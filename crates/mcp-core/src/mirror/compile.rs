use mcp_jsonrpc::Raw;
use serde_json::{Map, Value};

use super::Mirrored;
use crate::{Error, ErrorKind, shown};

const ANNOTATION: &str = "x-mcp-header";

/// Keywords whose value is data, in which nothing is an annotation.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Keywords whose members are schemas under names of the author's, so that a name is no keyword.
const SCHEMAS_BY_NAME: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

pub(super) fn compile(schema: &Raw) -> Result<Vec<Mirrored>, Error> {
    if !may_be_annotated(schema.as_str()) {
        return Ok(Vec::new());
    }
    let schema = schema.decode::<Value>().map_err(unreadable)?;
    let mut found = Found::default();
    found.visit(&schema, Place::Property)?;
    Ok(found.mirrored)
}

/// Spares all but a few schemas the reading. An escape may spell the keyword too.
fn may_be_annotated(schema: &str) -> bool {
    schema.contains(ANNOTATION) || schema.contains("\\u")
}

/// Where in a schema a schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Reached from the root by `properties` alone.
    Property,
    /// Anywhere else, where no annotation may be.
    Elsewhere,
}

#[derive(Default)]
struct Found {
    mirrored: Vec<Mirrored>,
    /// The keys that lead to where the visit is.
    path: Vec<String>,
}

impl Found {
    /// It recurses no deeper than what `serde_json` reads, 128 levels.
    fn visit(&mut self, schema: &Value, place: Place) -> Result<(), Error> {
        match schema {
            Value::Object(schema) => self.visit_object(schema, place),
            Value::Array(schemas) => schemas.iter().try_for_each(|schema| self.visit(schema, Place::Elsewhere)),
            _ => Ok(()),
        }
    }

    fn visit_object(&mut self, schema: &Map<String, Value>, place: Place) -> Result<(), Error> {
        if let Some(name) = schema.get(ANNOTATION) {
            let mirrored = self.annotated(schema, name, place).map_err(|why| self.refused(why))?;
            self.mirrored.push(mirrored);
        }
        for (keyword, value) in schema.iter().filter(|(keyword, _)| !DATA.contains(&keyword.as_str())) {
            match value {
                Value::Object(schemas) if SCHEMAS_BY_NAME.contains(&keyword.as_str()) => {
                    let chained = keyword == "properties" && place == Place::Property;
                    self.visit_named(keyword, schemas, if chained { Place::Property } else { Place::Elsewhere })?;
                }
                _ => self.within(keyword, |found| found.visit(value, Place::Elsewhere))?,
            }
        }
        Ok(())
    }

    fn visit_named(&mut self, keyword: &str, schemas: &Map<String, Value>, place: Place) -> Result<(), Error> {
        for (name, schema) in schemas {
            // An argument is told by its own path; elsewhere the keyword tells how one gets there.
            let step = if place == Place::Property { name.clone() } else { format!("{keyword}.{name}") };
            self.within(&step, |found| found.visit(schema, place))?;
        }
        Ok(())
    }

    fn within(&mut self, step: &str, visit: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.path.push(step.to_owned());
        visit(self)?;
        self.path.pop();
        Ok(())
    }

    fn annotated(&self, schema: &Map<String, Value>, name: &Value, place: Place) -> Result<Mirrored, &'static str> {
        if self.path.is_empty() {
            return Err("it must stand in a property");
        }
        if place == Place::Elsewhere {
            return Err("the property must be reached from the root by `properties` alone");
        }
        let name = name.as_str().ok_or("it must be a string")?;
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err("it must be a header's name: one or more letters, digits or !#$%&'*+-.^_`|~");
        }
        if self.mirrored.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
            return Err("another property has the same one, letter case aside");
        }
        if !schema.get("type").is_some_and(is_primitive) {
            return Err("the property's type must be `string`, `integer` or `boolean`");
        }
        Ok(Mirrored { path: self.path.clone(), name: name.into() })
    }

    fn refused(&self, why: &str) -> Error {
        let property = if self.path.is_empty() { "(root)".to_owned() } else { shown(&self.path.join(".")) };
        invalid(format!("`{ANNOTATION}` of the property `{property}`: {why}"))
    }
}

/// Beside its type, a value may be `null`, which no header mirrors.
fn is_primitive(kind: &Value) -> bool {
    let may_be = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Value::Array(kinds) => {
            kinds.iter().any(may_be) && kinds.iter().all(|kind| may_be(kind) || kind.as_str() == Some("null"))
        }
        kind => may_be(kind),
    }
}

/// A `tchar` of RFC 9110, 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::caused(ErrorKind::InvalidParams, "the input schema cannot be read", error)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidParams, message)
}
