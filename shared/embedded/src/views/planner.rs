//! Views of the planner chat (spec 003 §10): sessions, their messages and compressions, and the plans, agents and executions in them.
//!
//! They read the view of a chat and its events (`events` of [`super`]), so they say what the log says.

/// Makes the views; [`COUNTED`] then makes one of them anew.
pub(crate) const SCHEMA: &str = "
    CREATE VIEW chat_sessions AS
        SELECT chat.sk AS id, substr(chat.pk, 1, 36) AS workspace_id, json_extract(chat.body, '$.user_id') AS user_id,
            json_extract(chat.body, '$.session.context') AS context_type, json_extract(chat.body, '$.session.entity') AS entity_id,
            'active' AS status, json_extract(chat.body, '$.title') AS title, json_extract(chat.body, '$.turns') AS turns,
            json_extract(chat.body, '$.usage.input_tokens') + json_extract(chat.body, '$.usage.output_tokens') AS total_tokens_used,
            json_extract(chat.body, '$.session') AS agent_metadata,
            json_extract(chat.body, '$.created_at') AS created_at, json_extract(chat.body, '$.active_at') AS updated_at
        FROM items AS chat
        WHERE chat.pk LIKE '%/chats' AND json_valid(chat.body) AND json_extract(chat.body, '$.session') IS NOT NULL;
    CREATE VIEW chat_messages AS
        SELECT coalesce(json_extract(event.data, '$.message.id'), json_extract(event.data, '$.message.call_id')) AS id,
            session.workspace_id AS workspace_id, session.id AS session_id, session.user_id AS user_id, event.seq AS seq,
            json_extract(event.data, '$.message.role') AS role,
            coalesce(json_extract(event.data, '$.message.content'), json_extract(event.data, '$.message.output')) AS content,
            json_extract(event.data, '$.message.calls') AS tool_calls, json_extract(event.data, '$.message.call_id') AS tool_call_id,
            json_extract(event.data, '$.message.tool') AS tool_name, json_extract(event.data, '$.message.success') AS tool_success,
            json_extract(event.data, '$.message.at') AS created_at
        FROM chat_sessions AS session
        JOIN events AS event ON event.workspace_id = session.workspace_id AND event.thread_id = session.id AND event.type = 'message_added';
    CREATE VIEW chat_compressions AS
        SELECT json_extract(event.data, '$.compaction.message_id') AS id, session.workspace_id AS workspace_id, session.id AS session_id,
            event.seq AS seq, json_extract(event.data, '$.compaction.turns') AS turns, json_extract(event.data, '$.compaction.last_line') AS last_line,
            json_extract(event.data, '$.compaction.summary') AS summary,
            json_extract(event.data, '$.compaction.tokens_before') AS tokens_before, json_extract(event.data, '$.compaction.tokens_after') AS tokens_after,
            round(1.0 * json_extract(event.data, '$.compaction.tokens_after') / json_extract(event.data, '$.compaction.tokens_before'), 3) AS ratio,
            json_extract(event.data, '$.compaction.at') AS created_at
        FROM chat_sessions AS session
        JOIN events AS event ON event.workspace_id = session.workspace_id AND event.thread_id = session.id AND event.type = 'compacted';
    CREATE VIEW agent_executions AS
        SELECT json_extract(begun.data, '$.call_id') || '/' || json_extract(begun.data, '$.step') AS id,
            session.workspace_id AS workspace_id, session.id AS session_id, json_extract(begun.data, '$.call_id') AS plan_id,
            json_extract(begun.data, '$.executor') AS executor_id, json_extract(begun.data, '$.step') AS step,
            json_extract(begun.data, '$.task') AS task,
            CASE json_extract(ended.data, '$.result.success') WHEN 1 THEN 'completed' WHEN 0 THEN 'failed' ELSE 'executing' END AS status,
            coalesce(json_extract(ended.data, '$.result.data'), json_extract(ended.data, '$.result.error')) AS result,
            json_extract(ended.data, '$.result.tool_calls') AS tool_calls,
            json_extract(ended.data, '$.result.usage.input_tokens') + json_extract(ended.data, '$.result.usage.output_tokens') AS tokens_used,
            json_extract(ended.data, '$.result.duration_ms') AS duration_ms,
            json_extract(begun.data, '$.at') AS created_at, json_extract(ended.data, '$.at') AS ended_at
        FROM chat_sessions AS session
        JOIN events AS begun ON begun.workspace_id = session.workspace_id AND begun.thread_id = session.id AND begun.type = 'step_started'
        LEFT JOIN events AS ended
            ON ended.workspace_id = session.workspace_id AND ended.thread_id = session.id AND ended.type = 'step_ended'
                AND json_extract(ended.data, '$.call_id') = json_extract(begun.data, '$.call_id')
                AND json_extract(ended.data, '$.step') = json_extract(begun.data, '$.step');
    CREATE VIEW agents AS
        SELECT executor_id AS id, workspace_id, session_id, plan_id, id AS execution_id, status, created_at, ended_at AS completed_at
        FROM agent_executions;
    CREATE VIEW agent_plans AS
        SELECT json_extract(plan.data, '$.call_id') AS id, session.workspace_id AS workspace_id, session.id AS session_id,
            'complex' AS strategy, json_extract(plan.data, '$.version') AS version, json_extract(plan.data, '$.steps') AS steps,
            (
                SELECT CASE
                    WHEN count(*) < json_array_length(plan.data, '$.steps') THEN 'executing'
                    WHEN min(json_extract(ended.data, '$.result.success')) = 0 THEN 'failed'
                    ELSE 'completed' END
                FROM events AS ended
                WHERE ended.workspace_id = session.workspace_id AND ended.thread_id = session.id AND ended.type = 'step_ended'
                    AND json_extract(ended.data, '$.call_id') = json_extract(plan.data, '$.call_id')
            ) AS status,
            json_extract(plan.data, '$.at') AS created_at
        FROM chat_sessions AS session
        JOIN events AS plan ON plan.workspace_id = session.workspace_id AND plan.thread_id = session.id AND plan.type = 'planned';";

/// Makes sessions say how many messages they have.
pub(crate) const COUNTED: &str = "
    DROP VIEW chat_sessions;
    CREATE VIEW chat_sessions AS
        SELECT chat.sk AS id, substr(chat.pk, 1, 36) AS workspace_id, json_extract(chat.body, '$.user_id') AS user_id,
            json_extract(chat.body, '$.session.context') AS context_type, json_extract(chat.body, '$.session.entity') AS entity_id,
            'active' AS status, json_extract(chat.body, '$.title') AS title, json_extract(chat.body, '$.turns') AS turns,
            json_extract(chat.body, '$.message_count') AS message_count,
            json_extract(chat.body, '$.usage.input_tokens') + json_extract(chat.body, '$.usage.output_tokens') AS total_tokens_used,
            json_extract(chat.body, '$.session') AS agent_metadata,
            json_extract(chat.body, '$.created_at') AS created_at, json_extract(chat.body, '$.active_at') AS updated_at
        FROM items AS chat
        WHERE chat.pk LIKE '%/chats' AND json_valid(chat.body) AND json_extract(chat.body, '$.session') IS NOT NULL;";

/// Makes messages have the results of tools, sums have the tokens of executors, and plans and executions end with their turn.
pub(crate) const WHOLE: &str = "
    DROP VIEW agents;
    DROP VIEW agent_executions;
    DROP VIEW agent_plans;
    DROP VIEW chat_messages;
    DROP VIEW chat_sessions;
    CREATE VIEW chat_sessions AS
        SELECT chat.sk AS id, substr(chat.pk, 1, 36) AS workspace_id, json_extract(chat.body, '$.user_id') AS user_id,
            json_extract(chat.body, '$.session.context') AS context_type, json_extract(chat.body, '$.session.entity') AS entity_id,
            json_extract(chat.body, '$.status') AS status, json_extract(chat.body, '$.title') AS title, json_extract(chat.body, '$.turns') AS turns,
            json_extract(chat.body, '$.message_count') AS message_count,
            json_extract(chat.body, '$.usage.input_tokens') + json_extract(chat.body, '$.usage.output_tokens')
                + coalesce(json_extract(chat.body, '$.agents_usage.input_tokens') + json_extract(chat.body, '$.agents_usage.output_tokens'), 0)
                AS total_tokens_used,
            json_extract(chat.body, '$.session') AS agent_metadata,
            json_extract(chat.body, '$.created_at') AS created_at, json_extract(chat.body, '$.active_at') AS updated_at
        FROM items AS chat
        WHERE chat.pk LIKE '%/chats' AND json_valid(chat.body) AND json_extract(chat.body, '$.session') IS NOT NULL;
    CREATE VIEW chat_messages AS
        SELECT coalesce(json_extract(event.data, '$.message.id'), json_extract(event.data, '$.message.call_id')) AS id,
            session.workspace_id AS workspace_id, session.id AS session_id, session.user_id AS user_id, event.seq AS seq,
            json_extract(event.data, '$.message.role') AS role,
            coalesce(json_extract(event.data, '$.message.content'), json_extract(event.data, '$.message.output')) AS content,
            json_extract(event.data, '$.message.calls') AS tool_calls, json_extract(event.data, '$.message.call_id') AS tool_call_id,
            json_extract(event.data, '$.message.tool') AS tool_name, json_extract(event.data, '$.message.success') AS tool_success,
            json_extract(event.data, '$.message.at') AS created_at
        FROM chat_sessions AS session
        JOIN events AS event ON event.workspace_id = session.workspace_id AND event.thread_id = session.id AND event.type = 'message_added'
        UNION ALL
        SELECT json_extract(event.data, '$.call_id'), session.workspace_id, session.id, session.user_id, event.seq, 'tool',
            json_extract(event.data, '$.output'), NULL, json_extract(event.data, '$.call_id'), json_extract(event.data, '$.tool'),
            json_extract(event.data, '$.success'), json_extract(event.data, '$.at')
        FROM chat_sessions AS session
        JOIN events AS event ON event.workspace_id = session.workspace_id AND event.thread_id = session.id AND event.type = 'observed';
    CREATE VIEW agent_executions AS
        SELECT json_extract(begun.data, '$.call_id') || '/' || json_extract(begun.data, '$.step') AS id,
            session.workspace_id AS workspace_id, session.id AS session_id, json_extract(begun.data, '$.call_id') AS plan_id,
            json_extract(begun.data, '$.executor') AS executor_id, json_extract(begun.data, '$.step') AS step,
            json_extract(begun.data, '$.task') AS task,
            CASE json_extract(ended.data, '$.result.success') WHEN 1 THEN 'completed' WHEN 0 THEN 'failed' ELSE
                CASE WHEN EXISTS (
                    SELECT 1 FROM events AS turn
                    WHERE turn.workspace_id = session.workspace_id AND turn.thread_id = session.id AND turn.type IN ('done', 'stopped')
                        AND turn.seq > begun.seq
                ) THEN 'cancelled' ELSE 'executing' END
            END AS status,
            coalesce(json_extract(ended.data, '$.result.data'), json_extract(ended.data, '$.result.error')) AS result,
            json_extract(ended.data, '$.result.tool_calls') AS tool_calls,
            json_extract(ended.data, '$.result.usage.input_tokens') + json_extract(ended.data, '$.result.usage.output_tokens') AS tokens_used,
            json_extract(ended.data, '$.result.duration_ms') AS duration_ms,
            json_extract(begun.data, '$.at') AS created_at, json_extract(ended.data, '$.at') AS ended_at
        FROM chat_sessions AS session
        JOIN events AS begun ON begun.workspace_id = session.workspace_id AND begun.thread_id = session.id AND begun.type = 'step_started'
        LEFT JOIN events AS ended
            ON ended.workspace_id = session.workspace_id AND ended.thread_id = session.id AND ended.type = 'step_ended'
                AND json_extract(ended.data, '$.call_id') = json_extract(begun.data, '$.call_id')
                AND json_extract(ended.data, '$.step') = json_extract(begun.data, '$.step');
    CREATE VIEW agents AS
        SELECT executor_id AS id, workspace_id, session_id, plan_id, id AS execution_id, status, created_at, ended_at AS completed_at
        FROM agent_executions;
    CREATE VIEW agent_plans AS
        SELECT json_extract(plan.data, '$.call_id') AS id, session.workspace_id AS workspace_id, session.id AS session_id,
            'complex' AS strategy, json_extract(plan.data, '$.version') AS version, json_extract(plan.data, '$.steps') AS steps,
            (
                SELECT CASE
                    WHEN count(*) < json_array_length(plan.data, '$.steps') THEN
                        CASE WHEN EXISTS (
                            SELECT 1 FROM events AS turn
                            WHERE turn.workspace_id = session.workspace_id AND turn.thread_id = session.id
                                AND turn.type IN ('done', 'stopped') AND turn.seq > plan.seq
                        ) THEN 'cancelled' ELSE 'executing' END
                    WHEN min(json_extract(ended.data, '$.result.success')) = 0 THEN 'failed'
                    ELSE 'completed' END
                FROM events AS ended
                WHERE ended.workspace_id = session.workspace_id AND ended.thread_id = session.id AND ended.type = 'step_ended'
                    AND json_extract(ended.data, '$.call_id') = json_extract(plan.data, '$.call_id')
            ) AS status,
            json_extract(plan.data, '$.at') AS created_at
        FROM chat_sessions AS session
        JOIN events AS plan ON plan.workspace_id = session.workspace_id AND plan.thread_id = session.id AND plan.type = 'planned';";

/// Makes plans that wait for a person, or got a no, rows of plans, too.
pub(crate) const WAITING: &str = "
    DROP VIEW agent_plans;
    CREATE VIEW agent_plans AS
        SELECT json_extract(plan.data, '$.call_id') AS id, session.workspace_id AS workspace_id, session.id AS session_id,
            'complex' AS strategy, json_extract(plan.data, '$.version') AS version, json_extract(plan.data, '$.steps') AS steps,
            (
                SELECT CASE
                    WHEN count(*) < json_array_length(plan.data, '$.steps') THEN
                        CASE WHEN EXISTS (
                            SELECT 1 FROM events AS turn
                            WHERE turn.workspace_id = session.workspace_id AND turn.thread_id = session.id
                                AND turn.type IN ('done', 'stopped') AND turn.seq > plan.seq
                        ) THEN 'cancelled' ELSE 'executing' END
                    WHEN min(json_extract(ended.data, '$.result.success')) = 0 THEN 'failed'
                    ELSE 'completed' END
                FROM events AS ended
                WHERE ended.workspace_id = session.workspace_id AND ended.thread_id = session.id AND ended.type = 'step_ended'
                    AND json_extract(ended.data, '$.call_id') = json_extract(plan.data, '$.call_id')
            ) AS status,
            json_extract(plan.data, '$.at') AS created_at
        FROM chat_sessions AS session
        JOIN events AS plan ON plan.workspace_id = session.workspace_id AND plan.thread_id = session.id AND plan.type = 'planned'
        UNION ALL
        SELECT json_extract(asked.data, '$.call_id'), session.workspace_id, session.id, 'complex',
            1 + coalesce((
                SELECT max(json_extract(earlier.data, '$.version'))
                FROM events AS earlier
                WHERE earlier.workspace_id = session.workspace_id AND earlier.thread_id = session.id AND earlier.type = 'planned'
                    AND earlier.seq < asked.seq AND earlier.seq > coalesce((
                        SELECT max(turn.seq)
                        FROM events AS turn
                        WHERE turn.workspace_id = session.workspace_id AND turn.thread_id = session.id AND turn.type = 'turn_started'
                            AND turn.seq < asked.seq
                    ), 0)
            ), 0),
            CASE WHEN json_valid(json_extract(asked.data, '$.args'))
                THEN json_extract(json_extract(asked.data, '$.args'), '$.steps') END,
            CASE WHEN EXISTS (
                SELECT 1
                FROM events AS ended
                WHERE ended.workspace_id = session.workspace_id AND ended.thread_id = session.id AND ended.seq > asked.seq
                    AND (
                        ended.type IN ('done', 'stopped')
                        OR ended.type = 'permission_resolved' AND json_extract(ended.data, '$.outcome') <> 'approved'
                            AND json_extract(ended.data, '$.permission_id') = json_extract(asked.data, '$.permission_id')
                    )
            ) THEN 'cancelled' ELSE 'pending' END,
            json_extract(asked.data, '$.at')
        FROM chat_sessions AS session
        JOIN events AS asked
            ON asked.workspace_id = session.workspace_id AND asked.thread_id = session.id AND asked.type = 'permission_required'
                AND json_extract(asked.data, '$.tool') = 'run_plan'
        WHERE NOT EXISTS (
            SELECT 1
            FROM events AS plan
            WHERE plan.workspace_id = session.workspace_id AND plan.thread_id = session.id AND plan.type = 'planned'
                AND json_extract(plan.data, '$.call_id') = json_extract(asked.data, '$.call_id')
        );";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use rusqlite::Connection;

    const W: &str = "019bf537-f228-7cd3-aa1c-000000000001";
    const S: &str = "019bf537-f228-7cd3-aa1c-000000000002";

    fn rows(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn section_10_sessions_messages_plans_and_executions_are_readable_with_sqlite3() {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::bring_up_to_date(&connection, 0).unwrap();
        let put = |pk: &str, sk: &str, body: &str| {
            let sql = "INSERT INTO items (pk, sk, rev, body) VALUES (?1, ?2, 1, ?3)";
            connection.execute(sql, [pk, sk, body]).unwrap();
        };
        let session = r#"{"title": "Compare", "user_id": "u", "turns": 1, "message_count": 3, "usage": {"input_tokens": 10, "output_tokens": 5}, "agents_usage": {"input_tokens": 7, "output_tokens": 2}, "status": "idle",
            "session": {"context": "project", "entity": "atlas"}, "created_at": "a", "active_at": "b"}"#;
        put(&format!("{W}/chats"), S, session);
        put(&format!("{W}/chats"), "another", r#"{"title": "no session"}"#);
        let log = r#"{"first": 1, "at": "x", "events": [
            {"type": "message_added", "message": {"role": "user", "id": "m1", "at": "c", "content": "compare them"}},
            {"type": "message_added", "message": {"role": "assistant", "id": "m2", "at": "d", "content": "", "calls": [{"call_id": "p1", "tool": "run_plan"}]}},
            {"type": "planned", "call_id": "p1", "version": 1, "steps": [{"step": 1}, {"step": 2}], "at": "e"},
            {"type": "step_started", "call_id": "p1", "step": 1, "executor": "x1", "task": {"description": "read"}, "at": "f"},
            {"type": "step_ended", "call_id": "p1", "step": 1, "at": "g", "result": {"success": true, "data": "found", "tool_calls": 2,
                "usage": {"input_tokens": 7, "output_tokens": 2}, "duration_ms": 40}},
            {"type": "step_started", "call_id": "p1", "step": 2, "executor": "x2", "task": {"description": "join"}, "at": "h"},
            {"type": "planned", "call_id": "p2", "version": 2, "steps": [{"step": 1}], "at": "i"},
            {"type": "step_ended", "call_id": "p2", "step": 1, "at": "j", "result": {"success": false, "error": {"code": "NOT_BEGUN"}}},
            {"type": "compacted", "compaction": {"message_id": "k1", "turns": 1, "last_line": 9, "summary": "short", "tokens_before": 400, "tokens_after": 100, "at": "k"}},
            {"type": "observed", "call_id": "p1", "tool": "run_plan", "at": "l", "output": "done", "success": true}
        ]}"#;
        put(&format!("chat/{W}/{S}"), "log/00000000000000000001", log);
        put(&format!("chat/{W}/another"), "log/00000000000000000001", log);
        let sessions = "SELECT id || ' ' || user_id || ' ' || context_type || ' ' || entity_id || ' ' || title || ' ' || total_tokens_used || ' ' || message_count || ' ' || status FROM chat_sessions";
        assert_eq!(rows(&connection, sessions), [format!("{S} u project atlas Compare 24 3 idle")]);
        let messages = "SELECT seq || ' ' || role || ' ' || id || ' ' || content || coalesce(' ' || tool_name, '') FROM chat_messages ORDER BY seq";
        assert_eq!(
            rows(&connection, messages),
            ["1 user m1 compare them", "2 assistant m2 ", "10 tool p1 done run_plan"]
        );
        let plans = "SELECT id || ' ' || version || ' ' || json_array_length(steps) || ' ' || status FROM agent_plans ORDER BY version";
        assert_eq!(rows(&connection, plans), ["p1 1 2 executing", "p2 2 1 failed"]);
        let executions = "SELECT id || ' ' || executor_id || ' ' || status || ' ' || coalesce(result, '') || ' ' || coalesce(tokens_used, '') \
            FROM agent_executions ORDER BY step";
        assert_eq!(rows(&connection, executions), ["p1/1 x1 completed found 9", "p1/2 x2 executing  "]);
        assert_eq!(
            rows(&connection, "SELECT id || ' ' || plan_id || ' ' || status FROM agents ORDER BY id"),
            ["x1 p1 completed", "x2 p1 executing"]
        );
        // A person is asked about the next plan, and says no; then about another one.
        let asked = r#"{"first": 11, "at": "x", "events": [
            {"type": "permission_required", "permission_id": "q3", "call_id": "p3", "category": "plan", "tool": "run_plan", "args": "{\"steps\": [{\"step\": 1}]}", "at": "l"},
            {"type": "permission_resolved", "permission_id": "q3", "outcome": "declined", "at": "l"},
            {"type": "permission_required", "permission_id": "q4", "call_id": "p4", "category": "plan", "tool": "run_plan", "args": "{\"steps\": [{\"step\": 1}]}", "at": "l"},
            {"type": "permission_required", "permission_id": "q5", "call_id": "w5", "category": "file", "tool": "write", "args": "{}", "at": "l"}
        ]}"#;
        put(&format!("chat/{W}/{S}"), "log/00000000000000000011", asked);
        let all = ["p1 1 2 executing", "p2 2 1 failed", "p3 3 1 cancelled", "p4 3 1 pending"];
        let plans = format!("{plans}, id");
        assert_eq!(rows(&connection, &plans), all);
        let approved = r#"{"first": 15, "at": "x", "events": [
            {"type": "permission_resolved", "permission_id": "q4", "outcome": "approved", "at": "l"},
            {"type": "planned", "call_id": "p4", "version": 3, "steps": [{"step": 1}], "at": "l"}
        ]}"#;
        put(&format!("chat/{W}/{S}"), "log/00000000000000000015", approved);
        assert_eq!(rows(&connection, &plans)[2..], ["p3 3 1 cancelled", "p4 3 1 executing"]);
        // The turn ends, and with it all that was not done.
        let end = r#"{"first": 17, "at": "x", "events": [{"type": "stopped", "turn_id": "t", "at": "m"}]}"#;
        put(&format!("chat/{W}/{S}"), "log/00000000000000000017", end);
        let all = ["p1 1 2 cancelled", "p2 2 1 failed", "p3 3 1 cancelled", "p4 3 1 cancelled"];
        assert_eq!(rows(&connection, &plans), all);
        assert_eq!(rows(&connection, executions), ["p1/1 x1 completed found 9", "p1/2 x2 cancelled  "]);
        assert_eq!(
            rows(&connection, "SELECT id || ' ' || summary || ' ' || ratio FROM chat_compressions"),
            ["k1 short 0.25"]
        );
    }
}
