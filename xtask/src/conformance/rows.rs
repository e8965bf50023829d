//! What runs: each scenario under each revision that has it, and how much has to pass in all.

use crate::verdict::Allowed;

/// Who is under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

/// One scenario under one revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) role: Role,
    pub(super) revision: &'static str,
    pub(super) scenario: &'static str,
    pub(super) allowed: &'static [Allowed],
    /// It is of an extension, which no revision has.
    pub(super) is_extension: bool,
}

const fn server(revision: &'static str, scenario: &'static str) -> Row {
    Row { role: Role::Server, revision, scenario, allowed: &[], is_extension: false }
}

const fn client(revision: &'static str, scenario: &'static str) -> Row {
    Row { role: Role::Client, revision, scenario, allowed: &[], is_extension: false }
}

const fn extension(row: Row) -> Row {
    Row { is_extension: true, ..row }
}

impl Role {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// What the requirements of a revision come to for a client, with the extensions and what came later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Required {
    pub(super) revision: &'static str,
    /// Checks that have to pass, each as often as it is reported.
    pub(super) checks: usize,
}

pub(super) const REQUIRED: &[Required] =
    &[Required { revision: "2025-11-25", checks: 243 }, Required { revision: "2026-07-28", checks: 426 }];

pub(super) const ROWS: &[Row] = &[
    server("2025-06-18", "server-initialize"),
    server("2025-06-18", "ping"),
    server("2025-11-25", "server-initialize"),
    server("2025-11-25", "ping"),
    server("2025-06-18", "tools-list"),
    server("2025-11-25", "tools-list"),
    server("2026-07-28", "tools-list"),
    server("2025-06-18", "tools-call-simple-text"),
    server("2025-11-25", "tools-call-simple-text"),
    server("2026-07-28", "tools-call-simple-text"),
    server("2025-06-18", "tools-call-image"),
    server("2025-11-25", "tools-call-image"),
    server("2026-07-28", "tools-call-image"),
    server("2025-06-18", "tools-call-audio"),
    server("2025-11-25", "tools-call-audio"),
    server("2026-07-28", "tools-call-audio"),
    server("2025-06-18", "tools-call-embedded-resource"),
    server("2025-11-25", "tools-call-embedded-resource"),
    server("2026-07-28", "tools-call-embedded-resource"),
    server("2025-06-18", "tools-call-mixed-content"),
    server("2025-11-25", "tools-call-mixed-content"),
    server("2026-07-28", "tools-call-mixed-content"),
    server("2025-06-18", "tools-call-error"),
    server("2025-11-25", "tools-call-error"),
    server("2026-07-28", "tools-call-error"),
    server("2025-06-18", "tools-call-with-progress"),
    server("2025-11-25", "tools-call-with-progress"),
    server("2026-07-28", "tools-call-with-progress"),
    server("2025-06-18", "completion-complete"),
    server("2025-11-25", "completion-complete"),
    server("2026-07-28", "completion-complete"),
    server("2025-06-18", "resources-list"),
    server("2025-11-25", "resources-list"),
    server("2026-07-28", "resources-list"),
    server("2025-06-18", "resources-read-text"),
    server("2025-11-25", "resources-read-text"),
    server("2026-07-28", "resources-read-text"),
    server("2025-06-18", "resources-read-binary"),
    server("2025-11-25", "resources-read-binary"),
    server("2026-07-28", "resources-read-binary"),
    server("2025-06-18", "resources-templates-read"),
    server("2025-11-25", "resources-templates-read"),
    server("2026-07-28", "resources-templates-read"),
    server("2025-06-18", "prompts-list"),
    server("2025-11-25", "prompts-list"),
    server("2026-07-28", "prompts-list"),
    server("2025-06-18", "prompts-get-simple"),
    server("2025-11-25", "prompts-get-simple"),
    server("2026-07-28", "prompts-get-simple"),
    server("2025-06-18", "prompts-get-with-args"),
    server("2025-11-25", "prompts-get-with-args"),
    server("2026-07-28", "prompts-get-with-args"),
    server("2025-06-18", "prompts-get-embedded-resource"),
    server("2025-11-25", "prompts-get-embedded-resource"),
    server("2026-07-28", "prompts-get-embedded-resource"),
    server("2025-06-18", "prompts-get-with-image"),
    server("2025-11-25", "prompts-get-with-image"),
    server("2026-07-28", "prompts-get-with-image"),
    server("2025-11-25", "json-schema-2020-12"),
    server("2026-07-28", "json-schema-2020-12"),
    server("2025-11-25", "dns-rebinding-protection"),
    server("2026-07-28", "dns-rebinding-protection"),
    server("2026-07-28", "http-header-validation"),
    server("2026-07-28", "http-custom-header-server-validation"),
    server("2026-07-28", "caching"),
    server("2026-07-28", "sep-2164-resource-not-found"),
    server("2026-07-28", "server-sse-multiple-streams"),
    server("2026-07-28", "input-required-result-unsupported-methods"),
    server("2026-07-28", "server-stateless"),
    server("2025-03-26", "server-session-lifecycle"),
    server("2025-06-18", "server-session-lifecycle"),
    server("2025-11-25", "server-session-lifecycle"),
    server("2025-11-25", "server-sse-polling"),
    server("2025-11-25", "server-sse-multiple-streams"),
    server("2025-06-18", "logging-set-level"),
    server("2025-11-25", "logging-set-level"),
    server("2025-06-18", "tools-call-with-logging"),
    server("2025-11-25", "tools-call-with-logging"),
    server("2025-06-18", "resources-subscribe"),
    server("2025-11-25", "resources-subscribe"),
    server("2025-06-18", "resources-unsubscribe"),
    server("2025-11-25", "resources-unsubscribe"),
    server("2025-06-18", "tools-call-sampling"),
    server("2025-11-25", "tools-call-sampling"),
    server("2025-06-18", "tools-call-elicitation"),
    server("2025-11-25", "tools-call-elicitation"),
    server("2025-11-25", "elicitation-sep1034-defaults"),
    server("2025-11-25", "elicitation-sep1330-enums"),
    server("2026-07-28", "input-required-result-basic-elicitation"),
    server("2026-07-28", "input-required-result-basic-sampling"),
    server("2026-07-28", "input-required-result-basic-list-roots"),
    server("2026-07-28", "input-required-result-request-state"),
    server("2026-07-28", "input-required-result-multiple-input-requests"),
    server("2026-07-28", "input-required-result-multi-round"),
    server("2026-07-28", "input-required-result-missing-input-response"),
    server("2026-07-28", "input-required-result-non-tool-request"),
    server("2026-07-28", "input-required-result-result-type"),
    server("2026-07-28", "input-required-result-tampered-state"),
    server("2026-07-28", "input-required-result-capability-check"),
    server("2026-07-28", "input-required-result-ignore-extra-params"),
    server("2026-07-28", "input-required-result-validate-input"),
    extension(server("2026-07-28", "tasks-lifecycle")),
    extension(server("2026-07-28", "tasks-capability-negotiation")),
    extension(server("2026-07-28", "tasks-dispatch-and-envelope")),
    extension(server("2026-07-28", "tasks-wire-fields")),
    extension(server("2026-07-28", "tasks-request-headers")),
    extension(server("2026-07-28", "tasks-request-state-removal")),
    extension(server("2026-07-28", "tasks-required-task-error")),
    extension(server("2026-07-28", "tasks-mrtr-input")),
    extension(server("2026-07-28", "tasks-mrtr-composition")),
    extension(server("2026-07-28", "tasks-status-notifications")),
    extension(server("2025-11-25", "sep-2640-skills-enumeration")),
    extension(server("2026-07-28", "sep-2640-skills-enumeration")),
    extension(server("2025-11-25", "sep-2640-skills-manifest")),
    extension(server("2026-07-28", "sep-2640-skills-manifest")),
    extension(server("2025-11-25", "sep-2640-skills-directory")),
    extension(server("2026-07-28", "sep-2640-skills-directory")),
    extension(client("2026-07-28", "sep-2640-client-no-prefetch")),
    extension(client("2026-07-28", "sep-2640-client-verify-digest")),
    extension(client("2026-07-28", "sep-2640-client-verify-size")),
    extension(client("2026-07-28", "sep-2640-client-verify-frontmatter")),
    client("2025-11-25", "initialize"),
    client("2025-11-25", "tools_call"),
    client("2026-07-28", "tools_call"),
    client("2026-07-28", "request-metadata"),
    client("2025-11-25", "elicitation-sep1034-client-defaults"),
    client("2025-11-25", "sse-retry"),
    client("2026-07-28", "http-standard-headers"),
    client("2026-07-28", "http-custom-headers"),
    client("2026-07-28", "http-invalid-tool-headers"),
    client("2026-07-28", "sep-2322-client-request-state"),
    client("2025-11-25", "json-schema-2020-12-preservation"),
    client("2026-07-28", "json-schema-2020-12-preservation"),
    client("2026-07-28", "json-schema-ref-no-deref"),
    client("2025-11-25", "auth/metadata-default"),
    client("2025-11-25", "auth/metadata-var1"),
    client("2025-11-25", "auth/metadata-var2"),
    client("2025-11-25", "auth/metadata-var3"),
    client("2025-11-25", "auth/basic-cimd"),
    client("2025-11-25", "auth/scope-from-www-authenticate"),
    client("2025-11-25", "auth/scope-from-scopes-supported"),
    client("2025-11-25", "auth/scope-omitted-when-undefined"),
    client("2025-11-25", "auth/scope-step-up"),
    client("2025-11-25", "auth/scope-retry-limit"),
    client("2025-11-25", "auth/token-endpoint-auth-basic"),
    client("2025-11-25", "auth/token-endpoint-auth-post"),
    client("2025-11-25", "auth/token-endpoint-auth-none"),
    client("2025-11-25", "auth/pre-registration"),
    extension(client("2025-11-25", "auth/client-credentials-jwt")),
    extension(client("2025-11-25", "auth/client-credentials-basic")),
    extension(client("2025-11-25", "auth/enterprise-managed-authorization")),
    extension(client("2025-11-25", "auth/dpop")),
    extension(client("2025-11-25", "auth/dpop-nonce")),
    extension(client("2025-11-25", "auth/wif-jwt-bearer")),
    client("2026-07-28", "auth/metadata-default"),
    client("2026-07-28", "auth/metadata-var1"),
    client("2026-07-28", "auth/metadata-var2"),
    client("2026-07-28", "auth/metadata-var3"),
    client("2026-07-28", "auth/basic-cimd"),
    client("2026-07-28", "auth/scope-from-www-authenticate"),
    client("2026-07-28", "auth/scope-from-scopes-supported"),
    client("2026-07-28", "auth/scope-omitted-when-undefined"),
    client("2026-07-28", "auth/scope-step-up"),
    client("2026-07-28", "auth/scope-retry-limit"),
    client("2026-07-28", "auth/token-endpoint-auth-basic"),
    client("2026-07-28", "auth/token-endpoint-auth-post"),
    client("2026-07-28", "auth/token-endpoint-auth-none"),
    client("2026-07-28", "auth/pre-registration"),
    client("2026-07-28", "auth/resource-mismatch"),
    client("2026-07-28", "auth/offline-access-scope"),
    client("2026-07-28", "auth/offline-access-not-supported"),
    client("2026-07-28", "auth/authorization-server-migration"),
    client("2026-07-28", "auth/iss-supported"),
    client("2026-07-28", "auth/iss-not-advertised"),
    client("2026-07-28", "auth/iss-supported-missing"),
    client("2026-07-28", "auth/iss-wrong-issuer"),
    client("2026-07-28", "auth/iss-unexpected"),
    client("2026-07-28", "auth/iss-normalized"),
    client("2026-07-28", "auth/metadata-issuer-mismatch"),
    extension(client("2026-07-28", "auth/client-credentials-jwt")),
    extension(client("2026-07-28", "auth/client-credentials-basic")),
    extension(client("2026-07-28", "auth/enterprise-managed-authorization")),
    extension(client("2026-07-28", "auth/dpop")),
    extension(client("2026-07-28", "auth/dpop-nonce")),
    extension(client("2026-07-28", "auth/wif-jwt-bearer")),
    client("2025-03-26", "auth/2025-03-26-oauth-metadata-backcompat"),
    client("2025-03-26", "auth/2025-03-26-oauth-endpoint-fallback"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowance_has_a_reason() {
        for allowed in ROWS.iter().flat_map(|row| row.allowed) {
            assert!(allowed.reason.split_whitespace().count() > 3, "{} needs a reason", allowed.check);
        }
    }

    #[test]
    fn no_row_stands_twice() {
        let mut rows: Vec<_> = ROWS.iter().map(|row| (row.role.word(), row.revision, row.scenario)).collect();
        rows.sort_unstable();
        let before = rows.len();
        rows.dedup();
        assert_eq!(rows.len(), before);
    }
}
