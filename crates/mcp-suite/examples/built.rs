//! A server with the builders: four tools, one of them a task, a prompt, and a template. `derived.rs` is the same server with the macros.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use mcp_suite::{
    Prompt, ResourceTemplate,
    prelude::*,
    server::{PromptArguments, form},
    types::{Completion, PromptArgument, ToolAnnotations},
    uri_template::Variables,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// What is known of the weather.
struct Weather {
    forecasts: BTreeMap<&'static str, &'static str>,
}

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    /// Where
    city: String,
    /// In how many days
    #[serde(default = "tomorrow")]
    days: u32,
}

fn tomorrow() -> u32 {
    1
}

impl Weather {
    async fn forecast(&self, Forecast { city, days }: Forecast) -> Result<String, ToolError> {
        let Some(forecast) = self.forecasts.get(&*city) else { return Err(ToolError::new("no such city")) };
        Ok(format!("{forecast}, in {days} days"))
    }

    fn forecast_tool(self: &Arc<Self>) -> Tool {
        let weather = Arc::clone(self);
        let forecast = move |arguments: Forecast| {
            let weather = Arc::clone(&weather);
            async move { weather.forecast(arguments).await }
        };
        Tool::new("forecast", forecast)
            .describe("What the weather will be in a city")
            .title("Forecast")
            .annotate(ToolAnnotations::default().read_only(true))
    }

    async fn page(&self, variables: Variables) -> Result<String, ToolError> {
        let forecast = self.forecasts.get(variables.get("city").unwrap_or_default());
        forecast.map(|forecast| (*forecast).to_owned()).ok_or_else(ToolError::not_found)
    }

    async fn cities(&self, typed: String) -> Result<Completion, ToolError> {
        Ok(self.forecasts.keys().copied().filter(|city| city.starts_with(&typed)).collect())
    }

    fn page_template(self: &Arc<Self>) -> ResourceTemplate {
        let (reading, completing) = (Arc::clone(self), Arc::clone(self));
        let page = move |_, variables| {
            let weather = Arc::clone(&reading);
            async move { weather.page(variables).await }
        };
        let cities = move |_, typed, _| {
            let weather = Arc::clone(&completing);
            async move { weather.cities(typed).await }
        };
        ResourceTemplate::new("weather:///{city}", "page", page)
            .describe("The weather of a city, as a page")
            .mime_type("text/plain")
            .complete("city", cities)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

async fn add(Add { a, b }: Add) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::new("that is too much"))
}

#[derive(Deserialize, JsonSchema)]
struct Alert {
    /// Where
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    /// Whether to go on
    go: bool,
}

async fn alert(context: Context, Alert { city }: Alert) -> Result<String, ToolError> {
    let question = form::<Approval>(format!("Alert everybody in {city}?"));
    let approval = context.elicit("approval", question).await?;
    Ok(if approval.go { format!("{city} is alerted") } else { "Nobody was alerted".into() })
}

async fn survey() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok("rain and sun".into())
}

async fn plan(_: Context, arguments: PromptArguments) -> Result<String, ToolError> {
    let city = arguments.get("city").unwrap_or_default();
    let interest = arguments.get("interest").unwrap_or("something");
    Ok(format!("Plan a day in {city}, with {interest} to do. Ask for the forecast first."))
}

fn plan_prompt() -> Prompt {
    Prompt::new("plan", plan)
        .describe("Plan a day")
        .title("Plan a day")
        .argument(PromptArgument::new("city").describe("Where").required())
        .argument(PromptArgument::new("interest").describe("What to do there"))
}

/// The server; its `main` serves it over stdio.
pub(crate) fn server() -> Server {
    let weather = Arc::new(Weather { forecasts: [("Oslo", "rain"), ("Rome", "sun")].into() });
    let add = Tool::new("add", add)
        .describe("Add two integers")
        .annotate(ToolAnnotations::default().read_only(true).idempotent(true));
    let alert = Tool::new("alert", alert)
        .describe("Send an alert to everybody in a city")
        .asks::<Approval>()
        .annotate(ToolAnnotations::default().destructive(true));
    let survey = Tool::new("survey", survey)
        .describe("Measure the weather everywhere, which takes a while")
        .task()
        .annotate(ToolAnnotations::default().read_only(true));
    Server::builder(implementation!())
        .tool(weather.forecast_tool())
        .tool(add)
        .tool(alert)
        .tool(survey)
        .prompt(plan_prompt())
        .template(weather.page_template())
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    mcp_suite::stdio::serve(server()).await
}
