//! Views of the store for people with `sqlite3`: the clients, threads, turns and events of the code agent hub (spec 004 §6). Nothing of
//! BuildScale reads them.
//!
//! They are read out of the JSON of the items, so they say what the items say. An item of more than 64 KiB lies in the blobs, and is not shown.
//! A view that changes is a step of [`crate::schema`], like any other part of the schema.

pub(crate) mod planner;

/// Makes the views.
pub(crate) const SCHEMA: &str = "
    CREATE VIEW events AS
        SELECT substr(log.pk, 6, 36) AS workspace_id, substr(log.pk, 43, 36) AS thread_id,
            json_extract(log.body, '$.first') + event.key AS seq, json_extract(event.value, '$.type') AS type,
            json_extract(log.body, '$.at') AS created_at, event.value AS data
        FROM items AS log, json_each(CASE WHEN json_valid(log.body) THEN log.body ELSE '{}' END, '$.events') AS event
        WHERE log.pk >= 'chat/' AND log.pk < 'chat0' AND log.sk >= 'log/' AND log.sk < 'log0';
    CREATE VIEW turns AS
        SELECT substr(turn.pk, 1, 36) AS workspace_id, json_extract(turn.body, '$.thread_id') AS thread_id,
            substr(turn.sk, 6) AS turn_id, json_extract(turn.body, '$.client') AS client_id,
            json_extract(turn.body, '$.request') AS request, json_extract(turn.body, '$.at') AS created_at,
            coalesce((
                SELECT CASE
                    WHEN json_extract(event.value, '$.type') = 'stopped' THEN 'cancelled'
                    WHEN json_extract(event.value, '$.stop_reason') = 'error' THEN 'error'
                    ELSE 'completed' END
                FROM items AS log, json_each(CASE WHEN json_valid(log.body) THEN log.body ELSE '{}' END, '$.events') AS event
                WHERE log.pk = 'chat/' || substr(turn.pk, 1, 36) || '/' || json_extract(turn.body, '$.thread_id')
                    AND log.sk >= 'log/' AND log.sk < 'log0' AND json_extract(event.value, '$.type') IN ('done', 'stopped')
                    AND json_extract(event.value, '$.turn_id') = substr(turn.sk, 6)
                LIMIT 1
            ), 'running') AS status
        FROM items AS turn
        WHERE turn.pk LIKE '%/threads' AND turn.sk >= 'turn/' AND turn.sk < 'turn0' AND json_valid(turn.body);
    CREATE VIEW threads AS
        SELECT substr(thread.pk, 1, 36) AS workspace_id, substr(thread.sk, 8) AS thread_id,
            json_extract(thread.body, '$.agent.agent') AS agent, json_extract(thread.body, '$.agent.cwd') AS cwd,
            coalesce(json_extract(chat.body, '$.title'), json_extract(thread.body, '$.title')) AS title,
            json_extract(thread.body, '$.client') AS client_id,
            coalesce(json_extract(chat.body, '$.status'), 'idle') AS status,
            json_extract(thread.body, '$.created_at') AS created_at,
            max(json_extract(thread.body, '$.updated_at'), coalesce(json_extract(chat.body, '$.active_at'), '')) AS updated_at
        FROM items AS thread
        LEFT JOIN items AS chat
            ON chat.pk = substr(thread.pk, 1, 36) || '/chats' AND chat.sk = substr(thread.sk, 8) AND json_valid(chat.body)
        WHERE thread.pk LIKE '%/threads' AND thread.sk >= 'thread/' AND thread.sk < 'thread0' AND json_valid(thread.body);
    CREATE VIEW clients AS
        SELECT substr(client.pk, 1, 36) AS workspace_id, substr(client.sk, 8) AS client_id,
            json_extract(client.body, '$.seen_at') AS seen_at
        FROM items AS client
        WHERE client.pk LIKE '%/threads' AND client.sk >= 'client/' AND client.sk < 'client0' AND json_valid(client.body);";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use rusqlite::Connection;

    const W: &str = "019bf537-f228-7cd3-aa1c-000000000001";
    const T: &str = "019bf537-f228-7cd3-aa1c-000000000002";

    fn rows(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn section_6_clients_threads_turns_and_events_are_readable_with_sqlite3() {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::bring_up_to_date(&connection, 0).unwrap();
        let put = |pk: &str, sk: &str, body: &str| {
            let sql = "INSERT INTO items (pk, sk, rev, body) VALUES (?1, ?2, 1, ?3)";
            connection.execute(sql, [pk, sk, body]).unwrap();
        };
        let threads = format!("{W}/threads");
        put(&threads, "client/web 1", r#"{"client": "web 1", "seen_at": "2026-01-01T00:00:02Z"}"#);
        let thread = r#"{"agent": {"agent": "codex", "cwd": "/work"}, "title": "old", "client": "web 1",
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:01Z"}"#;
        put(&threads, &format!("thread/{T}"), thread);
        let chat = r#"{"title": "new", "status": "running", "active_at": "2026-01-01T00:00:03Z"}"#;
        put(&format!("{W}/chats"), T, chat);
        for (turn, request) in [("a", "go"), ("b", "on"), ("c", "now"), ("d", "well")] {
            let body = format!(
                r#"{{"thread_id": "{T}", "client": "web 1", "request": "{request}", "at": "2026-01-01T00:00:02Z"}}"#
            );
            put(&threads, &format!("turn/{turn}"), &body);
        }
        let log = format!("chat/{W}/{T}");
        let first = r#"{"first": 1, "next": 4, "at": "2026-01-01T00:00:02Z", "events": [
            {"type": "turn_started", "turn_id": "a"}, {"type": "done", "turn_id": "a", "stop_reason": "end_turn"},
            {"type": "stopped", "turn_id": "b"}]}"#;
        put(&log, "log/00000000000000000001", first);
        let second = r#"{"first": 9, "next": 10, "at": "x", "events": [{"type": "done", "turn_id": "c", "stop_reason": "error"}]}"#;
        put(&log, "log/00000000000000000009", second);
        put(&log, "log/00000000000000000010", "\u{1}a reference to a blob");
        put(&log, "snapshot", "{}");
        assert_eq!(
            rows(&connection, "SELECT client_id || ' ' || seen_at FROM clients"),
            ["web 1 2026-01-01T00:00:02Z"]
        );
        assert_eq!(
            rows(
                &connection,
                "SELECT agent || ' ' || cwd || ' ' || title || ' ' || status || ' ' || updated_at FROM threads"
            ),
            ["codex /work new running 2026-01-01T00:00:03Z"]
        );
        assert_eq!(
            rows(&connection, "SELECT turn_id || ' ' || request || ' ' || status FROM turns ORDER BY turn_id"),
            ["a go completed", "b on cancelled", "c now error", "d well running"]
        );
        assert_eq!(
            rows(&connection, "SELECT seq || ' ' || type FROM events ORDER BY seq"),
            ["1 turn_started", "2 done", "3 stopped", "9 done"]
        );
        let whose = format!("SELECT count(*) || '' FROM events WHERE workspace_id = '{W}' AND thread_id = '{T}'");
        assert_eq!(rows(&connection, &whose), ["4"]);
    }
}
