//! An event stream on a socket of its own: all that an idle connection needs.

use crate::{stall::StallGuard, subscription::Subscription};
use bytes::{Buf, Bytes};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{io::AsyncWrite, net::TcpStream};

/// Moves bytes from a subscription to a socket until either ends. Its size determines the cost of ten thousand idle clients.
pub(crate) struct Pump {
    io: StallGuard<TcpStream>,
    subscription: Subscription,
    /// The bytes that the socket has not taken yet: one chunk at most.
    pending: Bytes,
    ending: bool,
}

impl Pump {
    /// Writes `head` first.
    pub(crate) fn new(io: StallGuard<TcpStream>, head: Bytes, subscription: Subscription) -> Self {
        Self { io, subscription, pending: head, ending: false }
    }

    /// Reads and discards all input: on this connection a client says nothing more, except that it goes.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ignored = [0; 64];
        loop {
            ready!(self.io.get_ref().poll_read_ready(context))?;
            match self.io.get_ref().try_read(&mut ignored) {
                Ok(0) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

impl Future for Pump {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(gone) = this.poll_gone(context) {
            return Poll::Ready(gone);
        }
        loop {
            while this.pending.has_remaining() {
                let taken = ready!(Pin::new(&mut this.io).poll_write(context, &this.pending))?;
                if taken == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                this.pending.advance(taken);
            }
            this.pending = Bytes::new(); // an empty slice would still hold its chunk
            if this.ending {
                return Pin::new(&mut this.io).poll_shutdown(context);
            }
            match ready!(this.subscription.poll_next(context)) {
                Some(bytes) => this.pending = bytes,
                None => this.ending = true,
            }
        }
    }
}
