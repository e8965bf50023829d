use mcp_core::{Client, ClientBuilder, Error, ErrorKind};

/// Connects to whatever `target` names, with the defaults; see [`connect_auto_with`].
///
/// # Errors
/// As [`connect_auto_with`].
pub async fn connect_auto(target: &str) -> Result<Client, Error> {
    connect_auto_with(Client::builder(mcp_core::types::Implementation::of_this_program()), target).await
}

/// Connects to whatever `target` names: a server over Streamable HTTP (`http:` or `https:`), over WebSocket (`ws:` or
/// `wss:`), or a program with its arguments, to be started (`stdio:`). A program's words are split as a shell splits them,
/// and nothing of them is expanded.
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_core::Error> {
/// let far = mcp_suite::connect_auto("https://example.com/mcp").await?;
/// let near = mcp_suite::connect_auto("stdio:my-server --root '/srv/my files'").await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidParams`] where it names nothing, or a wire whose feature is off; otherwise as
/// [`ClientBuilder::connect`].
pub async fn connect_auto_with(client: ClientBuilder, target: &str) -> Result<Client, Error> {
    let (scheme, rest) = target.split_once(':').ok_or_else(|| unknown("it has no scheme"))?;
    match scheme.to_ascii_lowercase().as_str() {
        #[cfg(feature = "http-client")]
        "http" | "https" => client.connect(mcp_http::Http::new(target)).await,
        #[cfg(feature = "ws-client")]
        "ws" | "wss" => client.connect(mcp_ws::Ws::new(target)).await,
        #[cfg(feature = "stdio")]
        "stdio" => {
            let words = shlex::split(rest).ok_or_else(|| unknown("its quotes do not match"))?;
            let Some((program, arguments)) = words.split_first() else { return Err(unknown("it names no program")) };
            client.connect(mcp_stdio::Child::new(program).args(arguments)).await
        }
        _ => {
            let _ = (client, rest);
            Err(unknown("no wire is known by its scheme, or the feature of that wire is off"))
        }
    }
}

/// The target may hold a secret, so the error does not show it.
fn unknown(why: &str) -> Error {
    Error::new(ErrorKind::InvalidParams, format!("the target cannot be connected to: {why}"))
}
