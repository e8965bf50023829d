//! What several threads share: the standard library's, or loom's, which runs a test through every order of things.
//!
//! For what `cargo xtask loom` looks at, and nothing else: loom's work within its tests alone.

#[cfg(not(mcp_loom))]
pub(crate) use {
    crate::lock::lock,
    futures_util::task::AtomicWaker,
    std::{
        sync::{Mutex, MutexGuard, atomic},
        thread,
    },
};

#[cfg(mcp_loom)]
pub(crate) use {
    self::looms::{AtomicWaker, lock},
    loom::{
        sync::{Mutex, MutexGuard, atomic},
        thread,
    },
};

#[cfg(mcp_loom)]
mod looms {
    use std::{sync::PoisonError, task::Waker};

    use super::{Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// loom's, called as the one of `futures` is.
    #[derive(Debug, Default)]
    pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

    impl AtomicWaker {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn register(&self, waker: &Waker) {
            self.0.register_by_ref(waker);
        }

        pub(crate) fn wake(&self) {
            self.0.wake();
        }
    }
}
