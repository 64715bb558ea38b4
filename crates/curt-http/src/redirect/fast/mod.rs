//! Redirects on their worker's thread, without a router: read, recognise, look up, answer.

mod acceptor;
mod behind_proxy;
mod client_socket;
mod connection;
mod live_answer;
mod outbox;
mod redirect_counts;
mod response_sender;
mod routed;
mod slots;
mod worker;

pub(crate) use self::routed::RoutedRequest;
pub(crate) use self::worker::{WorkerParts, run};
