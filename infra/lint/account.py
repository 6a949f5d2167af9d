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
