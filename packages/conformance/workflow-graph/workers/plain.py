"""The shortest honest worker a person writes from the protocol's page, with its habits.

It registers once and does not look at the answer; every claim answer is parsed as JSON and indexed; nobody asks whether
the job was cancelled; a 409 ends the heartbeat but not the command; the log is one chunk, sent when the command is over.
The heartbeat reads names of the module, which the loop binds anew for each job: a thread left over from an earlier job
wakes up and beats the lease of the current one.
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
