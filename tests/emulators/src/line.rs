//! A line to a service that is no HTTP: it can be cut, and it can go dead without a word.

use std::io;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// How a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It carries everything.
    Whole,
    /// Connections break, and new ones break at once.
    Cut,
    /// Connections stay, new ones are taken, and nothing comes through.
    Dead,
}

/// A line to a service.
pub struct Line {
    port: u16,
    state: watch::Sender<State>,
    forgets: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Line {
    /// To the service on this port of 127.0.0.1.
    pub async fn to(service: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let state = watch::Sender::new(State::Whole);
        let mut states = state.subscribe();
        let forgets = watch::Sender::new(());
        let forgetting = forgets.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((stream, _)) = listener.accept() => drop(connections.spawn(carry(stream, service, states.clone(), forgetting.subscribe()))),
                    Ok(()) = states.changed() => {}
                }
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { port, state, forgets, task })
    }

    /// The port to enter it by, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes its state. Connections that were dead break then: the bytes sent on them are lost.
    pub fn set(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Existing connections silently stop carrying data; new ones are whole. So it is when a network forgets idle connections.
    pub fn forget(&self) {
        self.forgets.send_replace(());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    mut near: TcpStream,
    service: u16,
    mut states: watch::Receiver<State>,
    mut forgotten: watch::Receiver<()>,
) {
    let carried = async {
        if *states.borrow() == State::Whole
            && let Ok(mut far) = TcpStream::connect(("127.0.0.1", service)).await
        {
            let is_forgotten = tokio::select! {
                biased;
                Ok(()) = forgotten.changed() => true,
                _ = copy_bidirectional(&mut near, &mut far) => return,
                _ = states.wait_for(|state| *state != State::Whole) => false,
            };
            if is_forgotten {
                std::future::pending::<()>().await;
            }
        }
        _ = states.wait_for(|state| *state != State::Dead).await;
    };
    carried.await;
    drop(near);
}
