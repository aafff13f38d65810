"""FlowKit's wire as its reference speaks it: envelopes, ids, topics, and how its Kafka clients are set up."""
import hashlib
import json
import time
import uuid
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


def now_ms() -> int:
    return int(time.time() * 1000)


def stable_hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode(value: bytes) -> dict:
    return json.loads(value.decode())


@dataclass(frozen=True)
class Topics:
    """A prefix keeps the tests on one broker apart; all six names are configurable in the reference."""

    prefix: str = ""

    def cmd(self, role: str) -> str:
        return f"{self.prefix}cmd.{role}.v1"

    def status(self, role: str) -> str:
        return f"{self.prefix}status.{role}.v1"

    @property
    def announce(self) -> str:
        return f"{self.prefix}workers.announce.v1"

    @property
    def query(self) -> str:
        return f"{self.prefix}query.tasks.v1"

    @property
    def reply(self) -> str:
        return f"{self.prefix}reply.tasks.v1"

    @property
    def signals(self) -> str:
        return f"{self.prefix}signals.v1"


def envelope(
    msg_type: str,
    sender: str,
    payload: dict,
    dedup: object,
    *,
    task_id: str = "*",
    node_id: str = "*",
    step_type: str = "*",
    epoch: int = 0,
    corr_id: str | None = None,
    target: str | None = None,
) -> dict:
    """All fields are always written, in this order."""
    return {
        "v": 1,
        "msg_type": msg_type,
        "role": sender,
        "corr_id": corr_id or str(uuid.uuid4()),
        "dedup_id": stable_hash(dedup),
        "task_id": task_id,
        "node_id": node_id,
        "step_type": step_type,
        "attempt_epoch": epoch,
        "ts_ms": now_ms(),
        "payload": payload,
        "target_worker_id": target,
    }


class Producer:
    """Waits for each record to be acknowledged before the next."""

    def __init__(self, brokers: str) -> None:
        self._producer = AIOKafkaProducer(bootstrap_servers=brokers, enable_idempotence=True)

    async def start(self) -> None:
        await self._producer.start()

    async def send(self, topic: str, key: str | None, value: dict) -> None:
        await self._producer.send_and_wait(topic, encode(value), key=None if key is None else key.encode())

    async def send_bytes(self, topic: str, value: bytes) -> None:
        await self._producer.send_and_wait(topic, value)

    async def stop(self) -> None:
        await self._producer.stop()


async def consumer(brokers: str, topic: str, group: str, reset: str = "latest", look_ms: int = 300_000) -> AIOKafkaConsumer:
    """The settings of the reference: it commits itself, and everything else has the defaults of aiokafka, so the only assignor is `roundrobin`.
    The default interval for new partitions is five minutes, which is too long for a test."""
    more = {"enable_auto_commit": False, "auto_offset_reset": reset, "metadata_max_age_ms": look_ms, "value_deserializer": decode}
    made = AIOKafkaConsumer(topic, bootstrap_servers=brokers, group_id=group, **more)
    await made.start()
    return made
