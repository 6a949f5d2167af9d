//! A proxy that loses things.

use crate::Fate;
use http::{Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// Stands between clients and `upstream`.
pub struct FaultProxy {
    endpoint: String,
    task: JoinHandle<()>,
}

/// Decides the fate of a request, by its head and its body.
type Decide = Arc<dyn Fn(&Parts, &Bytes) -> Fate + Send + Sync>;

impl FaultProxy {
    /// Starts one. `fate` is asked for each request, with its headers and its body.
    pub async fn start(
        upstream: &str,
        fate: impl Fn(&Parts, &Bytes) -> Fate + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let client = Client::builder(TokioExecutor::new()).build_http();
        let upstream = Upstream { client, address: upstream.into(), fate: Arc::new(fate) };
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let upstream = upstream.clone();
                let service = service_fn(move |request| upstream.clone().answer(request));
                tokio::spawn(async move {
                    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { endpoint, task })
    }

    /// The URL for clients.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Upstream {
    client: Client<HttpConnector, Full<Bytes>>,
    address: Arc<str>,
    fate: Decide,
}

impl Upstream {
    /// An error ends the connection without an answer.
    async fn answer(self, request: Request<Incoming>) -> io::Result<Response<Told>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let fate = (self.fate)(&head, &body);
        match &fate {
            Fate::Lost => return Err(io::ErrorKind::ConnectionReset.into()),
            Fate::Silence => return std::future::pending().await,
            Fate::Answered(status, text) => return made_up(*status, text),
            _ => {}
        }
        let answer = self.pass_on(head, body).await?;
        match fate {
            Fate::AnswerLost => Err(io::ErrorKind::ConnectionReset.into()),
            Fate::SilenceAfter => std::future::pending().await,
            Fate::AnsweredAfter(status, text) => made_up(status, &text),
            Fate::AnswerCut => Ok(answer.map(|body| Told { breaks: true, rest: body.slice(..body.len() / 2) })),
            Fate::Slow(time) => {
                // poll: it is the fault that is planned here
                tokio::time::sleep(time).await;
                Ok(answer.map(Told::whole))
            }
            Fate::Then(deed) => {
                deed.0();
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Fate::Pass | Fate::Lost | Fate::Silence | Fate::Answered(..) => Ok(answer.map(Told::whole)),
        }
    }

    async fn pass_on(&self, head: Parts, body: Bytes) -> io::Result<Response<Bytes>> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut forwarded = Request::builder().method(head.method).uri(format!("{}{path}", self.address));
        if let Some(headers) = forwarded.headers_mut() {
            *headers = head.headers;
        }
        let forwarded = forwarded.body(Full::from(body)).map_err(io::Error::other)?;
        let (head, body) = self.client.request(forwarded).await.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

fn made_up(status: u16, text: &str) -> io::Result<Response<Told>> {
    let mut answer = Response::new(Told::whole(Bytes::from(text.to_owned())));
    *answer.status_mut() = StatusCode::from_u16(status).map_err(io::Error::other)?;
    Ok(answer)
}

/// An answer's body, told to its end or not.
struct Told {
    rest: Bytes,
    breaks: bool,
}

impl Told {
    fn whole(rest: Bytes) -> Self {
        Self { rest, breaks: false }
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let rest = std::mem::take(&mut self.rest);
        Poll::Ready(match (rest.is_empty(), self.breaks) {
            (false, _) => Some(Ok(Frame::data(rest))),
            (true, false) => None,
            (true, true) => Some(Err(io::ErrorKind::ConnectionReset.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && !self.breaks
    }

    fn size_hint(&self) -> SizeHint {
        if self.breaks { SizeHint::default() } else { SizeHint::with_exact(self.rest.len() as u64) }
    }
}
