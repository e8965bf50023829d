//! The first scan of a message.

use bytes::Bytes;
use mcp_jsonrpc::{DecodeLimits, Inbound, Message, decode};

use crate::{messages, stand::Stand};

pub(crate) fn decode_call(stand: &mut Stand<'_>) {
    decoding(stand, messages::modern_call());
}

pub(crate) fn decode_large(stand: &mut Stand<'_>) {
    decoding(stand, messages::large_call());
}

fn decoding(stand: &mut Stand<'_>, message: Bytes) {
    let limits = DecodeLimits::default();
    stand.measure(
        || message.clone(),
        async |frame| decode(frame, &limits),
        |inbound| assert!(matches!(inbound, Inbound::One(Message::Request(_)))),
    );
}
