//! A call that is given up while its handler still speaks, in a thread of its own, in every order.

use std::sync::Arc;

use loom::{model, thread};

use super::outlet::{Outlet, Queued};
use crate::{
    Limits,
    mailbox::Mailbox,
    sync::atomic::{AtomicBool, Ordering},
};

fn gives_up(say: fn(&Outlet)) {
    model(move || {
        let (mailbox, over) = (Arc::new(Mailbox::<Queued>::new(&Limits::default())), Arc::new(AtomicBool::new(false)));
        let outlet =
            Outlet::Mailbox { mailbox: mailbox.clone(), call: Some(7), over: over.clone(), is_resumable: false };
        let saying = thread::spawn(move || say(&outlet));
        over.store(true, Ordering::SeqCst);
        mailbox.retain(|queued| queued.call != Some(7));
        saying.join().unwrap();
        assert!(mailbox.is_empty());
    });
}

#[test]
fn nothing_of_a_call_that_was_given_up_is_left() {
    gives_up(|outlet| outlet.progress("{}".into()));
    gives_up(|outlet| outlet.message("{}".into()));
}

#[test]
fn not_even_what_must_not_be_lost() {
    gives_up(|outlet| _ = outlet.must_say("{}".into()));
}
