impl Ship {
    async fn user(
        &self,
        context: &Context,
        id: u64,
        page: Option<u32>,
    ) -> Result<String, ToolError> {
        Ok(String::new())
    }
    /// The template of `user`, for a server.
    #[must_use]
    fn user_template(self: &::std::sync::Arc<Self>) -> ::mcp_suite::ResourceTemplate {
        let this = ::std::sync::Arc::clone(self);
        ::mcp_suite::ResourceTemplate::new(
                "users:///{id}{?page}",
                "user",
                move |context, arguments| {
                    let this = ::std::sync::Arc::clone(&this);
                    async move {
                        let id: u64 = arguments.parse("id")?;
                        let page: Option<u32> = arguments.parse_optional("page")?;
                        this.user(&context, id, page).await
                    }
                },
            )
            .complete(
                "id",
                {
                    let this = ::std::sync::Arc::clone(self);
                    move |context, typed, known| {
                        let this = ::std::sync::Arc::clone(&this);
                        async move { this.ids(context, typed, known).await }
                    }
                },
            )
            .mime_type("text/plain")
    }
}
