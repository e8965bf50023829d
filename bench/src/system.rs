//! What the system tells of processes, and how many files it lets them open. Only Linux is asked.

use std::time::Duration;

/// A line of a process's status that counts KiB.
pub(crate) fn memory(id: u32, line: &str) -> Option<u64> {
    kib(&std::fs::read_to_string(format!("/proc/{id}/status")).ok()?, line)
}

fn kib(status: &str, line: &str) -> Option<u64> {
    let value = status.lines().find_map(|found| found.strip_prefix(line))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// How long a process has had a core, in user space and in the system.
pub(crate) fn cpu_time(id: u32) -> Option<Duration> {
    time(&format!("/proc/{id}/stat"), OWN)
}

/// The same of all the children that this process has seen end, and of theirs.
pub(crate) fn children_cpu_time() -> Option<Duration> {
    time("/proc/self/stat", CHILDREN)
}

/// How many fields stand before the two times, behind the program's name.
const OWN: usize = 11;
const CHILDREN: usize = 13;

fn time(path: &str, before: usize) -> Option<Duration> {
    let ticks = ticks(&std::fs::read_to_string(path).ok()?, before)?;
    Some(Duration::from_secs_f64(bench::load::float(ticks) / bench::load::float(ticks_a_second()?)))
}

/// Two times in a line of `/proc/ID/stat`, which has the program's name, whatever is in it, between brackets.
fn ticks(stat: &str, before: usize) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(before);
    Some(times.next()?.parse::<u64>().ok()? + times.next()?.parse::<u64>().ok()?)
}

#[cfg(target_os = "linux")]
fn ticks_a_second() -> Option<u64> {
    Some(rustix::param::clock_ticks_per_second())
}

#[cfg(not(target_os = "linux"))]
fn ticks_a_second() -> Option<u64> {
    None
}

/// Lets this process, and those that it starts, open as many files as the system allows: how many that is, if it tells.
#[cfg(target_os = "linux")]
pub(crate) fn open_files() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current;
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => limit.maximum,
        Err(_) => soft,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_files() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nVmRSS: 5 kB\n";
        assert_eq!((kib(status, "VmHWM:"), kib(status, "VmRSS:")), (Some(1234), Some(5)));
        assert_eq!(kib("", "VmHWM:"), None);
    }

    #[test]
    fn times_are_read_whatever_the_program_is_called() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 25 17 300 21 20 0 1 0 5";
        assert_eq!((ticks(stat, OWN), ticks(stat, CHILDREN)), (Some(42), Some(321)));
        assert_eq!(ticks("7 (a) S 1", OWN), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_and_time() {
        let id = std::process::id();
        assert!(memory(id, "VmRSS:").unwrap() > 0);
        assert!(cpu_time(id).is_some() && children_cpu_time().is_some());
    }
}
