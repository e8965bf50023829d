//! A way to the server on which connections are cut, after some bytes or some time, in whatever is being said.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    #[expect(dead_code, reason = "held for as long as somebody goes through it")]
    serving: AbortOnDropHandle<()>,
}

impl Proxy {
    pub(super) async fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, to));
            }
        }));
        Ok(Self { address, serving })
    }
}

/// Passes on what comes until it is cut. What is unread then makes a reset of the end.
async fn pass(client: TcpStream, to: SocketAddr) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
        return;
    }
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let both = async {
        tokio::select! {
            _ = part(from_client, to_server) => {}
            _ = part(from_server, to_client) => {}
        }
    };
    let time = Duration::from_millis(fastrand::u64(50..4000));
    // Cut by time if not by bytes.
    let _ = timeout(time, both).await;
}

async fn part(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut left = fastrand::usize(500..500_000);
    let mut buffer = vec![0; 16 << 10];
    while left > 0 {
        let most = left.min(buffer.len());
        let read = from.read(&mut buffer[..most]).await?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
        left -= read;
    }
    Ok(())
}
