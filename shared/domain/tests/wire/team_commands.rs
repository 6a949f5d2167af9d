//! Commands of the agents of a team to the chat that has it, of programs that answer calls, and of people who steer a turn.

use super::{id, path};
use buildscale_domain::{
    CallId, ChatCommand, ChatId, Code, Error, FileId, MemberEnd, PlanFile, ToldStep, TurnId, Usage,
};

/// A step, the end of a turn, the answer to a call, and words for a turn.
pub fn commands() -> Vec<ChatCommand> {
    vec![
        ChatCommand::StepTold {
            told: Box::new(ToldStep {
                step: 2,
                status: "done".into(),
                title: "Test it".into(),
                plan: PlanFile { path: path(), id: FileId(id(12)) },
                done: 1,
                total: 3,
            }),
        },
        ChatCommand::MemberEnded {
            end: Box::new(MemberEnd {
                chat_id: ChatId(id(2)),
                stop_reason: "token_limit".into(),
                error: Some(Error::new(Code::LimitReached, "too long")),
                usage: Usage { input_tokens: 900, output_tokens: 200, cached_tokens: 100, cost_usd: 0.25 },
            }),
        },
        ChatCommand::AnswerCall {
            call_id: CallId(id(45)),
            output: "rung".into(),
            success: true,
            may_approve: true,
            may_not_run: true,
        },
        ChatCommand::ExpireCall { call_id: CallId(id(45)) },
        ChatCommand::Steer {
            turn_id: TurnId(id(6)),
            content: "in blue".into(),
            files: vec![path()],
            context: "<file/>".into(),
            may_approve: true,
            may_not_run: true,
        },
    ]
}
