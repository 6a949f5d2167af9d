"""Whether the templates agree with each other and with the code: what no linter of single files can see.

Run by scripts/lint-infra, with the Python of its tools, which has YAML and TOML.
"""

import re
import sys
from fnmatch import fnmatchcase

import tomlkit
import yaml
from account import alarm_bill, global_names, old_copies, outlives, sums, sweeps, table_errors, throttles
from faults import FAULTS, ROOT, fault, walk


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as what they are: `!Ref x` is {"Ref": "x"}, `!GetAtt a.b` {"Fn::GetAtt": "a.b"}."""


def short_form(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


Loader.add_multi_constructor("!", short_form)


def template(path):
    return yaml.load((ROOT / path).read_text(), Loader)


def nested_stacks(root):
    """Each nested stack gets exactly the parameters that it has, and is asked only for what it gives."""
    stacks = {}
    for name, resource in root["Resources"].items():
        if resource["Type"] != "AWS::CloudFormation::Stack":
            continue
        path = resource["Properties"]["TemplateURL"]
        if not (ROOT / path).is_file():
            fault(f"template.yaml: {name} is made of {path}, and there is no such file")
            continue
        stacks[name] = template(path)
        given, declared = set(resource["Properties"].get("Parameters", {})), stacks[name].get("Parameters", {})
        needed = {parameter for parameter, of in declared.items() if "Default" not in of}
        for parameter in sorted(given - set(declared)):
            fault(f"template.yaml: {name} is given {parameter}, which {path} does not have")
        for parameter in sorted(needed - given):
            fault(f"template.yaml: {name} is not given {parameter}, which {path} needs")
    for mapping in walk(root):
        asked = re.fullmatch(r"(\w+)\.Outputs\.(\w+)", str(mapping.get("Fn::GetAtt", "")))
        if asked and asked[2] not in stacks.get(asked[1], {}).get("Outputs", {}):
            fault(f"template.yaml: {asked[1]} has no output {asked[2]}")
    return stacks


def environment(stacks):
    """The variables that templates set and those that the code reads are the same."""
    sources = "".join(path.read_text() for folder in ("functions", "shared") for path in sorted((ROOT / folder).rglob("*.rs")))
    read = set(re.findall(r'const \w+: &str = "(BUILDSCALE__AWS__\w+[^_])"', sources))
    written = set()
    for stack in stacks.values():
        for mapping in walk(stack):
            if "Variables" in mapping:
                written |= set(mapping["Variables"])
            for entry in mapping.get("Environment", []) if isinstance(mapping.get("Environment"), list) else []:
                written |= {inner["Name"] for inner in walk(entry) if "Name" in inner}
            for entry in mapping.get("Secrets", []) if isinstance(mapping.get("Secrets"), list) else []:
                written.add(entry["Name"])
    for name in sorted(read - written):
        fault(f"the code reads {name}, and no template sets it")
    for name in sorted(written):
        if not knows(sources, name):
            fault(f"a template sets {name}, and no code reads it")


def knows(sources, name):
    """Whether the code names a variable, or, as hubs read theirs, has a field for the last part of a `BUILDSCALE__A__B`."""
    if f'"{name}"' in sources:
        return True
    field = name.rsplit("__", 1)[-1].lower()
    return name.startswith("BUILDSCALE__") and re.search(rf"\bpub {field}: ", sources) is not None


def numbers(stacks):
    """Numbers in different files that only make sense together."""
    functions, data = stacks["Functions"]["Resources"], stacks["Data"]["Resources"]
    worker, timer = (functions[name]["Properties"]["Timeout"] for name in ("Worker", "Timer"))
    commands, delays = (data[name]["Properties"]["VisibilityTimeout"] for name in ("Commands", "Delays"))
    if commands < worker:
        fault(f"commands are invisible for {commands} s, and a worker may take {worker} s: Lambda refuses that")
    if not 2 * timer <= delays <= 2 * timer + 60:
        fault(f"delays are invisible for {delays} s: not twice the timer's {timer} s, or a fault makes waits later than that")
    hours = delays * data["Delays"]["Properties"]["RedrivePolicy"]["maxReceiveCount"] / 3600
    if hours < 1:
        fault(f"delays are dead after {hours:.1f} hours of faults, and a service may fail for one")
    options = (ROOT / "functions/stream/src/options.rs").read_text()
    silence, idle = (
        int(re.search(rf"{name}: Duration::from_secs\((\d+)\)", options)[1]) for name in ("keep_alive", "head_timeout")
    )
    attributes = stacks["Containers"]["Resources"]["Balancer"]["Properties"]["LoadBalancerAttributes"]
    cut = next(int(each["Value"]) for each in attributes if each["Key"] == "idle_timeout.timeout_seconds")
    if not silence < cut < idle:
        fault(f"the balancer cuts off after {cut} s: not between the stream's heartbeat ({silence} s) and its own idle time-out ({idle} s)")


def loops(stacks):
    """Actors call themselves by design, so Lambda must not stop them after 16 hops; and somebody hears of it when it does."""
    functions = stacks["Functions"]
    if functions["Globals"]["Function"].get("RecursiveLoop") != "Allow":
        fault("functions.yaml: RecursiveLoop has to be Allow in Globals: Lambda would drop an actor's messages after 16 of them")
    for name, resource in functions["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function" and resource["Properties"].get("RecursiveLoop", "Allow") != "Allow":
            fault(f"functions.yaml: {name} has a RecursiveLoop of its own")
    if not any(mapping.get("MetricName") == "RecursiveInvocationsDropped" for mapping in walk(stacks["Watching"])):
        fault("watching.yaml: no alarm on RecursiveInvocationsDropped")


def sandboxes(stacks):
    """Sandboxes share machines: each is a user of its own and has quotas, and those of all that fit on a machine fit on its disk."""
    resources = stacks["Containers"]["Resources"]
    task = resources["SandboxTask"]["Properties"]
    (container,) = task["ContainerDefinitions"]
    # It becomes the user of its workspace, and can do nothing else with what it begins with.
    if (container["User"], container["LinuxParameters"]["Capabilities"]) != ("0", {"Drop": ["ALL"], "Add": ["CHOWN", "SETGID", "SETUID"]}):
        fault("containers.yaml: a sandbox begins as root with CHOWN, SETGID and SETUID alone, to become the user of its workspace")
    if "no-new-privileges" not in container["DockerSecurityOptions"]:
        fault("containers.yaml: a sandbox could get privileges back")
    sizes = [volume["DockerVolumeConfiguration"].get("DriverOpts", {}).get("size", "") for volume in task["Volumes"]]
    if not all(re.fullmatch("[0-9]+g", size) for size in sizes):
        return fault("containers.yaml: a volume of a sandbox has no quota")
    # The disk of the smallest machine, in GiB, without 30 for images.
    if 3 * sum(int(size[:-1]) for size in sizes) > 237_000_000_000 // 2**30 - 30:
        fault("containers.yaml: the quotas of three sandboxes are more than the disk of their machine has")
    script = str(resources["HostTemplate"]["Properties"]["LaunchTemplateData"]["UserData"])
    if not re.search(r"mount -o [a-z,]*pquota", script):
        fault("containers.yaml: Docker bounds volumes on a file system with quotas of projects alone")


def credentials(stacks):
    """A sandbox has none. It reads contents by requests that workers sign for its workspace, and no role near it reads those of others."""
    containers = stacks["Containers"]["Resources"]
    task = containers["SandboxTask"]["Properties"]
    if "TaskRoleArn" in task:
        fault("containers.yaml: a sandbox has a role, and one role for all sandboxes reads the contents of all workspaces")
    for mapping in walk(task["ContainerDefinitions"]):
        if str(mapping.get("Name", "")).startswith("AWS_"):
            fault(f"containers.yaml: a sandbox is given {mapping['Name']}, and it has no credentials")
    # ECS starts the task with the one, and the machine joins the cluster with the other.
    for name in (task["ExecutionRoleArn"]["Fn::GetAtt"].split(".")[0], "HostRole"):
        if "ManagedPolicyArns" in containers[name]["Properties"]:
            fault(f"containers.yaml: {name} has rights that are written elsewhere")
        for _, statement, actions in statements({"Resources": {name: containers[name]["Properties"].get("Policies", [])}}):
            if {action.split(":")[0] for action in actions} & {"*", "s3", "sts"}:
                fault(f"containers.yaml: {name} reads contents, or takes on a role that does ({statement.get('Sid')})")
    # A request for a task may name another role than its definition, if its sender may pass that on.
    for name, statement, actions in statements({"Resources": {"Machines": stacks["Functions"]["Resources"]["Machines"]}}):
        if "iam:PassRole" in actions and statement["Resource"] != {"Ref": "SandboxExecutionRoleArn"}:
            fault("functions.yaml: functions may start a sandbox with a role of its own")


def sources(stacks):
    """SQS takes no batching window for a FIFO queue, and Lambda refuses the event source at deployment."""
    for name, resource in stacks["Functions"]["Resources"].items():
        for event in resource["Properties"].get("Events", {}).values() if resource["Type"] == "AWS::Serverless::Function" else []:
            properties = event["Properties"]
            if properties.get("Queue") == {"Ref": "CommandsArn"} and "MaximumBatchingWindowInSeconds" in properties:
                fault(f"functions.yaml: {name} has a batching window on the FIFO queue of commands")


# The errors whose time in its cache CloudFront can be told: 10 s by itself, under the path alone.
CACHED_ERRORS = (400, 403, 404, 405, 414, 500, 501, 502, 503, 504)


def one_address(stacks):
    """CloudFront is the only way in: it leads events and the rest where they are answered, and what stands behind it knows it."""
    edge = stacks["Edge"]["Resources"]["Distribution"]["Properties"]["DistributionConfig"]
    events = next(each for each in edge["CacheBehaviors"] if each["TargetOriginId"] == "streams")
    rule = stacks["Containers"]["Resources"]["Streams"]["Properties"]["Conditions"][0]["PathPatternConfig"]["Values"]
    if rule != [events["PathPattern"]]:
        fault(f"edge.yaml: events are {events['PathPattern']}, and behind the balancer of containers.yaml {', '.join(rule)}")
    header = re.search(r'NAMES_ITSELF: HeaderName = HeaderName::from_static\("([a-z-]+)"\)', (ROOT / "functions/cloud/src/origin.rs").read_text())[1]
    for origin in edge["Origins"]:
        if origin["Id"] == "console":
            continue
        if [named["HeaderName"] for named in origin["OriginCustomHeaders"]] != [header]:
            fault(f"edge.yaml: the origin {origin['Id']} is not told {header}, by which it knows CloudFront")
    host = re.search(r'NAMES_HOST: HeaderName = HeaderName::from_static\("([a-z-]+)"\)', (ROOT / "functions/cloud/src/origin.rs").read_text())[1]
    if f"request.headers['{host}'] = {{ value: request.headers.host.value }}" not in stacks["Edge"]["Resources"]["ClientHost"]["Properties"]["FunctionCode"]:
        fault(f"edge.yaml: the function of CloudFront does not keep the client's host in {host}")
    talks = [each for each in edge["CacheBehaviors"] if each["TargetOriginId"] == "protocols"]
    for behaviour in [events, *talks, edge["DefaultCacheBehavior"]]:
        if [one["EventType"] for one in behaviour.get("FunctionAssociations", [])] != ["viewer-request"]:
            fault(f"edge.yaml: origins are not told the client's host, so {host} would be the client's own words")
    silence = int(re.search(r"keep_alive: Duration::from_secs\((\d+)\)", (ROOT / "functions/stream/src/options.rs").read_text())[1])
    for mapping in walk(edge):
        if mapping.get("OriginReadTimeout", silence + 1) <= silence:
            fault(f"edge.yaml: CloudFront gives up before the stream's heartbeat of {silence} s")
    told = edge.get("CustomErrorResponses", [])
    kept = [str(code) for code in CACHED_ERRORS if {"ErrorCode": code, "ErrorCachingMinTTL": 0} not in told]
    if kept:
        fault(f"edge.yaml: CloudFront gives the error of one person to the next ({', '.join(kept)})")
    # The gateway gives up after 30 s, and a content of 5 GB is not copied within them.
    uploads = next((each for each in edge["CacheBehaviors"] if each["PathPattern"].endswith("/uploads")), edge["DefaultCacheBehavior"])
    copies = int(re.search(r"COPIES_WITHIN: Duration = Duration::from_secs\((\d+)\)", (ROOT / "shared/aws/src/s3/resume.rs").read_text())[1])
    if uploads["TargetOriginId"] != "protocols" or stacks["Functions"]["Resources"]["Protocols"]["Properties"]["Timeout"] < copies + 30:
        fault(f"edge.yaml: the last request of an upload has no {copies} s for the copy that S3 makes")
    # Nor does it wait for a command of minutes, or take an answer of more than 6 MB.
    for path in ("/api/v1/workspaces/w/tools", "/api/v1/workspaces/w/mcp", "/mcp", "/api/v1/workspaces/w/export", "/api/v1/workspaces/w/tasks/t/trace", "/api/v1/imports"):
        if not any(fnmatchcase(path, each["PathPattern"]) for each in talks):
            fault(f"edge.yaml: {path} leads to the gateway, which cuts it off")
    functions = stacks["Functions"]["Resources"]
    for name, resource in functions.items():
        variables = resource["Properties"].get("Environment", {}).get("Variables", {})
        if "BUILDSCALE__AUTH__TICKET_SECRET" in variables and "BUILDSCALE__AWS__ORIGIN_TOKEN" not in variables:
            fault(f"functions.yaml: {name} answers HTTP, and answers whoever comes by its own address")
    minutes = int(re.search(r"LIFE_IN_A_FUNCTION: Duration = Duration::from_secs\((\d+) \* 60\)", (ROOT / "functions/cloud/src/assemble.rs").read_text())[1])
    for name in ("Stream", "Protocols"):
        if functions[name]["Properties"]["Timeout"] < 60 * minutes + 30:
            fault(f"functions.yaml: {name} is cut off in the middle of an answer of {minutes} minutes")
    if stacks["Containers"]["Resources"]["Balancer"]["Properties"]["Scheme"] != "internal":
        fault("containers.yaml: the load balancer has an address of its own")


def console(stacks):
    """The page has the same policy on AWS as on a hub, but for the origins that it may ask."""
    source = (ROOT / "functions/console/src/lib.rs").read_text()
    text = re.sub(r"\\\n\s*", "", re.search(r"\"(default-src 'none'; (?:[^\"\\]|\\\n)+)\"", source)[1])
    edge = stacks["Edge"]["Resources"]
    sent = edge["ConsoleHeaders"]["Properties"]["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]["ContentSecurityPolicy"]
    parts = lambda policy: {part.split()[0]: part for part in policy.split("; ") if not part.startswith("connect-src")}
    if parts(text) != parts(sent["ContentSecurityPolicy"]["Fn::Sub"]):
        fault("edge.yaml: the policy of the console's page is another one than that of functions/console/src/lib.rs")
    for behaviour in edge["Distribution"]["Properties"]["DistributionConfig"]["CacheBehaviors"]:
        if behaviour["TargetOriginId"] == "console" and behaviour.get("ResponseHeadersPolicyId") != {"Ref": "ConsoleHeaders"}:
            fault(f"edge.yaml: {behaviour['PathPattern']} comes without the policy of the console")


# Services that a function reaches without a way of its own: the platform does it, or the gateway endpoints do.
WITHOUT_ENDPOINT = {"logs", "xray", "kms", "ec2", "iam", "s3", "dynamodb"}
ENDPOINT_OF = {"bedrock": "bedrock-runtime"}


def statements(stack):
    """The statements that allow something, with the name of the resource that has them."""
    for name, resource in stack["Resources"].items():
        for mapping in walk(resource):
            if mapping.get("Effect") == "Allow" and "Action" in mapping:
                actions = mapping["Action"]
                yield name, mapping, actions if isinstance(actions, list) else [actions]


def ways(stacks):
    """What functions may ask, they can reach: where there is no internet, each service has an endpoint."""
    offered = set()
    for resource in stacks["Network"]["Resources"].values():
        service = resource.get("Properties", {}).get("ServiceName")
        if service:
            offered.add(service["Fn::Sub"].rsplit("}.", 1)[1])
    for name, _, actions in statements(stacks["Functions"]):
        for service in {action.split(":")[0] for action in actions} - WITHOUT_ENDPOINT - {"sts"}:
            if ENDPOINT_OF.get(service, service) not in offered:
                fault(f"network.yaml: {name} asks {service}, and Egress=endpoints has no way there")
    of_s3 = {
        name: resource["Properties"]
        for name, resource in stacks["Network"]["Resources"].items()
        if resource.get("Properties", {}).get("ServiceName") == {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"}
    }
    tables = sorted(name for name, resource in stacks["Network"]["Resources"].items() if resource["Type"] == "AWS::EC2::RouteTable")
    if sorted(table["Ref"] for endpoint in of_s3.values() for table in endpoint["RouteTableIds"]) != tables:
        fault("network.yaml: each table of routes leads to one endpoint of S3")
    for name, endpoint in of_s3.items():
        buckets(name, endpoint, {"Ref": "IsolatedRoutes"} in endpoint["RouteTableIds"])
    (egress,) = stacks["Network"]["Resources"]["FunctionsSecurityGroup"]["Properties"]["SecurityGroupEgress"]
    if (egress["FromPort"], egress["ToPort"], egress["CidrIp"]) != (1, 65535, "0.0.0.0/0"):
        fault("network.yaml: functions do not reach every port outside, and people name ports of models, webhooks and servers")


def buckets(name, endpoint, of_sandboxes):
    """An endpoint of S3 leads to buckets of this account, and functions read files of the web, of which many are in buckets of others."""
    if "PolicyDocument" not in endpoint:
        return fault(f"network.yaml: {name} lets everything behind it write to anybody's bucket")
    inside = {"StringEquals": {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}}}
    reads_the_web = of_sandboxes
    for statement in endpoint["PolicyDocument"]["Statement"]:
        condition, statement = statement["Fn::If"][:2] if "Fn::If" in statement else (None, statement)
        only_reads = statement["Action"] == "s3:GetObject" and not of_sandboxes
        if only_reads and condition == "HasNat":
            reads_the_web = True
        elif not (only_reads and "starport-layer-bucket" in str(statement["Resource"])) and statement.get("Condition") != inside:
            fault(f"network.yaml: {name} leads to buckets of others ({statement.get('Sid')})")
    if not reads_the_web:
        fault(f"network.yaml: {name} keeps functions from files of the web that are in buckets of this region")


def scaling(stacks):
    """A service whose number follows the load says no number itself: CloudFormation goes back to it with each update."""
    resources = stacks["Containers"]["Resources"]
    for name, resource in resources.items():
        if resource["Type"] != "AWS::ApplicationAutoScaling::ScalableTarget":
            continue
        for service in set(re.findall(r"\$\{(\w+)\.Name\}", str(resource["Properties"]["ResourceId"]))):
            if "DesiredCount" in resources[service]["Properties"]:
                fault(f"containers.yaml: {service} has a DesiredCount, and an update ends the containers that {name} added")


def rollbacks(stacks):
    """A version that is rolled out is taken back by its crashes, and by faults that Lambda takes for successes."""
    resources = stacks["Functions"]["Resources"]
    for name, resource in resources.items():
        preference = resource["Properties"].get("DeploymentPreference") if resource["Type"] == "AWS::Serverless::Function" else None
        if preference is None:
            continue
        watched = preference.get("Alarms", [])
        # Those of a stack that has alarms: template.yaml refuses a canary in one that has none.
        watched = watched["Fn::If"][1] if isinstance(watched, dict) else watched
        # The timer answers nobody, and an invocation of it fails where the queue takes nothing (functions/cloud/src/timer.rs).
        own = {"Errors"} | {"Timer": set(), "Worker": {"RetriedDeliveries"}}.get(name, {"Faults"})
        for choice in (1, 2):
            alarms = {resources[(alarm["Fn::If"][choice] if "Fn::If" in alarm else alarm)["Ref"]]["Properties"]["MetricName"] for alarm in watched}
            if not own <= alarms:
                fault(f"functions.yaml: a version of {name} is taken back by {', '.join(sorted(alarms)) or 'nothing'}, and not by {', '.join(sorted(own - alarms))}")
                break
    # Each function counts by itself: an alarm on one of them says nothing of the others.
    for name, resource in resources.items():
        if "BUILDSCALE__AUTH__TICKET_SECRET" not in resource["Properties"].get("Environment", {}).get("Variables", {}):
            continue
        function = resource["Properties"]["FunctionName"]
        for metric in ("Errors", "Faults"):
            counted = [alarm["Properties"] for alarm in resources.values() if alarm["Properties"].get("MetricName") == metric]
            if not any(named["Value"] == function for alarm in counted for named in alarm["Dimensions"]):
                fault(f"functions.yaml: nobody hears of {metric} of {name}")
    # Every function reads lists, and counts by itself the rows that it leaves out.
    metrics = stacks["Watching"]["Resources"]["RowsAreLeftOut"]["Properties"]["Metrics"]
    added = {one.strip() for metric in metrics if "Expression" in metric for one in metric["Expression"].split("+")}
    summed = [named["Value"] for metric in metrics if metric["Id"] in added for named in metric["MetricStat"]["Metric"]["Dimensions"]]
    for name, resource in resources.items():
        if resource["Type"] == "AWS::Serverless::Function" and resource["Properties"]["FunctionName"] not in summed:
            fault(f"watching.yaml: nobody hears of rows that {name} leaves out")


def restore(stacks):
    """While a table is restored nothing writes: the runbook stops each function that could."""
    functions = stacks["Functions"]["Resources"]
    fed, called = set(), set()
    for name, resource in functions.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        role = functions[resource["Properties"]["Role"]["Fn::GetAtt"].split(".")[0]]
        if {"Ref": "Store"} not in role["Properties"]["ManagedPolicyArns"]:
            continue
        events = {event["Type"] for event in resource["Properties"].get("Events", {}).values()}
        if "SQS" in events:
            fed.add(name.lower())
        if events != {"SQS"}:
            called.add(name.lower())
    section = (ROOT / "infra/README.md").read_text().split("\n## Restore\n")[1].split("\n## ")[0]
    stopped = [set(names.split()) for names in re.findall(r"for each in ([a-z ]+); do", section)]
    if stopped != [fed, called]:
        fault(f"infra/README.md: a restore stops the sources of {', '.join(sorted(fed))}, and then {', '.join(sorted(called))}, which write")


def logs(stacks):
    """The code filters its lines, and Lambda none before it; flow logs find the group that they write to."""
    if stacks["Functions"]["Globals"]["Function"]["LoggingConfig"].get("ApplicationLogLevel") != "TRACE":
        fault("functions.yaml: Lambda drops lines that BUILDSCALE_LOG asks for")
    if not any("logs:DescribeLogGroups" in actions for _, _, actions in statements(stacks["Network"])):
        fault("network.yaml: flow logs may not list groups, and so find none")


def delays(stacks):
    """A message may be due in more than 15 minutes: who sends to the queue of delays may also make schedules."""
    sends, schedules = set(), set()
    for name, statement, actions in statements(stacks["Functions"]):
        if "sqs:SendMessage" in actions and statement["Resource"] == {"Ref": "DelaysArn"}:
            sends.add(name)
        if "scheduler:CreateSchedule" in actions:
            schedules.add(name)
    for name in sorted(sends - schedules):
        fault(f"functions.yaml: {name} sends delays and may make no schedules")
    # The alarm names the group by its name: one of another name would watch nothing, in silence.
    group = stacks["Data"]["Resources"]["SchedulerGroup"]["Properties"]["Name"]
    watched = [
        each.get("Dimensions")
        for each in walk(stacks["Watching"])
        if each.get("Namespace") == "AWS/Scheduler" and each.get("MetricName") == "TargetErrorCount"
    ]
    if watched != [[{"Name": "ScheduleGroup", "Value": group}]]:
        fault("watching.yaml: no alarm on schedules that fail")


def prices(stacks):
    """A dashboard is free up to 50 metrics, and so are ten metrics of alarms: those that a stack has with Alarms=few."""
    few = [
        name
        for stack in ("Functions", "Watching")
        for name, resource in stacks[stack]["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm" and resource.get("Condition", "IsWatched") == "IsWatched"
        # An alarm on a sum is paid for by its metrics.
        for _ in [each for each in resource.get("Properties", {}).get("Metrics", [{"MetricStat": None}]) if "MetricStat" in each]
    ]
    if len(few) > 10:
        fault(f"Alarms=few watch {len(few)} metrics, and ten are free: {', '.join(few)}")
    body = str(stacks["Watching"]["Resources"]["Dashboard"]["Properties"]["DashboardBody"])
    shown = len(re.findall(r'\["(?:AWS/\w+|BuildScale)", "', body))
    if shown > 50:
        fault(f"watching.yaml: the dashboard has {shown} metrics, and 50 are free")


def choices(root):
    """samconfig.toml chooses among what there is to choose, and everything without a default."""
    declared = root["Parameters"]
    for name, config in tomlkit.parse((ROOT / "samconfig.toml").read_text()).unwrap().items():
        if not isinstance(config, dict):
            continue
        chosen = dict(entry.split("=", 1) for entry in config["deploy"]["parameters"]["parameter_overrides"])
        for parameter, value in chosen.items():
            allowed = declared.get(parameter, {}).get("AllowedValues")
            if parameter not in declared:
                fault(f"samconfig.toml: {name} sets {parameter}, which template.yaml does not have")
            elif allowed and value not in allowed:
                fault(f"samconfig.toml: {name} sets {parameter} to {value}, which is none of {', '.join(allowed)}")
        for parameter, of in declared.items():
            if "Default" not in of and parameter not in chosen:
                fault(f"samconfig.toml: {name} does not set {parameter}")


# What costs money while nobody comes, and is not in the smallest stack. A big one has each of them.
IDLE_COSTS = (
    "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::ElastiCache::ServerlessCache", "AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::ECS::Cluster",
    "AWS::ECS::Service", "AWS::KMS::Key", "AWS::CloudWatch::Alarm",
)
# Dollars a month: a secret; the polls of two queues where others in the account use up those that are free, with the sweeps of every half hour; and
# the bound of the smallest stack, in which nobody talks. infra/README.md has the sum.
A_SECRET, POLLS_AND_SWEEPS, BOUND = 0.40, 0.58 + 0.05, 2.00


def resolved(value, parameters, conditions):
    """A value of a template with these parameters. What is known in an account alone is a text of its own."""
    if not isinstance(value, dict):
        return value
    ((form, of),) = value.items()
    inner = lambda each: resolved(each, parameters, conditions)
    match form:
        case "Ref":
            return parameters.get(of, f"the {of}")
        case "Condition":
            return inner(conditions[of])
        case "Fn::Equals":
            return inner(of[0]) == inner(of[1])
        case "Fn::Not":
            return not inner(of[0])
        case "Fn::And":
            return all(map(inner, of))
        case "Fn::Or":
            return any(map(inner, of))
        case "Fn::If":
            return inner(of[1] if inner(conditions[of[0]]) else of[2])
        case _:
            return f"the {of}"


def made(stack, given, stacks):
    """The resources that a template makes with these parameters, with those of its nested stacks."""
    parameters = {name: str(of["Default"]) for name, of in stack.get("Parameters", {}).items() if "Default" in of} | given
    conditions = stack.get("Conditions", {})
    for name, resource in stack["Resources"].items():
        if "Condition" in resource and not resolved(conditions[resource["Condition"]], parameters, conditions):
            continue
        yield resource
        if name in stacks and resource["Type"] == "AWS::CloudFormation::Stack":
            passed = resource["Properties"].get("Parameters", {})
            passed = {name: str(resolved(value, parameters, conditions)) for name, value in passed.items()}
            yield from made(stacks[name], passed, {})


def resources_of(environment, root, stacks):
    """The resources that an environment of samconfig.toml has."""
    chosen = tomlkit.parse((ROOT / "samconfig.toml").read_text()).unwrap()
    given = dict(entry.split("=", 1) for entry in chosen[environment]["deploy"]["parameters"]["parameter_overrides"])
    # scripts/deploy builds the images that an environment asks for.
    if given["Streams"] == "container":
        given |= {"StreamImage": "an image", "SandboxImage": "an image"}
    return list(made(root, given, stacks))


def bills_of_alarms(root, stacks):
    """The runbook says what the alarms of each environment cost."""
    for environment in ("dev", "staging", "prod"):
        alarm_bill(environment, resources_of(environment, root, stacks))


def stacks_of_environments(root, stacks):
    """The smallest stack costs nothing but its storage while it is idle; the big one has what it is there for."""
    for environment in ("dev", "prod"):
        types = [resource["Type"] for resource in resources_of(environment, root, stacks)]
        for kind in IDLE_COSTS:
            if environment == "dev" and kind in types:
                fault(f"samconfig.toml: dev makes {kind}, which costs money while nobody comes")
            if environment == "prod" and kind not in types:
                fault(f"samconfig.toml: prod makes no {kind}")
        bill = types.count("AWS::SecretsManager::Secret") * A_SECRET + POLLS_AND_SWEEPS
        if environment == "dev" and bill >= BOUND:
            fault(f"samconfig.toml: dev costs ${bill:.2f} a month while nobody comes, and the bound is ${BOUND:.2f}")


def reasons(stacks):
    """Whoever switches a check off says why."""
    for name, stack in stacks.items():
        for mapping in walk(stack):
            for skipped in mapping.get("checkov", {}).get("skip", []) if isinstance(mapping.get("checkov"), dict) else []:
                if not skipped.get("comment"):
                    fault(f"{name}: {skipped['id']} is switched off without a reason")


def toolchains():
    """The images are built with a Rust that the code can be built with, the same one everywhere in a file."""
    oldest = tomlkit.parse((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    parts = lambda version: [int(part) for part in version.split(".")]
    for path in sorted((ROOT / "infra/containers").glob("*.Dockerfile")):
        text = path.read_text()
        if "cargo" not in text:
            continue
        used = set(re.findall(r"(?:RUST=|RUSTUP_TOOLCHAIN=)([0-9.]+)", text))
        if len(used) != 1 or parts(used.pop()) < parts(oldest):
            fault(f"{path.relative_to(ROOT)}: its Rust has to be one, and {oldest} or newer (rust-version in Cargo.toml)")


def main():
    root = template("template.yaml")
    stacks = nested_stacks(root)
    if not FAULTS:
        environment(stacks)
        for check in (numbers, sums, table_errors, global_names, outlives, loops, sandboxes, credentials, sources, one_address, console, ways, scaling, rollbacks, restore, old_copies, logs, delays, throttles, sweeps, prices):
            check(stacks)
        stacks_of_environments(root, stacks)
        bills_of_alarms(root, stacks)
    choices(root)
    toolchains()
    reasons({"template.yaml": root, **stacks})
    for text in FAULTS:
        print(text, file=sys.stderr)
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
