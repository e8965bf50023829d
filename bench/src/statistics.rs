//! What is told of several rounds.

/// The rates of a contestant's rounds, lowest first.
#[derive(Debug, Clone)]
pub(crate) struct Rates(Vec<f64>);

impl Rates {
    /// The rates of at least one round.
    pub(crate) fn new(mut rates: Vec<f64>) -> Self {
        rates.sort_by(f64::total_cmp);
        Self(rates)
    }

    /// The one in the middle; of an even number, the mean of the two there.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { f64::midpoint(self.0[middle - 1], self.0[middle]) }
    }

    /// How far the slowest and the fastest round are apart, in percent of the median.
    pub(crate) fn spread(&self) -> f64 {
        100.0 * (self.0[self.0.len() - 1] - self.0[0]) / self.median()
    }
}

/// A ratio with as many digits as are worth reading.
pub(crate) fn ratio(ours: f64, other: f64) -> String {
    let ratio = ours / other;
    match ratio {
        ..10.0 => format!("{ratio:.2}"),
        10.0..100.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

/// A rate in calls a second, in thousands where digits would only be noise.
pub(crate) fn rate(rate: f64) -> String {
    if rate < 10_000.0 { format!("{rate:.0}") } else { format!("{:.0}k", rate / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(Rates::new(vec![9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Rates::new(vec![4.0, 1.0, 2.0, 9.0]).median(), 3.0);
        assert_eq!(Rates::new(vec![7.0]).median(), 7.0);
    }

    #[test]
    fn the_spread_is_in_percent_of_the_median() {
        assert_eq!(Rates::new(vec![110.0, 100.0, 90.0]).spread(), 20.0);
        assert_eq!(Rates::new(vec![5.0]).spread(), 0.0);
    }

    #[test]
    fn ratios_have_about_three_digits() {
        let ratios = [ratio(1.0, 2.0), ratio(39.96, 2.0), ratio(700.0, 2.0)];
        assert_eq!(ratios, ["0.50", "20.0", "350"]);
    }

    #[test]
    fn rates_have_about_four_digits_at_most() {
        assert_eq!([rate(524.4), rate(9_400.0), rate(815_400.0)], ["524", "9400", "815k"]);
    }
}
