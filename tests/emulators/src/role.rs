//! The role of a task, as ECS gives it: credentials behind an address that the task's environment names, and not in it.

use crate::account::{SECRET, id};
use http::Response;
use http_body_util::Full;
use hyper::{body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use std::{convert::Infallible, io};
use tokio::{net::TcpListener, task::JoinHandle};

/// Credentials for every caller of the address. Dropping it takes them away.
#[derive(Debug)]
pub struct Role {
    url: String,
    server: JoinHandle<()>,
}

impl Role {
    /// Serves them.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn serve() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/credentials", listener.local_addr()?);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::new(credentials()))));
                tokio::spawn(async move {
                    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { url, server })
    }

    /// The variable that names it to a task.
    pub fn variable(&self) -> (String, String) {
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI".into(), self.url.clone())
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn credentials() -> Bytes {
    let given = json!({
        "RoleArn": "arn:aws:iam::000000000000:role/task", "AccessKeyId": id(), "SecretAccessKey": SECRET,
        "Token": "of-the-task", "Expiration": "2099-01-01T00:00:00Z",
    });
    given.to_string().into()
}
