//! Whether what was measured keeps to the budget.

use std::cmp::Ordering;

use crate::budget::Cost;
use crate::budget::file::Budget;
use crate::error::{Error, Result};
use crate::table::Table;

/// How much more instructions and bytes may be than the budget says, in percent.
const TOLERANCE: u64 = 5;

/// Prints both side by side. It fails when a function costs more than it may, or stands in only one of them.
pub(super) fn judge(measured: &Budget, budget: &Budget, only: Option<&str>) -> Result {
    let comparable = measured.conditions.are_comparable(&budget.conditions);
    let asked = |cost: &&Cost| only.is_none_or(|only| cost.function.contains(only));
    let gone = budget.costs.iter().filter(asked).filter(|cost| find(&measured.costs, cost).is_none());
    let mut findings = Findings::default();
    findings.over.extend(gone.map(|cost| format!("{} is in the budget, but no function", cost.function)));
    let mut table =
        Table::new(&["function", "instructions", "budget", "", "allocations", "budget", "bytes", "budget", ""]);
    for cost in &measured.costs {
        let allowed = find(&budget.costs, cost);
        table.row(row(cost, allowed));
        match allowed {
            Some(allowed) => findings.look(cost, allowed, comparable),
            None => findings.over.push(format!("{} has no budget", cost.function)),
        }
    }
    table.print();
    findings.tell(measured.conditions.differences(&budget.conditions), comparable)
}

fn find<'a>(costs: &'a [Cost], like: &Cost) -> Option<&'a Cost> {
    costs.iter().find(|cost| cost.function == like.function)
}

fn row(cost: &Cost, allowed: Option<&Cost>) -> Vec<String> {
    let budget = |of: fn(&Cost) -> u64| allowed.map_or("none".to_owned(), |allowed| of(allowed).to_string());
    let change = |of: fn(&Cost) -> u64| allowed.map_or(String::new(), |allowed| percent(of(cost), of(allowed)));
    vec![
        cost.function.clone(),
        cost.instructions.to_string(),
        budget(|cost| cost.instructions),
        change(|cost| cost.instructions),
        cost.allocations.to_string(),
        budget(|cost| cost.allocations),
        cost.bytes.to_string(),
        budget(|cost| cost.bytes),
        change(|cost| cost.bytes),
    ]
}

/// How much `measured` is over or under `allowed`.
fn percent(measured: u64, allowed: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let ratio = measured as f64 / allowed.max(1) as f64;
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

/// What is to be said under the table.
#[derive(Debug, Default)]
struct Findings {
    over: Vec<String>,
    under: Vec<String>,
}

impl Findings {
    fn look(&mut self, cost: &Cost, allowed: &Cost, comparable: bool) {
        if comparable {
            self.note(cost, "instructions", cost.instructions, allowed.instructions, TOLERANCE);
        }
        // What allocates once more does so for a reason that stands in the diff.
        self.note(cost, "allocations", cost.allocations, allowed.allocations, 0);
        self.note(cost, "bytes allocated", cost.bytes, allowed.bytes, TOLERANCE);
    }

    fn note(&mut self, cost: &Cost, what: &str, measured: u64, allowed: u64, tolerance: u64) {
        let told = || {
            format!("{}: {measured} {what}, {} beside a budget of {allowed}", cost.function, percent(measured, allowed))
        };
        match compare(measured, allowed, tolerance) {
            Ordering::Greater => self.over.push(told()),
            Ordering::Less => self.under.push(told()),
            Ordering::Equal => {}
        }
    }

    fn tell(self, differences: Vec<String>, comparable: bool) -> Result {
        let block = |lines: &[String]| lines.iter().map(|line| format!("\n  {line}")).collect::<String>();
        if !differences.is_empty() {
            println!("the budget was measured under other conditions:{}", block(&differences));
        }
        if !comparable {
            println!("the instructions of another target are shown, but not judged");
        }
        if !self.under.is_empty() {
            println!("lower the budget, so that it is kept: `cargo xtask budget --write`{}", block(&self.under));
        }
        match (self.over.is_empty(), differences.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::new(format!("over the budget:{}", block(&self.over)))),
            (false, false) => Err(Error::new(format!(
                "over the budget, perhaps because of other conditions (see above):{}\nIf the commit before is over it too, \
                 they are why: write the budget anew in a commit of its own.",
                block(&self.over)
            ))),
        }
    }
}

/// `Equal` within the tolerance, in percent of what is allowed.
fn compare(measured: u64, allowed: u64, tolerance: u64) -> Ordering {
    let (measured, allowed, tolerance) =
        (u128::from(measured) * 100, u128::from(allowed) * 100, u128::from(allowed * tolerance));
    match measured.cmp(&allowed) {
        _ if measured.abs_diff(allowed) <= tolerance => Ordering::Equal,
        order => order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::conditions::Conditions;

    fn cost(function: &str, instructions: u64, allocations: u64, bytes: u64) -> Cost {
        Cost { function: function.to_owned(), instructions, allocations, bytes }
    }

    fn on(target: &str, costs: &[Cost]) -> Budget {
        Budget { conditions: Conditions(vec![("target".to_owned(), target.to_owned())]), costs: costs.to_vec() }
    }

    /// What the error says, where `measured` is over a budget of 1000 instructions, 10 allocations and 100 bytes.
    fn judged(measured: Cost) -> Option<String> {
        let budget = on("a", &[cost("f", 1000, 10, 100)]);
        judge(&on("a", &[measured]), &budget, None).err().map(|error| error.to_string())
    }

    #[test]
    fn five_percent_are_within_the_budget_and_more_is_over_it() {
        assert_eq!(judged(cost("f", 1050, 10, 105)), None);
        assert!(judged(cost("f", 1051, 10, 105)).unwrap().contains("f: 1051 instructions"));
        assert!(judged(cost("f", 1050, 10, 106)).unwrap().contains("f: 106 bytes"));
    }

    #[test]
    fn one_allocation_more_is_over_the_budget() {
        assert!(judged(cost("f", 1000, 11, 100)).unwrap().contains("f: 11 allocations"));
    }

    #[test]
    fn less_is_no_failure_and_is_told_beyond_the_tolerance() {
        assert_eq!(judged(cost("f", 1, 1, 1)), None);
        assert_eq!(compare(949, 1000, TOLERANCE), Ordering::Less);
        assert_eq!(compare(950, 1000, TOLERANCE), Ordering::Equal);
    }

    #[test]
    fn a_function_without_a_budget_and_a_budget_without_a_function_fail() {
        let message = judged(cost("g", 1000, 10, 100)).unwrap();
        assert!(message.contains("g has no budget") && message.contains("f is in the budget"), "{message}");
    }

    #[test]
    fn what_was_not_asked_for_is_not_missed() {
        let costs = [cost("f", 1, 1, 1), cost("g", 1, 1, 1)];
        assert!(judge(&on("a", &costs[..1]), &on("a", &costs), Some("f")).is_ok());
    }

    #[test]
    fn on_another_target_allocations_are_judged_and_instructions_are_not() {
        let budget = on("a", &[cost("f", 1000, 10, 100)]);
        assert!(judge(&on("b", &[cost("f", 2000, 10, 100)]), &budget, None).is_ok());
        let message = judge(&on("b", &[cost("f", 1000, 11, 100)]), &budget, None).unwrap_err().to_string();
        assert!(message.contains("other conditions"), "{message}");
    }
}
