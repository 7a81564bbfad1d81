//! The network between an agent and the bus: a proxy that can drop traffic silently, like a network
//! failure, or refuse it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Open,
    /// No traffic passes, and no error is reported.
    Silent,
    /// Connections are closed immediately.
    Closed,
}

pub(super) struct Wire {
    pub(super) address: SocketAddr,
    state: Arc<AtomicU8>,
}

/// The polling interval while no data arrives.
const GLANCE: Duration = Duration::from_millis(10);
const BUFFER: usize = 64 << 10;

impl Wire {
    /// To the bus. It ends with the tests.
    pub(super) fn to(bus: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(AtomicU8::new(State::Open as u8));
        let own = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&own);
                thread::spawn(move || joins(stream, bus, &state));
            }
        });
        Wire { address, state }
    }

    pub(super) fn becomes(&self, state: State) {
        self.state.store(state as u8, Ordering::SeqCst);
    }
}

fn is(state: &AtomicU8, wanted: State) -> bool {
    state.load(Ordering::SeqCst) == wanted as u8
}

fn joins(near: TcpStream, bus: SocketAddr, state: &Arc<AtomicU8>) {
    if is(state, State::Closed) {
        return;
    }
    let Ok(far) = TcpStream::connect(bus) else { return };
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { return };
    let own = Arc::clone(state);
    let back = thread::spawn(move || copies(far_too, near_too, &own));
    copies(near, far, state);
    let _ = back.join();
}

fn copies(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let _ = from.set_read_timeout(Some(GLANCE));
    let mut buffer = vec![0; BUFFER];
    loop {
        if is(state, State::Closed) {
            break;
        }
        if is(state, State::Silent) {
            thread::park_timeout(GLANCE);
            continue;
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                // Data in transit when the network failed waits, too.
                while is(state, State::Silent) {
                    thread::park_timeout(GLANCE);
                }
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
