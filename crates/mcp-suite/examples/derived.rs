//! A server with the macros: four tools, one of them a task, a prompt, and a template. `built.rs` is the same server without them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use mcp_suite::{prelude::*, server::PromptArguments, types::Completion};
use schemars::JsonSchema;
use serde::Deserialize;

/// What is known of the weather.
struct Weather {
    forecasts: BTreeMap<&'static str, &'static str>,
}

impl Weather {
    /// What the weather will be in a city
    #[tool(title = "Forecast", read_only)]
    async fn forecast(
        &self,
        /// Where
        city: String,
        /// In how many days
        #[arg(default = 1)]
        days: u32,
    ) -> Result<String, ToolError> {
        let Some(forecast) = self.forecasts.get(&*city) else { return Err(ToolError::new("no such city")) };
        Ok(format!("{forecast}, in {days} days"))
    }

    /// The weather of a city, as a page
    #[resource("weather:///{city}", mime_type = "text/plain")]
    async fn page(&self, #[complete(self.cities)] city: String) -> Result<String, ToolError> {
        self.forecasts.get(&*city).map(|forecast| (*forecast).to_owned()).ok_or_else(ToolError::not_found)
    }

    async fn cities(&self, _: Context, typed: String, _: PromptArguments) -> Result<Completion, ToolError> {
        Ok(self.forecasts.keys().copied().filter(|city| city.starts_with(&typed)).collect())
    }
}

/// Add two integers
#[tool(read_only, idempotent)]
async fn add(a: i64, b: i64) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::new("that is too much"))
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    /// Whether to go on
    go: bool,
}

/// Send an alert to everybody in a city
#[tool(destructive)]
async fn alert(
    /// Where
    city: String,
    #[ask("Alert everybody in {city}?")] approval: Ask<Approval>,
) -> Result<String, ToolError> {
    Ok(if approval.go { format!("{city} is alerted") } else { "Nobody was alerted".into() })
}

/// Measure the weather everywhere, which takes a while
#[tool(read_only, task)]
async fn survey() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok("rain and sun".into())
}

/// Plan a day
#[prompt(title = "Plan a day")]
async fn plan(
    /// Where
    city: String,
    /// What to do there
    interest: Option<String>,
) -> Result<String, ToolError> {
    let interest = interest.as_deref().unwrap_or("something");
    Ok(format!("Plan a day in {city}, with {interest} to do. Ask for the forecast first."))
}

/// The server; its `main` serves it over stdio.
pub(crate) fn server() -> Server {
    let weather = Arc::new(Weather { forecasts: [("Oslo", "rain"), ("Rome", "sun")].into() });
    Server::builder(implementation!())
        .tool(weather.forecast_tool())
        .tool(add_tool())
        .tool(alert_tool())
        .tool(survey_tool())
        .prompt(plan_prompt())
        .template(weather.page_template())
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    mcp_suite::stdio::serve(server()).await
}
