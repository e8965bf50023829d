//! Panics of what users wrote, contained in one place.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

/// What is left of a panic that was contained. What it said may hold anything, so that goes no further than the process's
/// own panic hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Panicked;

/// Runs what a user wrote, for those who write transports and layers: a panic of it ends nothing else.
///
/// # Errors
/// When it panicked.
pub fn contained<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(run)).map_err(forget)
}

/// A future whose panic is its outcome.
#[derive(Debug)]
pub(crate) struct Contained<F>(pub(crate) F);

impl<F: Future + Unpin> Future for Contained<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match contained(|| Pin::new(&mut self.0).poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}

/// What a panic carries may panic when it is dropped, and what that one carries likewise: so the second is not dropped.
fn forget(carried: Box<dyn Any + Send>) -> Panicked {
    if let Err(carried) = catch_unwind(AssertUnwindSafe(|| drop(carried))) {
        std::mem::forget(carried);
    }
    Panicked
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, panic::panic_any, pin::pin};

    use super::*;

    /// Panics when it is dropped, as often as it is counted, each time carrying a further one.
    struct Bomb(usize);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Self(self.0 - 1));
            }
        }
    }

    #[test]
    fn what_a_panic_carries_may_panic_in_turn() {
        for count in 0..4 {
            assert_eq!(contained(|| panic_any(Bomb(count))), Err(Panicked), "{count}");
        }
        assert_eq!(contained(|| drop(Bomb(3))), Err(Panicked));
        assert_eq!(contained(|| 7), Ok(7));
    }

    #[tokio::test]
    async fn a_future_that_panics_when_it_is_polled_again() {
        let mut is_first = true;
        let future = pin!(poll_fn(|cx| {
            assert!(std::mem::take(&mut is_first), "not the first");
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        assert_eq!(Contained(future).await, Err(Panicked));
    }
}
