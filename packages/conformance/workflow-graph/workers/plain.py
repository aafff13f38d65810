"""The shortest correct worker that a person writes from the description of the protocol. It has the habits of such programs:

- It registers once and ignores the response.
- It parses every response to a claim as JSON and reads its fields without a check.
- It never asks whether the job was cancelled. A 409 ends the heartbeat but not the command.
- It sends the log as one chunk, when the command has ended.
- The heartbeat reads global variables, which the loop sets again for each job. So a thread of an earlier job can wake up and
  send a heartbeat for the lease of the current job.
"""

import os
import subprocess
import threading
import time
import uuid

import requests

BASE = os.environ.get("SERVER_URL", "http://localhost:3000") + "/api"
NAME = "plain-python-" + uuid.uuid4().hex[:6]
LABELS = os.environ.get("LABELS", "python").split(",")
LEASE_SECONDS = int(os.environ.get("LEASE_SECONDS", "60"))
BEAT_SECONDS = 10
POLL_SECONDS = 2


def keep_lease():
    while not over.is_set():
        time.sleep(BEAT_SECONDS)
        if requests.post(f"{BASE}/jobs/{lease}/heartbeat").status_code == 409:
            return


requests.post(f"{BASE}/workers/register", json={"worker_id": NAME, "labels": LABELS})
print("registered", NAME, flush=True)

while True:
    claim = requests.post(
        f"{BASE}/jobs/claim",
        json={"worker_id": NAME, "labels": LABELS, "lease_ttl_secs": LEASE_SECONDS},
    ).json()
    if claim is None:
        time.sleep(POLL_SECONDS)
        continue

    job = claim["job"]
    lease = claim["lease"]["lease_id"]
    over = threading.Event()
    threading.Thread(target=keep_lease, daemon=True).start()
    print("claimed", job["job_id"], flush=True)

    ran = subprocess.run(["sh", "-c", job["command"]], capture_output=True, text=True)
    over.set()

    chunk = {
        "workflow_id": job["workflow_id"],
        "job_id": job["job_id"],
        "sequence": 0,
        "data": ran.stdout,
        "timestamp_ms": int(time.time() * 1000),
        "stream": "stdout",
    }
    requests.post(f"{BASE}/jobs/{lease}/logs", json={"chunks": [chunk]})
    if ran.returncode == 0:
        requests.post(f"{BASE}/jobs/{lease}/complete", json={"outputs": {}})
    else:
        requests.post(f"{BASE}/jobs/{lease}/fail", json={"error": ran.stderr[:4096], "retryable": True})
    print("reported", job["job_id"], flush=True)
