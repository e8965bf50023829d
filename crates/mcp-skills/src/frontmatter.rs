use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::uri::is_skill_name;

/// How long a frontmatter may be, in bytes.
pub const MAX_FRONTMATTER_BYTES: usize = 256 * 1024;

/// How many values it may hold.
const MAX_NODES: usize = 16 * 1024;

/// What a `SKILL.md` says of its skill before its first line: YAML there, a JSON object on the wire.
///
/// Specification: *Skills extension, Frontmatter*; *Agent Skills, Frontmatter*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Frontmatter(Map<String, Value>);

impl Frontmatter {
    /// One that says no more than it must.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self(Map::new()).with("name", name.into()).with("description", description.into())
    }

    /// The same with a further field, or another value of it.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(field.into(), value.into());
        self
    }

    /// Reads the frontmatter of a `SKILL.md`.
    ///
    /// # Errors
    /// In words: when there is none, or it is no YAML mapping of at most [`MAX_FRONTMATTER_BYTES`].
    pub fn parse(skill_md: &str) -> Result<Self, String> {
        let (yaml, _) = split(skill_md).ok_or("it does not begin with YAML between two lines of `---`")?;
        if yaml.len() > MAX_FRONTMATTER_BYTES {
            return Err(format!("its frontmatter is longer than {MAX_FRONTMATTER_BYTES} bytes"));
        }
        // A few lines of references would else stand for gigabytes.
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 32, max_nodes: MAX_NODES },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_NODES },
            merge_keys: serde_saphyr::MergeKeyPolicy::AsOrdinary,
            ignore_binary_tag_for_string: true,
            strict_booleans: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(yaml, options).map(Self).map_err(|error| {
            let what = error.to_string();
            format!("its frontmatter is no YAML mapping: {}", what.lines().next().unwrap_or_default())
        })
    }

    /// The skill's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// What the skill is for, and when to use it.
    #[must_use]
    pub fn description(&self) -> &str {
        self.text("description").unwrap_or_default()
    }

    /// A field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// All fields.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.get(field)?.as_str()
    }

    /// What it lacks.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !is_skill_name(self.name()) {
            let rule = "1 to 64 lowercase letters, digits and single hyphens between them";
            return Err(format!("its frontmatter has no `name` that is {rule}"));
        }
        match self.description().chars().count() {
            1..=1024 => Ok(()),
            _ => Err("its frontmatter has no `description` of 1 to 1024 characters".into()),
        }
    }

    /// The first field in which the two differ, in either direction.
    pub(crate) fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let differs = |field: &&String| !self.get(field).zip(other.get(field)).is_some_and(|(a, b)| is_same(a, b));
        self.0.keys().chain(other.0.keys()).find(differs).map(String::as_str)
    }

    /// A `SKILL.md` that begins with it. JSON is YAML, too.
    pub(crate) fn before(&self, body: &str) -> String {
        let mut text = String::from("---\n");
        for (field, value) in &self.0 {
            let is_plain = field.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let key = if is_plain { field.clone() } else { Value::from(field.as_str()).to_string() };
            text += &format!("{key}: {value}\n");
        }
        text + "---\n\n" + body
    }
}

/// Numbers are the same that are equal, however they are written.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

/// The YAML of a `SKILL.md`, and what follows it.
pub(crate) fn split(skill_md: &str) -> Option<(&str, &str)> {
    let text = skill_md.strip_prefix('\u{feff}').unwrap_or(skill_md);
    let is_fence = |line: &str| line.trim_end() == "---";
    let (first, rest) = text.split_once('\n')?;
    if !is_fence(first) {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if is_fence(line) {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(yaml: &str) -> Result<Value, String> {
        Frontmatter::parse(&format!("---\n{yaml}---\nbody")).map(|read| Value::Object(read.0))
    }

    #[test]
    fn what_authors_write_becomes_json() {
        let yaml = "name: pdf\ndescription: >-\n  Read\n  PDFs\nmetadata:\n  version: \"1.0\"\n  n: 1.0\n  i: 12\n  on: yes\n  t: true\nallowed-tools: Bash(git:*) Read\nlist: [a, 'b']\nnone:\ndate: 2026-01-02\n";
        let expected = json!({
            "name": "pdf", "description": "Read PDFs",
            "metadata": { "version": "1.0", "n": 1.0, "i": 12, "on": "yes", "t": true },
            "allowed-tools": "Bash(git:*) Read", "list": ["a", "b"], "none": null, "date": "2026-01-02",
        });
        assert_eq!(parse(yaml).unwrap(), expected);
        let windows = Frontmatter::parse("\u{feff}---\r\nname: a\r\ndescription: b\r\n---  \r\nbody").unwrap();
        assert_eq!(windows, Frontmatter::new("a", "b"));
    }

    /// Other hosts read the same lines with other libraries.
    #[test]
    fn scalars_are_those_of_yaml_1_2() {
        for (yaml, json) in [
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("1.10", json!(1.1)),
            ("1e3", json!(1000.0)),
            ("12345678901234567890", json!(12_345_678_901_234_567_890_u64)),
            ("~", Value::Null),
            ("True", json!(true)),
            ("y", json!("y")),
            ("1:30", json!("1:30")),
            ("2026-01-02T03:04:05Z", json!("2026-01-02T03:04:05Z")),
            ("!!str 12", json!("12")),
            ("!!binary aGVsbG8=", json!("aGVsbG8=")),
            ("&x 1", json!(1)),
            ("{ <<: { b: 1 } }", json!({ "<<": { "b": 1 } })),
        ] {
            assert_eq!(parse(&format!("a: {yaml}\n")).unwrap()["a"], json, "{yaml}");
        }
        assert_eq!(parse("a: &x [1]\nb: *x\n").unwrap(), json!({ "a": [1], "b": [1] }));
        for yaml in [".inf", ".nan", "{ x: 1, x: 2 }", "*x", "[", "@x"] {
            assert!(parse(&format!("a: {yaml}\n")).is_err(), "{yaml}");
        }
    }

    #[test]
    fn what_is_no_frontmatter_is_refused_in_words() {
        for text in ["", "name: a", "---\nname: a", "---", " ---\nname: a\n---", "---\n- a\n---", "---\na: [\n---"] {
            assert!(Frontmatter::parse(text).is_err(), "{text:?}");
        }
        assert!(parse("name: a\nname: b\n").is_err(), "a field twice");
        assert!(Frontmatter::parse("---\n---").unwrap().check().is_err());
        let of = |bytes: usize| parse(&format!("a: {}\n", "x".repeat(bytes - 4)));
        assert!(of(MAX_FRONTMATTER_BYTES).is_ok());
        assert!(of(MAX_FRONTMATTER_BYTES + 1).unwrap_err().contains("longer"));
    }

    #[test]
    fn a_few_lines_do_not_stand_for_gigabytes() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", "));
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&format!("a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000))).is_err());
    }

    #[test]
    fn a_difference_is_found_in_either_direction() {
        let one = Frontmatter::new("a", "b").with("n", json!({ "x": [1, 2.0] }));
        assert_eq!(one.difference(&Frontmatter::new("a", "b").with("n", json!({ "x": [1.0, 2] }))), None);
        assert_eq!(one.difference(&Frontmatter::new("a", "b")), Some("n"));
        assert_eq!(Frontmatter::new("a", "b").difference(&one), Some("n"));
        assert_eq!(one.difference(&one.clone().with("n", json!({ "x": [1] }))), Some("n"));
    }

    #[test]
    fn a_frontmatter_reads_back_from_its_own_file() {
        let odd = Frontmatter::new("a", "it's \"b\": #c\n\u{1F600}").with("with space", json!([1, { "x": null }]));
        let file = odd.before("# Body\n---\n");
        assert_eq!(Frontmatter::parse(&file).unwrap(), odd);
        assert_eq!(split(&file).unwrap().1, "\n# Body\n---\n");
    }
}
