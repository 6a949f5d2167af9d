//! The deployment of sandboxes: their task as in `template.yaml`.

/// The folder of a task's own in which its commands write.
pub(super) const SCRATCH: &str = "tmp";

/// The deployment of sandboxes.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// The program of a task, with its arguments.
    pub program: Vec<String>,
    /// The environment of the task definition, where `{task}` stands for a folder of the task's own. The overrides of `RunTask`, and the
    /// address to listen on, come on top.
    pub environment: Vec<(String, String)>,
    /// The capacity provider; Fargate where there is none.
    pub capacity_provider: Option<String>,
    /// How many tasks are on a page.
    pub page: usize,
}

impl Deployed {
    /// Sandboxes on machines of our own, which run this program. They have no role, and so no credentials.
    pub fn sandboxes(program: &str) -> Self {
        let program = vec![program.to_owned()];
        Self { program, environment: environment(), capacity_provider: Some("nvme".into()), page: 100 }
    }
}

/// The environment of a sandbox's task.
pub fn environment() -> Vec<(String, String)> {
    [
        ("BUILDSCALE__SANDBOX__FOLDER", "{task}/workspace"),
        ("BUILDSCALE__SANDBOX__SCRATCH", &format!("{{task}}/{SCRATCH}")),
        ("BUILDSCALE__SANDBOX__IDLE_SECONDS", "3600"),
        ("BUILDSCALE_LOG", "info"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
