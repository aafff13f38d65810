"""What the roles of the Python worker do with their batches. The input of the node says what a role does."""
import asyncio
import os


class Failed(Exception):
    def __init__(self, reason: str, permanent: bool) -> None:
        super().__init__(f"failed as it was told: {reason}")
        self.reason = reason
        self.permanent = permanent


class Handler:
    """The defaults of the reference."""

    def __init__(self) -> None:
        self.epoch = 0
        self.told: dict = {}

    async def init(self, run_info: dict) -> None:
        self.epoch = run_info["attempt_epoch"]

    async def load_input(self, input_ref: dict | None, input_inline: dict | None) -> dict:
        self.told = input_inline or {}
        return {"input_ref": input_ref or {}, "input_inline": input_inline or {}}

    async def iter_batches(self, loaded: dict):
        yield {"batch_uid": None, "payload": loaded}

    async def process_batch(self, batch: dict, ctx) -> dict:
        return {"processed": 1}

    async def finalize(self, ctx) -> dict:
        return {}

    def classify_error(self, error: BaseException) -> tuple[str, bool]:
        if isinstance(error, Failed):
            return error.reason, error.permanent
        return "unexpected_error", isinstance(error, (TypeError, ValueError, KeyError))


class Produce(Handler):
    """`batches` batches of `size` items each; takes `ms` for each batch, and `linger_ms` at the end."""

    async def iter_batches(self, loaded: dict):
        told = loaded["input_inline"]
        size = told.get("size", 3)
        for index in range(told["batches"]):
            items = [f"{told.get('name', 'item')}-{index * size + at}" for at in range(size)]
            yield {"batch_uid": f"b{index}", "payload": {"items": items}}

    async def process_batch(self, batch: dict, ctx) -> dict:
        await ctx.cancellable(asyncio.sleep(self.told.get("ms", 0) / 1000))
        items = batch["payload"]["items"]
        # Integers of any size: each batch reports the number, if the input has one.
        told = {"number": self.told["number"]} if "number" in self.told else {}
        return {"skus": items, "count": len(items), **told}

    async def finalize(self, ctx) -> dict:
        await asyncio.sleep(self.told.get("linger_ms", 0) / 1000)
        return {"total": self.told["batches"] * self.told.get("size", 3)}


class Consume(Handler):
    """Counts the items that an adapter delivers, and returns the name of the worker."""

    async def process_batch(self, batch: dict, ctx) -> dict:
        payload = batch["payload"]
        items = payload["items"] if "items" in payload else payload.get("meta", {}).get("skus", [])
        return {"count": len(items), "skus": items, "by": ctx.worker_id, "pid": os.getpid()}


class Fail(Handler):
    """Does `good` batches, then fails with `reason`: permanently when `permanent` is set, or in each epoch up to `until`."""

    async def iter_batches(self, loaded: dict):
        for index in range(loaded["input_inline"].get("good", 0) + 1):
            yield {"batch_uid": f"b{index}", "payload": {"index": index}}

    async def process_batch(self, batch: dict, ctx) -> dict:
        told = self.told
        if batch["payload"]["index"] >= told.get("good", 0) and self.epoch <= told.get("until", 10**9):
            raise Failed(told.get("reason", "told_to_fail"), told.get("permanent", False))
        return {"count": 1}


class Slow(Handler):
    """One batch that lasts until it is cancelled, or for `ms`."""

    async def process_batch(self, batch: dict, ctx) -> dict:
        print("slow begins", flush=True)
        await ctx.cancellable(asyncio.sleep(self.told.get("ms", 600_000) / 1000))
        return {"count": 1}


HANDLERS = {"produce": Produce, "consume": Consume, "fail": Fail, "slow": Slow}
