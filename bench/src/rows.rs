//! What is measured: a row a kind of work, and who does it.

use bench::{
    Who,
    load::{call::Work, decode::Size, wire::Wire},
};

use crate::{cores::Cores, settings::Settings};

/// One kind of work.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) load: Load,
    pub(crate) contestants: &'static [Contestant],
    /// Whether peers that were brought along take part.
    pub(crate) is_open: bool,
    pub(crate) claims: &'static [Claim],
}

/// How the work reaches a contestant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// A child's stdin and stdout, after a handshake, with so many calls in flight.
    Pipe { work: Work, depth: u64, cores: Cores },
    /// TCP connections, with so many calls in flight on each.
    Sockets { wire: Wire, work: Work, in_session: bool, connections: u64, depth: u64, cores: Cores },
    /// A client in this process, and a server that does the least that it can, with so many calls in flight.
    Client { depth: u64 },
    /// A function in this process.
    Direct(Work),
    /// A pair of byte streams in this process.
    Pair,
    /// A function in this process that reads messages.
    Decode(Size),
    /// Sessions that nobody uses.
    Idle,
    /// Streams that all hear of one change.
    FanOut,
    /// From nothing to the first answer.
    StartUp,
}

/// Where a row stands in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Http,
    Stdio,
    WebSocket,
    Client,
    InProcess,
    Rest,
}

impl Group {
    pub(crate) const ALL: [Self; 6] =
        [Self::Http, Self::Stdio, Self::WebSocket, Self::Client, Self::InProcess, Self::Rest];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Http => "Over HTTP",
            Self::Stdio => "Over stdio",
            Self::WebSocket => "Over WebSocket",
            Self::Client => "Clients",
            Self::InProcess => "In process",
            Self::Rest => "Many at once, and from nothing",
        }
    }
}

/// What a row's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Calls,
    Megabytes,
    Milliseconds,
    Bytes,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls/s",
            Self::Megabytes => "MB/s",
            Self::Milliseconds => "ms",
            Self::Bytes => "bytes",
        }
    }

    /// How many times better ours is.
    pub(crate) fn ratio(self, ours: f64, other: f64) -> f64 {
        match self {
            Self::Calls | Self::Megabytes => ours / other,
            Self::Milliseconds | Self::Bytes => other / ours,
        }
    }
}

impl Row {
    pub(crate) fn group(&self) -> Group {
        match self.load {
            Load::Pipe { .. } => Group::Stdio,
            Load::Sockets { wire: Wire::WebSocket, .. } => Group::WebSocket,
            Load::Sockets { .. } => Group::Http,
            Load::Client { .. } => Group::Client,
            Load::Direct(_) | Load::Pair | Load::Decode(_) => Group::InProcess,
            Load::Idle | Load::FanOut | Load::StartUp => Group::Rest,
        }
    }

    pub(crate) fn unit(&self) -> Unit {
        match self.load {
            Load::Decode(_) => Unit::Megabytes,
            Load::FanOut | Load::StartUp => Unit::Milliseconds,
            Load::Idle => Unit::Bytes,
            _ => Unit::Calls,
        }
    }
}

impl Row {
    /// Why it cannot be measured here, where processes may open so many files, if it cannot.
    pub(crate) fn obstacle(&self, files: Option<u64>, settings: &Settings) -> Option<String> {
        // Beside the streams there are those of a process, and who makes the change.
        let wanted = settings.listeners as u64 + 100;
        match self.load {
            Load::FanOut if files.is_some_and(|files| files < wanted) => {
                Some(format!("a process may not open {wanted} files"))
            }
            Load::Idle if !cfg!(target_os = "linux") => Some("only Linux tells the memory of a process".to_owned()),
            _ => None,
        }
    }
}

/// One program, or in this process one function, that does a row's work.
pub(crate) struct Contestant {
    pub(crate) who: Who,
    /// What sets it apart from the same one's other entries.
    pub(crate) manner: &'static str,
    /// What its program is called with.
    pub(crate) arguments: &'static [&'static str],
}

impl Contestant {
    /// As it is called in the report.
    pub(crate) fn label(&self) -> String {
        if self.manner.is_empty() { self.who.to_string() } else { format!("{}, {}", self.who, self.manner) }
    }
}

const fn entry(who: Who, manner: &'static str, arguments: &'static [&'static str]) -> Contestant {
    Contestant { who, manner, arguments }
}

/// What this project says of itself.
pub(crate) enum Claim {
    /// Ours is at least so many times better than the contestant of that label.
    Against(&'static str, f64),
    /// Ours has at most so much of the row's unit.
    AtMost(f64),
    /// Ours allocates at most so often in a call.
    Allocations(f64),
}

const HTTP: &[Contestant] = &[
    entry(Who::Ceiling, "", &["http"]),
    entry(Who::Ours, "", &["http"]),
    entry(Who::Rmcp, "JSON", &["http-json"]),
    entry(Who::Rmcp, "default", &["http-default"]),
    entry(Who::TowerMcp, "", &["http"]),
];

const SESSION: &[Contestant] = &[
    entry(Who::Ceiling, "", &["http"]),
    entry(Who::Ours, "", &["http"]),
    entry(Who::Rmcp, "default", &["http-default"]),
    entry(Who::TowerMcp, "", &["http"]),
];

/// Of those who have several manners, the fastest.
const HTTP_FASTEST: &[Contestant] = &[
    entry(Who::Ceiling, "", &["http"]),
    entry(Who::Ours, "", &["http"]),
    entry(Who::Rmcp, "JSON", &["http-json"]),
    entry(Who::TowerMcp, "", &["http"]),
];

const STDIO: &[Contestant] = &[
    entry(Who::Ceiling, "", &["stdio"]),
    entry(Who::Ours, "", &["stdio"]),
    entry(Who::Rmcp, "pipes", &["stdio-pipes"]),
    entry(Who::Rmcp, "default", &["stdio"]),
    entry(Who::TowerMcp, "", &["stdio"]),
];

const WEB_SOCKET: &[Contestant] =
    &[entry(Who::Ceiling, "", &["ws"]), entry(Who::Ours, "", &["ws"]), entry(Who::TowerMcp, "", &["ws"])];

const CLIENTS: &[Contestant] = &[
    entry(Who::Ceiling, "reqwest", &["http"]),
    entry(Who::Ours, "", &["http"]),
    entry(Who::Rmcp, "", &["http"]),
    entry(Who::TowerMcp, "", &["http"]),
];

const DIRECT: &[Contestant] = &[
    entry(Who::Ceiling, "", &[]),
    entry(Who::SerdeJson, "", &[]),
    entry(Who::Ours, "", &[]),
    entry(Who::Rmcp, "over a pair", &[]),
    entry(Who::TowerMcp, "", &[]),
];

const PAIR: &[Contestant] = &[
    entry(Who::Ceiling, "", &[]),
    entry(Who::Ours, "", &[]),
    entry(Who::Rmcp, "", &[]),
    entry(Who::TowerMcp, "", &[]),
];

const LIST_DIRECT: &[Contestant] =
    &[entry(Who::Ceiling, "", &[]), entry(Who::Ours, "", &[]), entry(Who::TowerMcp, "", &[])];

const DECODERS: &[Contestant] =
    &[entry(Who::Value, "", &[]), entry(Who::Ours, "", &[]), entry(Who::Rmcp, "", &[]), entry(Who::TowerMcp, "", &[])];

const IDLE: &[Contestant] =
    &[entry(Who::Ours, "", &["http"]), entry(Who::Rmcp, "", &["http-default"]), entry(Who::TowerMcp, "", &["http"])];

const FAN_OUT: &[Contestant] = &[
    entry(Who::Ceiling, "", &["fan-out"]),
    entry(Who::Ours, "", &["http"]),
    entry(Who::Rmcp, "", &["http-default"]),
    entry(Who::TowerMcp, "", &["http"]),
];

const START_UP: &[Contestant] = &[
    entry(Who::Ceiling, "", &["stdio"]),
    entry(Who::Ours, "", &["stdio"]),
    entry(Who::Rmcp, "", &["stdio-pipes"]),
    entry(Who::TowerMcp, "", &["stdio"]),
];

/// The programs that serve so many tools.
macro_rules! with_tools {
    ($tools:literal) => {
        &[
            entry(Who::Ceiling, "", &["list", "--tools", $tools]),
            entry(Who::Ours, "", &["http", "--tools", $tools]),
            entry(Who::Rmcp, "JSON", &["http-json", "--tools", $tools]),
            entry(Who::TowerMcp, "", &["http", "--tools", $tools]),
        ]
    };
}

/// Calls over HTTP, on 16 connections unless said otherwise.
const fn http(work: Work, connections: u64, cores: Cores) -> Load {
    Load::Sockets { wire: Wire::Http, work, in_session: false, connections, depth: 1, cores }
}

const fn web_socket(work: Work, connections: u64, depth: u64, cores: Cores) -> Load {
    Load::Sockets { wire: Wire::WebSocket, work, in_session: false, connections, depth, cores }
}

const fn pipe(depth: u64, cores: Cores) -> Load {
    Load::Pipe { work: Work::Add, depth, cores }
}

/// A row that peers which were brought along take part in.
const fn open(
    name: &'static str,
    about: &'static str,
    load: Load,
    contestants: &'static [Contestant],
    claims: &'static [Claim],
) -> Row {
    Row { name, about, load, contestants, is_open: true, claims }
}

const fn closed(
    name: &'static str,
    about: &'static str,
    load: Load,
    contestants: &'static [Contestant],
    claims: &'static [Claim],
) -> Row {
    Row { name, about, load, contestants, is_open: false, claims }
}

/// Every row, in the order of the report.
pub(crate) const ROWS: &[Row] = &[
    open(
        "http",
        "a modern call of `add`, 16 connections, load and server wherever the scheduler puts them",
        http(Work::Add, 16, Cores::Any),
        HTTP,
        &[Claim::Against("ceiling", 0.85), Claim::Against("rmcp, JSON", 3.5), Claim::Against("tower-mcp", 3.5)],
    ),
    closed(
        "http-apart",
        "the same, the load on the first core, where it never sleeps, and the server on the others",
        http(Work::Add, 16, Cores::Awake),
        HTTP_FASTEST,
        &[],
    ),
    closed("http-256", "the same as `http` on 256 connections", http(Work::Add, 256, Cores::Any), HTTP_FASTEST, &[]),
    open(
        "session",
        "a legacy call of `add`, 16 connections, all in one session",
        Load::Sockets {
            wire: Wire::Http,
            work: Work::Add,
            in_session: true,
            connections: 16,
            depth: 1,
            cores: Cores::Any,
        },
        SESSION,
        &[Claim::Against("ceiling", 0.75), Claim::Against("tower-mcp", 3.0)],
    ),
    closed(
        "sse",
        "a modern call that is answered with two events, progress and the result, 16 connections",
        http(Work::Progress, 16, Cores::Any),
        HTTP_FASTEST,
        &[Claim::Against("ceiling", 0.5)],
    ),
    closed(
        "ask",
        "a modern call that asks its user first: two requests, 16 connections",
        http(Work::Ask, 16, Cores::Any),
        HTTP_FASTEST,
        &[],
    ),
    closed(
        "list-10",
        "a modern list of 10 tools, 1 connection",
        http(Work::List(10), 1, Cores::Apart),
        with_tools!("10"),
        &[],
    ),
    closed("list-100", "the same of 100 tools", http(Work::List(100), 1, Cores::Apart), with_tools!("100"), &[]),
    closed("list-700", "the same of 700 tools", http(Work::List(700), 1, Cores::Apart), with_tools!("700"), &[]),
    closed(
        "echo-http",
        "a modern call that echoes 1 MiB, 1 connection",
        http(Work::Echo, 1, Cores::Apart),
        HTTP_FASTEST,
        &[],
    ),
    open(
        "stdio",
        "a legacy call of `add`, one at a time, load and server on cores of their own",
        pipe(1, Cores::Apart),
        STDIO,
        &[Claim::Against("ceiling", 0.9)],
    ),
    open("stdio-core", "the same, load and server on one core", pipe(1, Cores::Together), STDIO, &[]),
    open(
        "stdio-64",
        "the same, 64 in flight, wherever the scheduler puts them",
        pipe(64, Cores::Any),
        STDIO,
        &[Claim::Against("ceiling", 0.5), Claim::Against("tower-mcp", 8.0), Claim::Against("rmcp, default", 30.0)],
    ),
    closed(
        "echo-stdio",
        "a legacy call that echoes 1 MiB, one at a time, on cores of their own",
        Load::Pipe { work: Work::Echo, depth: 1, cores: Cores::Apart },
        STDIO,
        &[],
    ),
    closed(
        "ws",
        "a modern call of `add`, 1 connection, load and server on cores of their own",
        web_socket(Work::Add, 1, 1, Cores::Apart),
        WEB_SOCKET,
        &[Claim::Against("ceiling", 0.8)],
    ),
    closed(
        "ws-core",
        "the same, load and server on one core",
        web_socket(Work::Add, 1, 1, Cores::Together),
        WEB_SOCKET,
        &[],
    ),
    closed(
        "ws-16",
        "the same on 16 connections, wherever the scheduler puts them",
        web_socket(Work::Add, 16, 1, Cores::Any),
        WEB_SOCKET,
        &[],
    ),
    closed(
        "ws-64",
        "the same on 1 connection, 64 in flight",
        web_socket(Work::Add, 1, 64, Cores::Any),
        WEB_SOCKET,
        &[],
    ),
    closed(
        "echo-ws",
        "a modern call that echoes 1 MiB, 1 connection",
        web_socket(Work::Echo, 1, 1, Cores::Apart),
        WEB_SOCKET,
        &[],
    ),
    closed(
        "client",
        "a client's call of `add` over HTTP, one at a time, client and server on cores of their own",
        Load::Client { depth: 1 },
        CLIENTS,
        &[Claim::Against("ceiling, reqwest", 0.85)],
    ),
    closed("client-16", "the same, 16 at once", Load::Client { depth: 16 }, CLIENTS, &[]),
    closed(
        "in-process",
        "a modern call of `add`, bytes to bytes",
        Load::Direct(Work::Add),
        DIRECT,
        &[Claim::Against("serde_json", 0.5), Claim::Allocations(20.0)],
    ),
    closed("pair", "the same over a pair of byte streams", Load::Pair, PAIR, &[]),
    closed(
        "list-700-direct",
        "a modern list of 700 tools, bytes to bytes",
        Load::Direct(Work::List(700)),
        LIST_DIRECT,
        &[Claim::Against("ceiling", 0.834)],
    ),
    closed(
        "decode-small",
        "a call of `add` is read: by ours into an envelope, by the others into trees",
        Load::Decode(Size::Small),
        DECODERS,
        &[],
    ),
    closed("decode-large", "a call of 175 KB is read, likewise", Load::Decode(Size::Large), DECODERS, &[]),
    closed(
        "idle",
        "what a legacy session over HTTP takes that nobody uses; ours has no task, which a test of the suite holds",
        Load::Idle,
        IDLE,
        &[Claim::AtMost(4096.0)],
    ),
    closed("fan-out", "until the last listener has heard of a change", Load::FanOut, FAN_OUT, &[]),
    open("start-up", "from nothing to the first answer over stdio", Load::StartUp, START_UP, &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_in_every_row_and_claims_are_about_who_is_in_it() {
        for row in ROWS {
            let labels: Vec<String> = row.contestants.iter().map(Contestant::label).collect();
            assert!(labels.iter().any(|label| label == "ours"), "{}", row.name);
            for claim in row.claims {
                let Claim::Against(label, _) = claim else { continue };
                assert!(labels.iter().any(|known| known == label), "{label} in {}", row.name);
            }
        }
    }

    #[test]
    fn better_is_more_of_a_rate_and_less_of_a_time() {
        assert_eq!(Unit::Calls.ratio(6.0, 2.0), 3.0);
        assert_eq!(Unit::Milliseconds.ratio(2.0, 6.0), 3.0);
    }

    #[test]
    fn listeners_need_files() {
        let fan_out = ROWS.iter().find(|row| matches!(row.load, Load::FanOut)).unwrap();
        let obstacle = |files| fan_out.obstacle(files, &Settings::default());
        assert!(obstacle(Some(1024)).unwrap().contains("1100 files"));
        assert_eq!((obstacle(Some(4096)), obstacle(None)), (None, None));
    }
}
