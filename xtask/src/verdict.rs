//! Judging one conformance scenario: the checks that it reported against those that are allowed to fail.

use std::collections::BTreeMap;

use serde::Deserialize;

/// How a check ended, from the least to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    Info,
    Skipped,
    Success,
    /// A SHOULD that was not met. The suite fails a client on it, so it counts as a failure for both roles.
    Warning,
    Failure,
}

/// One entry of a scenario's `checks.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) status: Status,
    #[serde(default)]
    pub(crate) error_message: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
}

/// A check that may fail, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) check: &'static str,
    pub(crate) reason: &'static str,
}

/// What a scenario came to. It is as expected when there are no surprises.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) passed: usize,
    /// How often a check was reported to have passed: the same may be, again and again.
    pub(crate) reports: usize,
    pub(crate) allowed: usize,
    pub(crate) failed: usize,
    /// One line for each failure that nothing allows and each allowance that nothing needs.
    pub(crate) surprises: Vec<String>,
}

/// Judges `checks`. An id may be reported several times in a run; its most severe report counts.
pub(crate) fn judge(checks: &[Check], allowed: &[Allowed]) -> Verdict {
    let reports = checks.iter().filter(|check| check.status == Status::Success).count();
    let mut verdict = Verdict { reports, ..Verdict::default() };
    let worst = worst_by_id(checks);
    for (id, check) in &worst {
        match check.status {
            Status::Info | Status::Skipped => {}
            Status::Success => verdict.passed += 1,
            Status::Warning | Status::Failure if allowed.iter().any(|allowed| allowed.check == *id) => {
                verdict.allowed += 1;
            }
            Status::Warning | Status::Failure => {
                verdict.failed += 1;
                let why = check.error_message.as_deref().unwrap_or(&check.description);
                verdict.surprises.push(format!("{id}: {why}"));
            }
        }
    }
    verdict.surprises.extend(allowed.iter().filter_map(|allowed| idle(allowed, worst.get(allowed.check))));
    if worst.is_empty() {
        verdict.surprises.push("the scenario reported no check at all".to_owned());
    }
    verdict
}

/// Says so when an allowed check did not fail: an allowance that outlives its reason hides the next failure.
fn idle(allowed: &Allowed, check: Option<&&Check>) -> Option<String> {
    let now = match check.map(|check| check.status) {
        Some(Status::Warning | Status::Failure) => return None,
        Some(Status::Success) => "passes now",
        Some(Status::Info | Status::Skipped) => "was skipped",
        None => "was not reported",
    };
    Some(format!("{} {now}: take it off the allowed list (it was there because {})", allowed.check, allowed.reason))
}

fn worst_by_id(checks: &[Check]) -> BTreeMap<&str, &Check> {
    let mut worst: BTreeMap<&str, &Check> = BTreeMap::new();
    for check in checks {
        let kept = worst.entry(&check.id).or_insert(check);
        if check.status > kept.status {
            *kept = check;
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: &[Allowed] = &[Allowed { check: "later", reason: "it comes later" }];

    fn checks(json: &str) -> Vec<Check> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_failure_is_a_surprise_that_says_why() {
        let checks = checks(r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"no"}]"#);
        let verdict = judge(&checks, &[]);
        assert_eq!((verdict.passed, verdict.failed), (1, 1));
        assert_eq!(verdict.surprises, ["b: no"]);
    }

    #[test]
    fn a_warning_counts_as_a_failure() {
        assert_eq!(judge(&checks(r#"[{"id":"a","status":"WARNING"}]"#), &[]).failed, 1);
    }

    #[test]
    fn an_allowed_failure_is_no_surprise() {
        let verdict = judge(&checks(r#"[{"id":"later","status":"FAILURE"}]"#), LATER);
        assert_eq!(verdict, Verdict { allowed: 1, ..Verdict::default() });
    }

    #[test]
    fn an_allowance_that_is_not_needed_is_a_surprise() {
        for status in ["SUCCESS", "SKIPPED", "INFO"] {
            let verdict = judge(&checks(&format!(r#"[{{"id":"later","status":"{status}"}}]"#)), LATER);
            assert_eq!(verdict.surprises.len(), 1, "{status}");
        }
        let verdict = judge(&checks(r#"[{"id":"other","status":"SUCCESS"}]"#), LATER);
        assert!(verdict.surprises[0].contains("was not reported"), "{:?}", verdict.surprises);
    }

    #[test]
    fn of_several_reports_of_one_id_the_most_severe_counts() {
        let twice = r#"[{"id":"a","status":"FAILURE"},{"id":"a","status":"SUCCESS"},{"id":"a","status":"INFO"}]"#;
        let verdict = judge(&checks(twice), &[]);
        assert_eq!((verdict.passed, verdict.failed), (0, 1));
    }

    #[test]
    fn a_scenario_without_checks_has_tested_nothing() {
        assert_eq!(judge(&[], &[]).surprises, ["the scenario reported no check at all"]);
    }

    #[test]
    fn only_skipped_checks_are_no_failure() {
        assert!(judge(&checks(r#"[{"id":"a","status":"SKIPPED"}]"#), &[]).surprises.is_empty());
    }
}
