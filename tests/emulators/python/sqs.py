"""Starts LocalStack with three corrections of its FIFO queues, which real SQS does not need.

LocalStack 4.14 unlocks a message group as soon as one of its messages is visible again, although others of it are in flight;
and it stops returning messages whose visibility is over at the first one that is still invisible, of whatever group; and a group
whose last message was put aside stays locked for ever. SQS keeps a group locked while any of its messages is in flight, and
groups have nothing to do with each other.

    python sqs.py PORT FOLDER
"""

import os
import sys

port, folder = sys.argv[1:]
# LocalStack reads them when it is imported.
os.environ.update(
    GATEWAY_SERVER="hypercorn",
    GATEWAY_LISTEN=f"127.0.0.1:{port}",
    SERVICES="sqs,s3,scheduler,secretsmanager,ssm",
    STRICT_SERVICE_LOADING="1",
    EAGER_SERVICE_LOADING="1",
    DISABLE_EVENTS="1",
    # By itself it takes every presigned request, whatever its signature.
    S3_SKIP_SIGNATURE_VALIDATION="0",
    SKIP_SSL_CERT_DOWNLOAD="1",
    DNS_ADDRESS="0",
    SQS_DISABLE_CLOUDWATCH_METRICS="1",
    OVERRIDE_IN_DOCKER="0",
    FILESYSTEM_ROOT=folder,
    TMPDIR=folder,
)

from localstack.runtime.main import main  # noqa: E402
from localstack.services.sqs.models import FifoQueue  # noqa: E402


def _put_message(self, message):
    group = self.get_message_group(message.message_group_id)
    with self.mutex:
        group.push(message)
        if group in self.inflight_groups:
            # Unlocks it when nothing of it is in flight. A new one never does: it may be received right now.
            if message.receive_count > 0:
                self.update_message_group_visibility(group)
        elif group.size() == 1:
            self.message_group_queue.put_nowait(group)


def requeue_inflight_messages(self):
    with self.mutex:
        for message in [message for message in self.inflight if message.is_visible]:
            del self.inflight[message]
            self._put_message(message)


def receive(self, *arguments, **named):
    result = _receive(self, *arguments, **named)
    for message in result.dead_letter_messages:
        self.update_message_group_visibility(self.get_message_group(message.message_group_id))
    return result


_receive = FifoQueue.receive
FifoQueue.receive = receive
FifoQueue._put_message = _put_message
FifoQueue.requeue_inflight_messages = requeue_inflight_messages

if __name__ == "__main__":
    main()
