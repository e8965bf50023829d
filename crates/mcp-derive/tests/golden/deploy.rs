impl Ship {
    /// Deploy a service
    pub async fn deploy(
        &self,
        context: Context,
        log: &Log,
        who: Option<Principal>,
        service: String,
        hours: u32,
        approval: Ask<Approval>,
        size: Ask<Size>,
    ) -> Result<String, ToolError> {
        Ok(service)
    }
    /// The tool of `deploy`, for a server.
    #[must_use]
    pub fn deploy_tool(self: &::std::sync::Arc<Self>) -> ::mcp_suite::Tool {
        #[derive(
            ::mcp_suite::__private::serde::Deserialize,
            ::mcp_suite::__private::schemars::JsonSchema
        )]
        #[serde(crate = "::mcp_suite::__private::serde")]
        #[schemars(crate = "::mcp_suite::__private::schemars")]
        struct __Arguments {
            service: String,
            #[serde(rename = "in")]
            #[serde(default = "__default_of_hours")]
            hours: u32,
        }
        fn __default_of_hours() -> u32 {
            3
        }
        let this = ::std::sync::Arc::clone(self);
        ::mcp_suite::Tool::new(
                "deploy",
                move |
                    context: ::mcp_suite::Context,
                    __Arguments { service, hours }: __Arguments|
                {
                    let this = ::std::sync::Arc::clone(&this);
                    async move {
                        let log = context.state::<Log>()?;
                        let who = context.principal().cloned();
                        let (approval, size) = ::mcp_suite::__private::try_join!(
                            context.elicit("approval", ::mcp_suite::server::form:: <
                            Approval > (::std::format!("Deploy {service}?"))), context
                            .elicit("size", ::mcp_suite::server::form:: < Size >
                            ("Which size?"))
                        )?;
                        this.deploy(
                                context.clone(),
                                log,
                                who,
                                service,
                                hours,
                                ::mcp_suite::Ask(approval),
                                ::mcp_suite::Ask(size),
                            )
                            .await
                    }
                },
            )
            .describe("Deploy a service")
            .asks::<Approval>()
            .asks::<Size>()
            .annotate(::mcp_suite::types::ToolAnnotations::default().destructive(true))
    }
}
