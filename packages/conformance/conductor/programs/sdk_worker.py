"""The same worker, written for the official Python SDK."""
import os
import time

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.context.task_context import TaskInProgress, get_task_context
from conductor.client.worker.exception import NonRetryableException
from conductor.client.worker.worker_task import worker_task

MARKS = os.environ.get("MARKS_FILE")


def task(name):
    return worker_task(task_definition_name=name, poll_interval_millis=20, thread_count=10, lease_extend_enabled=True)


@task("greet")
def greet(input: dict) -> dict:
    get_task_context().add_log(f"greeting {input['name']}")
    return {"text": f"Hello, {input['name']}!"}


@task("flaky")
def flaky() -> dict:
    attempt = get_task_context().get_retry_count() + 1
    if attempt < 3:
        raise RuntimeError(f"not yet, attempt {attempt}")
    return {"attempt": attempt}


@task("failing")
def failing() -> dict:
    raise RuntimeError("it went wrong")


@task("hopeless")
def hopeless() -> dict:
    raise NonRetryableException("this can never work")


@task("deferred")
def deferred():
    polls = get_task_context().get_poll_count()
    if polls == 1:
        return TaskInProgress(callback_after_seconds=1, output={"half": True})
    return {"calls": polls}


@task("slow")
def slow(input: dict) -> dict:
    time.sleep(input["seconds"])
    return {"slept": input["seconds"]}


@task("mark")
def mark(input: dict) -> dict:
    with open(MARKS, "a") as file:
        file.write(f"{input['n']}\n")
    time.sleep(input.get("ms", 0) / 1000)
    return {"n": input["n"]}


if __name__ == "__main__":
    handler = TaskHandler(configuration=Configuration(server_api_url=os.environ["SERVER_URL"] + "/api"))
    handler.start_processes()
    print("ready", flush=True)
    handler.join_processes()
