use crate::Failure;

/// A case as its file has it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Case {
    /// What the case shows.
    pub title: String,
    /// The line that it begins in, from 1.
    pub line: usize,
    settings: Vec<(String, String)>,
    /// The conversation.
    pub steps: Vec<Step>,
}

/// One line of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The line that it begins in, from 1.
    pub line: usize,
    /// What stands before the first blank: `>`, `<?`, `eof` …
    pub mark: String,
    /// What stands behind it, continuation lines included.
    pub text: String,
}

/// What may stand in a file: the settings and steps of [the module](crate::transcript), and more of one's own.
#[derive(Debug, Clone)]
#[must_use]
pub struct Format {
    settings: Vec<&'static str>,
    /// Those that may stand several times.
    repeatable: Vec<&'static str>,
    marks: Vec<&'static str>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            settings: vec!["speak"],
            repeatable: vec!["with"],
            marks: vec![">", ">b", "<", "<?", "<*", "<=", "<!", "<-", "wait", "eof"],
        }
    }
}

impl Format {
    /// The format as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Further settings, which may stand once in a case; [`Case::setting`] finds them.
    pub fn settings(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.settings.extend(names);
        self
    }

    /// Further settings, which may stand several times; [`Case::all`] finds them.
    pub fn repeatable(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.repeatable.extend(names);
        self
    }

    /// Further steps by what stands before their first blank; [`Conversation::step`](super::Conversation::step) gives
    /// them a meaning.
    pub fn steps(mut self, marks: impl IntoIterator<Item = &'static str>) -> Self {
        self.marks.extend(marks);
        self
    }

    /// The cases of a file.
    ///
    /// # Errors
    /// At the first line that means nothing, and for a file or a case that is empty.
    pub fn parse(&self, text: &str) -> Result<Vec<Case>, Failure> {
        let mut cases: Vec<Case> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            self.read(&mut cases, number, line).map_err(|why| why.at(format_args!("line {number}")))?;
        }
        match cases.iter().find(|case| case.steps.is_empty()) {
            Some(case) => Err(format!("line {}: a case without steps", case.line).into()),
            None if cases.is_empty() => Err("no cases".into()),
            None => Ok(cases),
        }
    }

    fn read(&self, cases: &mut Vec<Case>, number: usize, line: &str) -> Result<(), Failure> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(title) = line.strip_prefix("== ") {
            let title = title.trim().to_owned();
            if cases.iter().any(|case| case.title == title) {
                return Err(format!("a second case `{title}`").into());
            }
            cases.push(Case { title, line: number, settings: Vec::new(), steps: Vec::new() });
            return Ok(());
        }
        let case = cases.last_mut().ok_or("a line before the first case")?;
        if line.starts_with([' ', '\t']) {
            let step = case.steps.last_mut().map(|step| &mut step.text);
            let setting = case.settings.last_mut().map(|(_, value)| value);
            step.or(setting).ok_or("an indented line that continues nothing")?.push_str(line.trim());
            return Ok(());
        }
        match line.split_once(':') {
            Some((name, value)) if self.is_setting(name) && case.steps.is_empty() => {
                if self.settings.contains(&name) && case.setting(name).is_some() {
                    return Err(format!("a second `{name}`").into());
                }
                case.settings.push((name.to_owned(), value.trim().to_owned()));
            }
            _ => case.steps.push(self.step(number, line)?),
        }
        Ok(())
    }

    fn is_setting(&self, name: &str) -> bool {
        self.settings.contains(&name) || self.repeatable.contains(&name)
    }

    fn step(&self, line: usize, text: &str) -> Result<Step, Failure> {
        let (mark, rest) = text.split_once(' ').unwrap_or((text, ""));
        if !self.marks.contains(&mark) {
            return Err(format!("`{mark}` is neither a step nor a setting that may stand here").into());
        }
        Ok(Step { line, mark: mark.to_owned(), text: rest.to_owned() })
    }
}

impl Case {
    /// A setting that stands once.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// A setting that may stand several times.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.settings.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The cases of a file in the format as it is.
///
/// # Errors
/// At the first line that means nothing, and for a file or a case that is empty.
pub fn parse(text: &str) -> Result<Vec<Case>, Failure> {
    Format::new().parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Case>, Failure> {
        Format::new().settings(["on"]).parse(text)
    }

    #[test]
    fn a_file_reads_as_its_cases() {
        let cases = parse("# file\n\n== A one\non: mem\n  ory\n> {\"a\":\n    1}\n< 2\n== B two\n<-\n").unwrap();
        assert_eq!(cases.iter().map(|case| case.title.as_str()).collect::<Vec<_>>(), ["A one", "B two"]);
        assert_eq!(cases[0].setting("on"), Some("memory"));
        assert_eq!(cases[0].steps[0], Step { line: 6, mark: ">".into(), text: "{\"a\":1}".into() });
        assert_eq!(cases[1].steps[0], Step { line: 10, mark: "<-".into(), text: String::new() });
    }

    #[test]
    fn what_means_nothing_is_told_with_its_line() {
        for (text, why) in [
            ("> 1", "line 1: a line before the first case"),
            ("== A\nonn: memory\n> 1", "line 2: `onn:` is neither"),
            ("== A\n>> 1", "line 2: `>>` is neither"),
            ("== A\n> 1\non: memory", "line 3: `on:` is neither"),
            ("== A\non: memory\non: stdio\n> 1", "line 3: a second `on`"),
            ("== A\n  1", "line 2: an indented line"),
            ("== A\n> 1\n== A\n> 1", "line 3: a second case"),
            ("== A\n", "line 1: a case without steps"),
            ("", "no cases"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(why), "{text:?}: {error}");
        }
    }
}
