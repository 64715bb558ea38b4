//! Tells systemd, or whatever set `NOTIFY_SOCKET`, how far the process is (sd_notify).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::{env, io};

/// Every role runs, and every address is listened on.
pub(crate) const READY: &str = "READY=1";
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Sends `state`, if somebody wants to know. A failure is logged: nothing depends on it but the service manager.
pub(crate) fn notify(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(socket.as_bytes(), state)
    {
        tracing::warn!(%error, state, "service manager not notified");
    }
}

fn send(socket: &[u8], state: &str) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    let datagrams = UnixDatagram::unbound()?;
    datagrams.set_nonblocking(true)?;
    datagrams.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_arrives_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("curt-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(path.as_os_str().as_bytes(), READY).unwrap();
        send(format!("@{name}").as_bytes(), STOPPING).unwrap();
        for (socket, state) in [(by_path, READY), (by_name, STOPPING)] {
            let mut received = [0; 32];
            let length = socket.recv(&mut received).unwrap();
            assert_eq!(&received[..length], state.as_bytes());
        }
        assert!(send(b"/nowhere/notify", READY).is_err());
    }
}
