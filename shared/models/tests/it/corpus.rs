//! The recorded answers of `tests/corpus` over HTTP. How they are cut and damaged is played in `src/wire/corpus_tests.rs`.

use crate::support::{Server, answers, recorded, request, router, sse, user};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The adapters of a format.
fn models(wire: &str) -> &'static [&'static str] {
    match wire {
        "chat_completions" => &["openai/m", "openrouter/m"],
        "responses" => &["openai-responses/m", "ollama/m"],
        "messages" => &["anthropic/m"],
        "generate_content" => &["gemini/m"],
        "converse" => &["bedrock/m"],
        other => panic!("{other} is no format"),
    }
}

#[tokio::test]
async fn recorded_answers_come_through_every_adapter() {
    for recorded in recorded::all() {
        for model in models(&recorded.wire) {
            let answer = || sse(recorded.events().concat());
            let server = Server::with(vec![answer(), answer()]).await;
            let said = answers(&server.router(), request(model, vec![user("Hi")])).await;
            recorded.check(&format!("from {model}"), &said);
        }
    }
}

#[tokio::test]
async fn recorded_answers_come_through_in_packets_of_one_byte() {
    for recorded in recorded::all().into_iter().filter(|recorded| recorded.name.ends_with("/plain")) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let body = recorded.events().concat();
        let serve = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            let _ = socket.read(&mut [0; 65536]).await.unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
            for byte in body {
                let chunk = [b"1\r\n".as_slice(), &[byte], b"\r\n"].concat();
                // The client has all that it wants before the last bytes.
                if socket.write_all(&chunk).await.is_err() {
                    break;
                }
            }
            let _ = socket.write_all(b"0\r\n\r\n").await;
        });
        let said = answers(&router(&uri), request(models(&recorded.wire)[0], vec![user("Hi")])).await;
        recorded.check("byte by byte over HTTP", &said);
        serve.await.unwrap();
    }
}
