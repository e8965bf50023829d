//! `mcp.auth.<token>`: what browsers, which cannot send headers with an upgrade, say in place of `Authorization`.

use std::task::{Context, Poll};

use axum::response::Response;
use futures_util::future::{Either, Ready, ready};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    AUTH_SUBPROTOCOL,
    server::{handshake::tokens, refusal},
};

/// A layer that takes the token out of the subprotocols that an upgrade offers, and puts it where everything behind looks
/// for one: `mcp.auth.TOKEN` becomes `Authorization: Bearer TOKEN`.
///
/// It belongs in front of whatever looks at credentials, or logs headers. Behind it nobody sees the subprotocol, and the
/// header is marked sensitive. Who is not allowed in is up to the layers behind. An upgrade with more than one token, with
/// an empty one, or with an `Authorization` header beside it is refused with 400. What is no upgrade is left alone.
///
/// Such a token is a custom transport's, as draft SEP-1288 has it, and no revision of the protocol knows it. Whatever is in
/// front of this process may log it, as it does not know that it is a secret: prefer a header, or a cookie, where the
/// client can send one.
///
/// ```
/// use mcp_core::{Server, implementation};
/// use mcp_ws::{BearerSubprotocol, WsLayer};
///
/// let server = Server::builder(implementation!()).build();
/// // The last layer is outermost; what checks the token stands between the two.
/// let app: axum::Router = axum::Router::new().layer(WsLayer::new(server)).layer(BearerSubprotocol::new());
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "a layer does nothing until a router has it"]
pub struct BearerSubprotocol(());

impl BearerSubprotocol {
    /// The layer.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<S> Layer<S> for BearerSubprotocol {
    type Service = BearerSubprotocolService<S>;

    fn layer(&self, inner: S) -> BearerSubprotocolService<S> {
        BearerSubprotocolService(inner)
    }
}

/// What [`BearerSubprotocol`] makes of a service.
#[derive(Debug, Clone)]
pub struct BearerSubprotocolService<S>(S);

impl<S, B> Service<Request<B>> for BearerSubprotocolService<S>
where
    S: Service<Request<B>, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match take(request.headers_mut()) {
            Ok(()) => Either::Left(self.0.call(request)),
            Err(why) => Either::Right(ready(Ok(refusal::answer(StatusCode::BAD_REQUEST, why)))),
        }
    }
}

/// Moves the token, if there is one.
fn take(headers: &mut HeaderMap) -> Result<(), &'static str> {
    let name = header::SEC_WEBSOCKET_PROTOCOL;
    let (secret, others): (Vec<&str>, Vec<&str>) =
        tokens(headers, &name).partition(|offered| offered.starts_with(AUTH_SUBPROTOCOL));
    let bearer = match secret.as_slice() {
        [] => return Ok(()),
        [offered] if offered.len() > AUTH_SUBPROTOCOL.len() => format!("Bearer {}", &offered[AUTH_SUBPROTOCOL.len()..]),
        [_] => return Err("the subprotocol mcp.auth. has no token"),
        _ => return Err("more than one subprotocol has a token"),
    };
    let others = HeaderValue::try_from(others.join(", ")).map_err(|_| "the subprotocols cannot be read")?;
    let mut bearer = HeaderValue::try_from(bearer).map_err(|_| "the token cannot be read")?;
    if headers.contains_key(header::AUTHORIZATION) {
        return Err("there is a token in a header and another in a subprotocol");
    }
    bearer.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, bearer);
    if others.is_empty() {
        headers.remove(name)
    } else {
        headers.insert(name, others)
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &[(&'static str, &str)]) -> Result<(Option<String>, Vec<String>), &'static str> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        take(&mut headers)?;
        assert!(!format!("{headers:?}").contains("SECRET"), "{headers:?}");
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let offered = headers.get_all("sec-websocket-protocol").iter().map(text).collect();
        Ok((headers.get("authorization").map(text), offered))
    }

    #[test]
    fn c108_the_token_becomes_a_header_and_the_other_offers_stay() {
        let protocol = "sec-websocket-protocol";
        for (offers, others) in [
            (vec!["mcp, mcp.auth.SECRET"], vec!["mcp"]),
            (vec!["mcp.auth.SECRET"], vec![]),
            (vec!["foo", "mcp.auth.SECRET,mcp"], vec!["foo, mcp"]),
        ] {
            let lines: Vec<_> = offers.iter().map(|offer| (protocol, *offer)).collect();
            let others = others.into_iter().map(str::to_owned).collect();
            assert_eq!(taken(&lines), Ok((Some("Bearer SECRET".into()), others)));
        }
        assert_eq!(taken(&[(protocol, "mcp")]), Ok((None, vec!["mcp".into()])));
        assert_eq!(taken(&[]), Ok((None, vec![])));
    }

    #[test]
    fn c108_a_token_that_is_none_or_one_of_two_is_refused_without_being_told() {
        let protocol = "sec-websocket-protocol";
        for lines in [
            vec![(protocol, "mcp.auth.")],
            vec![(protocol, "mcp.auth.SECRET, mcp.auth.SECRET")],
            vec![(protocol, "mcp.auth.SECRET"), ("authorization", "Bearer x")],
        ] {
            assert!(!taken(&lines).unwrap_err().contains("SECRET"));
        }
    }
}
