//! What a report is of: a day and a machine, as far as the system tells.

use std::{
    fs::read_to_string,
    time::{SystemTime, UNIX_EPOCH},
};

/// The day, as `2026-11-30`, in UTC.
pub(super) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(now.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date so many days after 1970-01-01, in a calendar whose years begin in March: leap days stand at their end.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    // From 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, month + 3);
    if month > 12 { (year + 1, month - 12, day) } else { (year, month, day) }
}

/// The machine, a line a fact.
pub(super) fn lines() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or_else(|_| "?".to_owned(), |cores| cores.to_string());
    let line = |path: &str, start: &str| {
        let file = read_to_string(path).ok()?;
        let line = file.lines().find_map(|line| line.strip_prefix(start))?;
        Some(line.trim_start_matches([':', '\t', ' ']).trim().to_owned())
    };
    let processor = line("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let memory = line("/proc/meminfo", "MemTotal").and_then(|total| gibibytes(&total));
    let kernel = read_to_string("/proc/sys/kernel/osrelease").ok();
    let system = [std::env::consts::OS, kernel.as_deref().unwrap_or_default().trim()].join(" ");
    vec![
        format!("processor: {processor}; cores: {cores}"),
        format!("memory: {}", memory.unwrap_or_else(|| "?".to_owned())),
        format!("system: {}", system.trim()),
        format!(
            "compiler: {}, release profile with thin LTO and one codegen unit; the system's allocator",
            env!("COMPILER")
        ),
    ]
}

/// `16384 kB` in GiB.
fn gibibytes(total: &str) -> Option<String> {
    let kib: f64 = total.strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{:.0} GiB", kib / f64::from(1 << 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let dates = [0, 31, 59, 11_016, 20_787].map(date);
        assert_eq!(dates, [(1970, 1, 1), (1970, 2, 1), (1970, 3, 1), (2000, 2, 29), (2026, 11, 30)]);
    }

    #[test]
    fn memory_is_told_in_gibibytes() {
        assert_eq!(gibibytes("16777216 kB"), Some("16 GiB".to_owned()));
        assert_eq!(gibibytes("much"), None);
    }
}
