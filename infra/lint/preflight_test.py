"""What scripts/deploy --check finds, in an account that is made up. Run by scripts/lint-infra."""

import sys
import unittest

import preflight
from preflight import Missing

ISSUER = "https://people.example.org/"
KEYS = "https://people.example.org/keys"
DOCUMENTS = {
    ISSUER + ".well-known/openid-configuration": {"issuer": ISSUER},
    KEYS: {"keys": [{"kty": "RSA"}]},
}
SMALL = {
    "AuthIssuer": ISSUER, "AuthJwksUrl": KEYS, "Egress": "direct", "Bus": "momento", "MomentoCache": "c", "WorkerConcurrency": "5",
}
BIG = {
    "AuthIssuer": ISSUER, "AuthJwksUrl": KEYS, "Egress": "nat", "NatPerZone": "true", "Bus": "valkey", "Streams": "container",
    "StreamImage": "1.dkr.ecr.us-east-1.amazonaws.com/buildscale-stream:abc", "SandboxImage": "1.dkr.ecr.us-east-1.amazonaws.com/buildscale-sandbox@sha256:12",
    "SandboxInstancesMax": "20", "WorkerConcurrency": "200", "ReserveConcurrency": "true", "DomainName": "agents.example.org",
    "CertificateArn": "arn:aws:acm:us-east-1:1:certificate/x",
}


class Account:
    """An account in which everything is as it should be, but for what a test changes."""

    docker = True

    def __init__(self, **changes):
        quotas = lambda value: {"Quota": {"Value": value}}
        self.answers = {
            "describe-stacks": Missing("does not exist"),
            "describe-secret": Missing("An error occurred (ResourceNotFoundException): there is no such secret"),
            "get-caller-identity": {"Arn": "arn:aws:sts::1:assumed-role/deployer/me"},
            "get-role": {"Role": {"Arn": "arn:aws:iam::1:role/teams/deployer"}},
            "simulate-principal-policy": {"EvaluationResults": [{"EvalActionName": "iam:CreateRole", "EvalDecision": "allowed"}]},
            "get-account-settings": {"AccountLimit": {"ConcurrentExecutions": 1000}},
            "describe-availability-zones": {
                "AvailabilityZones": [
                    {"ZoneName": f"us-east-1{letter}", "ZoneId": f"use1-az{number}", "State": "available"}
                    for letter, number in (("a", 1), ("b", 2), ("c", 3))
                ]
            },
            "describe-instance-type-offerings": {"InstanceTypeOfferings": [{"Location": "us-east-1a"}, {"Location": "us-east-1b"}]},
            "describe-addresses": {"Addresses": []},
            "describe-vpcs": {"Vpcs": [{}]},
            preflight.QUOTA_OF_ADDRESSES[1]: quotas(5.0),
            preflight.QUOTA_OF_NETWORKS[1]: quotas(5.0),
            preflight.QUOTA_OF_CPUS[1]: quotas(256.0),
            "describe-images": {"imageDetails": [{}]},
            "describe-certificate": {
                "Certificate": {"Status": "ISSUED", "DomainName": "example.org", "SubjectAlternativeNames": ["*.example.org"]}
            },
        }
        self.answers.update(changes)
        self.asked = []

    def ask(self, *words, region=None):
        self.asked.append((words, region))
        assert words[1].startswith(("describe-", "get-", "simulate-")), f"a check changes nothing: {words}"
        answer = self.answers[words[-1] if words[1] == "get-service-quota" else words[1]]
        if isinstance(answer, Missing):
            raise answer
        return answer

    def has_docker(self):
        return self.docker


def fetch(url, documents=DOCUMENTS):
    if url not in documents:
        raise Missing("404")
    return documents[url]


class Preflight(unittest.TestCase):
    def found(self, parameters, account=None, documents=DOCUMENTS):
        return preflight.faults(parameters, "buildscale-test", account or Account(), lambda url: fetch(url, documents))

    def one(self, words, parameters, account=None, documents=DOCUMENTS):
        found = self.found(parameters, account, documents)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_what_is_as_it_should_be_is_deployed(self):
        self.assertEqual(self.found(SMALL), [])
        self.assertEqual(self.found(BIG), [])

    def test_the_smallest_stack_asks_for_nothing_that_it_does_not_need(self):
        account = Account()
        self.found(SMALL, account)
        names = {words[1] for words, _ in account.asked}
        self.assertFalse(names & {"describe-addresses", "describe-images", "describe-availability-zones", "describe-certificate"}, names)

    def test_the_issuer_is_asked(self):
        self.one(["placeholder"], SMALL | {"AuthIssuer": preflight.PLACEHOLDER})
        self.one(["to the slash"], SMALL | {"AuthIssuer": ISSUER.rstrip("/")})
        self.one(["configuration cannot be read"], SMALL, documents={KEYS: DOCUMENTS[KEYS]})
        self.one(["keys", "cannot be read"], SMALL | {"AuthJwksUrl": "https://elsewhere.example"})
        self.one(["no key of RSA or EC"], SMALL, documents=DOCUMENTS | {KEYS: {"keys": [{"kty": "oct"}]}})

    def test_the_certificate_is_issued_for_the_name(self):
        held = lambda **of: Account(**{"describe-certificate": {"Certificate": {"Status": "ISSUED", "DomainName": "example.org"} | of}})
        self.one(["PENDING_VALIDATION"], BIG, held(Status="PENDING_VALIDATION", DomainName="agents.example.org"))
        self.one(["not for agents.example.org"], BIG, held())
        self.one(["CertificateArn"], BIG | {"CertificateArn": ""})
        account = Account()
        self.found(BIG, account)
        self.assertIn("us-east-1", [region for words, region in account.asked if words[1] == "describe-certificate"])

    def test_zones_have_what_runs_in_them(self):
        alone = Account()
        alone.docker = False
        self.one(["us-east-1c", "ElastiCache"], BIG | {"Zones": "us-east-1b,us-east-1c", "SandboxImage": ""}, alone)
        self.one(["no zone us-east-1z"], BIG | {"Zones": "us-east-1a,us-east-1z", "SandboxImage": ""}, alone)
        offered = Account(**{"describe-instance-type-offerings": {"InstanceTypeOfferings": [{"Location": "us-east-1a"}]}})
        self.one(["us-east-1b", "c7gd.xlarge"], BIG, offered)

    def test_quotas_are_large_enough(self):
        new = Account(**{"get-account-settings": {"AccountLimit": {"ConcurrentExecutions": 10}}})
        self.one(["Lambda runs 10", "15 are needed"], SMALL, new)
        self.one(["300 are needed"], BIG, Account(**{"get-account-settings": {"AccountLimit": {"ConcurrentExecutions": 299}}}))
        self.one(["elastic addresses"], BIG, Account(**{"describe-addresses": {"Addresses": [{}] * 4}}))
        self.one(["networks"], SMALL, Account(**{"describe-vpcs": {"Vpcs": [{}] * 5}}))
        self.one(["CPUs", "80"], BIG, Account(**{preflight.QUOTA_OF_CPUS[1]: {"Quota": {"Value": 5.0}}}))

    def test_images_are_there_or_can_be_built(self):
        self.assertEqual(len(self.found(BIG, Account(**{"describe-images": {"imageDetails": []}}))), 2)
        alone = Account()
        alone.docker = False
        self.one(["Docker"], BIG | {"StreamImage": ""}, alone)

    def test_images_that_are_built_later_are_reckoned_with(self):
        """The parameters of the environments name no image: scripts/deploy builds those that they ask for, and then adds them."""
        for environment in ("staging", "prod"):
            parameters, _, stack = preflight.settings(environment, [f"AuthIssuer={ISSUER}", f"AuthJwksUrl={KEYS}", "DomainName=", "CertificateArn="])
            few = lambda: Account(**{preflight.QUOTA_OF_CPUS[1]: {"Quota": {"Value": 1.0}}, "describe-instance-type-offerings": {"InstanceTypeOfferings": []}})
            found = self.found(parameters, few())
            self.assertTrue(any("CPUs" in fault for fault in found) and any("c7gd" in fault for fault in found), found)
            alone = few()
            alone.docker = False
            self.assertEqual([fault for fault in self.found(parameters, alone) if "CPUs" in fault or "c7gd" in fault], [], "none is built")

    def test_the_images_that_run_stay_where_none_is_built(self):
        kept = [{"ParameterKey": name, "ParameterValue": BIG[name]} for name in ("StreamImage", "SandboxImage")]
        alone = Account(**{"describe-stacks": {"Stacks": [{"StackStatus": "UPDATE_COMPLETE", "Parameters": kept}]}})
        alone.docker = False
        bare = {name: value for name, value in BIG.items() if not name.endswith("Image")}
        self.assertEqual(self.found(bare, alone), [])
        self.assertEqual({words[-1] for words, _ in alone.asked if words[1] == "describe-images"}, {"imageTag=abc", "imageDigest=sha256:12"})

    def test_the_caller_may_make_roles(self):
        denied = {"EvaluationResults": [{"EvalActionName": "iam:CreateRole", "EvalDecision": "implicitDeny"}, {"EvalActionName": "iam:PassRole", "EvalDecision": "allowed"}]}
        self.one(["role/teams/deployer may not iam:CreateRole"], SMALL, Account(**{"simulate-principal-policy": denied}))
        self.assertEqual(self.found(SMALL, Account(**{"get-caller-identity": {"Arn": "arn:aws:iam::1:root"}, "simulate-principal-policy": denied})), [])
        self.one(["the caller's rights", "AccessDenied"], SMALL, Account(**{"simulate-principal-policy": Missing("AccessDenied")}))

    def test_what_a_failed_deployment_left_is_told(self):
        self.one(["delete it"], SMALL, Account(**{"describe-stacks": {"Stacks": [{"StackStatus": "ROLLBACK_COMPLETE"}]}}))
        self.one(["somebody else"], SMALL, Account(**{"describe-stacks": {"Stacks": [{"StackStatus": "UPDATE_IN_PROGRESS"}]}}))

    def test_the_secret_of_a_stack_that_was_deleted_is_told(self):
        held = {"describe-secret": {"Name": "buildscale-test/webhooks"}}
        self.one(["buildscale-test/webhooks", "Delete"], SMALL, Account(**held))
        self.assertEqual(self.found(SMALL, Account(**held, **{"describe-stacks": {"Stacks": [{"StackStatus": "UPDATE_COMPLETE"}]}})), [])
        self.one(["buildscale-test/webhooks", "AccessDenied"], SMALL, Account(**{"describe-secret": Missing("AccessDenied")}))

    def test_a_check_that_cannot_be_made_is_a_fault(self):
        self.one(["Lambda's limit", "AccessDenied"], SMALL, Account(**{"get-account-settings": Missing("AccessDenied")}))

    def test_the_environments_of_samconfig_are_read(self):
        for environment in ("dev", "staging", "prod"):
            parameters, region, stack = preflight.settings(environment, ["WorkerConcurrency=7"])
            self.assertEqual((parameters["WorkerConcurrency"], region, stack), ("7", "us-east-1", f"buildscale-{environment}"))


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, argv=[sys.argv[0]]).result.wasSuccessful())
