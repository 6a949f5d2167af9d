//! One task: a process, and its state.

use super::{CLUSTER, Deployed, FAMILY, Hold, REVISION, Shared, Watched, own};
use crate::{
    account::{ACCOUNT, REGION},
    emulator::GUARD,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use std::{fs::File, io, os::unix::process::ExitStatusExt as _, path::Path, process::Stdio};
use tokio::process::Command;

pub(super) struct Task {
    pub arn: String,
    pub number: u16,
    request: Value,
    status: Status,
    /// How often somebody has looked.
    looks: u32,
    is_told_to_stop: bool,
    stopped: Option<Stopped>,
    process: Option<Pid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Provisioning,
    Pending,
    Running,
    Stopped,
}

struct Stopped {
    code: &'static str,
    reason: String,
    exit: Option<i32>,
}

impl Task {
    pub fn new(number: u16, request: &Value) -> Self {
        let arn = format!("arn:aws:ecs:{REGION}:{ACCOUNT}:task/{CLUSTER}/{number:032x}");
        let status = Status::Provisioning;
        let request = request.clone();
        Self { arn, number, request, status, looks: 0, is_told_to_stop: false, stopped: None, process: None }
    }

    pub fn watched(&self) -> Watched {
        Watched {
            task: self.arn.clone(),
            status: self.name().into(),
            lives: self.is_wanted(),
            started_by: self.request["startedBy"].as_str().unwrap_or_default().into(),
        }
    }

    /// Whether it has not been told to stop, and has not ended by itself.
    pub fn is_wanted(&self) -> bool {
        !self.is_told_to_stop && !self.has_ended()
    }

    pub fn has_ended(&self) -> bool {
        self.status == Status::Stopped
    }

    /// To the first look it is not.
    pub fn when_known(&mut self) -> Option<&mut Self> {
        self.looks += 1;
        (self.looks > 1).then_some(self)
    }

    /// Comes one step further.
    pub fn step(&mut self, state: &Shared, hold: &Hold, deployed: &Deployed, port: u16, folder: &Path) {
        match (self.status, hold) {
            (Status::Provisioning, Hold::Machine) | (Status::Pending, Hold::Image) => {}
            (Status::Provisioning, _) => self.status = Status::Pending,
            (Status::Pending, Hold::Fails(reason)) => {
                self.end("TaskFailedToStart", reason.clone(), None);
            }
            (Status::Pending, _) => match self.spawn(state, deployed, port, folder) {
                Ok(process) => (self.process, self.status) = (Some(process), Status::Running),
                Err(error) => self.end("TaskFailedToStart", format!("CannotStartContainerError: {error}"), None),
            },
            (Status::Running | Status::Stopped, _) => {}
        }
    }

    pub fn stop(&mut self, reason: &str) {
        if self.has_ended() || self.is_told_to_stop {
            return;
        }
        self.is_told_to_stop = true;
        self.stopped = Some(Stopped { code: "UserInitiated", reason: reason.into(), exit: None });
        match self.process {
            Some(_) => self.terminate(),
            None => self.status = Status::Stopped,
        }
    }

    /// Tells its process to end.
    pub fn terminate(&self) {
        if let Some(process) = self.process {
            _ = kill_process(process, Signal::TERM);
        }
    }

    /// To all that runs in it.
    pub fn signal(&self, signal: Signal) {
        if let Some(process) = self.process {
            _ = kill_process_group(process, signal);
        }
    }

    pub fn describe(&self) -> Value {
        let task_definition = format!("arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{FAMILY}:{REVISION}");
        let mut container = json!({ "name": "sandbox", "taskArn": self.arn, "lastStatus": self.name() });
        let mut task = json!({
            "taskArn": self.arn,
            "clusterArn": format!("arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/{CLUSTER}"),
            "taskDefinitionArn": task_definition,
            "group": format!("family:{FAMILY}"),
            "lastStatus": self.name(),
            "desiredStatus": if self.is_wanted() { "RUNNING" } else { "STOPPED" },
            "startedBy": self.request["startedBy"],
            "overrides": self.request["overrides"],
            "tags": self.request["tags"],
            "attachments": [],
        });
        if self.status != Status::Provisioning {
            task["containerInstanceArn"] =
                json!(format!("arn:aws:ecs:{REGION}:{ACCOUNT}:container-instance/{CLUSTER}/1"));
            task["attachments"] = json!([{
                "id": format!("eni-{}", self.number),
                "type": "ElasticNetworkInterface",
                "status": "ATTACHED",
                "details": [{ "name": "subnetId", "value": "subnet-1" }, { "name": "privateIPv4Address", "value": self.address() }],
            }]);
        }
        if let Some(stopped) = &self.stopped {
            task["stopCode"] = json!(stopped.code);
            task["stoppedReason"] = json!(stopped.reason);
            if let Some(exit) = stopped.exit {
                container["exitCode"] = json!(exit);
            }
        }
        task["containers"] = json!([container]);
        task
    }

    /// Linux answers on all of 127/8; 127.0.0.1 has the service itself.
    pub fn address(&self) -> String {
        format!("127.0.{}.{}", self.number / 200, self.number % 200 + 2)
    }

    fn name(&self) -> &'static str {
        match self.status {
            Status::Provisioning => "PROVISIONING",
            Status::Pending => "PENDING",
            Status::Running => "RUNNING",
            Status::Stopped => "STOPPED",
        }
    }

    fn end(&mut self, code: &'static str, reason: String, exit: Option<i32>) {
        self.status = Status::Stopped;
        // The one who told it to stop has given the reason.
        let stopped = self.stopped.get_or_insert(Stopped { code, reason, exit: None });
        stopped.exit = exit;
    }

    fn spawn(&self, state: &Shared, deployed: &Deployed, port: u16, folder: &Path) -> io::Result<Pid> {
        let overrides = self.request["overrides"]["containerOverrides"][0]["environment"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let overrides = overrides.into_iter().flatten().map(|each| (text(&each["name"]), text(&each["value"])));
        let own = own(folder, &self.arn);
        std::fs::create_dir_all(&own)?;
        let output = File::create(own.join("log"))?;
        let own = own.to_string_lossy();
        let environment = deployed.environment.iter().map(|(name, value)| (name, value.replace("{task}", &own)));
        let mut child = Command::new("sh")
            .args(["-c", GUARD, "task"])
            .args(&deployed.program)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(environment)
            .envs(overrides)
            .env("BUILDSCALE__SERVER__LISTEN", format!("{}:{port}", self.address()))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("it has no process"))?;
        // Held until it has ended; its children end then, too.
        let guard = child.stdin.take();
        let (state, arn) = (state.clone(), self.arn.clone());
        tokio::spawn(async move {
            let status = child.wait().await;
            drop(guard);
            let code =
                status.ok().and_then(|status| status.code().or_else(|| status.signal().map(|signal| 128 + signal)));
            if let Some(task) = state.lock().tasks.get_mut(&arn) {
                task.process = None;
                task.end("EssentialContainerExited", "Essential container in task exited".into(), code);
            }
        });
        Ok(pid)
    }
}
