"""A small FlowKit coordinator in Python, written from the protocol's description. It carries out a script: a list of steps, one
after the other. It prints every record that workers send as a line of JSON, with the fields in the order of the wire.

    coordinator.py '{"brokers": "...", "mongo": "...", "database": "...", "prefix": "", "types": ["src"], "task_id": "...", "nodes": [...]}' '[...]'

    {"do": "start", "node": "u", "epoch": 1}       TASK_START, with the node's input; sent again until a worker has accepted it
    {"do": "await", "kind": "BATCH_OK", ...}        a status event with these fields in its payload, for which no earlier step has waited
    {"do": "online", "type": "src"}                 the announcement of a worker
    {"do": "discover", "node": "u", "epoch": 1}     TASK_DISCOVER, and its reply
    {"do": "signal", "node": "u"}                   CANCEL, to the worker that has accepted the node
    {"do": "flag"}                                  sets the cancel flag in the task's document
    {"do": "again"}                                 the last command again
    {"do": "raw", "topic": "...", "value": "..."}   any record
"""
import asyncio
import json
import sys
import uuid
from datetime import datetime, timezone

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError
from pymongo import AsyncMongoClient

from wire import Producer, Topics, consumer, envelope, now_ms

PARTITIONS = 2
AWAIT_SEC = 30
AGAIN_SEC = 3
CANCEL_GRACE_MS = 30_000


class Coordinator:
    def __init__(self, settings: dict) -> None:
        self.cfg = settings
        self.brokers = settings["brokers"]
        self.topics = Topics(settings.get("prefix", ""))
        self.task_id = settings["task_id"]
        self.nodes = {node["node_id"]: node for node in settings["nodes"]}
        self.db = AsyncMongoClient(settings["mongo"])[settings["database"]]
        self.producer = Producer(self.brokers)
        self.group = f"coord.{uuid.uuid4().hex[:6]}"
        # By topic: the records that have arrived, and for which no step has waited yet.
        self.heard: list[tuple[str, dict]] = []
        self.news = asyncio.Condition()
        self.leases: dict[str, str] = {}
        self.taken: set[tuple[str, int]] = set()
        self.last: tuple[str, str, dict] | None = None

    async def start(self) -> None:
        types = self.cfg["types"]
        listening = {self.topics.announce: "announce", self.topics.reply: "reply"}
        listening.update({self.topics.status(one): f"status.{one}" for one in types})
        await self.create_topics([*listening, self.topics.query, self.topics.signals, *(self.topics.cmd(one) for one in types)])
        await self.producer.start()
        self.joined = asyncio.Semaphore(0)
        self.loops = [asyncio.create_task(self.listen(topic, name)) for topic, name in listening.items()]
        for _ in listening:
            await self.joined.acquire()
        await self.insert_task()

    async def create_topics(self, names: list[str]) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names])
        except TopicAlreadyExistsError:
            # A worker has already created them.
            pass
        finally:
            await admin.close()

    async def insert_task(self) -> None:
        now = datetime.now(timezone.utc)
        graph = {"schema_version": "1.0", "nodes": list(self.nodes.values()), "edges": [], "edges_ex": []}
        document = {
            "id": self.task_id,
            "pipeline_id": self.task_id,
            "status": "running",
            "params": {},
            "graph": graph,
            "result": None,
            "status_history": [{"from": None, "to": "queued", "at": now.isoformat().replace("+00:00", "Z")}],
            "coordinator": {"liveness": {"state": "ok"}},
            "next_retry_at_ms": None,
            "started_at": now.isoformat(),
            "finished_at": None,
            "last_event_recv_ms": now_ms(),
        }
        await self.db.tasks.insert_one(document)

    async def listen(self, topic: str, name: str) -> None:
        records = await consumer(self.brokers, topic, f"{self.group}.{name}")
        # A group without an offset begins at the end of its topic at the moment of the assignment. From then on no record is missed.
        while not records.assignment():
            await asyncio.sleep(0.02)
        for partition in records.assignment():
            await records.position(partition)
        self.joined.release()
        async for record in records:
            key = None if record.key is None else record.key.decode()
            print(json.dumps({"topic": topic.removeprefix(self.topics.prefix), "key": key, "value": record.value}), flush=True)
            payload = record.value["payload"]
            if payload.get("kind") == "TASK_ACCEPTED":
                self.leases[record.value["node_id"]] = payload["worker_id"]
                self.taken.add((record.value["node_id"], record.value["attempt_epoch"]))
            async with self.news:
                self.heard.append((name, record.value))
                self.news.notify_all()
            await records.commit()

    async def hear(self, name: str, wanted: dict) -> dict:
        """The first record of a topic whose payload or envelope has all of these."""

        def found() -> dict | None:
            for at, (where, value) in enumerate(self.heard):
                if where.startswith(name) and wanted.items() <= {**value, **value["payload"]}.items():
                    return self.heard.pop(at)[1]
            return None

        async with self.news:
            return await asyncio.wait_for(self.next_news(found), AWAIT_SEC)

    async def next_news(self, found):
        while (value := found()) is None:
            await self.news.wait()
        return value

    # The steps.

    async def do_start(self, node: str, epoch: int = 1) -> None:
        io = self.nodes[node].get("io", {})
        kind = self.nodes[node]["type"]
        payload = {
            "cmd": "TASK_START",
            "input_ref": io.get("input_ref"),
            "input_inline": io.get("input_inline"),
            "batching": io.get("batching"),
            "cancel_token": str(uuid.uuid4()),
        }
        dedup = {"cmd": "CommandKind.TASK_START", "task_id": self.task_id, "node_id": node, "epoch": epoch}
        message = envelope("cmd", "coordinator", payload, dedup, **self.ids(node, epoch))
        self.last = (self.topics.cmd(kind), f"{self.task_id}:{node}", message)
        # A worker of the reference announces itself before its consumers are ready, and reads only records that are newer than these.
        for _ in range(AWAIT_SEC // AGAIN_SEC):
            await self.producer.send(*self.last)
            if await self.accepted(node, epoch):
                return
        raise TimeoutError(f"nobody has accepted {node}")

    async def accepted(self, node: str, epoch: int) -> bool:
        async with self.news:
            try:
                await asyncio.wait_for(self.news.wait_for(lambda: (node, epoch) in self.taken), AGAIN_SEC)
                return True
            except TimeoutError:
                return False

    async def do_again(self) -> None:
        await self.producer.send(*self.last)

    async def do_await(self, **wanted) -> None:
        await self.hear("status.", wanted)

    async def do_online(self, type: str) -> None:
        await self.hear("announce", {"kind": "WORKER_ONLINE", "type": type})

    async def do_offline(self) -> None:
        await self.hear("announce", {"kind": "WORKER_OFFLINE"})

    async def do_discover(self, node: str, epoch: int = 1) -> None:
        dedup = {"query": "QueryKind.TASK_DISCOVER", "task_id": self.task_id, "node_id": node, "epoch": epoch}
        payload = {"query": "TASK_DISCOVER", "want_epoch": epoch}
        query = envelope("query", "coordinator", payload, dedup, **self.ids(node, epoch))
        await self.producer.send(self.topics.query, self.task_id, query)
        await self.hear("reply", {"corr_id": query["corr_id"]})

    async def do_signal(self, node: str, epoch: int = 1) -> None:
        worker = self.leases[node]
        dedup = {"sig": "CANCEL", "task_id": self.task_id, "node": node, "epoch": epoch, "worker": worker}
        payload = {"sig": "CANCEL", "reason": "user_request", "cancel_token": None, "deadline_ts_ms": now_ms() + CANCEL_GRACE_MS}
        await self.producer.send(self.topics.signals, worker, envelope("event", "coordinator", payload, dedup, **self.ids(node, epoch), target=worker))

    async def do_flag(self) -> None:
        await self.db.tasks.update_one({"id": self.task_id}, {"$set": {"coordinator.cancelled": True, "coordinator.cancel_reason": "user_request"}})

    async def do_raw(self, topic: str, value: str) -> None:
        await self.producer.send_bytes(self.topics.prefix + topic, value.encode())

    def ids(self, node: str, epoch: int) -> dict:
        return {"task_id": self.task_id, "node_id": node, "step_type": self.nodes[node]["type"], "epoch": epoch}


async def main() -> None:
    coordinator = Coordinator(json.loads(sys.argv[1]))
    await coordinator.start()
    print(json.dumps({"ready": True}), flush=True)
    for step in json.loads(sys.argv[2]):
        do = step.pop("do")
        await getattr(coordinator, f"do_{do}")(**step)
    print(json.dumps({"over": True}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
