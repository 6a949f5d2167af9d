"""Checks of infra/lint/consistent.py about an account: its alarms, names that hold in all of its regions, and what outlives its stack or its use."""

import re

from faults import ROOT, fault, walk


def sums(stacks):
    """An alarm on several metrics adds them by plus signs: CloudWatch takes a missing value for 0 there, and FILL can hold an alarm at OK."""
    for stack in stacks.values():
        for name, resource in stack["Resources"].items():
            if resource["Type"] != "AWS::CloudWatch::Alarm" or "Metrics" not in resource["Properties"]:
                continue
            metrics = resource["Properties"]["Metrics"]
            named = [metric["Id"] for metric in metrics if "MetricStat" in metric]
            for expression in [metric["Expression"] for metric in metrics if "Expression" in metric]:
                if sorted(expression.split(" + ")) != sorted(named):
                    fault(f"{name}: {expression} does not add {', '.join(named)}, one by one")
            if len(named) > 10:
                fault(f"{name} has {len(named)} metrics, and an alarm takes ten")


def table_errors(stacks):
    """DynamoDB counts its errors by operation: the alarm watches those that the code calls."""
    sources = "".join(path.read_text() for path in sorted((ROOT / "shared/aws/src").rglob("dynamo*/**/*.rs"))) + (ROOT / "shared/aws/src/dynamo.rs").read_text()
    called = set(re.findall(r"\.((?:batch_|transact_)?(?:get|put|update|delete|write)_items?|query|scan)\(\)", sources))
    called = {"".join(part.capitalize() for part in name.split("_")) for name in called}
    alarm = stacks["Watching"]["Resources"]["TableFails"]["Properties"]
    watched = {each["Value"] for mapping in walk(alarm) for each in mapping.get("Dimensions", []) if each["Name"] == "Operation"}
    for name in sorted(called ^ watched):
        fault(f"watching.yaml: TableFails and shared/aws/src/dynamo.rs do not agree on {name}")


# Resources with a namespace for all regions of an account, and the ways to their names.
NAMED_GLOBALLY = {
    "AWS::CloudFront::Function": ["Name"],
    "AWS::CloudFront::KeyValueStore": ["Name"],
    "AWS::CloudFront::CachePolicy": ["CachePolicyConfig", "Name"],
    "AWS::CloudFront::OriginAccessControl": ["OriginAccessControlConfig", "Name"],
    "AWS::CloudFront::OriginRequestPolicy": ["OriginRequestPolicyConfig", "Name"],
    "AWS::CloudFront::ResponseHeadersPolicy": ["ResponseHeadersPolicyConfig", "Name"],
    "AWS::CloudFront::VpcOrigin": ["VpcOriginEndpointConfig", "Name"],
    "AWS::CloudWatch::Dashboard": ["DashboardName"],
    "AWS::IAM::Group": ["GroupName"],
    "AWS::IAM::InstanceProfile": ["InstanceProfileName"],
    "AWS::IAM::ManagedPolicy": ["ManagedPolicyName"],
    "AWS::IAM::Role": ["RoleName"],
    "AWS::IAM::User": ["UserName"],
    "AWS::S3::Bucket": ["BucketName"],
}


def global_names(stacks):
    """Two stacks of one name in two regions do not meet: a name that holds in all regions has the region in it."""
    for stack in stacks.values():
        for name, resource in stack["Resources"].items():
            value = resource.get("Properties", {})
            for step in NAMED_GLOBALLY.get(resource["Type"], [None]):
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None and "${AWS::Region}" not in str(value):
                fault(f"{name} ({resource['Type']}) is named {value} in all regions: put ${{AWS::Region}} into it")


def outlives(stacks):
    """The table outlives its stack, and so does the key of what is sealed in it."""
    data = stacks["Data"]["Resources"]
    for name, policies in (("Table", {"Retain"}), ("Bucket", {"Retain"}), ("WebhookSecret", {"Retain", "RetainExceptOnCreate"})):
        if data[name].get("DeletionPolicy") not in policies or data[name].get("UpdateReplacePolicy") != "Retain":
            fault(f"data.yaml: {name} goes with the stack")


def old_copies(stacks):
    """Old copies of indexes go after a day: their rule has the prefix that the code gives them. The other rules hold for contents, too."""
    source = (ROOT / "shared/ports/src/search.rs").read_text()
    prefix = re.search(r'fn kept_index_space.*?format!\("([a-z-]+)\{', source, re.S)[1]
    rules = stacks["Data"]["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    if [rule["Prefix"] for rule in rules if "Prefix" in rule] != [prefix]:
        fault(f"data.yaml: no rule is about copies of indexes, whose keys begin with {prefix}, and about them alone")


def throttles(stacks):
    """Lambda refuses calls beyond the account's concurrency by itself: no function runs that could count them."""
    alarms = [each["Properties"] for each in stacks["Watching"]["Resources"].values() if each["Properties"].get("MetricName") == "Throttles"]
    watched = [named["Value"] for alarm in alarms for named in alarm["Dimensions"]]
    for name, resource in stacks["Functions"]["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function" and resource["Properties"]["FunctionName"] not in watched:
            fault(f"watching.yaml: nobody hears of calls of {name} that Lambda refuses")


def sweeps(stacks):
    """A sweep is an asynchronous call: it is repeated by the next one alone, and somebody hears of one that does not come to its end."""
    functions = stacks["Functions"]["Resources"]
    invoked = functions["Timer"]["Properties"].get("EventInvokeConfig", {})
    if invoked.get("MaximumRetryAttempts") != 0 or invoked.get("MaximumEventAgeInSeconds", 21600) > 120:
        fault("functions.yaml: Lambda repeats sweeps that failed, and keeps those for hours that it could not run")
    alarm = stacks["Watching"]["Resources"]["SweepsFail"]["Properties"]
    heard = {mapping["MetricName"] for mapping in walk(alarm) if "MetricName" in mapping}
    for metric in sorted({"SweepsFailed", "Errors", "AsyncEventsDropped", "FailedInvocations"} - heard):
        fault(f"watching.yaml: SweepsFail hears nothing of {metric}, and such a sweep counts nothing itself")
    # By its name: an alarm on a rule of another name would watch nothing, in silence.
    rules = [named["Value"] for mapping in walk(alarm) for named in mapping.get("Dimensions", []) if named["Name"] == "RuleName"]
    if any(rule != functions["Timer"]["Properties"]["Events"]["Sweep"]["Properties"]["Name"] for rule in rules):
        fault("watching.yaml: SweepsFail watches a rule that does not call the timer")
    # A sweep that dies counts as an error and as a dropped event, so two of them reach the threshold of three.
    longest = 60 * int(re.search(r"\n  SweepMinutes:\n.*?MaxValue: (\d+)", (ROOT / "template.yaml").read_text(), re.S)[1])
    if any(mapping["Period"] < 2 * longest for mapping in walk(alarm) if "Period" in mapping):
        fault(f"watching.yaml: SweepsFail hears of one sweep at a time where one comes in {longest} s, and stays below its threshold")
    # A sweep whose time is up leaves its claim of a deleted workspace behind, which keeps the next one away for as long as it stands.
    claim = int(re.search(r"CLAIMED_FOR: Duration = Duration::from_secs\((\d+)\)", (ROOT / "shared/workspace/src/remains.rs").read_text())[1])
    shortest = 60 * int(re.search(r"\n  SweepMinutes:\n.*?MinValue: (\d+)", (ROOT / "template.yaml").read_text(), re.S)[1])
    if claim >= shortest:
        fault(f"a sweep claims a deleted workspace for {claim} s, and the next one comes after {shortest} s: it would fail")


def alarm_bill(environment, resources):
    """The runbook says what the alarms of an environment cost: ten metrics are free, and each other one is ten cents a month."""
    alarms = [resource.get("Properties", {}) for resource in resources if resource["Type"] == "AWS::CloudWatch::Alarm"]
    metrics = sum(len([each for each in alarm.get("Metrics", [{"MetricStat": None}]) if "MetricStat" in each]) for alarm in alarms)
    row = re.search(r"\| alarms; ten metrics per account are free \(`Alarms`\) \|([^|]*)\|([^|]*)\|([^|]*)\|", (ROOT / "infra/README.md").read_text())
    told = row[1 + ("dev", "staging", "prod").index(environment)].strip()
    costs = f"{max(metrics - 10, 0) * 0.1:.2f}" if metrics else ""
    if told != costs:
        fault(f"infra/README.md: the {metrics} metrics of alarms of {environment} cost {costs or 'nothing'}, and the table says {told or 'nothing'}")
