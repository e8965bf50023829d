//! A mailbox is a list of items, and each of its rules a line of the model.

use futures_util::FutureExt as _;

use super::*;
use crate::model::{Random, rows};

const MOST: usize = 3;
const MOST_BYTES: usize = 20;

#[derive(Debug)]
enum Step {
    Push {
        item: u32,
        bytes: usize,
    },
    /// One of a kind may take the place of one of the same kind.
    Offer {
        item: u32,
        bytes: usize,
        is_wanted: bool,
    },
    Put {
        item: u32,
        bytes: usize,
    },
    DropKind(u32),
    Pop,
    Drain,
    Close,
}

/// Items are of one of four kinds.
fn kind(item: u32) -> u32 {
    item % 4
}

impl Step {
    fn draw(random: &mut Random, item: u32) -> Self {
        let bytes = random.below(12);
        match random.below(24) {
            0..=4 => Self::Push { item, bytes },
            5..=11 => Self::Offer { item, bytes, is_wanted: random.below(4) > 0 },
            12..=14 => Self::Put { item, bytes },
            15..=16 => Self::DropKind(kind(item)),
            17..=21 => Self::Pop,
            22 => Self::Drain,
            _ if random.below(4) == 0 => Self::Close,
            _ => Self::Pop,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Queued {
    item: u32,
    bytes: usize,
    is_owed: bool,
}

#[derive(Default)]
struct Model {
    queue: Vec<Queued>,
    is_closed: bool,
    reads: u64,
}

impl Model {
    fn has_room(&self) -> bool {
        self.queue.len() < MOST && self.queue.iter().map(|queued| queued.bytes).sum::<usize>() < MOST_BYTES
    }

    fn is_settled(&self) -> bool {
        let owed = self.queue.iter().filter(|queued| queued.is_owed);
        owed.clone().count() < MOST && owed.map(|queued| queued.bytes).sum::<usize>() < MOST_BYTES
    }

    /// Whether it is open for it.
    fn add(&mut self, item: u32, bytes: usize, is_owed: bool) -> bool {
        if !self.is_closed {
            self.queue.push(Queued { item, bytes, is_owed });
        }
        !self.is_closed
    }

    fn offer(&mut self, item: u32, bytes: usize) {
        if self.has_room() {
            self.add(item, bytes, false);
        } else if !self.is_closed {
            let mut newest_first = self.queue.iter_mut().rev();
            let old = newest_first.find(|queued| !queued.is_owed && kind(queued.item) == kind(item));
            old.into_iter().for_each(|old| *old = Queued { item, bytes, is_owed: false });
        }
    }

    fn check(&self, mailbox: &Mailbox<u32>) {
        let is_so = |waiting: Option<()>| waiting.is_some();
        assert_eq!(is_so(mailbox.room().now_or_never()), self.is_closed || self.has_room());
        assert_eq!(is_so(mailbox.settled().now_or_never()), self.is_closed || self.is_settled());
        assert_eq!(is_so(mailbox.closed().now_or_never()), self.is_closed);
        assert_eq!(mailbox.reads(), self.reads);
        let state = mailbox.lock();
        let really = state.items.iter().map(|item| Queued { item: item.item, bytes: item.bytes, is_owed: item.owed });
        assert_eq!(really.collect::<Vec<_>>(), self.queue);
        assert_eq!(state.bytes, self.queue.iter().map(|queued| queued.bytes).sum::<usize>());
    }
}

fn step(step: Step, mailbox: &Mailbox<u32>, model: &mut Model) {
    match step {
        Step::Push { item, bytes } => assert_eq!(mailbox.push(item, bytes), model.add(item, bytes, true)),
        Step::Offer { item, bytes, is_wanted } => {
            mailbox.offer(item, bytes, |old| kind(*old) == kind(item), || is_wanted);
            if is_wanted {
                model.offer(item, bytes);
            }
        }
        Step::Put { item, bytes } => {
            let goes_now = model.is_closed || model.has_room();
            let put = mailbox.put(item, bytes).now_or_never();
            assert_eq!(put, goes_now.then(|| model.add(item, bytes, true)));
        }
        Step::DropKind(dropped) => {
            let before = model.queue.len();
            model.queue.retain(|queued| kind(queued.item) != dropped);
            assert_eq!(mailbox.retain(|item| kind(*item) != dropped), model.queue.len() < before);
        }
        Step::Pop => {
            let first = (!model.queue.is_empty()).then(|| model.queue.remove(0).item);
            model.reads += u64::from(first.is_some());
            // It waits only where there is nothing, and something may come.
            let expected = if first.is_none() && !model.is_closed { None } else { Some(first) };
            assert_eq!(mailbox.pop().now_or_never(), expected);
        }
        Step::Drain => {
            let mut drained = Vec::new();
            mailbox.drain(&mut drained, |item| item);
            assert_eq!(drained, model.queue.drain(..).map(|queued| queued.item).collect::<Vec<_>>());
            model.reads += 1;
        }
        Step::Close => {
            mailbox.close();
            model.is_closed = true;
        }
    }
}

#[test]
fn it_is_a_bounded_list_of_what_waits_to_be_read() {
    let limits = Limits::default().queue_messages(MOST).queue_bytes(MOST_BYTES);
    rows(|random| {
        let (mailbox, mut model) = (Mailbox::new(&limits), Model::default());
        for item in 0..80 {
            let next = Step::draw(random, item);
            random.does(&next);
            step(next, &mailbox, &mut model);
            model.check(&mailbox);
        }
    });
}
