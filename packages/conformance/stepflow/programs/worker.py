"""Components for the unchanged SDK: one program for every release, started like the SDK's own worker."""
import asyncio
import os
import signal

from stepflow_py.worker import StepflowContext
from stepflow_py.worker.exceptions import StepflowExecutionError
from stepflow_py.worker.main import main, server

MARKS = os.environ.get("MARKS_FILE")

ERRORS = {
    "value": ValueError,
    "type": TypeError,
    "runtime": RuntimeError,
    "connection": ConnectionError,
    "execution": StepflowExecutionError,
}


@server.component(name="echo")
def echo(input: dict) -> dict:
    return input


@server.component(name="kinds")
def kinds(input: dict) -> dict:
    """Of which type each value is that has arrived."""
    return {key: type(value).__name__ for key, value in input.items()}


@server.component(name="upper")
async def upper(input: dict) -> dict:
    return {"text": input["text"].upper()}


@server.component(name="reverse")
async def reverse(input: dict) -> dict:
    return {"text": input["text"][::-1]}


@server.component(name="fail")
async def fail(input: dict) -> dict:
    raise ERRORS[input["kind"]](input["message"])


@server.component(name="flaky")
async def flaky(input: dict, context: StepflowContext) -> dict:
    if context.attempt <= input["failures"]:
        raise ConnectionError(f"not yet, attempt {context.attempt}")
    return {"attempt": context.attempt}


@server.component(name="whoami")
async def whoami(input: dict, context: StepflowContext) -> dict:
    return {"run": context.run_id, "step": context.step_id, "flow": context.flow_id, "attempt": context.attempt}


@server.component(name="blob")
async def blob(input: dict, context: StepflowContext) -> dict:
    blob_id = await context.put_blob(input["data"])
    return {"blob_id": blob_id, "matches": await context.get_blob(blob_id) == input["data"]}


@server.component(name="read_blob")
async def read_blob(input: dict, context: StepflowContext) -> dict:
    return {"data": await context.get_blob(input["blob_id"])}


@server.component(name="sub")
async def sub(input: dict, context: StepflowContext) -> dict:
    return {"results": await context.evaluate_run_by_id(input["flow_id"], input["inputs"])}


@server.component(name="slow")
async def slow(input: dict) -> dict:
    print("slow begins", flush=True)
    await asyncio.sleep(input["seconds"])
    return {"slept": input["seconds"]}


@server.component(name="mark")
async def mark(input: dict) -> dict:
    with open(MARKS, "a") as file:
        file.write(f"{input['n']}\n")
    await asyncio.sleep(input.get("ms", 0) / 1000)
    return {"n": input["n"]}


@server.component(name="die")
async def die(input: dict, context: StepflowContext) -> dict:
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"attempt": context.attempt}


@server.component(name="core/{*path}")
async def core(input: dict, path: str) -> dict:
    return {"path": path, **input}


if __name__ == "__main__":
    main()
