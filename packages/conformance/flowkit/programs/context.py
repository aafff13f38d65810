"""The context that a handler gets, and the documents that a run writes."""
import asyncio
from datetime import datetime, timezone


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Cancelled(Exception):
    pass


class Context:
    """The context that a handler gets."""

    def __init__(self, worker_id: str, flag: asyncio.Event) -> None:
        self.worker_id = worker_id
        self._flag = flag

    def cancelled(self) -> bool:
        return self._flag.is_set()

    async def cancellable(self, awaitable):
        work = asyncio.ensure_future(awaitable)
        flag = asyncio.ensure_future(self._flag.wait())
        await asyncio.wait({work, flag}, return_when=asyncio.FIRST_COMPLETED)
        flag.cancel()
        if work.done():
            return work.result()
        work.cancel()
        raise Cancelled


class Artifacts:
    """The collections that workers share."""

    def __init__(self, db, run: dict, worker_id: str, overlapping: bool) -> None:
        self.db = db
        self.run = run
        self.worker_id = worker_id
        self.overlapping = overlapping

    async def upsert_partial(self, uid: str, meta: dict) -> dict:
        key = {"task_id": self.run["task_id"], "node_id": self.run["node_id"], "batch_uid": uid}
        now = utc_now()
        born = {"attempt_epoch": self.run["attempt_epoch"], "worker_id": self.worker_id, "payload": None, "batch_uid": uid, "created_at": now}
        if self.overlapping:
            born["status"] = "partial"
        else:
            # The key is in the filter. MongoDB copies it from there into a new document.
            del born["batch_uid"]
        update = {"$set": {"status": "partial", "meta": meta, "updated_at": now}, "$setOnInsert": born}
        await self.db.artifacts.update_one(key, update, upsert=True)
        return key

    async def mark_complete(self, meta: dict) -> dict:
        key = {"task_id": self.run["task_id"], "node_id": self.run["node_id"]}
        now = utc_now()
        born = {"attempt_epoch": self.run["attempt_epoch"], "worker_id": self.worker_id, "created_at": now}
        update = {"$set": {"status": "complete", "meta": meta, "updated_at": now}, "$setOnInsert": born}
        await self.db.artifacts.update_one({**key, "batch_uid": {"$exists": False}}, update, upsert=True)
        return key
