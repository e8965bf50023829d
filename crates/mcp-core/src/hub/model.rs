//! A hub is a queue for each listener: what it listens to and has not been told, each subject in it once. What enters a
//! queue wakes who waits for it, once.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    task::{Wake, Waker},
};

use super::*;
use crate::model::{Random, rows};

#[derive(Debug)]
enum Step {
    Join,
    Leave(usize),
    Listen(usize, Subject, usize),
    Ignore(usize, Subject),
    Close(usize),
    Next(usize),
    Wait(usize),
    Wake(usize),
    Mark(usize, Subject),
    Change(Subject),
}

impl Step {
    fn draw(random: &mut Random, listeners: usize) -> Self {
        let uri = |uri: &str| Subject::Resource(uri.into());
        let subject = random.one_of(&[Subject::Tools, Subject::Prompts, uri("x:a"), uri("x:b"), uri("x:c")]);
        if listeners == 0 {
            return Self::Join;
        }
        let place = random.below(listeners);
        match random.below(24) {
            0 if listeners < 4 => Self::Join,
            0 => Self::Leave(place),
            1..=5 => Self::Listen(place, subject, random.below(4)),
            6..=7 => Self::Ignore(place, subject),
            8 if random.below(4) == 0 => Self::Close(place),
            8..=11 => Self::Next(place),
            12..=14 => Self::Wait(place),
            15 => Self::Wake(place),
            16 => Self::Mark(place, subject),
            _ => Self::Change(subject),
        }
    }
}

#[derive(Debug, Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Model {
    is_closed: bool,
    listens: Vec<Subject>,
    queue: Vec<Subject>,
    waits: bool,
    woken: usize,
}

impl Model {
    fn wake(&mut self) {
        self.woken += usize::from(std::mem::take(&mut self.waits));
    }

    /// Whether it listens to what is marked.
    fn mark(&mut self, subject: &Subject) -> bool {
        let listens = self.listens.contains(subject);
        if listens && !self.queue.contains(subject) {
            self.queue.push(subject.clone());
            self.wake();
        }
        listens
    }

    fn uris(&self) -> usize {
        self.listens.iter().filter(|subject| matches!(subject, Subject::Resource(_))).count()
    }

    /// Whether there is room for it.
    fn listen(&mut self, subject: Subject, most: usize) -> bool {
        if self.listens.contains(&subject) {
            return true;
        }
        let has_room = !matches!(subject, Subject::Resource(_)) || self.uris() < most;
        if has_room && !self.is_closed {
            self.listens.push(subject);
        }
        has_room
    }
}

struct Seat {
    listener: Listener,
    woken: Arc<Woken>,
    model: Model,
}

impl Seat {
    fn wait(&mut self) {
        let waker = Waker::from(self.woken.clone());
        let polled = self.listener.poll_changed(&mut Context::from_waker(&waker));
        assert_eq!(polled.is_ready(), !self.model.queue.is_empty());
        self.model.waits = true;
    }

    fn check(&self) {
        assert_eq!(self.woken.0.load(Ordering::Relaxed), self.model.woken, "how often it was woken");
        assert_eq!(self.listener.uris().len(), self.model.uris());
    }
}

fn step(step: Step, hub: &Arc<Hub>, seats: &mut Vec<Seat>) {
    match step {
        Step::Join => seats.push(Seat { listener: hub.listener(), woken: Arc::default(), model: Model::default() }),
        Step::Leave(place) => drop(seats.remove(place)),
        Step::Listen(place, subject, most) => {
            let Seat { listener, model, .. } = &mut seats[place];
            assert_eq!(listener.listen_within(subject.clone(), most), model.listen(subject, most));
        }
        Step::Ignore(place, subject) => {
            let Seat { listener, model, .. } = &mut seats[place];
            listener.ignore(&subject);
            model.listens.retain(|other| *other != subject);
            model.queue.retain(|other| *other != subject);
        }
        Step::Close(place) => {
            let Seat { listener, model, .. } = &mut seats[place];
            listener.close();
            (model.is_closed, model.listens, model.queue) = (true, Vec::new(), Vec::new());
        }
        Step::Next(place) => {
            let Seat { listener, model, .. } = &mut seats[place];
            let told = (!model.queue.is_empty()).then(|| model.queue.remove(0));
            assert_eq!(listener.next(), told);
        }
        Step::Wait(place) => seats[place].wait(),
        Step::Wake(place) => {
            seats[place].listener.wake();
            seats[place].model.wake();
        }
        Step::Mark(place, subject) => {
            seats[place].listener.mark(&subject);
            seats[place].model.mark(&subject);
        }
        Step::Change(subject) => {
            let heard = seats.iter_mut().map(|seat| seat.model.mark(&subject)).filter(|listens| *listens).count();
            assert_eq!(hub.changed(&subject), heard > 0);
        }
    }
}

#[test]
fn it_is_a_queue_for_each_listener_and_wakes_whoever_waits() {
    rows(|random| {
        let (hub, mut seats) = (Arc::<Hub>::default(), Vec::new());
        for _ in 0..80 {
            let next = Step::draw(random, seats.len());
            random.does(&next);
            step(next, &hub, &mut seats);
            seats.iter().for_each(Seat::check);
            assert_eq!(hub.is_heard(), seats.iter().any(|seat| !seat.model.listens.is_empty()));
        }
    });
}
