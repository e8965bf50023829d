use std::{collections::HashMap, time::Duration};

use mcp_core::{BoxFuture, Era, Revision};
use serde_json::{Value, json};

use super::{Case, Shape, Step, Variant, Words, unescape, well_formed};
use crate::{Failure, RawClient, message, mismatch};

/// A case on its way: a client that plays its steps.
#[derive(Debug)]
pub struct Conversation {
    client: RawClient,
    has_connection: bool,
    own: OwnSteps,
    /// The last message, as it came.
    last: String,
    fences: u32,
}

/// What steps of one's own do with the text behind their mark.
type OwnStep = Box<dyn Fn(String) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

#[derive(Default)]
struct OwnSteps(HashMap<&'static str, OwnStep>);

impl std::fmt::Debug for OwnSteps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Conversation {
    /// A conversation that `client`, which has said nothing yet, has.
    #[must_use]
    pub fn new(client: RawClient) -> Self {
        Self { client, has_connection: true, own: OwnSteps::default(), last: String::new(), fences: 0 }
    }

    /// Each message has an exchange of its own, as over HTTP without a session: there is no handshake, and the order of
    /// answers means nothing, so that every `<` is a `<?`.
    #[must_use]
    pub fn without_connection(self) -> Self {
        Self { has_connection: false, ..self }
    }

    /// Gives a step of one's own, by its mark, a meaning. See [`Format::steps`](super::Format::steps).
    #[must_use]
    pub fn step<F>(mut self, mark: &'static str, does: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.own.0.insert(mark, Box::new(move |text| Box::pin(does(text))));
        self
    }

    /// Plays one run of a case to its end.
    ///
    /// # Errors
    /// At the first line that does not hold, which is named.
    pub async fn play(&mut self, case: &Case, variant: &Variant) -> Result<(), Failure> {
        self.open(variant).await?;
        let words = Words::new(variant);
        let mut steps = case.steps.as_slice();
        while let Some(first) = steps.first() {
            let together = steps.iter().take_while(|step| self.is_in_any_order(step)).count().max(1);
            let (now, later) = steps.split_at(together);
            let mut run = Run { conversation: self, words: &words, speaks: variant.speaks };
            run.steps(now).await.map_err(|why| why.at(format_args!("line {}", first.line)))?;
            steps = later;
        }
        let input_has_ended = case.steps.iter().any(|step| step.mark == "eof");
        self.end(variant.speaks, input_has_ended).await.map_err(|why| why.at("at the end"))
    }

    pub(super) async fn open(&mut self, variant: &Variant) -> Result<(), Failure> {
        match variant.speaks {
            Some(revision) if self.has_connection => self.client.open(revision).await,
            _ => Ok(()),
        }
    }

    pub(super) fn client(&mut self) -> &mut RawClient {
        &mut self.client
    }

    /// Whether a step's message may come before or after those of its neighbours.
    fn is_in_any_order(&self, step: &Step) -> bool {
        step.mark == "<?" || (step.mark == "<" && !self.has_connection)
    }

    async fn end(&mut self, speaks: Option<Revision>, input_has_ended: bool) -> Result<(), Failure> {
        if !input_has_ended {
            let variant = Variant::new(Vec::new(), speaks);
            Run { conversation: self, words: &Words::new(&variant), speaks }.nothing_more().await?;
        }
        self.client.end().await
    }

    /// One step that says something, or waits.
    pub(super) async fn act(&mut self, mark: &str, text: &str) -> Result<(), Failure> {
        match mark {
            ">" => self.client.send(text).await,
            ">b" => self.client.send(unescape(text)?).await,
            "eof" => self.client.end_input().await,
            "wait" => {
                let ms = text.parse().map_err(|_| format!("`{text}` is no number of ms"))?;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(())
            }
            other => match self.own.0.get(other) {
                Some(does) => does(text.to_owned()).await,
                None => Err(format!("`{other}` is no step of a conversation in messages").into()),
            },
        }
    }
}

/// A conversation with what the steps of a run mean.
struct Run<'a> {
    conversation: &'a mut Conversation,
    words: &'a Words<'a>,
    speaks: Option<Revision>,
}

impl Run<'_> {
    async fn steps(&mut self, steps: &[Step]) -> Result<(), Failure> {
        let texts = steps.iter().map(|step| self.words.expand(&step.text)).collect::<Result<Vec<_>, _>>()?;
        let (mark, text) = (steps[0].mark.as_str(), texts[0].as_str());
        let last = &self.conversation.last;
        match mark {
            "<?" | "<" => self.expect(&texts).await,
            "<*" => self.skip(text).await,
            "<=" if last.contains(text) => Ok(()),
            "<!" if !last.contains(text) => Ok(()),
            "<=" | "<!" => Err(format!("`{mark} {text}` does not hold for {last}").into()),
            "<-" => self.nothing_more().await,
            _ => self.conversation.act(mark, text).await,
        }
    }

    async fn next(&mut self) -> Result<Value, Failure> {
        let message = self.conversation.client.next().await?;
        self.conversation.last = String::from_utf8_lossy(&message).into_owned();
        let era = self.speaks.map(Revision::era);
        well_formed(&message, Shape::OneOrBatch, era).map_err(|why| format!("{why}: {}", self.conversation.last).into())
    }

    /// As many messages as there are texts, each of which fits one of them.
    async fn expect(&mut self, texts: &[String]) -> Result<(), Failure> {
        let mut open = texts.iter().map(|text| json_of(text)).collect::<Result<Vec<Value>, _>>()?;
        while !open.is_empty() {
            let message = self.next().await.map_err(|why| format!("{why}, expected {}", listed(&open)))?;
            let Some(index) = open.iter().position(|expected| mismatch(expected, &message).is_none()) else {
                let why = mismatch(&open[0], &message).map(|why| why.to_string()).unwrap_or_default();
                let last = &self.conversation.last;
                return Err(format!("{why}\n  expected {}\n  got      {last}", listed(&open)).into());
            };
            open.remove(index);
        }
        Ok(())
    }

    /// Passes over what is like `text`; that the next message is not is seen with a ping, which must be answered in
    /// spite of it.
    async fn skip(&mut self, text: &str) -> Result<(), Failure> {
        const MOST: usize = 20_000;
        let expected = json_of(text)?;
        let fence = self.fence().await?;
        for _ in 0..MOST {
            let message = self.next().await?;
            match mismatch(&expected, &message) {
                _ if message["id"] == fence => return Ok(()),
                None => {}
                Some(why) => return Err(format!("{why}\n  got {}", self.conversation.last).into()),
            }
        }
        Err(format!("a ping is not answered while {MOST} messages like this one come").into())
    }

    /// Nothing is on its way any more, and the server still answers.
    async fn nothing_more(&mut self) -> Result<(), Failure> {
        self.conversation.client.silence().await?;
        let fence = self.fence().await?;
        let message = self.next().await?;
        if message["id"] == fence {
            return Ok(());
        }
        Err(format!("instead of a ping's answer: {}", self.conversation.last).into())
    }

    /// Asks what every server answers at once; the id, which no case uses, tells the answer from others. It is short, for
    /// servers that bound ids.
    async fn fence(&mut self) -> Result<u32, Failure> {
        self.conversation.fences += 1;
        let fence = 900 + self.conversation.fences;
        let is_modern = self.speaks.is_some_and(|revision| revision.era() == Era::Modern);
        let method = if is_modern { "server/discover" } else { "ping" };
        let mut ping = message::request(self.speaks, fence, method, json!({}));
        if !is_modern {
            // Which needs none in any revision.
            ping.as_object_mut().and_then(|members| members.remove("params"));
        }
        self.conversation.client.send(ping.to_string()).await?;
        Ok(fence)
    }
}

fn json_of(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}").into())
}

fn listed(open: &[Value]) -> String {
    open.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ")
}
