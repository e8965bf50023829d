/// A case as its file has it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The id and what the case shows.
    pub(crate) title: String,
    /// Where it begins.
    pub(crate) line: usize,
    settings: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
}

/// One line of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: usize,
    /// What stands before the first blank: `>`, `<?`, `eof` …
    pub(crate) mark: String,
    pub(crate) text: String,
}

const SETTINGS: [&str; 11] =
    ["on", "speak", "with", "server", "limits", "accepts", "origins", "hosts", "bind", "streaming", "path"];

impl Case {
    /// A setting that stands once.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// A setting that may stand several times.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.settings.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The cases of a file, or the first line that means nothing.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        read(&mut cases, number, line).map_err(|why| format!("line {number}: {why}"))?;
    }
    match cases.iter().find(|case| case.steps.is_empty()) {
        Some(case) => Err(format!("line {}: a case without steps", case.line)),
        None if cases.is_empty() => Err("no cases".to_owned()),
        None => Ok(cases),
    }
}

fn read(cases: &mut Vec<Case>, number: usize, line: &str) -> Result<(), String> {
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(());
    }
    if let Some(title) = line.strip_prefix("== ") {
        let title = title.trim().to_owned();
        if cases.iter().any(|case| case.title == title) {
            return Err(format!("a second case `{title}`"));
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
        Some((name, value)) if SETTINGS.contains(&name) && case.steps.is_empty() => {
            if name != "with" && name != "limits" && case.setting(name).is_some() {
                return Err(format!("a second `{name}`"));
            }
            case.settings.push((name.to_owned(), value.trim().to_owned()));
        }
        _ => case.steps.push(step(number, line)?),
    }
    Ok(())
}

fn step(line: usize, text: &str) -> Result<Step, String> {
    const MARKS: [&str; 14] =
        [">", ">b", ">raw", ">drip", "<", "<?", "<*", "<=", "<!", "<-", "<e", "<k", "wait", "eof"];
    let (mark, rest) = text.split_once(' ').unwrap_or((text, ""));
    if !MARKS.contains(&mark) {
        return Err(format!("`{mark}` is neither a step nor a setting that may stand here"));
    }
    Ok(Step { line, mark: mark.to_owned(), text: rest.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(why), "{text:?}: {error}");
        }
    }
}
