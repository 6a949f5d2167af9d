"""What infra/lint/consistent.py finds in templates that are broken on purpose. Run by scripts/lint-infra."""

import copy
import unittest

import consistent

ROOT = consistent.template("template.yaml")
STACKS = consistent.nested_stacks(ROOT)


def faults(check, change):
    """The faults that a check finds in the templates after a change."""
    stacks = copy.deepcopy(STACKS)
    change(stacks)
    consistent.FAULTS.clear()
    check(stacks)
    return list(consistent.FAULTS)


class Credentials(unittest.TestCase):
    """A sandbox reads no content of another workspace."""

    def found(self, change):
        """The faults of the templates after this change."""
        return faults(consistent.credentials, lambda stacks: change(stacks["Containers"]["Resources"], stacks["Functions"]["Resources"]))

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
        return faults(lambda stacks: consistent.stacks_of_environments(ROOT, stacks), change)

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
        self.assertIn("Alarms=few watch 12 metrics", fault)

    def test_metrics_of_one_alarm_are_paid_for_each(self):
        stacks = copy.deepcopy(STACKS)
        metrics = stacks["Watching"]["Resources"]["ChainsAreCut"]["Properties"]["Metrics"]
        metrics.append(copy.deepcopy(metrics[-1]))
        consistent.FAULTS.clear()
        consistent.prices(stacks)
        (fault,) = consistent.FAULTS
        self.assertIn("Alarms=few watch 11 metrics", fault)


class OldCopies(unittest.TestCase):
    """Old copies of indexes do not stay for as long as old contents."""

    def found(self, change):
        return faults(consistent.old_copies, lambda stacks: change(stacks["Data"]["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]))

    def test_a_rule_that_is_missing_or_has_another_prefix_is_found(self):
        self.assertEqual(self.found(lambda rules: None), [])
        prefixed = lambda rules: next(rule for rule in rules if "Prefix" in rule)
        for change in (lambda rules: rules.remove(prefixed(rules)), lambda rules: prefixed(rules).update(Prefix="indexes-")):
            (fault,) = self.found(change)
            self.assertIn("begin with index-", fault)


class Alarms(unittest.TestCase):
    """An alarm hears of a fault also while its other metrics were never sent, and of each operation of the table."""

    def found(self, check, change):
        return faults(check, lambda stacks: change(stacks["Watching"]["Resources"]))

    def test_the_templates_are_sound(self):
        for check in (consistent.sums, consistent.table_errors):
            self.assertEqual(self.found(check, lambda watching: None), [])

    def test_a_sum_that_may_stay_silent_is_found(self):
        for expression in ("SUM(METRICS())", "SUM(FILL(METRICS(), 0))", "FILL(worker, 0) + FILL(timer, 0)", "worker"):
            def change(watching):
                watching["ChainsAreCut"]["Properties"]["Metrics"][0]["Expression"] = expression

            with self.subTest(expression=expression):
                (fault,) = self.found(consistent.sums, change)
                self.assertIn("ChainsAreCut", fault)

    def test_an_operation_that_nobody_watches_is_found(self):
        def change(watching):
            metrics = watching["TableFails"]["Properties"]["Metrics"]
            metrics[:] = [metric for metric in metrics if metric["Id"] != "transact"]

        (fault,) = self.found(consistent.table_errors, change)
        self.assertIn("TransactWriteItems", fault)


class Silence(unittest.TestCase):
    """Somebody hears of calls that no function sees: those that Lambda refuses, and sweeps that do not run."""

    def found(self, check, change):
        return faults(check, change)

    def test_the_templates_are_sound(self):
        for check in (consistent.throttles, consistent.sweeps):
            self.assertEqual(self.found(check, lambda stacks: None), [])

    def test_a_function_whose_refused_calls_nobody_hears_of_is_found(self):
        for alarm, function in (("ProtocolsAreThrottled", "Protocols"), ("StreamsAreThrottled", "Stream"), ("TimerIsThrottled", "Timer")):
            with self.subTest(alarm=alarm):
                (fault,) = self.found(consistent.throttles, lambda stacks: stacks["Watching"]["Resources"].pop(alarm))
                self.assertIn(f"nobody hears of calls of {function}", fault)

    def test_sweeps_that_are_repeated_or_kept_for_hours_are_found(self):
        timer = lambda stacks: stacks["Functions"]["Resources"]["Timer"]["Properties"]
        for change in (
            lambda stacks: timer(stacks).pop("EventInvokeConfig"),
            lambda stacks: timer(stacks)["EventInvokeConfig"].pop("MaximumRetryAttempts"),
            lambda stacks: timer(stacks)["EventInvokeConfig"].update(MaximumEventAgeInSeconds=3600),
        ):
            (fault,) = self.found(consistent.sweeps, change)
            self.assertIn("Lambda repeats sweeps", fault)

    def test_a_sweep_that_dies_in_silence_is_found(self):
        for gone, metric in (("errors", "Errors"), ("dropped", "AsyncEventsDropped"), ("refused", "FailedInvocations")):
            def change(stacks):
                metrics = stacks["Watching"]["Resources"]["SweepsFail"]["Properties"]["Metrics"]
                metrics[:] = [each for each in metrics if each["Id"] != gone]

            with self.subTest(metric=metric):
                (fault,) = self.found(consistent.sweeps, change)
                self.assertIn(f"SweepsFail hears nothing of {metric}", fault)

    def test_an_alarm_that_hears_of_one_hourly_sweep_at_a_time_is_found(self):
        def change(stacks):
            metrics = stacks["Watching"]["Resources"]["SweepsFail"]["Properties"]["Metrics"]
            metrics[-1]["MetricStat"]["Period"] = 3600

        (fault,) = self.found(consistent.sweeps, change)
        self.assertIn("one sweep at a time", fault)

    def test_an_alarm_on_a_rule_of_another_name_is_found(self):
        def change(stacks):
            stacks["Functions"]["Resources"]["Timer"]["Properties"]["Events"]["Sweep"]["Properties"]["Name"] = {"Fn::Sub": "${Name}-sweeps"}

        (fault,) = self.found(consistent.sweeps, change)
        self.assertIn("a rule that does not call the timer", fault)

    def test_a_price_of_alarms_that_is_not_in_the_runbook_is_found(self):
        stacks = copy.deepcopy(STACKS)
        stacks["Watching"]["Resources"]["Another"] = stacks["Watching"]["Resources"]["BusFails"]
        consistent.FAULTS.clear()
        consistent.bills_of_alarms(ROOT, stacks)
        self.assertEqual(len(consistent.FAULTS), 2, "staging and prod")
        self.assertIn("cost 4.90, and the table says 4.80", consistent.FAULTS[0])


class Names(unittest.TestCase):
    """Stacks of one name in two regions of an account do not take each other's resources."""

    def found(self, change):
        return faults(consistent.global_names, change)

    def test_the_templates_are_sound(self):
        self.assertEqual(self.found(lambda stacks: None), [])

    def test_a_name_without_a_region_is_found(self):
        name = {"Fn::Sub": "${Name}-console"}
        for stack, resource, steps in (
            ("Edge", "ConsolePage", ["Name"]),
            ("Edge", "ConsoleAccess", ["OriginAccessControlConfig", "Name"]),
            ("Edge", "ConsoleHeaders", ["ResponseHeadersPolicyConfig", "Name"]),
            ("Edge", "BalancerOrigin", ["VpcOriginEndpointConfig", "Name"]),
            ("Edge", "Console", ["BucketName"]),
            ("Watching", "Dashboard", ["DashboardName"]),
            ("Functions", "ApiRole", ["RoleName"]),
        ):
            def change(stacks):
                value = stacks[stack]["Resources"][resource]["Properties"]
                for step in steps[:-1]:
                    value = value[step]
                value[steps[-1]] = name

            with self.subTest(resource=resource):
                (fault,) = self.found(change)
                self.assertIn(f"{resource} (AWS::", fault)


class Address(unittest.TestCase):
    """The last request of an upload goes where there is time for the copy that S3 makes."""

    def found(self, change):
        return faults(consistent.one_address, lambda stacks: change(stacks["Edge"]["Resources"]["Distribution"]["Properties"]["DistributionConfig"]["CacheBehaviors"], stacks["Functions"]["Resources"]))

    def test_the_templates_are_sound(self):
        self.assertEqual(self.found(lambda behaviours, functions: None), [])

    def test_uploads_without_time_are_found(self):
        def by_the_gateway(behaviours, functions):
            behaviours[:] = [each for each in behaviours if not each["PathPattern"].endswith("/uploads")]

        def cut_off(behaviours, functions):
            functions["Protocols"]["Properties"]["Timeout"] = 100

        for change in (by_the_gateway, cut_off):
            self.assertIn("edge.yaml: the last request of an upload has no 170 s for the copy that S3 makes", self.found(change))

    def test_long_answers_by_the_gateway_are_found(self):
        for path in ("/tools", "/export"):
            def by_the_gateway(behaviours, functions):
                behaviours[:] = [each for each in behaviours if not each["PathPattern"].endswith(path)]

            with self.subTest(path=path):
                self.assertEqual(self.found(by_the_gateway), [f"edge.yaml: /api/v1/workspaces/w{path} leads to the gateway, which cuts it off"])

    def test_an_error_of_one_person_for_the_next_is_found(self):
        def change(stacks):
            stacks["Edge"]["Resources"]["Distribution"]["Properties"]["DistributionConfig"]["CustomErrorResponses"].pop(2)

        self.assertEqual(faults(consistent.one_address, change), ["edge.yaml: CloudFront gives the error of one person to the next (404)"])


class Kept(unittest.TestCase):
    """The table and the key of what is sealed in it outlive the stack, and a wait outlives an hour of faults."""

    def found(self, check, change):
        return faults(check, lambda stacks: change(stacks["Data"]["Resources"]))

    def test_the_templates_are_sound(self):
        for check in (consistent.outlives, consistent.numbers):
            self.assertEqual(self.found(check, lambda data: None), [])

    def test_a_key_that_goes_with_the_stack_is_found(self):
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            (fault,) = self.found(consistent.outlives, lambda data: data["WebhookSecret"].pop(policy))
            self.assertIn("WebhookSecret goes with the stack", fault)

    def test_a_wait_that_a_fault_makes_late_or_kills_is_found(self):
        (fault,) = self.found(consistent.numbers, lambda data: data["Delays"]["Properties"].update(VisibilityTimeout=360))
        self.assertIn("delays are invisible for 360 s", fault)
        (fault,) = self.found(consistent.numbers, lambda data: data["Delays"]["Properties"]["RedrivePolicy"].update(maxReceiveCount=10))
        self.assertIn("dead after 0.3 hours", fault)


class Ways(unittest.TestCase):
    """Functions read files of the web that are in buckets of others; nothing writes to those, and sandboxes do not read them either."""

    def found(self, change):
        return faults(consistent.ways, lambda stacks: change(stacks["Network"]["Resources"]))

    def test_the_templates_are_sound(self):
        self.assertEqual(self.found(lambda network: None), [])

    def test_an_endpoint_that_keeps_functions_from_files_of_the_web_is_found(self):
        def change(network):
            policy = network["S3Endpoint"]["Properties"]["PolicyDocument"]
            policy["Statement"] = [statement for statement in policy["Statement"] if "Fn::If" not in statement]

        (fault,) = self.found(change)
        self.assertIn("S3Endpoint keeps functions from files of the web", fault)

    def test_a_way_to_buckets_of_others_is_found(self):
        anybodys = {"Sid": "Anybodys", "Effect": "Allow", "Principal": "*", "Resource": "*"}
        of_web = {"Fn::If": ["HasNat", {**anybodys, "Action": "s3:GetObject"}, {"Ref": "AWS::NoValue"}]}
        for endpoint, statement in (
            ("S3Endpoint", {**anybodys, "Action": "s3:*"}),
            ("S3Endpoint", {**anybodys, "Action": "s3:GetObject"}),
            ("S3EndpointOfSandboxes", {**anybodys, "Action": "s3:GetObject"}),
            ("S3EndpointOfSandboxes", of_web),
        ):
            with self.subTest(endpoint=endpoint, statement=statement):
                add = lambda network: network[endpoint]["Properties"]["PolicyDocument"]["Statement"].append(statement)
                (fault,) = self.found(add)
                self.assertIn(f"{endpoint} leads to buckets of others (Anybodys)", fault)

    def test_an_endpoint_without_a_policy_and_a_table_without_an_endpoint_are_found(self):
        (fault,) = self.found(lambda network: network["S3Endpoint"]["Properties"].pop("PolicyDocument"))
        self.assertIn("S3Endpoint lets everything", fault)
        (fault,) = self.found(lambda network: network.pop("S3EndpointOfSandboxes"))
        self.assertIn("each table of routes", fault)


class Updates(unittest.TestCase):
    """An update takes nothing back that came by itself, and what it breaks is heard of."""

    def found(self, check, change):
        return faults(check, change)

    def test_the_templates_are_sound(self):
        for check in (consistent.scaling, consistent.rollbacks, consistent.restore):
            self.assertEqual(self.found(check, lambda stacks: None), [])

    def test_a_number_of_containers_that_an_update_goes_back_to_is_found(self):
        def change(stacks):
            stacks["Containers"]["Resources"]["Stream"]["Properties"]["DesiredCount"] = {"Ref": "StreamTasks"}

        (fault,) = self.found(consistent.scaling, change)
        self.assertIn("Stream has a DesiredCount", fault)

    def test_a_function_whose_faults_nobody_hears_of_is_found(self):
        for alarm, metric, function in (
            ("ProtocolsFail", "Errors", "Protocols"),
            ("ProtocolsAnswerFaults", "Faults", "Protocols"),
            ("StreamsFail", "Errors", "Stream"),
            ("StreamsAnswerFaults", "Faults", "Stream"),
        ):
            def change(stacks):
                for named in stacks["Functions"]["Resources"][alarm]["Properties"]["Dimensions"]:
                    named["Value"] = {"Fn::Sub": "${Name}-api"}

            with self.subTest(alarm=alarm):
                (fault,) = self.found(consistent.rollbacks, change)
                self.assertIn(f"nobody hears of {metric} of {function}", fault)

    def test_a_function_whose_damaged_rows_nobody_hears_of_is_found(self):
        def summed_without(taking_out):
            def change(stacks):
                taking_out(stacks["Watching"]["Resources"]["RowsAreLeftOut"]["Properties"]["Metrics"])

            return change

        for what, taking_out in (
            ("the metric is missing", lambda metrics: metrics.remove(next(metric for metric in metrics if metric["Id"] == "stream"))),
            ("the sum is without it", lambda metrics: metrics[0].update(Expression="api + protocols + worker + timer")),
        ):
            with self.subTest(what):
                (fault,) = self.found(consistent.rollbacks, summed_without(taking_out))
                self.assertIn("nobody hears of rows that Stream leaves out", fault)

    def test_a_version_that_no_fault_takes_back_is_found(self):
        def change(stacks):
            preference = stacks["Functions"]["Resources"]["Protocols"]["Properties"]["DeploymentPreference"]
            preference["Alarms"]["Fn::If"][1][1]["Fn::If"][1] = {"Ref": "ProtocolsFail"}

        (fault,) = self.found(consistent.rollbacks, change)
        self.assertIn("a version of Protocols is taken back by Errors, and not by Faults", fault)

    def test_a_function_that_writes_while_a_table_is_restored_is_found(self):
        def change(stacks):
            functions = stacks["Functions"]["Resources"]
            functions["Another"] = copy.deepcopy(functions["Protocols"])

        (fault,) = self.found(consistent.restore, change)
        self.assertIn("another", fault)


if __name__ == "__main__":
    unittest.main()
