//! Streams of `subscriptions/listen` over HTTP, all of which hear of one change.

use std::{
    fmt::Write as _,
    io::Write,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use mio::{Events, Interest, Poll, Token, net::TcpStream};

use super::{
    call::META,
    check::lossy,
    post::Poster,
    socket::{Received, wait},
    wire::{
        Wire,
        http::{count, head, modern, response_head},
    },
};

/// What is listened to.
const URI: &str = "bench://changes";

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

const UPDATED: &str = "notifications/resources/updated";

/// Streams that are open, and who makes a change.
pub struct Listeners {
    poll: Poll,
    events: Events,
    streams: Vec<Listener>,
    changer: Poster,
}

impl Listeners {
    /// Opens so many, and waits until all of them are acknowledged.
    ///
    /// # Errors
    /// When one is refused.
    pub fn open(address: SocketAddr, count: usize) -> Result<Self> {
        let poll = Poll::new()?;
        let streams: Vec<Listener> =
            (0..count).map(|index| Listener::open(address, index, &poll)).collect::<Result<_>>()?;
        let changer = Poster::connect(address)?;
        let mut listeners = Self { poll, events: Events::with_capacity(count), streams, changer };
        listeners.hear(ACKNOWLEDGED)?;
        Ok(listeners)
    }

    /// Has a change made, and waits until the last stream has heard of it: how long that took.
    ///
    /// # Errors
    /// When one hears of something else, or ends.
    pub fn change(&mut self) -> Result<Duration> {
        let mut headers = String::new();
        modern(&mut headers, "tools/call", Some("touch"))?;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"touch","arguments":{{"uri":"{URI}"}},"_meta":{{{META}{{}}}}}}}}"#
        );
        let start = Instant::now();
        let response = self.changer.post(&headers, &call)?;
        ensure!(
            response.status == 200,
            "`touch` is answered with {}: {:.2000}",
            response.status,
            lossy(&response.body)
        );
        self.hear(UPDATED)?;
        Ok(start.elapsed())
    }

    /// Waits until each stream has heard of that, once.
    fn hear(&mut self, method: &str) -> Result<()> {
        self.streams.iter_mut().for_each(|listener| listener.has_heard = false);
        let mut waiting = self.streams.len();
        while waiting > 0 {
            wait(&mut self.poll, &mut self.events, None)?;
            for event in &self.events {
                let listener = &mut self.streams[event.token().0];
                let (before, heard) = (usize::from(listener.has_heard), listener.hear(method)?);
                ensure!(before + heard <= 1, "one change is told twice");
                listener.has_heard = before + heard == 1;
                waiting -= heard;
            }
        }
        Ok(())
    }
}

struct Listener {
    stream: TcpStream,
    received: Received,
    is_answered: bool,
    /// Of what is waited for now.
    has_heard: bool,
}

impl Listener {
    fn open(address: SocketAddr, index: usize, poll: &Poll) -> Result<Self> {
        let mut stream = Wire::Http.connect(address)?;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["{URI}"]}},"_meta":{{{META}{{}}}}}}}}"#,
            index + 1
        );
        let mut headers = String::new();
        modern(&mut headers, "subscriptions/listen", None)?;
        let mut request = head(&address.to_string(), &headers, body.len());
        request.write_str(&body)?;
        stream.write_all(request.as_bytes())?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
        Ok(Self { stream, received: Received::new(), is_answered: false, has_heard: false })
    }

    /// How often that method came with what there is now.
    fn hear(&mut self, method: &str) -> Result<usize> {
        let mut heard = 0;
        while self.received.read(&mut self.stream)? {
            heard += self.whole(method)?;
            if !self.received.may_be_more() {
                break;
            }
        }
        Ok(heard)
    }

    /// The same with what was received, as far as whole lines go.
    fn whole(&mut self, method: &str) -> Result<usize> {
        if !self.is_answered {
            let Some(head) = response_head(self.received.bytes())? else { return Ok(0) };
            ensure!(head.status == 200, "refused: {:.2000}", lossy(self.received.bytes()));
            self.is_answered = true;
        }
        let end = memchr::memrchr(b'\n', self.received.bytes()).map_or(0, |end| end + 1);
        let heard = count(&self.received.bytes()[..end], method);
        self.received.used(end);
        Ok(heard)
    }
}
