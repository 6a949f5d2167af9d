//! Budgets of tasks, and the commands about them.

use buildscale_domain::{
    Budget, TaskCommand, TaskId, Usage,
    task::{BudgetChild, BudgetMessage},
};
use uuid::Uuid;

pub fn budget() -> Budget {
    Budget { max_tokens: Some(12_000), max_cost_usd: Some(0.5), max_wall_ms: Some(60_000) }
}

fn budget_child() -> BudgetChild {
    BudgetChild {
        node: "items".into(),
        index: 17,
        task: TaskId(Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_000d)),
    }
}

pub fn commands(used: Usage) -> Vec<TaskCommand> {
    vec![
        TaskCommand::Budget { told: Box::new(BudgetMessage::Ask { child: budget_child() }) },
        TaskCommand::Budget { told: Box::new(BudgetMessage::Return { child: budget_child(), used }) },
        TaskCommand::Budget { told: Box::new(BudgetMessage::Grant { more: budget() }) },
        TaskCommand::Budget { told: Box::new(BudgetMessage::Refuse) },
        TaskCommand::Budget { told: Box::new(BudgetMessage::Late { used, task: None }) },
        TaskCommand::Budget { told: Box::new(BudgetMessage::Late { used, task: Some(budget_child().task) }) },
    ]
}
