"""The input adapters of the reference, with its exact algorithms. Its mistakes are kept: it reads at most 200 artifacts, its claims have no
epoch, and it reads the batches before it reads whether the source has ended."""
import asyncio
from datetime import datetime, timezone

from pymongo import ASCENDING
from pymongo.errors import PyMongoError

from wire import stable_hash

LIMIT = 200


class AdapterArguments(Exception):
    pass


def normalise(args: dict, cfg: dict) -> dict:
    rest = {key: value for key, value in args.items() if key not in ("from_nodes", "from_node")}
    nodes = args.get("from_nodes") or ([args["from_node"]] if args.get("from_node") else [])
    defaults = {"poll_ms": cfg["pull_poll_ms_default"], "eof_on_task_done": True, "backoff_max_ms": cfg["pull_empty_backoff_ms_max"]}
    return {**defaults, **rest, "from_nodes": nodes}


def validate(name: str, args: dict, strict: bool) -> None:
    if name != "pull.from_artifacts.rechunk:size":
        return
    if not isinstance(args.get("size"), int) or args["size"] <= 0:
        raise AdapterArguments("missing or invalid 'size' (positive int required)")
    key = args.get("meta_list_key")
    if key is not None and not isinstance(key, str):
        raise AdapterArguments("'meta_list_key' must be a string")
    if strict and key is None:
        raise AdapterArguments("'meta_list_key' is required in strict mode")


async def from_artifacts(db, run, flag, *, from_nodes, poll_ms, eof_on_task_done, backoff_max_ms):
    task, me = run["task_id"], run["node_id"]
    backoff = poll_ms
    while from_nodes and not flag.is_set():
        brought = False
        for source in from_nodes:
            found = db.artifacts.find({"task_id": task, "node_id": source, "status": "partial"}).sort("created_at", ASCENDING).limit(LIMIT)
            async for artifact in found:
                uid = artifact.get("batch_uid")
                claim = {"task_id": task, "consumer_node": me, "from_node": source, "batch_uid": uid}
                if not uid or not await claimed(db, claim):
                    continue
                brought, backoff = True, poll_ms
                ref = {"task_id": task, "node_id": source, "batch_uid": uid}
                yield {"batch_uid": uid, "payload": {"from_node": source, "ref": ref, "meta": artifact.get("meta")}}
        if brought:
            continue
        if eof_on_task_done and await all_complete(db, task, from_nodes):
            return
        await asyncio.sleep(backoff / 1000)
        backoff = min(2 * backoff, backoff_max_ms)


async def claimed(db, claim: dict) -> bool:
    try:
        await db.stream_progress.insert_one({**claim, "claimed_at": datetime.now(timezone.utc)})
        return True
    except PyMongoError:
        return False


async def all_complete(db, task: str, nodes: list[str]) -> bool:
    for node in nodes:
        if await db.artifacts.count_documents({"task_id": task, "node_id": node, "status": "complete"}) == 0:
            return False
    return True


async def rechunk(db, run, flag, *, size, meta_list_key=None, **pull):
    async for batch in from_artifacts(db, run, flag, **pull):
        source, parent = batch["payload"]["from_node"], batch["batch_uid"]
        meta = batch["payload"]["meta"] or {}
        listed = meta_list_key is not None and isinstance(meta.get(meta_list_key), list)
        items = meta[meta_list_key] if listed else [meta]
        for index, start in enumerate(range(0, len(items), size)):
            if flag.is_set():
                return
            uid = stable_hash({"src": source, "parent": parent, "idx": index})
            of = {"ref": {"batch_uid": parent}, "meta_list_key": meta_list_key if listed else None}
            yield {"batch_uid": uid, "payload": {"from_node": source, "items": items[start : start + size], "parent": of}}


ADAPTERS = {"pull.from_artifacts": from_artifacts, "pull.from_artifacts.rechunk:size": rechunk}
