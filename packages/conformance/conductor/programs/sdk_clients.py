"""Calls each client of the official Python SDK on one server, and prints the results as one line of JSON."""
import json
import os

from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models import TaskDef, TaskResult, WorkflowDef, WorkflowTask
from conductor.client.http.models.rerun_workflow_request import RerunWorkflowRequest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.orkes_clients import OrkesClients

PREFIX = os.environ["PREFIX"]
TASK = f"{PREFIX}_task"
FLOW = f"{PREFIX}_flow"
seen = {}

clients = OrkesClients(configuration=Configuration(server_api_url=os.environ["SERVER_URL"] + "/api"))
metadata = clients.get_metadata_client()
workflows = clients.get_workflow_client()
tasks = clients.get_task_client()

metadata.register_task_def(TaskDef(name=TASK, retry_count=1, retry_delay_seconds=0, response_timeout_seconds=60))
definition = metadata.get_task_def(TASK)
seen["task definition"] = [definition.name, definition.retry_count, definition.response_timeout_seconds]
definition.description = "changed"
metadata.update_task_def(definition)
seen["updated task definition"] = metadata.get_task_def(TASK).description
seen["listed task definition"] = TASK in [one.name for one in metadata.get_all_task_defs()]

flow = WorkflowDef(
    name=FLOW,
    version=1,
    tasks=[
        WorkflowTask(name=TASK, task_reference_name="one", input_parameters={"n": "${workflow.input.n}"}),
        WorkflowTask(name=TASK, task_reference_name="two", input_parameters={"from": "${one.output.n}"}),
    ],
    output_parameters={"n": "${two.output.n}"},
)
metadata.register_workflow_def(flow, overwrite=True)
got = metadata.get_workflow_def(FLOW, 1)
seen["workflow definition"] = [got.name, got.version, [one.task_reference_name for one in got.tasks]]
seen["listed workflow definition"] = FLOW in [one.name for one in metadata.get_all_workflow_defs()]


def start(n, **more):
    return workflows.start_workflow(StartWorkflowRequest(name=FLOW, version=1, input={"n": n}, **more))


first = start(1, correlation_id=f"{PREFIX}-1", priority=5)
run = workflows.get_workflow(first, include_tasks=True)
seen["started"] = [run.status, run.correlation_id, run.priority, [one.status for one in run.tasks]]
seen["queue"] = tasks.get_queue_size_for_task(TASK)

polled = tasks.poll_task(TASK, worker_id="py")
seen["polled"] = [polled.task_def_name, polled.status, polled.input_data, polled.poll_count]
seen["by id"] = tasks.get_task(polled.task_id).task_id == polled.task_id
tasks.add_task_log(polled.task_id, "a line")
seen["logs"] = [one.log for one in tasks.get_task_logs(polled.task_id)]
seen["poll data"] = [one.queue_name for one in tasks.get_task_poll_data(TASK)]
answer = tasks.update_task(
    TaskResult(workflow_instance_id=first, task_id=polled.task_id, worker_id="py", status="COMPLETED", output_data={"n": 10})
)
seen["update answers the id"] = answer == polled.task_id

batch = tasks.batch_poll_tasks(TASK, worker_id="py", count=5, timeout_in_millisecond=2000)
seen["batch"] = [[one.reference_task_name, one.input_data] for one in batch]
run = tasks.update_task_sync(first, "two", "COMPLETED", {"n": 20})
seen["updated by reference"] = run.status
status = workflows.get_workflow_status(first, include_output=True, include_variables=False)
seen["ended"] = [status.status, status.output]

second = start(2)
workflows.pause_workflow(second)
seen["paused"] = workflows.get_workflow(second).status
workflows.resume_workflow(second)
seen["resumed"] = workflows.get_workflow(second).status
workflows.terminate_workflow(second, "enough")
ended = workflows.get_workflow(second)
seen["terminated"] = [ended.status, ended.reason_for_incompletion]
workflows.restart_workflow(second)
seen["restarted"] = workflows.get_workflow(second).status
tasks.update_task_by_ref_name(second, "one", "FAILED_WITH_TERMINAL_ERROR", {})
seen["failed"] = workflows.get_workflow(second).status
workflows.retry_workflow(second)
seen["retried"] = workflows.get_workflow(second).status
tasks.update_task_by_ref_name(second, "one", "COMPLETED", {"n": 1})
tasks.update_task_by_ref_name(second, "two", "COMPLETED", {"n": 2})
seen["completed"] = workflows.get_workflow(second).status
seen["rerun"] = workflows.rerun_workflow(second, RerunWorkflowRequest()) == second
seen["rerun status"] = workflows.get_workflow(second).status
workflows.terminate_workflow(second)

found = workflows.search(query=f"workflowType='{FLOW}' AND status='COMPLETED'")
seen["search"] = [one.workflow_id == first for one in found.results]

metadata.unregister_workflow_def(FLOW, 1)
metadata.unregister_task_def(TASK)
try:
    metadata.get_task_def(TASK)
except Exception as error:
    seen["unregistered"] = getattr(error, "status", str(error))
print(json.dumps(seen, default=str), flush=True)
