//! The answers of providers: bodies of a fake model server, one function per protocol. The frames are shaped as the providers'
//! documentation shows them.

pub use super::converse::frames as converse;
use serde_json::{Value, json};

/// A piece of an answer that every protocol can say.
#[derive(Clone)]
pub enum Piece<'a> {
    /// Reasoning text.
    Think(&'a str),
    /// Text.
    Say(&'a str),
    /// A tool call: its id, its name, and its arguments in the pieces in which they are streamed.
    Call(&'a str, &'a str, &'a [&'a str]),
}

fn data(frame: &Value) -> String {
    format!("data: {frame}\n\n")
}

fn event(frame: &Value) -> String {
    format!("event: {}\ndata: {frame}\n\n", frame["type"].as_str().unwrap_or_default())
}

/// `POST /v1/chat/completions` of OpenAI and its imitators. `finish` is `stop`, `tool_calls` or `length`.
pub fn chat_completions(pieces: &[Piece<'_>], finish: &str) -> String {
    let chunk = |delta: Value, finish: Value| {
        data(&json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": null}))
    };
    let mut body = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    let mut index = 0;
    for piece in pieces {
        match piece {
            Piece::Think(text) => body += &chunk(json!({ "reasoning_content": text }), Value::Null),
            Piece::Say(text) => body += &chunk(json!({ "content": text }), Value::Null),
            Piece::Call(id, name, args) => {
                let first =
                    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                body += &chunk(json!({ "tool_calls": [first] }), Value::Null);
                for part in *args {
                    let more = json!({"index": index, "function": {"arguments": part}});
                    body += &chunk(json!({ "tool_calls": [more] }), Value::Null);
                }
                index += 1;
            }
        }
    }
    body += &chunk(json!({}), json!(finish));
    body += &data(
        &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 5}}}),
    );
    body + "data: [DONE]\n\n"
}

/// `POST /v1/responses` of OpenAI. `status` is `completed` or `incomplete`.
pub fn responses(pieces: &[Piece<'_>], status: &str) -> String {
    let mut body = event(
        &json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "model": "m", "output": []}}),
    );
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Think(text) => {
                body += &event(
                    &json!({"type": "response.reasoning_summary_text.delta", "output_index": index, "delta": text}),
                );
                let item =
                    json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed-thought", "summary": []});
                body += &event(&json!({"type": "response.output_item.done", "output_index": index, "item": item}));
            }
            Piece::Say(text) => {
                body += &event(
                    &json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text}),
                );
            }
            Piece::Call(id, name, args) => {
                let item = |args: &str| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": args});
                body += &event(&json!({"type": "response.output_item.added", "output_index": index, "item": item("")}));
                for part in *args {
                    body += &event(
                        &json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": part}),
                    );
                }
                body += &event(
                    &json!({"type": "response.output_item.done", "output_index": index, "item": item(&args.concat())}),
                );
            }
        }
    }
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120});
    body + &event(&json!({"type": format!("response.{status}"),
        "response": {"id": "resp_1", "status": status, "model": "m", "output": [], "usage": usage}}))
}

/// `POST /v1/messages` of Anthropic. `stop` is `end_turn`, `tool_use`, `max_tokens` or `refusal`.
pub fn messages(pieces: &[Piece<'_>], stop: &str) -> String {
    let mut body = event(
        &json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 30, "cache_creation_input_tokens": 6, "cache_read_input_tokens": 64, "output_tokens": 1}}}),
    );
    for (index, piece) in pieces.iter().enumerate() {
        let start =
            |block: Value| event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = |delta: Value| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        match piece {
            Piece::Think(text) => {
                body += &start(json!({"type": "thinking", "thinking": "", "signature": ""}));
                body += &delta(json!({"type": "thinking_delta", "thinking": text}));
                body += &delta(json!({"type": "signature_delta", "signature": "signed-thought"}));
            }
            Piece::Say(text) => {
                body += &start(json!({"type": "text", "text": ""}));
                body += &event(&json!({"type": "ping"}));
                body += &delta(json!({"type": "text_delta", "text": text}));
            }
            Piece::Call(id, name, args) => {
                body += &start(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
                for part in *args {
                    body += &delta(json!({"type": "input_json_delta", "partial_json": part}));
                }
            }
        }
        body += &event(&json!({"type": "content_block_stop", "index": index}));
    }
    body += &event(
        &json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 20}}),
    );
    body + &event(&json!({"type": "message_stop"}))
}

/// `POST /v1beta/models/…:streamGenerateContent?alt=sse` of Gemini, which sends calls whole. `finish` is `STOP` or
/// `MAX_TOKENS`.
pub fn generate_content(pieces: &[Piece<'_>], finish: &str) -> String {
    let chunk =
        |part: Value| data(&json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}));
    let mut body = String::new();
    for piece in pieces {
        body += &chunk(match piece {
            Piece::Think(text) => json!({"text": text, "thought": true}),
            Piece::Say(text) => json!({ "text": text }),
            Piece::Call(_, name, args) => {
                let args: Value = serde_json::from_str(&args.concat()).unwrap_or_default();
                json!({"functionCall": {"name": name, "args": args}, "thoughtSignature": "signed-call"})
            }
        });
    }
    body + &data(
        &json!({"candidates": [{"index": 0, "finishReason": finish, "content": {"role": "model", "parts": [{"text": ""}]}}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 64, "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5, "totalTokenCount": 120}}),
    )
}
