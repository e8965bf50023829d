//! `wss`: whom the client trusts.

use std::sync::Arc;

use mcp_core::{Blame, Client, ErrorKind};
use mcp_ws::{
    Ws,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    },
};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use super::*;

/// What ends TLS in front of a server, and the certificate that it shows, which it signed itself.
async fn in_front_of(served: &Served) -> (String, CertificateDer<'static>) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key.into()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, behind) = (format!("wss://localhost:{}/mcp", listener.local_addr().unwrap().port()), served.address);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust the certificate ends it here.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut behind = TcpStream::connect(behind).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut behind).await;
            });
        }
    });
    (url, cert.der().clone())
}

fn trusting(certificate: CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// Roots of one's own stand in for those of the web, which know nothing of such a certificate.
#[tokio::test]
async fn a_certificate_counts_only_where_it_is_trusted() {
    let served = Served::start(everything_server::server()).await;
    let (url, certificate) = in_front_of(&served).await;

    let ws = Ws::new(&url).tls(trusting(certificate));
    let client = soon("connecting", Client::connect(ws)).await.unwrap();
    assert_eq!(soon("a call", client.call::<i64>("add", json!({ "a": 2, "b": 5 }))).await.unwrap(), 7);
    client.disconnect().await;

    let error = soon("connecting", Client::connect(Ws::new(&url))).await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportError, Blame::Transport), "{error:?}");
    assert_eq!(format!("{error:?}").matches("invalid peer certificate: UnknownIssuer").count(), 1, "{error:?}");
}
