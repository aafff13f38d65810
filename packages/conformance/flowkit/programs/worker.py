"""A FlowKit worker in Python, written from the protocol's description. Its records, documents and algorithms are exactly those of the
reference, and it behaves in the same way:

- It announces itself before its consumers are ready, and sends its capabilities only once.
- It shares one query group with all other workers.
- It runs one task at a time. During this time its command consumers are paused, and it drops commands that still arrive.
- It claims upstream batches without an epoch, and reads only the oldest 200 of them.
- A cancel that arrives while it waits for its input counts as the end of the input.
- When it stops, it sends nothing about its running task.

    worker.py '{"brokers": "...", "mongo": "...", "database": "...", "prefix": "", "roles": {"src": "produce"}, "worker_id": null}'
"""
import asyncio
import json
import signal
import sys
import uuid
from collections import OrderedDict

from aiokafka.errors import KafkaError
from pymongo import ASCENDING, AsyncMongoClient
from pymongo.errors import PyMongoError

from adapters import ADAPTERS, AdapterArguments, normalise, validate
from context import Artifacts, Cancelled, Context, utc_now
from handlers import HANDLERS
from wire import Producer, Topics, consumer, envelope, now_ms, stable_hash

DEFAULTS = {
    "prefix": "",
    "worker_id": None,
    "lease_ttl_sec": 60,
    "hb_interval_sec": 20,
    "announce_interval_sec": 60,
    "db_cancel_poll_ms": 500,
    "pull_poll_ms_default": 300,
    "pull_empty_backoff_ms_max": 4000,
    "strict_input_adapters": False,
    # The reference writes `status` in `$set` and in `$setOnInsert` of one update, which MongoDB refuses.
    "overlapping_upsert": False,
    # The interval in which its consumers look for new partitions: aiokafka's default.
    "metadata_max_age_ms": 300_000,
}
VERSION = "2.0.0"
DEDUP_SIZE = 10_000
DEDUP_TTL_MS = 3_600_000


class Worker:
    def __init__(self, settings: dict) -> None:
        self.cfg = {**DEFAULTS, **settings}
        self.id = self.cfg["worker_id"] or f"w-{uuid.uuid4().hex[:8]}"
        self.roles = list(self.cfg["roles"])
        self.topics = Topics(self.cfg["prefix"])
        self.db = AsyncMongoClient(self.cfg["mongo"])[self.cfg["database"]]
        self.producer = Producer(self.cfg["brokers"])
        self.commands: dict[str, object] = {}
        self.others: list = []
        self.tasks: set[asyncio.Task] = set()
        self.seen: OrderedDict[str, int] = OrderedDict()
        self.run: dict | None = None
        self.busy = False
        self.stopping = False
        self.flag = asyncio.Event()

    async def start(self) -> None:
        await self.create_indexes()
        await self.producer.start()
        state = await self.db.worker_state.find_one({"_id": self.id})
        run = (state or {}).get("active_run")
        self.run = run if run and run["step_type"] in self.roles else None
        capabilities = {"roles": self.roles}
        await self.announce("WORKER_ONLINE", type=",".join(self.roles), capabilities=capabilities, **self.about(), resume=self.run)
        for role in self.roles:
            look_ms = self.cfg["metadata_max_age_ms"]
            self.commands[role] = await consumer(self.cfg["brokers"], self.topics.cmd(role), f"workers.{role}.v1", look_ms=look_ms)
            self.spawn(self.command_loop(role))
        query = await consumer(self.cfg["brokers"], self.topics.query, "workers.query.v1")
        signals = await consumer(self.cfg["brokers"], self.topics.signals, f"workers.signals.{self.id}")
        self.others = [query, signals]
        self.spawn(self.query_loop(query))
        self.spawn(self.signal_loop(signals))
        self.spawn(self.announce_loop())

    async def stop(self) -> None:
        self.stopping = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for one in [*self.others, *self.commands.values()]:
            await one.stop()
        await self.announce("WORKER_OFFLINE")
        await self.producer.stop()

    async def create_indexes(self) -> None:
        wanted = [
            (self.db.artifacts, ["task_id", "node_id"], {"name": "ix_artifacts_task_node"}),
            (self.db.artifacts, ["task_id", "node_id", "batch_uid"], {"name": "uniq_artifact_batch_uid", "unique": True, "sparse": True}),
            (
                self.db.stream_progress,
                ["task_id", "consumer_node", "from_node", "batch_uid"],
                {"name": "uniq_stream_claim_batch", "unique": True},
            ),
            (self.db.worker_state, ["updated_at"], {"name": "ttl_worker_state_updated_at", "expireAfterSeconds": 604_800}),
        ]
        for collection, fields, options in wanted:
            try:
                await collection.create_index([(field, ASCENDING) for field in fields], **options)
            except PyMongoError as error:
                # The coordinator has created an index with the same keys under another name.
                print(f"index {options['name']}: {error}", flush=True)

    # What it sends.

    def about(self) -> dict:
        return {"version": VERSION, "capacity": {"tasks": 1}}

    async def announce(self, kind: str, **more) -> None:
        payload = {"kind": kind, "worker_id": self.id, **more}
        dedup = {"announce": kind, "worker": self.id, "ts_ms": now_ms()}
        await self.producer.send(self.topics.announce, None, envelope("event", "worker", payload, dedup))

    async def tell(self, run: dict, kind: str, dedup: dict, **more) -> None:
        task, node, epoch, role = run["task_id"], run["node_id"], run["attempt_epoch"], run["step_type"]
        payload = {"kind": kind, "worker_id": self.id, **more}
        ids = {"task_id": task, "node_id": node, "step_type": role, "epoch": epoch}
        hashed = {**dedup, "n": node, "e": epoch}
        await self.producer.send(self.topics.status(role), f"{task}:{node}", envelope("event", "worker", payload, hashed, **ids))

    async def announce_loop(self) -> None:
        while True:
            await asyncio.sleep(self.cfg["announce_interval_sec"])
            await self.announce("WORKER_ONLINE", type=",".join(self.roles), **self.about())

    # What it receives.

    async def command_loop(self, role: str) -> None:
        records = self.commands[role]
        async for record in records:
            message = record.value
            if not self.is_new(message["dedup_id"]):
                pass
            elif message["msg_type"] != "cmd" or message["role"] != "coordinator" or message["step_type"] != role:
                pass
            elif message["payload"]["cmd"] == "TASK_START" and not self.busy:
                await self.accept(message)
            await committed(records)

    def is_new(self, dedup_id: str) -> bool:
        now = now_ms()
        if now - self.seen.get(dedup_id, -DEDUP_TTL_MS) < DEDUP_TTL_MS:
            return False
        self.seen[dedup_id] = now
        if len(self.seen) > DEDUP_SIZE:
            self.seen.popitem(last=False)
        return True

    async def accept(self, message: dict) -> None:
        self.busy = True
        self.flag.clear()
        run = {
            "task_id": message["task_id"],
            "node_id": message["node_id"],
            "step_type": message["step_type"],
            "attempt_epoch": message["attempt_epoch"],
            "lease_id": str(uuid.uuid4()),
            "cancel_token": message["payload"]["cancel_token"],
            "started_at_ms": now_ms(),
            "state": "running",
            "checkpoint": {},
        }
        self.run = run
        await self.save(run)
        await self.tell(run, "TASK_ACCEPTED", {"acc": run["task_id"], "lease": run["lease_id"]}, **self.lease(run))
        for records in self.commands.values():
            records.pause(*records.assignment())
        beats = self.spawn(self.heartbeat_loop(run))
        self.spawn(self.perform(run, message["payload"], beats))

    def lease(self, run: dict) -> dict:
        return {"lease_id": run["lease_id"], "lease_deadline_ts_ms": now_ms() + int(self.cfg["lease_ttl_sec"] * 1000)}

    async def heartbeat_loop(self, run: dict) -> None:
        every_ms = max(1, int(self.cfg["hb_interval_sec"] * 1000))
        while True:
            dedup = {"hb": run["task_id"], "t": now_ms() // every_ms}
            await self.tell(run, "TASK_HEARTBEAT", dedup, **self.lease(run))
            await asyncio.sleep(every_ms / 1000)

    async def query_loop(self, records) -> None:
        async for record in records:
            message = record.value
            if message["msg_type"] == "query" and message["step_type"] in self.roles:
                await self.answer(message)
            await committed(records)

    async def answer(self, query: dict) -> None:
        run = self.run
        if run and (run["task_id"], run["node_id"]) == (query["task_id"], query["node_id"]):
            lease = {"worker_id": self.id, "lease_id": run["lease_id"], "deadline_ts_ms": self.lease(run)["lease_deadline_ts_ms"]}
            state = "cancelling" if self.flag.is_set() else "running"
            snapshot = {"worker_id": self.id, "run_state": state, "attempt_epoch": run["attempt_epoch"], "lease": lease, "progress": {}, "artifacts": None}
        else:
            done = {"task_id": query["task_id"], "node_id": query["node_id"], "status": "complete"}
            complete = await self.db.artifacts.count_documents(done) > 0
            artifacts = {"complete": True} if complete else None
            snapshot = {"worker_id": None, "run_state": "idle", "attempt_epoch": 0, "lease": None, "progress": None, "artifacts": artifacts}
        task, node, epoch = query["task_id"], query["node_id"], query["attempt_epoch"]
        ids = {"task_id": task, "node_id": node, "step_type": query["step_type"], "epoch": epoch, "corr_id": query["corr_id"]}
        dedup = {"snap": task, "n": node, "e": epoch, "w": self.id}
        reply = envelope("reply", "worker", {"reply": "TASK_SNAPSHOT", **snapshot}, dedup, **ids)
        await self.producer.send(self.topics.reply, task or "*", reply)

    async def signal_loop(self, records) -> None:
        async for record in records:
            message, run = record.value, self.run
            mine = message["target_worker_id"] in (None, "", self.id)
            told = (message["task_id"], message["node_id"], message["attempt_epoch"])
            cancel = str(message["payload"].get("sig", "")).upper() == "CANCEL"
            if mine and cancel and run and self.busy and told == (run["task_id"], run["node_id"], run["attempt_epoch"]):
                self.flag.set()
                await self.save({**run, "state": "cancelling"})
            await committed(records)

    async def watch_flags(self, run: dict) -> None:
        while not self.flag.is_set():
            await asyncio.sleep(self.cfg["db_cancel_poll_ms"] / 1000)
            fields = {"id": 1, "coordinator": 1, "graph": 1}
            task = await self.db.tasks.find_one({"id": run["task_id"]}, fields) or {}
            nodes = [one for one in task.get("graph", {}).get("nodes", []) if one.get("node_id") == run["node_id"]]
            flags = [task.get("coordinator", {}).get("cancelled"), *(one.get("coordinator", {}).get("cancelled") for one in nodes)]
            if any(flags) or any(one.get("status") == "cancelling" for one in nodes):
                self.flag.set()

    # The run.

    async def perform(self, run: dict, command: dict, beats: asyncio.Task) -> None:
        handler = HANDLERS[self.cfg["roles"][run["step_type"]]]()
        watcher = None
        try:
            ids = {key: run[key] for key in ("task_id", "node_id", "attempt_epoch")}
            await handler.init({**ids, "worker_id": self.id, "role": run["step_type"]})
            loaded = await handler.load_input(command["input_ref"], command["input_inline"])
            batches = await self.select(run, command, handler, loaded)
            if batches is None:
                return
            watcher = self.spawn(self.watch_flags(run))
            await self.stream(run, handler, batches)
        except Cancelled:
            await self.tell(run, "CANCELLED", {"c": run["task_id"]}, reason="cancelled")
        except asyncio.CancelledError:
            # Only when the process ends: the stored state stays as it is, and nothing is sent.
            raise
        except Exception as error:
            await self.fail(run, *handler.classify_error(error), str(error))
        finally:
            beats.cancel()
            if watcher:
                watcher.cancel()
            if not self.stopping:
                self.flag.clear()
                self.run = None
                await self.save(None)
                self.busy = False
                for records in self.commands.values():
                    records.resume(*records.assignment())

    async def select(self, run: dict, command: dict, handler, loaded: dict):
        told = command["input_inline"] or {}
        proposed = (loaded or {}).get("input_inline") or {}
        name, args = told.get("input_adapter"), told.get("input_args") or {}
        if name and name not in ADAPTERS:
            await self.fail(run, "bad_input_adapter", True, f"unknown input_adapter '{name}'")
            return None
        if not name and proposed.get("input_adapter") in ADAPTERS:
            name, args = proposed["input_adapter"], proposed.get("input_args") or {}
        if not name:
            return handler.iter_batches(loaded)
        args = normalise(args, self.cfg)
        try:
            validate(name, args, self.cfg["strict_input_adapters"])
        except AdapterArguments as error:
            await self.fail(run, "bad_input_args", True, str(error))
            return None
        return ADAPTERS[name](self.db, run, self.flag, **args)

    async def stream(self, run: dict, handler, batches) -> None:
        task, ctx = run["task_id"], Context(self.id, self.flag)
        artifacts = Artifacts(self.db, run, self.id, self.cfg["overlapping_upsert"])
        async for batch in batches:
            if self.flag.is_set():
                raise Cancelled
            uid = batch["batch_uid"] or stable_hash({"payload": batch["payload"]})
            try:
                metrics = await handler.process_batch(batch, ctx)
            except Cancelled:
                raise
            except Exception as error:
                reason, permanent = handler.classify_error(error)
                ref = {"batch_uid": uid}
                failed = {"batch_uid": uid, "reason_code": reason, "permanent": permanent, "error": str(error), "artifacts_ref": ref}
                await self.tell(run, "BATCH_FAILED", {"bf": task, "uid": uid}, **failed)
                return await self.fail(run, reason, permanent, str(error))
            try:
                ref = await artifacts.upsert_partial(uid, metrics)
            except PyMongoError as error:
                print(f"worker.artifacts.upsert_partial.failed {uid}: {error}", flush=True)
                ref = {"batch_uid": uid}
            await self.tell(run, "BATCH_OK", {"bok": task, "uid": uid}, batch_uid=uid, metrics=metrics, artifacts_ref=ref)
        metrics = await handler.finalize(ctx)
        ref = await artifacts.mark_complete(metrics)
        await self.tell(run, "TASK_DONE", {"td": task}, metrics=metrics, artifacts_ref=ref, final_uid="__final__")

    async def fail(self, run: dict, reason: str, permanent: bool, error: str) -> None:
        dedup = {"tf": run["task_id"], "r": reason, "p": permanent}
        await self.tell(run, "TASK_FAILED", dedup, reason_code=reason, permanent=permanent, error=error)

    async def save(self, run: dict | None) -> None:
        await self.db.worker_state.update_one({"_id": self.id}, {"$set": {"active_run": run, "updated_at": utc_now()}}, upsert=True)

    def spawn(self, coroutine) -> asyncio.Task:
        task = asyncio.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.ended)
        return task

    def ended(self, task: asyncio.Task) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception():
            print(f"a loop crashed: {task.exception()!r}", flush=True)


async def committed(records) -> None:
    try:
        await records.commit()
    except KafkaError as error:
        # The partitions were assigned again in the meantime. The new owner of this partition gets the record again.
        print(f"worker.commit: {error!r}", flush=True)


async def main() -> None:
    worker = Worker(json.loads(sys.argv[1]))
    await worker.start()
    print(json.dumps({"ready": True, "worker_id": worker.id}), flush=True)
    over = asyncio.Event()
    for asked in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(asked, over.set)
    await over.wait()
    await worker.stop()


if __name__ == "__main__":
    asyncio.run(main())
