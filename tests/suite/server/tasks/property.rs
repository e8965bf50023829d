//! Whatever happens to a task, in any order: it is as a small model says, in its store and on the wire.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Mutex,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use mcp_core::{
    jsonrpc::ErrorObject,
    store::{MemoryTasks, Replaced, TaskId, TaskRecord, TaskStatus, TaskStore},
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::server::{property::Random, rounds::answers};

/// What there is to know of a task.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    version: u64,
    message: Option<String>,
    open: BTreeSet<String>,
    given: BTreeSet<String>,
    end: Option<TaskStatus>,
}

impl Model {
    fn status(&self) -> TaskStatus {
        let working = if self.open.is_empty() { TaskStatus::Working } else { TaskStatus::InputRequired };
        self.end.unwrap_or(working)
    }

    fn end(&mut self, status: TaskStatus) {
        self.end = Some(status);
        (self.open, self.given) = Default::default();
    }

    /// Something happens; whether it may. What has ended does not change.
    fn change(&mut self, may: bool, change: impl FnOnce(&mut Self)) -> bool {
        let may = may && self.end.is_none();
        if may {
            change(self);
            self.version += 1;
        }
        may
    }

    fn shows(&self, record: &TaskRecord) {
        assert_eq!((record.status(), record.version()), (self.status(), self.version));
        assert_eq!(record.message(), self.message.as_deref());
        assert!(record.open().keys().eq(&self.open), "{record:?} {self:?}");
        assert_eq!(record.result().is_some(), self.end == Some(TaskStatus::Completed));
        assert_eq!(record.error().is_some(), self.end == Some(TaskStatus::Failed));
    }
}

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap()
}

/// Something happens to a record and to its model; both agree on whether it has changed.
fn happens(random: &mut Random, record: &mut TaskRecord, model: &mut Model, now: u64) {
    let key = format!("k{}", random.below(3));
    let updated = record.updated();
    let (is_open, is_given) = (model.open.contains(&key), model.given.contains(&key));
    let (changed, expected) = match random.below(12) {
        0 => {
            let message = "x".repeat(usize::try_from(random.below(3000)).unwrap());
            (record.say(message.clone(), now), model.change(true, |model| model.message = Some(message)))
        }
        1..=4 => (record.ask(&key, raw("{}"), now), model.change(true, |model| _ = model.open.insert(key))),
        5..=6 => {
            let changed = record.answer([(key.clone(), raw("1")), ("other".into(), raw("2"))].into(), now);
            let expected = model.change(is_open, |model| {
                model.open.remove(&key);
                model.given.insert(key);
            });
            (changed, expected)
        }
        7 => {
            let taken = record.take_answer(&key, now).is_some();
            (taken, model.change(is_given, |model| _ = model.given.remove(&key)))
        }
        8 => {
            let expected = model.change(is_open || is_given, |model| {
                model.open.remove(&key);
                model.given.remove(&key);
            });
            (record.take_back(&key, now), expected)
        }
        9 => (record.hold(now + 5), model.change(true, |_| ())),
        _ => match random.below(6) {
            0 => (record.complete(raw("{}"), now), model.change(true, |model| model.end(TaskStatus::Completed))),
            1 => {
                let expected = model.change(true, |model| {
                    model.message = Some("no".into());
                    model.end(TaskStatus::Failed);
                });
                (record.fail(ErrorObject::new(1, "no"), now), expected)
            }
            2 => (record.cancel(now), model.change(true, |model| model.end(TaskStatus::Cancelled))),
            _ => return,
        },
    };
    assert_eq!(changed, expected);
    assert!(record.created() == 0 && record.updated() >= updated && record.updated() <= now);
}

const MOST: usize = 4;
const MOST_BYTES: usize = 8 << 10;

/// Tasks in a store, and the same as far as the model knows them: with what they count for, and until when.
struct Kept {
    store: MemoryTasks,
    clock: Arc<Mutex<Instant>>,
    models: BTreeMap<TaskId, (Model, usize, Instant)>,
    /// What somebody has loaded, in that version, and done to it since, while others may have been quicker.
    hands: Vec<(TaskId, u64, TaskRecord, Model)>,
    random: Random,
}

impl Kept {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(Mutex::new(Instant::now()));
        let told = clock.clone();
        let store = MemoryTasks::new(MOST, MOST_BYTES).with_clock(move || *told.lock().unwrap());
        Self { store, clock, models: BTreeMap::new(), hands: Vec::new(), random: Random::new(seed) }
    }

    fn bytes(&self) -> usize {
        self.models.values().map(|(_, bytes, _)| bytes).sum()
    }

    async fn create(&mut self) {
        let ttl = Duration::from_millis(1 + self.random.below(200));
        let (id, record) = (TaskId::random(), TaskRecord::new(None, 0, ttl, ttl));
        let (bytes, until) = (record.bytes(), *self.clock.lock().unwrap() + ttl);
        let ended = self.models.iter().filter(|(_, (model, ..))| model.status().is_terminal());
        let oldest = ended.min_by_key(|(id, (.., until))| (*until, **id)).map(|(id, _)| *id);
        if let Some(oldest) = oldest.filter(|_| self.models.len() == MOST) {
            self.models.remove(&oldest);
        }
        let has_room = self.models.len() < MOST && self.bytes() + bytes <= MOST_BYTES;
        assert_eq!(self.store.create(id, record, MOST).await.unwrap(), has_room);
        if has_room {
            self.models.insert(id, (Model::default(), bytes, until));
        }
    }

    fn any(&mut self) -> Option<TaskId> {
        let count = u64::try_from(self.models.len()).unwrap();
        let nth = (count > 0).then(|| self.random.below(count))?;
        self.models.keys().nth(usize::try_from(nth).unwrap()).copied()
    }

    async fn load(&mut self) {
        let Some(id) = self.any() else { return };
        let record = self.store.load(id).await.unwrap().expect("its time is not over");
        self.models[&id].0.shows(&record);
        let model = self.models[&id].0.clone();
        self.hands.push((id, model.version, record, model));
    }

    async fn replace(&mut self, hand: usize) {
        let (id, before, record, model) = self.hands.swap_remove(hand);
        let (all, new) = (self.bytes(), record.bytes());
        let expected = match self.models.get(&id) {
            Some((kept, ..)) if kept.version != before => Replaced::Outdated,
            None => Replaced::Outdated,
            Some((_, old, _)) if new > *old && all - old + new > MOST_BYTES => Replaced::NoRoom,
            Some(_) => Replaced::Done,
        };
        assert_eq!(self.store.replace(id, before, record).await.unwrap(), expected);
        if let (Replaced::Done, Some(kept)) = (expected, self.models.get_mut(&id)) {
            assert!(kept.0.end.is_none() || kept.0 == model, "an end is for ever");
            (kept.0, kept.1) = (model, new);
        }
    }

    async fn step(&mut self, now: u64) {
        let hands = u64::try_from(self.hands.len()).unwrap();
        let hand = (hands > 0).then(|| usize::try_from(self.random.below(hands)).unwrap());
        match (self.random.below(8), hand) {
            (0, _) => self.create().await,
            (1..=2, _) if hands < 6 => self.load().await,
            (3..=4, Some(hand)) => self.replace(hand).await,
            (5, _) => {
                let mut clock = self.clock.lock().unwrap();
                *clock += Duration::from_millis(self.random.below(20));
                self.models.retain(|_, (_, _, until)| *until > *clock);
            }
            (_, Some(hand)) => {
                let (_, _, record, model) = &mut self.hands[hand];
                happens(&mut self.random, record, model, now);
            }
            _ => {}
        }
    }
}

/// Several who change the same tasks at once, as two processes would; bounds, and a clock that goes on.
#[tokio::test]
async fn what_a_store_keeps_is_as_the_model_says() {
    for seed in 0..200 {
        let mut kept = Kept::new(seed);
        for now in 0..300 {
            kept.step(now).await;
        }
        for (id, (model, ..)) in &kept.models {
            model.shows(&kept.store.load(*id).await.unwrap().unwrap());
        }
    }
}

/// What the handler is told to do.
enum Order {
    Say(String),
    Ask(String),
    GiveUp(String),
    Return(bool),
    Panic,
}

struct Orders(Mutex<Option<mpsc::UnboundedReceiver<Order>>>);

/// Does what it is told until it is told to come to an end.
async fn obeys(context: Context) -> Result<String, ToolError> {
    let mut orders = context.state::<Orders>()?.0.lock().unwrap().take().unwrap();
    let (mut questions, mut given_up) = (FuturesUnordered::new(), HashMap::new());
    loop {
        let order = tokio::select! {
            Some(()) = questions.next() => continue,
            order = orders.recv() => order.unwrap(),
        };
        match order {
            Order::Say(message) => context.task_message(message).await?,
            Order::GiveUp(key) => drop(given_up.remove(&key).map(|token: CancellationToken| token.cancel())),
            Order::Return(true) => return Ok("done".into()),
            Order::Return(false) => return Err(ToolError::new("no luck")),
            Order::Panic => panic!("it was told to"),
            Order::Ask(key) => {
                let token = CancellationToken::new();
                given_up.insert(key.clone(), token.clone());
                let context = context.clone();
                questions.push(async move {
                    tokio::select! {
                        name = name(&context, &key) => drop(name),
                        () = token.cancelled() => {}
                    }
                });
            }
        }
    }
}

/// One task, as its client sees it, and its model.
struct Seeing {
    server: Server,
    orders: mpsc::UnboundedSender<Order>,
    id: String,
    model: Model,
    /// How often each question was asked, and the key that it has now.
    asked: BTreeMap<String, (u32, String)>,
    last: Option<Value>,
    random: Random,
}

impl Seeing {
    async fn begin(seed: u64) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let builder = builder(Limits::default(), [Tool::new("obeys", obeys).task()]);
        let server = builder.state(Orders(Mutex::new(Some(taken)))).build();
        let id = begin(&server, "obeys").await;
        let (model, asked, random) = (Model::default(), BTreeMap::new(), Random::new(seed));
        Self { server, orders, id, model, asked, last: None, random }
    }

    /// The handler is told something; what has ended hears nothing.
    fn order(&mut self, order: Order, change: impl FnOnce(&mut Model)) {
        if self.model.end.is_none() {
            self.orders.send(order).unwrap();
            change(&mut self.model);
        }
    }

    fn question(&mut self) -> Option<String> {
        let count = u64::try_from(self.asked.len()).unwrap();
        let nth = (count > 0).then(|| self.random.below(count))?;
        self.asked.keys().nth(usize::try_from(nth).unwrap()).cloned()
    }

    fn ask(&mut self) {
        let key = format!("q{}", self.asked.len());
        self.asked.insert(key.clone(), (1, key.clone()));
        self.order(Order::Ask(key.clone()), |model| _ = model.open.insert(key));
    }

    fn give_up(&mut self) {
        let Some(question) = self.question() else { return };
        let key = self.asked[&question].1.clone();
        self.order(Order::GiveUp(question), |model| _ = model.open.remove(&key));
    }

    /// An answer, to an open question or not; one that does not fit is asked for again under another key.
    async fn answer(&mut self) {
        let Some(question) = self.question() else { return };
        let (times, key) = self.asked.get_mut(&question).unwrap();
        let fits = self.random.below(3) > 0;
        let answer = if fits { answers(&[(key, "Ada"), ("unasked", "x")]) } else { json!({ &*key: 5 }) };
        let was_open = self.model.open.remove(key);
        update(&self.server, &self.id, answer).await;
        if was_open && !fits && *times < 10 {
            *times += 1;
            *key = format!("{question}-{times}");
            self.model.open.insert(key.clone());
        }
    }

    async fn step(&mut self) {
        match self.random.below(40) {
            0..=9 => self.ask(),
            10..=19 => self.answer().await,
            20..=23 => self.give_up(),
            24..=29 => {
                let message = self.random.below(100).to_string();
                self.order(Order::Say(message.clone()), |model| model.message = Some(message));
            }
            30 => self.order(Order::Return(true), |model| model.end(TaskStatus::Completed)),
            31 => self.order(Order::Return(false), |model| model.end(TaskStatus::Completed)),
            32 => self.order(Order::Panic, |model| {
                model.message = Some("Internal error".into());
                model.end(TaskStatus::Failed);
            }),
            33 => {
                assert_eq!(cancel(&self.server, &self.id).await["result"]["resultType"], "complete");
                if self.model.end.is_none() {
                    self.model.end(TaskStatus::Cancelled);
                }
            }
            _ => sleep(Duration::from_secs(self.random.below(20))).await,
        }
    }

    /// It is as the model says; what has ended stays as it was.
    async fn look(&mut self) {
        sleep(Duration::from_millis(1)).await;
        let task = get(&self.server, &self.id).await;
        assert_eq!(task["status"], serde_json::to_value(self.model.status()).unwrap(), "{task}");
        assert_eq!(task["statusMessage"].as_str(), self.model.message.as_deref());
        let open = task["inputRequests"].as_object().map(|open| open.keys().cloned().collect::<BTreeSet<_>>());
        assert_eq!(open.unwrap_or_default(), self.model.open, "{task}");
        if let Some(last) = self.last.as_ref().filter(|_| self.model.end.is_some()) {
            assert_eq!(*last, task);
        }
        self.last = self.model.end.map(|_| task);
    }
}

#[test]
fn what_a_client_sees_of_a_task_is_as_the_model_says() {
    let mut ends = BTreeSet::new();
    for seed in 0..60 {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut seeing = Seeing::begin(seed).await;
            for _ in 0..60 {
                seeing.step().await;
                seeing.look().await;
            }
            ends.insert(seeing.model.end.map(|end| format!("{end:?}")));
            sleep(HOUR).await;
            assert!(is_unknown(&get_for(&seeing.server, None, &seeing.id).await), "seed {seed}");
        });
    }
    assert!(ends.len() >= 3, "they come to different ends: {ends:?}");
}
