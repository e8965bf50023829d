//! Points in time, as text.

/// The end of the year 9999, which is the last of four digits, in seconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// RFC 3339 for so many milliseconds since 1970; a fraction of a second has no zeros at its end. What is later than the year
/// 9999 is the last second of that year.
pub(super) fn rfc3339(millis: u64) -> String {
    let (seconds, millis) = match millis / 1000 {
        seconds if seconds > LAST_SECOND => (LAST_SECOND, 0),
        seconds => (seconds, millis % 1000),
    };
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    let fraction = fraction.trim_end_matches('0');
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day, in the Gregorian calendar, so many days after 1970-01-01.
///
/// It counts years from March, so that a leap day is the last day of its year, and in cycles of 400 years, which are all
/// equally long.
fn civil(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 400 * 365 + 97;
    /// From 0000-03-01, when a cycle begins, to 1970-01-01.
    const UNTIL_1970: u64 = 719_468;
    let days = days + UNTIL_1970;
    let (cycle, day) = (days / CYCLE, days % CYCLE);
    // Without the leap days that came before, all years have 365 days.
    let year = (day - day / 1460 + day / 36_524 - day / (CYCLE - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, five months in a row have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * cycle + year + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_rfc_3339_without_needless_zeros() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.001Z"),
            (86_399_999, "1970-01-01T23:59:59.999Z"),
            (86_400_000, "1970-01-02T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_764_498_600_020, "2025-11-30T10:30:00.02Z"),
            (1_764_498_600_250, "2025-11-30T10:30:00.25Z"),
            (1_764_498_600_500, "2025-11-30T10:30:00.5Z"),
            (2_147_483_648_000, "2038-01-19T03:14:08Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (253_402_300_799_000, "9999-12-31T23:59:59Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(millis), text, "{millis}");
        }
    }

    /// The calendar as it is taught: months have their lengths, and February a day more in leap years.
    #[test]
    fn every_day_until_9999_is_the_one_after_the_day_before() {
        let mut days = 0;
        for year in 1970..=9999 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let february = if leap { 29 } else { 28 };
            for (month, length) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
                for day in 1..=length {
                    assert_eq!(civil(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(days * 86_400_000, (LAST_SECOND + 1) * 1000);
    }
}
