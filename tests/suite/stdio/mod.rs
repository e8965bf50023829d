//! A server on the process's own streams, and on sockets in lines: what it does to the streams, what tells it to end, and
//! who connects.

#[cfg(unix)]
mod child;
mod defects;
mod ending;
mod fairness;
#[cfg(unix)]
mod guard;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(unix)]
mod http_over_unix;
mod lines;
mod listener;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod streams;
