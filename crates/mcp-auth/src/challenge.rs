//! Challenges of the header `WWW-Authenticate`.
//!
//! Specification: *RFC 9110, Authentication*; *RFC 6750, The WWW-Authenticate Response Header Field*; *RFC 9728, Use of
//! WWW-Authenticate for Protected Resource Metadata*.

use std::fmt;

/// One way in which a server wants a client to say who it is.
///
/// Schemes and names are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    token68: Option<String>,
    parameters: Vec<(String, String)>,
}

/// The parameters of challenges that a client of an MCP server acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Where the metadata of the resource may be, each URL once, in order. More than one is against the rules, and no
    /// reason to give up.
    pub resource_metadata: Vec<String>,
    /// The scopes that the request needs, where that was said.
    pub scopes: Option<Vec<String>>,
    /// What was wrong with the token, where there was one.
    pub error: Option<String>,
    /// Whether tokens are taken that are bound to a key of the client.
    pub is_dpop: bool,
}

impl Challenge {
    /// A challenge of the scheme `Bearer`.
    #[must_use]
    pub fn bearer() -> Self {
        Self::of("Bearer".to_owned())
    }

    /// A challenge of any scheme. Characters that no scheme has are left out.
    #[must_use]
    pub fn new(scheme: &str) -> Self {
        Self::of(scheme.chars().filter(|&c| u8::try_from(c).is_ok_and(is_token)).collect())
    }

    fn of(scheme: String) -> Self {
        Self { scheme, token68: None, parameters: Vec::new() }
    }

    /// The same challenge with this parameter, in place of one of the same name: none may stand twice. A name that is no
    /// token, and characters of the value that no header can carry, are left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !name.is_empty() && name.bytes().all(is_token) {
            let value: String = value.chars().filter(|&c| c == '\t' || !c.is_control()).collect();
            self.parameters.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            self.parameters.push((name.to_owned(), value));
        }
        self
    }

    /// The challenges in the lines of the header `WWW-Authenticate`, in order. What is no challenge is passed over, and costs
    /// no other.
    #[must_use]
    pub fn parse<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Vec<Self> {
        let mut challenges = Vec::new();
        lines.into_iter().for_each(|line| Reader { rest: line.as_ref() }.read(&mut challenges));
        challenges
    }

    /// The scheme, as it was written.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether it is of that scheme.
    #[must_use]
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The text that some schemes have in place of parameters.
    #[must_use]
    pub fn token68(&self) -> Option<&str> {
        self.token68.as_deref()
    }

    /// The first parameter of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Every parameter of that name, in order; there should be one.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.parameters.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}

impl Wanted {
    /// What these lines of the header `WWW-Authenticate` say.
    #[must_use]
    pub fn parse<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Self {
        let challenges = Challenge::parse(lines);
        let mut wanted = Self::default();
        // Any scheme may name the metadata.
        for url in challenges.iter().flat_map(|challenge| challenge.all("resource_metadata")) {
            if !wanted.resource_metadata.iter().any(|known| known == url) {
                wanted.resource_metadata.push(url.to_owned());
            }
        }
        let tokens = |challenge: &&Challenge| challenge.is("Bearer") || challenge.is("DPoP");
        let first = |name| challenges.iter().filter(tokens).find_map(|challenge| challenge.get(name));
        wanted.scopes = first("scope").map(|scopes| scopes.split_whitespace().map(str::to_owned).collect());
        wanted.error = first("error").map(str::to_owned);
        wanted.is_dpop = challenges.iter().any(|challenge| challenge.is("DPoP"));
        wanted
    }

    /// Whether the proof beside the token lacked the nonce that the server has given with this challenge.
    ///
    /// Specification: *RFC 9449, Resource Server-Provided Nonce*.
    #[must_use]
    pub fn wants_nonce(&self) -> bool {
        self.error.as_deref() == Some("use_dpop_nonce")
    }

    /// Whether the token is good, and may not do that.
    #[must_use]
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// As the value of a header.
impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        if let Some(token) = &self.token68 {
            return write!(f, " {token}");
        }
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            write!(f, "{} {name}=\"{value}\"", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Reads one line from its beginning to its end, each byte at most twice.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// A line may go on with the parameters of the one before: the lines are one list.
    fn read(mut self, into: &mut Vec<Challenge>) {
        loop {
            self.skip(|byte| is_blank(byte) || byte == b',');
            if self.rest.is_empty() {
                return;
            }
            let word = self.take(is_token);
            if word.is_empty() {
                self.skip_item();
                continue;
            }
            match self.value() {
                Some(value) => {
                    if let Some((challenge, value)) = into.last_mut().zip(value) {
                        challenge.parameters.push((word.to_owned(), value));
                    }
                }
                None => {
                    let mut challenge = Challenge::of(word.to_owned());
                    challenge.token68 = self.token68();
                    into.push(challenge);
                }
            }
        }
    }

    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        // All that is asked for is ASCII, so this never cuts a character.
        let end = self.rest.bytes().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip(&mut self, is_part: impl Fn(u8) -> bool) {
        self.take(is_part);
    }

    /// What is no challenge, up to the next comma.
    fn skip_item(&mut self) {
        self.skip(|byte| byte != b',');
    }

    /// What follows a name: nothing where no `=` does; else its value, where that is whole.
    fn value(&mut self) -> Option<Option<String>> {
        let after = self.rest.trim_start_matches([' ', '\t']).strip_prefix('=')?;
        self.rest = after.trim_start_matches([' ', '\t']);
        Some(match self.rest.strip_prefix('"') {
            Some(quoted) => {
                self.rest = quoted;
                self.quoted()
            }
            // More than a token may have: URLs stand there without quotes.
            None => Some(self.take(|byte| !is_blank(byte) && byte != b',').to_owned()),
        })
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(value);
                }
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                c => value.push(c),
            }
        }
        // It has no end, and half a value is none.
        self.rest = "";
        None
    }

    /// The text that stands in place of parameters, where it fills its item.
    fn token68(&mut self) -> Option<String> {
        let before = self.rest;
        if self.take(is_blank).is_empty() {
            return None;
        }
        let start = self.rest;
        let body = self.take(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        let padding = self.take(|byte| byte == b'=');
        let text = &start[..body.len() + padding.len()];
        let end = self.rest.trim_start_matches([' ', '\t']);
        if !body.is_empty() && (end.is_empty() || end.starts_with(',')) {
            return Some(text.to_owned());
        }
        self.rest = before;
        None
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = Wanted::parse(text.lines());
    for challenge in Challenge::parse(text.lines()) {
        let built = challenge
            .parameters
            .iter()
            .fold(Challenge::of(challenge.scheme.clone()), |built, (name, value)| built.with(name, value));
        assert_eq!(Challenge::parse([built.to_string()]), [built]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(lines: &[&str]) -> Vec<String> {
        Wanted::parse(lines).resource_metadata
    }

    #[test]
    fn c171_metadata_is_found_in_every_legal_form() {
        for lines in [
            &[r#"Bearer realm="a, resource_metadata=\"x\"", resource_metadata = "https://h/m""#][..],
            &[r#"bearer RESOURCE_METADATA="https://h/m""#],
            &[r#"Basic realm="x", Bearer resource_metadata="https://h/m""#],
            &["Basic realm=x", r#"Bearer resource_metadata="https://h/m""#],
            &["Bearer resource_metadata=https://h/m"],
            &["Negotiate YWJj==, Bearer error=\"invalid_token\" , resource_metadata\t=\t\"https://h/m\","],
            &[r#", ,Bearer resource_metadata="https://h\/m""#],
            &["Bearer error=invalid_token", r#"resource_metadata="https://h/m""#],
        ] {
            assert_eq!(metadata(lines), ["https://h/m"], "{lines:?}");
        }
    }

    #[test]
    fn c171_what_only_looks_like_metadata_is_none() {
        for line in [
            r#"Bearer realm="resource_metadata=https://h/m""#,
            r#"Bearer realm="a\", resource_metadata=\"https://h/m""#,
            r#"Bearer x_resource_metadata="https://h/m""#,
            r#"Bearer resource_metadata="https://h/m"#,
            r#"Bearer "resource_metadata=https://h/m""#,
            "resource_metadata",
            "",
        ] {
            assert_eq!(metadata(&[line]), [""; 0], "{line}");
        }
    }

    #[test]
    fn c171_challenges_of_any_size_are_read_in_one_pass() {
        let realm = "\\\"".repeat(100_000);
        let line =
            format!("{}Bearer realm=\"{realm}\", resource_metadata=\"https://h/m\"", "Basic a=b, ".repeat(10_000));
        let challenges = Challenge::parse([&line]);
        assert_eq!(challenges.len(), 10_001);
        assert_eq!(challenges[10_000].get("realm").unwrap().len(), 100_000);
        assert_eq!(metadata(&[&line]), ["https://h/m"]);
    }

    #[test]
    fn c172_every_candidate_is_kept_in_order_and_once() {
        let line = r#"Bearer resource_metadata="https://h/a", error="invalid_token", resource_metadata="https://h/b""#;
        assert_eq!(metadata(&[line, r#"DPoP resource_metadata="https://h/a""#]), ["https://h/a", "https://h/b"]);
    }

    #[test]
    fn c172_what_is_built_has_no_name_twice() {
        let built = Challenge::bearer().with("resource_metadata", "https://h/a").with("scope", "a b");
        let built = built.with("Resource_Metadata", "https://h/\"b\"\r\n").with("bad name", "x");
        assert_eq!(built.to_string(), r#"Bearer scope="a b", Resource_Metadata="https://h/\"b\"""#);
        assert_eq!(Challenge::parse([built.to_string()]), [built]);
    }

    #[test]
    fn schemes_parameters_and_bare_tokens_are_told_apart() {
        let challenges = Challenge::parse(["Negotiate, NTLM abc==, Digest qop=auth , nonce=\"\\x\", Bearer"]);
        let schemes: Vec<_> = challenges.iter().map(Challenge::scheme).collect();
        assert_eq!(schemes, ["Negotiate", "NTLM", "Digest", "Bearer"]);
        assert_eq!(challenges[1].token68(), Some("abc=="));
        assert_eq!((challenges[2].get("QOP"), challenges[2].get("nonce")), (Some("auth"), Some("x")));
    }

    #[test]
    fn what_is_read_can_be_written() {
        for data in [
            &b"Bearer a=\"\\\\\", b=c, \"x\", d"[..],
            b"\xff, Basic \xc3\xa9=x, y = \"\xc3\xa9\\\xc3\xa9\"",
            b"a=b",
            b"A b=\nc=d,,=",
            b"A \xe2\x80\x8b b=\"",
        ] {
            fuzz(data);
        }
    }
}
