"""What infra/lint/consistent.py finds in templates that are broken on purpose. Run by scripts/lint-infra."""

import copy
import unittest

import consistent

ROOT = consistent.template("template.yaml")
STACKS = consistent.nested_stacks(ROOT)


class Credentials(unittest.TestCase):
    """A sandbox reads no content of another workspace."""

    def found(self, change):
        """The faults of the templates after this change."""
        stacks = copy.deepcopy(STACKS)
        change(stacks["Containers"]["Resources"], stacks["Functions"]["Resources"])
        consistent.FAULTS.clear()
        consistent.credentials(stacks)
        return list(consistent.FAULTS)

    def test_the_templates_are_sound(self):
        self.assertEqual(self.found(lambda containers, functions: None), [])

    def test_a_sandbox_with_a_role_is_found(self):
        def change(containers, functions):
            containers["SandboxTask"]["Properties"]["TaskRoleArn"] = {"Fn::GetAtt": "StreamRole.Arn"}

        (fault,) = self.found(change)
        self.assertIn("a sandbox has a role", fault)

    def test_a_sandbox_with_keys_in_its_environment_is_found(self):
        def change(containers, functions):
            (container,) = containers["SandboxTask"]["Properties"]["ContainerDefinitions"]
            container["Environment"].append({"Name": "AWS_ACCESS_KEY_ID", "Value": "AKIA"})

        (fault,) = self.found(change)
        self.assertIn("AWS_ACCESS_KEY_ID", fault)

    def test_a_role_beside_a_sandbox_that_reads_contents_is_found(self):
        every = {"Sid": "Contents", "Effect": "Allow", "Resource": {"Fn::Sub": "arn:${AWS::Partition}:s3:::${BucketName}/*"}}
        for role in ("SandboxExecutionRole", "HostRole"):
            for actions in ("s3:GetObject", ["logs:PutLogEvents", "s3:*"], "*", "sts:AssumeRole"):
                def change(containers, functions):
                    (policy,) = containers[role]["Properties"]["Policies"]
                    policy["PolicyDocument"]["Statement"].append({**every, "Action": actions})

                with self.subTest(role=role, actions=actions):
                    (fault,) = self.found(change)
                    self.assertIn(f"{role} reads contents", fault)

    def test_a_role_with_rights_that_are_written_elsewhere_is_found(self):
        def change(containers, functions):
            containers["HostRole"]["Properties"]["ManagedPolicyArns"] = ["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"]

        (fault,) = self.found(change)
        self.assertIn("HostRole has rights", fault)

    def test_functions_that_may_give_a_sandbox_another_role_are_found(self):
        for roles in ("*", [{"Ref": "SandboxExecutionRoleArn"}, {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:role/other"}]):
            def change(containers, functions):
                statements = functions["Machines"]["Properties"]["PolicyDocument"]["Statement"]
                next(each for each in statements if each["Action"] == "iam:PassRole")["Resource"] = roles

            with self.subTest(roles=roles):
                (fault,) = self.found(change)
                self.assertIn("functions may start a sandbox with a role of its own", fault)


class Waits(unittest.TestCase):
    """Somebody hears of schedules that fail: a wait that is dropped is in no queue of dead letters."""

    def test_an_alarm_on_schedules_of_another_name_is_found(self):
        stacks = copy.deepcopy(STACKS)
        consistent.FAULTS.clear()
        consistent.delays(stacks)
        self.assertEqual(consistent.FAULTS, [])
        stacks["Data"]["Resources"]["SchedulerGroup"]["Properties"]["Name"] = {"Fn::Sub": "${Name}-waits"}
        consistent.delays(stacks)
        (fault,) = consistent.FAULTS
        self.assertIn("no alarm on schedules that fail", fault)


class Bills(unittest.TestCase):
    """The smallest stack costs less than two dollars a month while nobody comes."""

    def found(self, change):
        stacks = copy.deepcopy(STACKS)
        change(stacks)
        consistent.FAULTS.clear()
        consistent.stacks_of_environments(ROOT, stacks)
        return list(consistent.FAULTS)

    def test_the_smallest_stack_is_within_its_bound(self):
        self.assertEqual(self.found(lambda stacks: None), [])

    def test_a_secret_too_many_is_found(self):
        def change(stacks):
            stacks["Data"]["Resources"]["Another"] = {"Type": "AWS::SecretsManager::Secret"}

        (fault,) = self.found(change)
        self.assertIn("dev costs $2.23 a month", fault)

    def test_what_costs_money_while_nobody_comes_is_found(self):
        for kind in ("AWS::EC2::NatGateway", "AWS::CloudWatch::Alarm"):
            def change(stacks):
                stacks["Edge"]["Resources"]["Another"] = {"Type": kind}

            with self.subTest(kind=kind):
                (fault,) = self.found(change)
                self.assertIn(f"dev makes {kind}", fault)

    def test_alarms_that_are_not_free_are_found(self):
        stacks = copy.deepcopy(STACKS)
        for number in range(2):
            stacks["Watching"]["Resources"][f"Another{number}"] = {"Type": "AWS::CloudWatch::Alarm", "Condition": "IsWatched"}
        consistent.FAULTS.clear()
        consistent.prices(stacks)
        (fault,) = consistent.FAULTS
        self.assertIn("Alarms=few are 11 alarms", fault)


if __name__ == "__main__":
    unittest.main()
