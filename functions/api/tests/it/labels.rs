//! Labels: given, shown, found and changed by the routes of chats and tasks.

use crate::{
    flows::{WORKFLOW, with_flow},
    support::Door,
};
use ports::{Expect, Key, MAX_WRITES, Write};
use serde_json::{Value, json};

/// Rows like that of this chat or task, behind it in its list. Each hundredth of them has the label `customer`.
async fn put_rows_like(door: &Door, path: &str, kind: &str, count: usize) {
    let parts: Vec<&str> = path.rsplit('/').collect();
    let partition = format!("{}/{kind}", parts[2]);
    let row = door.table.get(&Key::new(partition.as_str(), parts[0])).await.unwrap().unwrap();
    let (list, mut view) = (row.index.unwrap().pk, serde_json::from_str::<Value>(&row.body).unwrap());
    let mut writes = Vec::new();
    for number in 0..count {
        let id = format!("00000000-0000-7000-8000-{number:012}");
        view["labels"] = json!({ "number": number.to_string() });
        if number % 100 == 0 {
            view["labels"]["customer"] = json!("c-17");
        }
        let put = Write::put(Key::new(partition.as_str(), id), view.to_string(), Expect::Absent);
        writes.push(put.indexed(Key::new(list.as_str(), format!("0/{:05}", 99_999 - number))));
        if writes.len() == MAX_WRITES || number + 1 == count {
            door.table.commit(std::mem::take(&mut writes)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn chats_and_tasks_show_their_labels_and_are_found_by_them() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    for (customer, environment) in [("c-17", "test"), ("c-17", "live"), ("c=18", "live")] {
        let labels = json!({ "customer": customer, "environment": environment });
        door.json("POST", &format!("{workspace}/chats"), json!({ "goal": "go", "labels": labels })).await.is(202);
        let task = json!({ "input": { "good": true }, "labels": labels });
        door.json("POST", &format!("{workspace}/flows/review/tasks"), task).await.is(202);
    }
    for (list, id) in [("chats", "chat_id"), ("tasks", "task_id")] {
        let all = format!("{workspace}/{list}");
        let found = async |query: &str| {
            let page = door.get(&format!("{all}?{query}")).await.is(200).json;
            page[list].as_array().unwrap().clone()
        };
        assert_eq!(found("limit=10").await.len(), 3);
        assert_eq!(found("label=customer%3Dc-17").await.len(), 2);
        assert_eq!(found("label=customer=c=18&limit=10").await.len(), 1);
        assert!(found("label=environment=live&label=customer=c-19").await.is_empty());
        let both = found("label=environment=live&label=customer=c-17").await;
        let one = &both[0];
        assert_eq!((both.len(), &one["labels"]), (1, &json!({ "customer": "c-17", "environment": "live" })));
        let shown = door.get(&format!("{all}/{}", one[id].as_str().unwrap())).await.is(200);
        assert_eq!(shown.json["labels"], one["labels"]);
        for wrong in ["label=customer", "label==x", "label=a=1&label=a=2"] {
            let refused = door.get(&format!("{all}?{wrong}")).await.refuses(400, "INVALID_ARGUMENT");
            assert_eq!(refused.json["error"]["details"]["field"], "label", "{wrong}");
        }
    }
}

/// A client that asks for one page gets those that are far down in the list, too, and no request reads the whole list.
#[tokio::test]
async fn a_page_by_labels_is_filled_from_rows_that_come_behind_it() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let (chat, _) = door.chat(&workspace).await;
    let tasks = format!("{workspace}/flows/review/tasks");
    let made = door.json("POST", &tasks, json!({ "input": { "good": true } })).await.is(202);
    let task = format!("{workspace}/tasks/{}", made.text("task_id"));
    for (list, path) in [("chats", &chat), ("tasks", &task)] {
        put_rows_like(&door, path, list, 1_500).await;
        let page = async |label: &str, limit: usize, cursor: Option<&str>| {
            let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = door.get(&format!("{workspace}/{list}?label={label}&limit={limit}{cursor}")).await.is(200).json;
            let number = |row: &Value| row["labels"]["number"].as_str().unwrap().parse::<usize>().unwrap();
            let numbers: Vec<usize> = page[list].as_array().unwrap().iter().map(number).collect();
            (numbers, page["next_cursor"].as_str().map(str::to_owned))
        };
        let (mut pages, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let (numbers, next) = page("customer=c-17", 3, cursor.as_deref()).await;
            pages.push(numbers);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        let full = (0..5).map(|page| (0..3).map(|row| (3 * page + row) * 100).collect::<Vec<usize>>());
        assert_eq!(pages, full.chain([Vec::new()]).collect::<Vec<_>>(), "{list}");

        assert_eq!(page("number=900", 1, None).await.0, [900], "{list}");
        // The bound: 200 rows, and five times as many.
        let (numbers, next) = page("customer=c-17", 200, None).await;
        assert_eq!((numbers.len(), numbers.last()), (12, Some(&1_100)), "{list}");
        assert_eq!(page("customer=c-17", 200, next.as_deref()).await, (vec![1_200, 1_300, 1_400], None), "{list}");
        let (numbers, next) = page("customer=c-18", 1, None).await;
        assert_eq!((numbers.len(), next.is_some()), (0, true), "{list}");
    }
}

#[tokio::test]
async fn labels_beyond_their_bounds_are_refused_when_they_are_given_and_changed() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let (chat, _) = door.chat(&workspace).await;
    let tasks = format!("{workspace}/flows/review/tasks");
    let made = door.json("POST", &tasks, json!({ "input": { "good": true } })).await.is(202);
    let task = format!("{workspace}/tasks/{}", made.text("task_id"));
    let many: serde_json::Map<_, _> = (0..17).map(|number| (number.to_string(), json!("x"))).collect();
    let long = "v".repeat(513);
    for labels in [json!({ "a=b": "x" }), json!({ "": "x" }), json!({ "k": long }), json!(many), json!({ "k": 7 })] {
        let refused = [
            door.json("POST", &format!("{workspace}/chats"), json!({ "goal": "go", "labels": labels })).await,
            door.json("POST", &tasks, json!({ "labels": labels })).await,
            door.json("PATCH", &chat, json!({ "labels": labels })).await,
            door.json("PATCH", &task, json!({ "labels": labels, "priority": 7 })).await,
        ];
        for answer in refused {
            let refused = answer.refuses(400, "INVALID_ARGUMENT");
            let field = refused.json["error"]["details"]["field"].as_str().unwrap();
            assert!(field.starts_with("labels"), "{field} of {labels}");
        }
    }
    let changes = json!({ "labels": { "customer": "c-17", "ticket": null } });
    for path in [&chat, &task] {
        door.json("PATCH", path, changes.clone()).await.is(202);
        door.json("PATCH", path, json!({ "labels": {} })).await.refuses(400, "INVALID_ARGUMENT");
    }
    // The priority of a task that has ended stays, and its labels change.
    door.put_task_view(&task, json!({ "phase": "finished" })).await;
    door.json("PATCH", &task, changes).await.is(202);
    door.json("PATCH", &task, json!({ "labels": { "ticket": "4" }, "priority": 7 })).await.refuses(409, "CONFLICT");
}

#[tokio::test]
async fn the_metadata_of_a_langgraph_thread_are_its_labels() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let thread = "/langgraph/threads/mine";
    let body = json!({ "thread_id": "mine", "metadata": { "user": "ann", "graph_id": "assistant" } });
    let made = door.json("POST", "/langgraph/threads", body).await.is(200).json;
    assert_eq!((&made["metadata"]["user"], &made["metadata"]["graph_id"]), (&json!("ann"), &json!("assistant")));
    let set = async |metadata: Value| door.json("PATCH", thread, json!({ "metadata": metadata })).await;
    let changed = set(json!({ "user": null, "ticket": "4" })).await.is(200).json["metadata"].clone();
    assert_eq!((changed.get("user"), &changed["ticket"]), (None, &json!("4")), "before the first run");

    let run = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" }, "metadata": { "step": "first" } });
    door.json("POST", &format!("{thread}/runs"), run).await.is(200);
    let shown = door.get(thread).await.is(200).json["metadata"].clone();
    assert_eq!((&shown["ticket"], &shown["step"], &shown["title"]), (&json!("4"), &json!("first"), &json!("Hello")));
    let chats = door.get(&format!("{workspace}/chats?label=ticket=4")).await.is(200).json;
    assert_eq!(chats["chats"][0]["labels"], json!({ "step": "first", "ticket": "4" }));
    let found = async |metadata: Value| {
        let page = door.json("POST", "/langgraph/threads/search", json!({ "metadata": metadata })).await.is(200).json;
        page.as_array().unwrap().len()
    };
    assert_eq!(found(json!({ "ticket": "4", "graph_id": "assistant" })).await, 1);
    assert_eq!((found(json!({ "ticket": "5" })).await, found(json!({})).await), (0, 1));

    let changed = set(json!({ "ticket": "5" })).await.is(200).json["metadata"].clone();
    assert_eq!((&changed["ticket"], &changed["step"]), (&json!("5"), &json!("first")), "as it is in a moment");
    door.take_messages().await;
    set(json!({ "ticket": "4" })).await.is(200);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains(r#""labels":{"ticket":"4"}"#), "the change before it may wait behind a turn: {sent}");
    set(json!({ "title": "Hello", "graph_id": "assistant" })).await.is(200);
    assert!(door.take_messages().await.is_empty(), "the title of the chat is no label of it");
    for odd in [json!({ "attempt": 7 }), json!({ "tags": ["a"] }), json!({ "a=b": "x" })] {
        let refused = set(odd).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], "metadata");
    }
    let by_id = json!({ "metadata": { "chat_id": "x" } });
    door.json("POST", "/langgraph/threads/search", by_id).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn the_metadata_of_an_openai_response_are_labels_of_the_chat_that_it_makes() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let body = json!({ "model": "assistant", "input": "hi", "background": true, "metadata": { "ticket": "9" } });
    let made = door.json("POST", "/openai/v1/responses", body).await.is(200).json;
    assert_eq!(made["metadata"], json!({ "ticket": "9" }));
    let path = format!("/openai/v1/responses/{}", made["id"].as_str().unwrap());
    assert_eq!(door.get(&path).await.is(200).json["metadata"], made["metadata"]);
    let page = door.get(&format!("{workspace}/chats?label=ticket=9")).await.is(200).json;
    assert_eq!(page["chats"].as_array().unwrap().len(), 1);
}
