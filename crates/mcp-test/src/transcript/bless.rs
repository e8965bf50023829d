use std::{collections::VecDeque, ops::Range};

use mcp_core::jsonrpc::Bytes;

use super::{Case, Conversation, Step, Variant, Words};
use crate::{Failure, mismatch};

/// A file in which the `<` lines of some cases become what the server answered.
pub(super) struct Blessed<'a> {
    text: &'a str,
    /// Without their ends.
    lines: Vec<&'a str>,
    /// In the order of the file.
    edits: Vec<Edit>,
}

/// What stands instead of some lines, which are counted from 0; none of them where something is put in.
struct Edit {
    lines: Range<usize>,
    instead: Vec<String>,
}

impl<'a> Blessed<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, lines: text.lines().collect(), edits: Vec::new() }
    }

    /// Plays what the case says, and takes down what comes back.
    pub(super) async fn case(
        &mut self,
        case: &Case,
        variant: &Variant,
        mut conversation: Conversation,
    ) -> Result<(), Failure> {
        conversation.open(variant).await?;
        let words = Words::new(variant);
        let mut steps = case.steps.as_slice();
        while !steps.is_empty() {
            let said = steps.iter().take_while(|step| !is_answer(step)).count();
            let heard = steps[said..].iter().take_while(|step| is_answer(step)).count();
            for step in &steps[..said] {
                conversation.act(&step.mark, &words.expand(&step.text)?).await?;
            }
            let messages = conversation.client().rest().await?;
            let before = match said.checked_sub(1) {
                Some(last) => self.lines_of(&steps[last]).end,
                None => steps[0].line - 1,
            };
            let edits = self.answers(before, &steps[said..said + heard], messages.into(), &words);
            self.edits.extend(edits.unwrap_or_default());
            steps = &steps[said + heard..];
        }
        Ok(())
    }

    /// What changes in the answers, which begin behind the line `place`, so that they are these messages. Nothing can
    /// where a line that is not a plain one, and so stays, is in the way.
    fn answers(
        &self,
        mut place: usize,
        mut steps: &[Step],
        mut messages: VecDeque<Bytes>,
        words: &Words<'_>,
    ) -> Option<Vec<Edit>> {
        // What comes beyond the lines goes behind the last one that takes a message, and behind what is said of that.
        let (mut edits, mut takes_all, mut moves) = (Vec::new(), false, false);
        while let Some(step) = steps.first() {
            let mut together = 1;
            match step.mark.as_str() {
                "<" => edits.extend(self.plain(step, messages.pop_front(), words)),
                "<?" => {
                    together = steps.iter().take_while(|step| step.mark == "<?").count();
                    take_in_any_order(&steps[..together], &mut messages, words)?;
                }
                "<*" => {
                    while messages.front().is_some_and(|message| fits(step, message, words)) {
                        messages.pop_front();
                    }
                    takes_all = true;
                }
                _ => {}
            }
            moves = step.mark != "<-" && (moves || ["<", "<?", "<*"].contains(&step.mark.as_str()));
            if moves {
                place = self.lines_of(&steps[together - 1]).end;
            }
            steps = &steps[together..];
        }
        if !messages.is_empty() {
            // Behind a line that takes all that is like it nothing else may come.
            (!takes_all).then_some(())?;
            edits.push(Edit { lines: place..place, instead: messages.iter().map(written).collect() });
        }
        Some(edits)
    }

    /// What changes in a plain line for which that message came, or none.
    fn plain(&self, step: &Step, message: Option<Bytes>, words: &Words<'_>) -> Option<Edit> {
        let holds = message.as_ref().is_some_and(|message| fits(step, message, words));
        (!holds).then(|| Edit { lines: self.lines_of(step), instead: message.iter().map(written).collect() })
    }

    /// The file, where something in it changed. Its lines end as they did, and new ones as the first.
    pub(super) fn changed(&self) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        let end = if self.text.split_inclusive('\n').next()?.ends_with("\r\n") { "\r\n" } else { "\n" };
        let kept: Vec<String> = self.text.split_inclusive('\n').map(|line| ended(line, end)).collect();
        let (mut text, mut next) = (String::new(), 0);
        for edit in &self.edits {
            text.extend(kept[next..edit.lines.start].iter().map(String::as_str));
            text.extend(edit.instead.iter().flat_map(|line| [line.as_str(), end]));
            next = edit.lines.end;
        }
        text.extend(kept[next..].iter().map(String::as_str));
        if !self.text.ends_with('\n') {
            let line = text.strip_suffix('\n').unwrap_or(&text);
            text.truncate(line.strip_suffix('\r').unwrap_or(line).len());
        }
        Some(text)
    }

    fn lines_of(&self, step: &Step) -> Range<usize> {
        let more = self.lines[step.line..].iter().take_while(|line| line.starts_with([' ', '\t'])).count();
        step.line - 1..step.line + more
    }
}

/// The line with an end, if it is the file's last and had none.
fn ended(line: &str, end: &str) -> String {
    if line.ends_with('\n') { line.to_owned() } else { format!("{line}{end}") }
}

fn written(message: &Bytes) -> String {
    format!("< {}", String::from_utf8_lossy(message))
}

fn is_answer(step: &Step) -> bool {
    step.mark.starts_with('<')
}

/// Takes as many messages as there are steps, each of which fits one of them; none where one does not.
fn take_in_any_order(steps: &[Step], messages: &mut VecDeque<Bytes>, words: &Words<'_>) -> Option<()> {
    let mut open: Vec<&Step> = steps.iter().collect();
    while !open.is_empty() {
        let message = messages.pop_front()?;
        let index = open.iter().position(|step| fits(step, &message, words))?;
        open.remove(index);
    }
    Some(())
}

/// Whether the message is what the line expects; then the line may stay as somebody wrote it.
fn fits(step: &Step, message: &Bytes, words: &Words<'_>) -> bool {
    let expected = words.expand(&step.text).ok().and_then(|text| serde_json::from_str(&text).ok());
    let message = serde_json::from_slice(message).ok();
    let (Some(expected), Some(message)) = (expected, message) else { return false };
    mismatch(&expected, &message).is_none()
}
