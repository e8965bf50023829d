use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, poisoned or not: a test that panicked has failed already.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
