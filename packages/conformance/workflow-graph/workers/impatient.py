"""A Python worker that gives every command a limited time, and does not handle a command that takes longer.

The exception then ends the worker: nothing is reported, and the lease expires. Otherwise it behaves like plain.py, except that
it sends no log chunk for a command without output.
"""

import os
import subprocess
import threading
import time
import uuid

import requests

BASE = os.environ.get("SERVER_URL", "http://localhost:3000") + "/api"
NAME = "impatient-python-" + uuid.uuid4().hex[:6]
LABELS = ["python"]
LEASE_SECONDS = int(os.environ.get("LEASE_SECONDS", "60"))
PATIENCE_SECONDS = int(os.environ.get("PATIENCE_SECONDS", "300"))
BEAT_SECONDS = 10
POLL_SECONDS = 2


def post(path, body):
    return requests.post(BASE + path, json=body)


def keep_lease():
    while not over.is_set():
        time.sleep(BEAT_SECONDS)
        if requests.post(f"{BASE}/jobs/{lease}/heartbeat").status_code == 409:
            return


post("/workers/register", {"worker_id": NAME, "labels": LABELS})

while True:
    claim = post("/jobs/claim", {"worker_id": NAME, "labels": LABELS, "lease_ttl_secs": LEASE_SECONDS}).json()
    if claim is None:
        time.sleep(POLL_SECONDS)
        continue

    job = claim["job"]
    lease = claim["lease"]["lease_id"]
    over = threading.Event()
    threading.Thread(target=keep_lease, daemon=True).start()

    ran = subprocess.run(["sh", "-c", job["command"]], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    over.set()

    if ran.stdout:
        chunk = {
            "workflow_id": job["workflow_id"],
            "job_id": job["job_id"],
            "sequence": 0,
            "data": ran.stdout,
            "timestamp_ms": int(time.time() * 1000),
            "stream": "stdout",
        }
        post(f"/jobs/{lease}/logs", {"chunks": [chunk]})
    if ran.returncode == 0:
        post(f"/jobs/{lease}/complete", {"outputs": {}})
    else:
        post(f"/jobs/{lease}/fail", {"error": ran.stderr[:4096], "retryable": True})
