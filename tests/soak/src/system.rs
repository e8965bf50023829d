//! What the system tells of a process.

use std::{fs, io};

/// What a process takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// KiB of memory that are resident.
    pub(crate) rss: u64,
    pub(crate) threads: u64,
    pub(crate) files: usize,
}

/// What the process of that id takes now. Linux alone tells.
pub(crate) fn usage(id: u32) -> io::Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = |name| number(&status, name).ok_or_else(|| io::Error::other(format!("no {name} in the status")));
    let files = fs::read_dir(format!("/proc/{id}/fd"))?.count();
    Ok(Usage { rss: line("VmRSS:")?, threads: line("Threads:")?, files })
}

fn number(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_a_status() {
        let status = "Name:\tsoak\nVmRSS:\t    5120 kB\nThreads:\t7\n";
        assert_eq!((number(status, "VmRSS:"), number(status, "Threads:")), (Some(5120), Some(7)));
        assert_eq!(number(status, "VmHWM:"), None);
    }
}
