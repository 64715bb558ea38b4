//! A line that loses one answer.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CHUNK_BYTES: usize = 64 * 1_024;

/// Passes connections on to `target`. The first answer after a request with `marker` in it is not passed on: its
/// connection ends instead, when the engine has done what it was asked. Everything before and after is sound.
pub(crate) fn losing_answer_to(
    marker: &'static [u8],
    target: SocketAddr,
) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let has_lost = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&has_lost);
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let engine = TcpStream::connect(target).unwrap();
            pass(client, engine, marker, &shared);
        }
    });
    (address, has_lost)
}

fn pass(client: TcpStream, engine: TcpStream, marker: &'static [u8], has_lost: &Arc<AtomicBool>) {
    let is_marked = Arc::new(AtomicBool::new(false));
    let (mut from_client, mut to_engine) =
        (client.try_clone().unwrap(), engine.try_clone().unwrap());
    let marked = Arc::clone(&is_marked);
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = from_client.read(&mut chunk) {
            if chunk[..length]
                .windows(marker.len())
                .any(|part| part == marker)
            {
                marked.store(true, Ordering::SeqCst);
            }
            if to_engine.write_all(&chunk[..length]).is_err() {
                break;
            }
        }
        to_engine.shutdown(Shutdown::Both).ok();
    });
    let (mut from_engine, mut to_client) = (engine, client);
    let has_lost = Arc::clone(has_lost);
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = from_engine.read(&mut chunk) {
            if is_marked.load(Ordering::SeqCst) && !has_lost.swap(true, Ordering::SeqCst) {
                break;
            }
            if to_client.write_all(&chunk[..length]).is_err() {
                break;
            }
        }
        to_client.shutdown(Shutdown::Both).ok();
    });
}
