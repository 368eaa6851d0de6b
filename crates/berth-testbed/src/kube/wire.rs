//! A way to the API server that can be cut: whoever uses it loses its watches and the answers to
//! what it has asked, and finds the server again at once. It can be slow, too: what is asked comes
//! late, while everything that happens is told at once.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

#[derive(Debug)]
pub struct Wire {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
    is_held: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Wire {
    /// Passes everything on to a port of loopback.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn to(target: u16) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it listens").port();
        let (is_held, is_over) = (Arc::default(), Arc::default());
        let wire = Wire { port, open: Arc::default(), is_held, is_over };
        let (open, is_held, is_over) =
            (wire.open.clone(), wire.is_held.clone(), wire.is_over.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if is_over.load(Relaxed) {
                    return;
                }
                // While the server is away, whoever comes is turned away.
                if let Ok(far) = TcpStream::connect(("127.0.0.1", target)) {
                    join(&near, &far, &open, &is_held);
                }
            }
        });
        wire
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, or no longer, what is asked is kept back.
    pub fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Relaxed);
    }

    /// Ends every connection there is.
    pub fn cut(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        self.cut();
        // The thread that waits for the next one looks up.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn join(
    near: &TcpStream,
    far: &TcpStream,
    open: &Mutex<Vec<TcpStream>>,
    is_held: &Arc<AtomicBool>,
) {
    let never = Arc::default();
    for (from, to, is_held) in [(near, far, is_held), (far, near, &never)] {
        let (Ok(mut from), Ok(mut to), Ok(known)) =
            (from.try_clone(), to.try_clone(), from.try_clone())
        else {
            return;
        };
        open.lock().unwrap_or_else(PoisonError::into_inner).push(known);
        let is_held = is_held.clone();
        thread::spawn(move || {
            let _ = pass_on(&mut from, &mut to, &is_held);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

fn pass_on(from: &mut TcpStream, to: &mut TcpStream, is_held: &AtomicBool) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        while is_held.load(Relaxed) {
            sleep(Duration::from_millis(5));
        }
        to.write_all(&bytes[..count])?;
    }
}
