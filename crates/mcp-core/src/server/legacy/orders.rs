//! A session that becomes ready while something changes, in every order.

use std::{future::poll_fn, sync::Arc};

use loom::{future::block_on, model, thread};
use mcp_jsonrpc::Raw;

use super::session::{Handshake, Session};
use crate::{
    Revision,
    hub::{Hub, Subject},
};

#[test]
fn a_change_is_told_once_the_client_is_ready_whichever_comes_first() {
    model(|| {
        let (hub, session) = (Arc::<Hub>::default(), Arc::new(Session::new()));
        let listener = hub.listener();
        listener.listen(Subject::Tools);
        let [client_info, capabilities] = [(); 2].map(|()| Raw::parse("{}").unwrap());
        session.agree(Handshake { revision: Revision::V2025_11_25, client_info, capabilities }, listener);
        let readying = thread::spawn({
            let session = session.clone();
            move || session.ready()
        });
        let changing = thread::spawn(move || hub.changed(&Subject::Tools));
        block_on(poll_fn(|cx| session.poll_changed(cx)));
        assert!(session.is_ready() && session.next_change().is_some() && session.next_change().is_none());
        readying.join().unwrap();
        assert!(changing.join().unwrap());
    });
}
