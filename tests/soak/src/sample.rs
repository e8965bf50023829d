//! One look at both programs, and all of them as a table.

use std::fmt::Write as _;

use crate::{counters::Status, system::Usage};

/// When it was looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Load,
    /// Behind it, when all that is left has its time to go.
    Rest,
}

/// What the program that loads takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) usage: Usage,
    pub(crate) tasks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) second: u64,
    pub(crate) phase: Phase,
    pub(crate) server: Usage,
    pub(crate) status: Status,
    pub(crate) client: Client,
}

impl Sample {
    /// What must be at the end as it was at the start, by name.
    pub(crate) fn counts(&self) -> [(&'static str, i64); 9] {
        let Self { server, status, client, .. } = self;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        [
            ("open files", number(server.files)),
            ("tasks of the runtime", number(status.tasks)),
            ("requests in flight", status.in_flight),
            ("subscriptions", status.listening),
            ("questions", status.questions),
            ("connections", status.connections),
            ("sessions", number(status.sessions)),
            ("tasks of clients", number(status.kept)),
            ("the client's tasks of the runtime", number(client.tasks)),
        ]
    }

    /// Whether nothing is left of what was not there at the start.
    pub(crate) fn is_at_rest_like(&self, start: &Self) -> bool {
        self.counts() == start.counts()
    }
}

const HEAD: &str = "second,phase,server_rss_kib,server_heap_bytes,server_files,server_threads,server_tasks,in_flight,\
                    listening,questions,connections,sessions,kept_tasks,served,client_rss_kib,client_files,\
                    client_threads,client_tasks\n";

/// Values between commas, one sample a line.
pub(crate) fn table(samples: &[Sample]) -> String {
    samples.iter().fold(HEAD.to_owned(), |mut table, sample| {
        let Sample { second, phase, server, status, client } = sample;
        let phase = if *phase == Phase::Load { "load" } else { "rest" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "{second},{phase},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            server.rss,
            status.heap,
            server.files,
            server.threads,
            status.tasks,
            status.in_flight,
            status.listening,
            status.questions,
            status.connections,
            status.sessions,
            status.kept,
            status.served,
            client.usage.rss,
            client.usage.files,
            client.usage.threads,
            client.tasks,
        );
        table
    })
}
