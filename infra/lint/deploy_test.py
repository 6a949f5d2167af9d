"""What scripts/deploy and scripts/rotate do, in which order, with programs that are made up. Run by scripts/lint-infra."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A program that notes how it was called, and answers from a table. A call that the table lacks fails the test.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
call = [name, *words]
if "--password-stdin" in words:
    # Else the program before it has nobody to write to.
    sys.stdin.read()
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps(call), file=calls)
for word in words:
    if word.startswith("file://"):
        with open(os.environ["GIVEN"], "a") as given:
            print(json.dumps(open(word[7:]).read()), file=given)
for start, said, code, writes in json.loads(os.environ["ANSWERS"]):
    if call[: len(start)] == start:
        for path, text in writes.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").write(text)
        print(said)
        sys.exit(code)
print("no answer for", call, file=sys.stderr)
sys.exit(97)
"""
BUILT = ".aws-sam/build/Functions/template.yaml"
REGISTRY = "1.dkr.ecr.us-east-1.amazonaws.com"


def answer(start, said="", code=0, writes=None):
    return [start.split(), said, code, writes or {}]


USUAL = [
    answer("aws sts get-caller-identity", "1"),
    answer("preflight"),
    answer("cargo lambda --version", "1.9.2"),
    answer("console"),
    answer("git rev-parse --short=12 HEAD", "abcdef012345"),
    answer("git status --porcelain"),
    answer("aws iam create-service-linked-role", code=254),
    answer("docker info", code=1),
    answer("sam build", writes={BUILT: "      configuration: none\n"}),
    answer("sam deploy"),
    answer("aws cloudformation describe-stacks", "the-bucket"),
    answer("aws s3 cp"),
]
DOCKER = [
    answer("docker info"),
    answer("aws cloudformation deploy --region us-east-1 --stack-name buildscale-images"),
    answer("aws ecr get-login-password", "secret"),
    answer("docker login --username AWS --password-stdin"),
    answer("aws ecr describe-images", code=254),
    answer("docker buildx build"),
]


class Programs(unittest.TestCase):
    """A copy of the scripts, with a program in the place of each that they call."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        programs = self.folder / "programs"
        for folder in ("scripts", "infra/lint", "programs", "tools"):
            (self.folder / folder).mkdir(parents=True)
        for path in ("scripts/deploy", "samconfig.toml", "Cargo.toml"):
            shutil.copy(ROOT / path, self.folder / path)
        for name in ("aws", "docker", "git", "cargo", "console", "preflight", "sam"):
            self.program(programs / name)
        self.program(self.folder / "tools/sam")
        # Its findings are tested in preflight_test.py; here it is called like any other program.
        (self.folder / "infra/lint/preflight.py").write_text(
            f"import os, sys\nos.execv({str(programs / 'preflight')!r}, ['preflight', *sys.argv[1:]])\n"
        )
        self.script("scripts/console", f"exec {programs}/console")
        self.script("scripts/lint-infra", f"echo {self.folder}/tools")
        self.script("tools/python", f'exec {sys.executable} "$@"')

    def program(self, path):
        path.write_text(PROGRAM)
        path.chmod(0o755)

    def script(self, path, line):
        (self.folder / path).write_text(f"#!/bin/sh\n{line}\n")
        (self.folder / path).chmod(0o755)

    def ran(self, script, words, answers, code):
        """The calls of a script with these answers, the contents of the files that they were given, and what it printed."""
        calls, given = self.folder / "calls", self.folder / "given"
        calls.write_text("")
        given.write_text("")
        environment = {
            "PATH": f"{self.folder}/programs:/usr/bin:/bin", "HOME": str(self.folder), "CALLS": str(calls), "GIVEN": str(given),
            "ANSWERS": json.dumps(answers),
        }
        done = subprocess.run(
            [self.folder / "scripts" / script, *words], env=environment, capture_output=True, text=True, check=False, timeout=60,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        read = lambda log: [json.loads(line) for line in log.read_text().splitlines()]
        return read(calls), read(given), done.stdout + done.stderr


class Deploy(Programs):
    def deploy(self, *words, answers=(), code=0):
        """The calls of a deployment with these answers before the usual ones, and what it printed."""
        calls, _, said = self.ran("deploy", words, [*answers, *USUAL], code)
        return calls, said

    def made(self, calls):
        """The calls that make something, by their first words."""
        looks = (["preflight"], ["git"], ["cargo"], ["aws", "sts"], ["docker", "info"], ["aws", "ecr", "describe-images"], ["aws", "cloudformation", "describe-stacks"])
        return [" ".join(call[:3]) for call in calls if not any(call[: len(look)] == look for look in looks)]

    def overrides(self, calls):
        call = next(call for call in calls if call[:2] == ["sam", "deploy"])
        return call[call.index("--parameter-overrides") + 1 :]

    def test_the_smallest_is_checked_built_deployed_and_gets_its_page_last(self):
        calls, said = self.deploy("dev", "AuthIssuer=https://people.example.org/", "Note=two words, one parameter")
        self.assertEqual(calls[1][:2], ["aws", "sts"])
        self.assertEqual(calls[2][:2], ["preflight", "dev"])
        wanted = ["console", "aws iam create-service-linked-role", "sam build --config-env", "sam deploy --config-env", "aws s3 cp", "aws s3 cp"]
        self.assertEqual(self.made(calls), wanted)
        given = self.overrides(calls)
        self.assertIn("Note=two words, one parameter", given)
        self.assertIn("Egress=direct", given, "those of samconfig.toml stay")
        self.assertEqual([one for one in given if one.startswith("AuthIssuer=")][-1], "AuthIssuer=https://people.example.org/", "those given come on top")
        self.assertFalse([one for one in given if "Image=" in one])
        self.assertIn("the containers stay as they are", said)
        self.assertIn("s3://the-bucket/assets", calls[-2])
        self.assertEqual(calls[-1][-1], "s3://the-bucket/index.html", "the page comes when all that it asks is there")

    def test_a_change_of_parameters_alone_reaches_the_functions(self):
        seen = set()
        for value in ("one", "two"):
            self.deploy("dev", f"Note={value}")
            text = (self.folder / BUILT).read_text()
            self.assertNotIn("none", text)
            seen.add(text)
        self.assertEqual(len(seen), 2)
        broken = answer("sam build", writes={BUILT: "nothing\n"})
        calls, said = self.deploy("dev", answers=[broken], code=1)
        self.assertIn("no place for the hash", said)
        self.assertNotIn("sam deploy --config-env", self.made(calls))

    def test_images_are_built_before_what_runs_them_and_each_once(self):
        big = ("prod", "Streams=container", "Egress=nat", "Architecture=x86_64")
        calls, _ = self.deploy(*big, answers=DOCKER)
        builds = [call for call in calls if call[:3] == ["docker", "buildx", "build"]]
        self.assertEqual([call[call.index("--file") + 1] for call in builds], [f"infra/containers/{name}.Dockerfile" for name in ("stream", "sandbox")])
        self.assertTrue(all("linux/amd64" in call and "--push" in call for call in builds))
        made = self.made(calls)
        self.assertLess(made.index("aws cloudformation deploy"), made.index("docker buildx build"))
        self.assertLess(made.index("docker buildx build"), made.index("sam deploy --config-env"))
        tags = {f"{name}Image={REGISTRY}/buildscale-{name.lower()}:abcdef012345" for name in ("Stream", "Sandbox")}
        self.assertLessEqual(tags, set(self.overrides(calls)))
        there = answer("aws ecr describe-images")
        calls, _ = self.deploy(*big, answers=[there, *DOCKER])
        self.assertNotIn("docker buildx build", self.made(calls), "a tag never changes its meaning")
        self.assertLessEqual(tags, set(self.overrides(calls)))

    def test_an_image_that_is_given_stays(self):
        own = "SandboxImage=1.dkr.ecr.us-east-1.amazonaws.com/mine:agents"
        calls, _ = self.deploy("prod", "Streams=container", "Egress=nat", own, answers=DOCKER)
        self.assertEqual([one for one in self.overrides(calls) if one.startswith("SandboxImage=")], [own])
        builds = [call[call.index("--file") + 1] for call in calls if call[:3] == ["docker", "buildx", "build"]]
        self.assertEqual(builds, ["infra/containers/stream.Dockerfile"])

    def test_a_check_makes_nothing(self):
        calls, said = self.deploy("--check", "prod", "Egress=nat")
        self.assertEqual(calls, [["aws", "sts", "get-caller-identity", "--query", "Account", "--output", "text"], ["preflight", "prod", "Egress=nat"]])
        self.assertIn("has all prerequisites of prod", said)

    def test_what_would_not_come_to_its_end_is_not_begun(self):
        calls, said = self.deploy("dev", answers=[answer("preflight", "the certificate is of another name", code=1)], code=1)
        self.assertEqual(self.made(calls), [])
        self.assertIn("the certificate is of another name", said)
        self.assertIn("Nothing was made", said)
        _, said = self.deploy("dev", answers=[answer("aws sts get-caller-identity", code=255)], code=1)
        self.assertIn("aws sso login", said)
        calls, said = self.deploy("prod", answers=[answer("git status --porcelain", " M template.yaml")], code=1)
        self.assertEqual(self.made(calls), ["console"])
        self.assertIn("needs a commit", said)
        self.assertEqual(self.deploy("production", code=2)[0], [])

    def test_settings_that_cannot_be_read_end_it(self):
        path = self.folder / "samconfig.toml"
        path.write_text(path.read_text().replace("parameter_overrides", "overrides"))
        calls, said = self.deploy("dev", code=1)
        self.assertEqual(self.made(calls), ["console"])
        self.assertIn("no parameter_overrides of dev", said)

    def test_a_step_that_fails_ends_it(self):
        for fails, after in (("sam build", "sam deploy --config-env"), ("sam deploy", "aws s3 cp"), ("console", "sam build --config-env")):
            calls, _ = self.deploy("dev", answers=[answer(fails, code=3)], code=3)
            self.assertNotIn(after, self.made(calls), fails)
        fails = answer("docker buildx build", code=4)
        calls, _ = self.deploy("prod", "Egress=nat", "Streams=container", answers=[fails, *DOCKER], code=4)
        self.assertNotIn("sam build --config-env", self.made(calls), "an image that is not there is not deployed")


class Rotate(Programs):
    """A secret reaches AWS by a file, and so no list of processes; the functions take it up as its kind wants."""

    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "scripts/rotate", self.folder / "scripts/rotate")
        self.program(self.folder / "programs/deploy")
        self.script("scripts/deploy", f'exec {self.folder}/programs/deploy "$@"')
        self.keys = self.folder / "keys"

    def rotate(self, *words, answers=(), code=0):
        return self.ran("rotate", words, [*answers, answer("deploy")], code)

    def test_the_key_of_momento_becomes_a_parameter_that_costs_nothing_and_needs_no_deployment(self):
        self.keys.write_text("a key of momento\n")
        put = answer("aws ssm put-parameter", "2")
        calls, given, said = self.rotate("dev", "momento", str(self.keys), answers=[put])
        (call,) = calls
        self.assertEqual(call[call.index("--name") + 1], "/buildscale-dev/momento")
        self.assertEqual(call[call.index("--type") + 1], "SecureString")
        self.assertEqual(call[call.index("--tier") + 1], "Standard")
        self.assertIn("--overwrite", call)
        self.assertEqual(given, ["a key of momento"])
        self.assertNotIn("a key of momento", json.dumps(calls) + said)

    def test_keys_of_models_become_a_version_that_is_deployed(self):
        self.keys.write_text('{"OPENAI_API_KEY": "sk", "ANTHROPIC_API_KEY": " ", "GEMINI_API_KEY": " ", "OPENROUTER_API_KEY": " "}')
        put = answer("aws secretsmanager put-secret-value", "v7")
        calls, given, _ = self.rotate("prod", "models", str(self.keys), answers=[put])
        self.assertIn("buildscale-prod/models", calls[0])
        self.assertEqual(calls[1:], [["deploy", "prod", "ModelKeysVersion=v7"]])
        self.assertEqual(given, [self.keys.read_text()])
        self.keys.write_text('{"OPENAI_API_KEY": "sk"}')
        calls, _, said = self.rotate("prod", "models", str(self.keys), answers=[put], code=1)
        self.assertEqual(calls, [])
        self.assertIn("ANTHROPIC_API_KEY is missing", said)

    def test_keys_of_models_that_are_no_object_of_texts_become_no_version(self):
        names = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"]
        whole = dict.fromkeys(names, " ")
        for text in (json.dumps(whole)[:-1], json.dumps(names), json.dumps({**whole, "OPENAI_API_KEY": 7}), json.dumps(json.dumps(whole))):
            self.keys.write_text(text)
            calls, given, said = self.rotate("prod", "models", str(self.keys), code=1)
            self.assertEqual((calls, given), ([], []), text)
            self.assertIn("the file is no JSON", said)

    def test_the_next_key_of_tickets_is_known_everywhere_before_it_signs(self):
        drawn = answer("aws secretsmanager get-random-password", "fresh")
        put = answer("aws secretsmanager put-secret-value", "v2")
        has = answer("aws secretsmanager get-secret-value", "signs\nnext\nbefore")
        calls, given, _ = self.rotate("dev", "tickets", answers=[has, drawn, put])
        self.assertEqual(given, ["next\nfresh\nsigns"])
        self.assertEqual(calls[-1], ["deploy", "dev", "TicketSecretVersion=v2"])

    def test_a_rotation_of_nothing_is_refused(self):
        for words in (("dev",), ("dev", "momento"), ("dev", "webhooks"), ("production", "tickets")):
            self.assertEqual(self.rotate(*words, code=2)[0], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
