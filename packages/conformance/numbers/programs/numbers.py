"""A client and a worker of each protocol that use only Python's standard library. Integers of Python have no limit.

    numbers.py worker PROTOCOL    works, after the line `ready` (for stepflow with its port), and refuses an input with other numbers
    numbers.py client PROTOCOL    starts a run, waits for its end and prints `exact` when the numbers came back unchanged

SERVER_URL names the server, SOURCE the workflow in code for workflow-graph.
"""
import http.server
import json
import os
import sys
import time
import urllib.request

NUMBERS = {"whole": 12345678901234567890, "below": -9007199254740993, "large": 2**200, "list": [1763381998123456789]}
URL = os.environ.get("SERVER_URL", "")


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text[:1] in (b"{", b"[", b"n") else text.decode()


def until(look):
    while True:
        found = look()
        if found:
            return found
        time.sleep(0.05)


def echo(given):
    """Returns the input unchanged. Fails when its numbers are not those that were sent."""
    if given.get("numbers") != NUMBERS:
        raise ValueError(f"the worker was given {json.dumps(given)}")
    return {"numbers": given["numbers"]}


def conductor_worker():
    print("ready", flush=True)
    while True:
        task = until(lambda: ask("GET", "/api/tasks/poll/echo?workerid=python&timeout=1000"))
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "workerId": "python"}
        ask("POST", "/api/tasks", {**result, "status": "COMPLETED", "outputData": echo(task["inputData"])})


def conductor_client():
    ask("POST", "/api/metadata/taskdefs", [{"name": "echo", "retryCount": 0, "ownerEmail": "a@b.example"}])
    steps = [
        {"name": "echo", "taskReferenceName": "a", "type": "SIMPLE", "inputParameters": {"numbers": "${workflow.input.numbers}"}},
        {"name": "echo", "taskReferenceName": "b", "type": "SIMPLE", "inputParameters": {"numbers": "${a.output.numbers}"}},
    ]
    output = {"numbers": "${b.output.numbers}"}
    ask("POST", "/api/metadata/workflow", {"name": "numbers", "version": 1, "tasks": steps, "outputParameters": output})
    run = ask("POST", "/api/workflow", {"name": "numbers", "input": {"numbers": NUMBERS}})
    return until(lambda: ended(ask("GET", f"/api/workflow/{run}"), "status", "RUNNING"))["output"]


def workflow_graph_worker():
    ask("POST", "/api/workers/register", {"worker_id": "python", "labels": ["handler:echo"]})
    print("ready", flush=True)
    while True:
        claim = {"worker_id": "python", "labels": ["handler:echo"], "lease_ttl_secs": 60, "wait_secs": 1}
        claimed = until(lambda: ask("POST", "/api/jobs/claim", claim))
        given = json.loads(claimed["job"]["command"])["input"]
        ask("POST", f"/api/jobs/{claimed['lease']['lease_id']}/complete", {"outputs": {}, "output": echo(given)})


def workflow_graph_client():
    ask("POST", "/api/longshore/v1/definitions", {"source": json.loads(os.environ["SOURCE"])})
    run = ask("POST", "/api/longshore/v1/runs", {"workflow": "numbers", "input": {"numbers": NUMBERS}})["id"]
    return until(lambda: ended(ask("GET", f"/api/longshore/v1/runs/{run}"), "state", "running"))["output"]


class Called(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "initialize":
            result = {"server_protocol_version": 1}
        elif message["method"] == "components/list":
            result = {"components": [{"name": "/echo", "component": "/echo"}]}
        elif message["method"] == "components/execute":
            result = {"output": echo(message["params"]["input"])}
        else:
            result = None
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def stepflow_worker():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Called)
    print(f"ready {server.server_port}", flush=True)
    server.serve_forever()


def stepflow_client():
    steps = [
        {"id": "a", "component": "/echo", "input": {"numbers": {"$input": "numbers"}}},
        {"id": "b", "component": "/echo", "input": {"numbers": {"$step": "a", "path": "numbers"}}},
    ]
    flow = ask("POST", "/api/v1/flows", {"flow": {"name": "numbers", "steps": steps, "output": {"$step": "b"}}})["flowId"]
    run = ask("POST", "/api/v1/runs", {"flowId": flow, "input": [{"numbers": NUMBERS}], "wait": True})["summary"]["runId"]
    result = ask("GET", f"/api/v1/runs/{run}/items")
    return next(iter(outputs(result)))


def outputs(value):
    """Every object that contains the numbers, at any depth."""
    if isinstance(value, dict):
        if "numbers" in value:
            yield value
        for part in value.values():
            yield from outputs(part)
    elif isinstance(value, list):
        for part in value:
            yield from outputs(part)


def ended(run, field, going):
    return None if run[field] == going else run


if __name__ == "__main__":
    role, protocol = sys.argv[1:]
    done = globals()[f"{protocol}_{role}"]()
    if done.get("numbers") != NUMBERS:
        sys.exit(f"the client got back {json.dumps(done)}")
    print("exact")
