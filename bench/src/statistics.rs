//! What is told of several rounds.

/// What several rounds came to, lowest first.
#[derive(Debug, Clone)]
pub(crate) struct Values(Vec<f64>);

impl Values {
    /// Those of at least one round.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The one in the middle; of an even number, the mean of the two there.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { f64::midpoint(self.0[middle - 1], self.0[middle]) }
    }

    /// How far the lowest and the highest are apart, in percent of the median.
    pub(crate) fn spread(&self) -> f64 {
        100.0 * (self.0[self.0.len() - 1] - self.0[0]) / self.median()
    }
}

/// A number with as many digits as are worth reading.
pub(crate) fn short(number: f64) -> String {
    match number {
        ..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        100.0..10_000.0 => format!("{number:.0}"),
        _ => format!("{:.0}k", number / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(Values::new(vec![9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Values::new(vec![4.0, 1.0, 2.0, 9.0]).median(), 3.0);
        assert_eq!(Values::new(vec![7.0]).median(), 7.0);
    }

    #[test]
    fn the_spread_is_in_percent_of_the_median() {
        assert_eq!(Values::new(vec![110.0, 100.0, 90.0]).spread(), 20.0);
        assert_eq!(Values::new(vec![5.0]).spread(), 0.0);
    }

    #[test]
    fn numbers_have_about_three_digits() {
        let numbers = [0.5, 19.98, 350.0, 9_400.0, 815_400.0].map(short);
        assert_eq!(numbers, ["0.50", "20.0", "350", "9400", "815k"]);
    }
}
