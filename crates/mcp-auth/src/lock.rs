use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, poisoned or not: what runs under the locks of this crate leaves nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
