//! Which cores a server and its load run on.
//!
//! Where one call is in flight at a time, client and server take turns, and a call costs several times as much when the
//! turn goes to another core, which has to be woken. Left alone, the scheduler tries both for seconds at a time, and a
//! row says nothing.

use anyhow::Result;

/// Where a server and its load run. Only Linux lets us choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Wherever the scheduler puts them.
    Any,
    /// The load on the first core, the server on the others.
    Apart,
    /// The same, and the load never sleeps: the server has nobody to wake.
    Awake,
    /// Both on the first core.
    Together,
}

impl Cores {
    /// Runs what makes the load.
    pub(crate) fn load<T>(self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Self::Any => work(),
            Self::Apart | Self::Awake | Self::Together => within(first, work),
        }
    }

    /// Runs what starts the server, which stays where it was started.
    pub(crate) fn server<T>(self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Self::Any => work(),
            Self::Apart | Self::Awake => within(others, work),
            Self::Together => within(first, work),
        }
    }
}

fn first(cores: &[usize]) -> &[usize] {
    &cores[..1]
}

/// All but the first, if there are others.
fn others(cores: &[usize]) -> &[usize] {
    &cores[cores.len().min(2) - 1..]
}

/// Binds this thread to some of its cores while `work` runs. What is started meanwhile stays bound.
#[cfg(target_os = "linux")]
fn within<T>(choose: fn(&[usize]) -> &[usize], work: impl FnOnce() -> Result<T>) -> Result<T> {
    use anyhow::Context;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let before = sched_getaffinity(None).context("which cores there are")?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core)).collect();
    let mut chosen = CpuSet::new();
    for core in choose(&cores) {
        chosen.set(*core);
    }
    sched_setaffinity(None, &chosen).context("choosing cores")?;
    let done = work();
    sched_setaffinity(None, &before).context("choosing cores")?;
    done
}

#[cfg(not(target_os = "linux"))]
fn within<T>(_choose: fn(&[usize]) -> &[usize], work: impl FnOnce() -> Result<T>) -> Result<T> {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_the_first_and_the_others() {
        assert_eq!((first(&[4]), others(&[4])), ([4].as_slice(), [4].as_slice()));
        assert_eq!((first(&[4, 5, 7]), others(&[4, 5, 7])), ([4].as_slice(), [5, 7].as_slice()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_thread_is_free_again_afterwards() {
        use rustix::thread::sched_getaffinity;
        let before = sched_getaffinity(None).unwrap();
        let inside = Cores::Together.load(|| Ok(sched_getaffinity(None)?.count())).unwrap();
        assert_eq!((inside, sched_getaffinity(None).unwrap()), (1, before));
    }
}
