"""The SDK's own client with an orchestrator. Prints the responses as one line of JSON, without values that differ from run to run."""
import asyncio
import json
import os
import sys

from google.protobuf.json_format import MessageToDict
from stepflow_py.client import StepflowClient

ECHO = {
    "name": "echo",
    "description": "one step",
    "steps": [{"id": "s1", "component": "/python/echo", "input": {"$input": "$"}}],
    "output": {"$step": "s1"},
}
FAILING = {**ECHO, "name": "failing", "steps": [{"id": "s1", "component": "/python/fail", "input": {"$input": "$"}}]}
RETRIED = {
    **ECHO,
    "name": "retried",
    "steps": [{"id": "s1", "component": "/python/flaky", "input": {"$input": "$"}, "onError": {"action": "retry"}}],
}
VARIABLES = {
    **ECHO,
    "name": "variables",
    "schemas": {
        "type": "object",
        "properties": {
            "variables": {
                "type": "object",
                "properties": {"told": {"type": "string"}, "outside": {"type": "string", "env_var": "CLIENT_OUTSIDE"}},
                "required": ["told"],
            }
        },
    },
    "steps": [{"id": "s1", "component": "/python/echo", "input": {"t": {"$variable": "told"}, "o": {"$variable": "outside"}}}],
}


def shape(message):
    """Without ids, times and the numbers of events."""
    dropped = {"run_id", "root_run_id", "flow_id", "orchestrator_id", "created_at", "completed_at", "updated_at", "timestamp"}
    dropped |= {"created_at_seqno", "finished_at_seqno", "journal_seqno"}
    if isinstance(message, dict):
        return {key: shape(value) for key, value in message.items() if key not in dropped}
    return [shape(one) for one in message] if isinstance(message, list) else message


def plain(message):
    return shape(MessageToDict(message, preserving_proto_field_name=True))


async def main(address: str) -> None:
    seen = {}
    async with StepflowClient.connect(address) as client:
        seen["healthy"] = await client.is_healthy()
        listed = await client.list_components(exclude_schemas=True)
        seen["listed"] = {one.component_id for one in listed.components} >= {"echo", "fail", "flaky"}

        dry = await client.store_flow({**ECHO, "name": "dry"}, dry_run=True)
        seen["dry run"] = [dry.stored, len(dry.flow_id)]
        bad = await client.store_flow({**ECHO, "output": {"$step": "nobody"}})
        seen["bad flow"] = [bad.stored, sorted(one.code for one in bad.diagnostics.diagnostics)]
        echo = await client.store_flow(ECHO)
        again = await client.store_flow(ECHO)
        seen["stored"] = [echo.stored, len(echo.flow_id), echo.flow_id == again.flow_id]

        seen["run"] = plain(await client.run(echo.flow_id, {"k": 1}))
        seen["batch"] = plain(await client.run(echo.flow_id, [{"k": 1}, {"k": 2}], max_concurrency=1))
        over = {"steps": {"s1": {"value": {"input": {"$literal": {"over": True}}}}}}
        seen["overridden"] = plain(await client.run(echo.flow_id, {"k": 1}, overrides=over))["results"]
        failing = await client.store_flow(FAILING)
        seen["failed"] = plain(await client.run(failing.flow_id, {"kind": "value", "message": "it broke"}))
        retried = await client.store_flow(RETRIED)
        seen["retried"] = plain(await client.run(retried.flow_id, {"failures": 1}))["results"]

        variables = await client.store_flow(VARIABLES)
        declared = await client.get_flow_variables(variables.flow_id)
        seen["declared"] = {name: [one.required, one.env_var] for name, one in sorted(declared.variables.items())}
        told = await client.run(variables.flow_id, {}, variables={"told": "t"}, populate_variables_from_env=True)
        seen["variables"] = plain(told)["results"]

        submitted = await client.submit(echo.flow_id, [{"k": 1}, {"k": 2}])
        run_id = submitted.summary.run_id
        ended = await client.get_run(run_id, wait=True)
        seen["waited for"] = plain(ended)["summary"]
        seen["items"] = shape(await client.get_run_items(run_id))
        events = [event async for event in client.status_events(run_id)]
        numbers = [event.sequence_number for event in events]
        seen["events rise"] = numbers == sorted(set(numbers))
        seen["events"] = [events[0].WhichOneof("event"), events[-1].WhichOneof("event")]
        later = [event async for event in client.status_events(run_id, since=numbers[-1])]
        seen["events since"] = [event.WhichOneof("event") for event in later]
        ended_events = [event async for event in client.status_events(run_id, event_types=[6])]
        seen["events by type"] = [event.WhichOneof("event") for event in ended_events]

        for name, call in {
            "unknown run": client.get_run("00000000-0000-7000-8000-000000000000"),
            "bad run": client.get_run("abc"),
            "unknown flow": client.run("0" * 64, {}),
            "bad flow id": client.run("abc", {}),
        }.items():
            try:
                await call
            except Exception as error:
                seen[name] = error.code().name
    print(json.dumps(seen, sort_keys=True), flush=True)


os.environ["CLIENT_OUTSIDE"] = "o"
asyncio.run(main(sys.argv[1]))
