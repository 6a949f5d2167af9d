"""Whether a deployment would come to its end: what it needs of the account and of the identity provider, asked before anything is made.

    preflight.py ENVIRONMENT [Parameter=value ...]

Run by scripts/deploy, with the Python of the tools of scripts/lint-infra. It only reads. Faults go to standard error, one a line, each
with what to do about it; then the exit code is 1.
"""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDER = "https://issuer.example/"
# Where ElastiCache Serverless is not offered, by AWS's documentation.
WITHOUT_VALKEY = {"use1-az3"}
# The machines of sandboxes, as in infra/containers.yaml, and their CPUs.
MACHINES = {"arm64": "c7gd.xlarge", "x86_64": "c6id.xlarge"}
CPUS = 4
# The concurrency that Lambda leaves to functions that reserve nothing.
UNRESERVED = 100
# For the api, the timer and streams, beside the workers.
OTHERS = 10
QUOTA_OF_ADDRESSES = ("ec2", "L-0263D0A3")
QUOTA_OF_CPUS = ("ec2", "L-1216C47A")
QUOTA_OF_NETWORKS = ("vpc", "L-F678F1CE")
# The rights that making the roles of the stack takes.
RIGHTS = ("iam:CreateRole", "iam:PutRolePolicy", "iam:PassRole", "iam:CreateServiceLinkedRole")


class Missing(Exception):
    """What was asked for is not there, or may not be asked for."""


class Account:
    """The account, by the AWS CLI."""

    def __init__(self, region):
        self.region = region

    def ask(self, *words, region=None):
        command = ["aws", *words, "--region", region or self.region, "--output", "json"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if asked.returncode != 0:
            raise Missing(asked.stderr.strip().splitlines()[-1] if asked.stderr.strip() else "no answer")
        return json.loads(asked.stdout or "{}")

    def has_docker(self):
        return shutil.which("docker") is not None and subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def fetch(url):
    """A JSON document of the identity provider."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ValueError, OSError) as error:
        raise Missing(str(error)) from error


def settings(environment, overrides, root=ROOT):
    """What the parameters of a deployment are, and its region and stack."""
    chosen = tomlkit.parse((root / "samconfig.toml").read_text()).unwrap()[environment]
    parameters = dict(entry.split("=", 1) for entry in chosen["deploy"]["parameters"]["parameter_overrides"])
    parameters.update(entry.split("=", 1) for entry in overrides)
    return parameters, chosen["global"]["parameters"]["region"], chosen["global"]["parameters"]["stack_name"]


def faults(given, stack, account, fetch=fetch):
    """Each reason why this deployment would fail, with what to do."""
    try:
        stacks = account.ask("cloudformation", "describe-stacks", "--stack-name", stack).get("Stacks", [])
    except Missing:
        stacks = []
    is_new = not stacks
    # A parameter that nobody names keeps its value.
    kept = {each["ParameterKey"]: each.get("ParameterValue", "") for each in (stacks[0].get("Parameters", []) if stacks else [])}
    parameters = kept | given
    value = lambda name, default="": parameters.get(name, default)
    networked, builds = value("Egress", "nat") != "direct", account.has_docker()
    containers = value("Streams", "function") == "container"
    # scripts/deploy builds the image after this check.
    sandboxes = networked and (builds or value("SandboxImage") != "")

    # A caller without the right to ask gets a message, too: a check that was not made is no reason to go on silently.
    def asked(what, *words, region=None):
        try:
            return account.ask(*words, region=region)
        except Missing as error:
            found.append(f"{what} cannot be asked for ({error})")
            return None

    found = []
    found += issuer(value("AuthIssuer"), value("AuthJwksUrl"), fetch)

    if value("DomainName"):
        found += certificate(value("DomainName"), value("CertificateArn"), asked)

    found += rights(asked)
    status = stacks[0]["StackStatus"] if stacks else ""
    if status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
        found.append(f"{stack} is what is left of a first deployment that failed: delete it (aws cloudformation delete-stack)")
    elif status.endswith("_IN_PROGRESS"):
        found.append(f"{stack} is being changed by somebody else ({status}): wait for its end")

    if is_new:
        found += left_behind(stack, account)

    limits = asked("Lambda's limit", "lambda", "get-account-settings")
    if limits:
        limit, workers = limits["AccountLimit"]["ConcurrentExecutions"], int(value("WorkerConcurrency", "50"))
        reserved = value("ReserveConcurrency", "false") == "true"
        needed = workers + (UNRESERVED if reserved else OTHERS)
        if limit < needed:
            found.append(
                f"Lambda runs {limit} functions at once in this account, and {needed} are needed: "
                "raise the quota (Service Quotas, Lambda, Concurrent executions), or set a smaller WorkerConcurrency"
            )

    if networked:
        found += zones(parameters, sandboxes, asked)
    if networked and is_new:
        nats = {"nat": 2 if value("NatPerZone", "false") == "true" else 1}.get(value("Egress", "nat"), 0)
        used = asked("elastic addresses", "ec2", "describe-addresses")
        if used:
            found += quota(QUOTA_OF_ADDRESSES, len(used["Addresses"]) + nats, "elastic addresses", asked)
    if is_new:
        used = asked("networks", "ec2", "describe-vpcs")
        if used:
            found += quota(QUOTA_OF_NETWORKS, len(used["Vpcs"]) + 1, "networks", asked)
    if sandboxes:
        found += quota(QUOTA_OF_CPUS, CPUS * int(value("SandboxInstancesMax", "4")), "CPUs of machines", asked)

    for image, wanted in (("StreamImage", containers), ("SandboxImage", sandboxes)):
        # One that is built takes the place of the one that ran.
        if wanted and value(image) and (image in given or not builds):
            found += in_registry(image, value(image), asked)
    if containers and not value("StreamImage") and not builds:
        found.append("Streams=container needs an image: start Docker, so that it is built, or set StreamImage")
    return found


def issuer(url, keys, fetch):
    if url == PLACEHOLDER or not url:
        return ["AuthIssuer is a placeholder: put your identity provider into samconfig.toml (AuthIssuer, AuthAudience, AuthJwksUrl)"]
    found = []
    try:
        said = fetch(url.rstrip("/") + "/.well-known/openid-configuration").get("issuer")
        if said != url:
            found.append(f"the identity provider calls itself {said!r}, and AuthIssuer is {url!r}: they have to be the same, to the slash")
    except Missing as error:
        found.append(f"the identity provider's configuration cannot be read below {url} ({error})")
    try:
        kinds = {key.get("kty") for key in fetch(keys).get("keys", [])}
        if not kinds & {"RSA", "EC"}:
            found.append(f"{keys} has no key of RSA or EC: tokens are RS256 or ES256")
    except Missing as error:
        found.append(f"the keys of the identity provider cannot be read at {keys} ({error})")
    return found


def rights(asked):
    """Whether the caller may make the roles of the stack: without that the first nested stack fails, after others were made."""
    caller = asked("the caller", "sts", "get-caller-identity")
    if not caller or caller["Arn"].endswith(":root"):
        return []
    arn = caller["Arn"]
    if ":assumed-role/" in arn:
        # The name of a session's role is without its path.
        role = asked("the caller's role", "iam", "get-role", "--role-name", arn.split("/")[1])
        if not role:
            return []
        arn = role["Role"]["Arn"]
    said = asked("the caller's rights", "iam", "simulate-principal-policy", "--policy-source-arn", arn, "--action-names", *RIGHTS)
    denied = [each["EvalActionName"] for each in said["EvaluationResults"] if each["EvalDecision"] != "allowed"] if said else []
    return [f"{arn} may not {', '.join(denied)}, which the roles of the stack need: deploy as somebody who may"] if denied else []


def left_behind(stack, account):
    """The secret that outlives a stack has its name: a new stack of this name cannot make its own."""
    secret = f"{stack}/webhooks"
    try:
        account.ask("secretsmanager", "describe-secret", "--secret-id", secret)
    except Missing as error:
        is_absent = "ResourceNotFoundException" in str(error)
        return [] if is_absent else [f"the secret {secret} cannot be asked for ({error})"]
    return [f"the secret {secret} is left of a stack that was deleted: it is the key of that one's table (infra/README.md, Delete)"]


def certificate(name, arn, asked):
    if not arn:
        return ["DomainName needs CertificateArn: a certificate of that name, of ACM in us-east-1"]
    held = asked("the certificate", "acm", "describe-certificate", "--certificate-arn", arn, region="us-east-1")
    if not held:
        return []
    held = held["Certificate"]
    found = []
    if held["Status"] != "ISSUED":
        found.append(f"the certificate is {held['Status']}, not ISSUED: put the record of its validation into the DNS")
    names = {held["DomainName"], *held.get("SubjectAlternativeNames", [])}
    if name not in names and "*." + name.split(".", 1)[-1] not in names:
        found.append(f"the certificate is for {', '.join(sorted(names))}, and not for {name}")
    return found


def zones(parameters, sandboxes, asked):
    known = asked("the zones", "ec2", "describe-availability-zones")
    if not known:
        return []
    ids = {zone["ZoneName"]: zone["ZoneId"] for zone in known["AvailabilityZones"] if zone["State"] == "available"}
    named = [zone for zone in parameters.get("Zones", "").split(",") if zone]
    chosen = named or sorted(ids)[:2]
    found = [f"there is no zone {zone} here: {', '.join(sorted(ids))}" for zone in chosen if zone not in ids]
    if len(chosen) != 2:
        found.append(f"two zones are needed, and there are {len(chosen)}")
    if parameters.get("Bus", "valkey") == "valkey":
        for zone in chosen:
            if ids.get(zone) in WITHOUT_VALKEY:
                found.append(f"{zone} ({ids[zone]}) has no ElastiCache Serverless: choose two others with Zones=")
    if sandboxes:
        machine = MACHINES[parameters.get("Architecture", "arm64")]
        filters = f"Name=instance-type,Values={machine}"
        offered = asked(
            "machines", "ec2", "describe-instance-type-offerings", "--location-type", "availability-zone", "--filters", filters
        )
        there = {offer["Location"] for offer in offered["InstanceTypeOfferings"]} if offered else set(chosen)
        for zone in chosen:
            if zone not in there:
                found.append(f"{zone} has no {machine}, on which sandboxes run: choose two others with Zones=")
    return found


def quota(which, needed, of, asked):
    service, code = which
    held = asked(f"the quota of {of}", "service-quotas", "get-service-quota", "--service-code", service, "--quota-code", code)
    if not held or held["Quota"]["Value"] >= needed:
        return []
    return [f"the quota of {of} is {held['Quota']['Value']:g}, and {needed} are needed: raise it (Service Quotas, {service}, {code})"]


def in_registry(parameter, image, asked):
    """An image of this account's registry: `ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG` or `…@sha256:…`."""
    name, _, rest = image.partition("/")[2].partition("@")
    if rest:
        by = f"imageDigest={rest}"
    else:
        name, _, tag = name.partition(":")
        by = f"imageTag={tag or 'latest'}"
    held = asked(parameter, "ecr", "describe-images", "--repository-name", name, "--image-ids", by)
    if held is not None and not held.get("imageDetails"):
        return [f"{parameter} is not in the registry: {image}"]
    return []


def main():
    environment, *overrides = sys.argv[1:]
    parameters, region, stack = settings(environment, overrides)
    found = faults(parameters, stack, Account(region))
    for fault in found:
        print(f"- {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
