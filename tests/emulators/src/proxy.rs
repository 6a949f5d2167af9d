//! A proxy that loses things.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use std::{io, sync::Arc};
use tokio::{net::TcpListener, task::JoinHandle};

/// What becomes of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Pass,
    /// It has no effect, and the connection breaks.
    Lost,
    /// It has its effect, and the connection breaks before the answer.
    AnswerLost,
    /// It has no effect; the answer is this status and this body.
    Answered(u16, String),
}

/// Stands between clients and `upstream`.
pub struct FaultProxy {
    endpoint: String,
    task: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts one. `fate` is asked for each request, with its headers and its body.
    pub async fn start(
        upstream: &str,
        fate: impl Fn(&http::request::Parts, &[u8]) -> Fate + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let (fate, upstream) = (Arc::new(fate), Arc::<str>::from(upstream));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, fate, upstream) = (client.clone(), fate.clone(), upstream.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (client, fate, upstream) = (client.clone(), fate.clone(), upstream.clone());
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                        let fate = fate(&head, &body);
                        match &fate {
                            Fate::Lost => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                            Fate::Answered(status, text) => {
                                let mut answer = Response::new(Full::<Bytes>::from(text.clone()));
                                *answer.status_mut() = StatusCode::from_u16(*status).map_err(io::Error::other)?;
                                return Ok(answer);
                            }
                            Fate::Pass | Fate::AnswerLost => {}
                        }
                        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
                        let mut forwarded =
                            Request::builder().method(head.method.clone()).uri(format!("{upstream}{path}"));
                        if let Some(headers) = forwarded.headers_mut() {
                            *headers = head.headers.clone();
                        }
                        let forwarded = forwarded.body(Full::from(body)).map_err(io::Error::other)?;
                        let (head, body) = client.request(forwarded).await.map_err(io::Error::other)?.into_parts();
                        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                        match fate {
                            // An error of the service ends the connection without an answer.
                            Fate::AnswerLost => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                            _ => Ok(Response::from_parts(head, Full::from(body))),
                        }
                    }
                });
                tokio::spawn(async move {
                    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { endpoint, task })
    }

    /// Where clients find it.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
