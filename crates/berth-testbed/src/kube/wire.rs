//! A way to the API server that can be cut: whoever uses it loses its watches and the answers to
//! what it has asked, and finds the server again at once.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

#[derive(Debug)]
pub struct Wire {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
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
        let wire = Wire { port, open: Arc::default(), is_over: Arc::default() };
        let (open, is_over) = (wire.open.clone(), wire.is_over.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if is_over.load(Relaxed) {
                    return;
                }
                // While the server is away, whoever comes is turned away.
                if let Ok(far) = TcpStream::connect(("127.0.0.1", target)) {
                    join(&near, &far, &open);
                }
            }
        });
        wire
    }

    pub fn port(&self) -> u16 {
        self.port
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

fn join(near: &TcpStream, far: &TcpStream, open: &Mutex<Vec<TcpStream>>) {
    for (from, to) in [(near, far), (far, near)] {
        let (Ok(mut from), Ok(mut to), Ok(known)) =
            (from.try_clone(), to.try_clone(), from.try_clone())
        else {
            return;
        };
        open.lock().unwrap_or_else(PoisonError::into_inner).push(known);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}
