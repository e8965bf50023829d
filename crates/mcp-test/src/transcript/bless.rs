use mcp_core::jsonrpc::Bytes;

use super::{Case, Conversation, Step, Variant, Words};
use crate::{Failure, mismatch};

/// A file in which the `<` lines of some cases become what the server answered.
pub(super) struct Blessed<'a> {
    lines: Vec<&'a str>,
    edits: Vec<Edit>,
}

/// The answers behind the step that ends at line `after`, and the steps that they stand instead of.
struct Edit {
    after: usize,
    instead_of: Vec<usize>,
    answers: Vec<String>,
}

impl<'a> Blessed<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { lines: text.lines().collect(), edits: Vec::new() }
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
            let answers = &steps[said..said + heard];
            if !fit(answers, &messages, &words) {
                let line = steps[said.saturating_sub(1)].line;
                self.edits.push(Edit {
                    after: if said == 0 { line - 1 } else { self.end_of(line) },
                    instead_of: answers.iter().map(|step| step.line).collect(),
                    answers: messages.iter().map(|message| format!("< {}", String::from_utf8_lossy(message))).collect(),
                });
            }
            steps = &steps[said + heard..];
        }
        Ok(())
    }

    /// The file, where something in it changed.
    pub(super) fn changed(&self) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        let mut lines: Vec<Option<&str>> = self.lines.iter().copied().map(Some).collect();
        for line in self.edits.iter().flat_map(|edit| &edit.instead_of) {
            lines[line - 1..self.end_of(*line)].fill(None);
        }
        let mut text = String::new();
        for number in 0..=lines.len() {
            let kept = number.checked_sub(1).and_then(|index| lines[index]);
            let new = self.edits.iter().filter(|edit| edit.after == number).flat_map(|edit| &edit.answers);
            for line in kept.into_iter().chain(new.map(String::as_str)) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Some(text)
    }

    /// The last line, from 1, of the step that begins in that line.
    fn end_of(&self, line: usize) -> usize {
        line + self.lines[line..].iter().take_while(|line| line.starts_with([' ', '\t'])).count()
    }
}

fn is_answer(step: &Step) -> bool {
    step.mark.starts_with('<')
}

/// Whether each message is what one plain line expects, in order; then the lines may stay as somebody wrote them.
fn fit(answers: &[Step], messages: &[Bytes], words: &Words<'_>) -> bool {
    let fits = |(step, message): (&Step, &Bytes)| {
        let expected = words.expand(&step.text).ok().and_then(|text| serde_json::from_str(&text).ok());
        let message = serde_json::from_slice(message).ok();
        let (Some(expected), Some(message)) = (expected, message) else { return false };
        step.mark == "<" && mismatch(&expected, &message).is_none()
    };
    answers.len() == messages.len() && answers.iter().zip(messages).all(fits)
}
