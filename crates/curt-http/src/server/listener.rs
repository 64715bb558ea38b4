//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel holds ready for one listener.
const BACKLOG: i32 = 4_096;

/// `count` listeners on one address, among which the kernel spreads new connections. With port 0 the first one's
/// port goes for all.
///
/// Shared listeners would also share with another server of the same user, and each would get half of the visitors.
/// So the address is first taken by one that shares with nobody.
pub(super) fn bind_all(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    probe(address)?;
    let first = bind(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address, true)?);
    }
    Ok(listeners)
}

/// Takes the address and gives it back, without a moment in which clients could connect.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    bound(address, false).map(drop)
}

/// One listener that nobody else can join.
pub fn bind_alone(address: SocketAddr) -> io::Result<TcpListener> {
    bind(address, false)
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = bound(address, shared)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A socket that has the address and listens to nobody yet.
fn bound(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    // Accepted sockets inherit it, which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
