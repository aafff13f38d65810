// The Python worker and the Python coordinator by themselves: they understand each other, so what they make of our side is not a
// misunderstanding of theirs.
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, openStage } from "../src/stage.ts";
import { openPlaces, type Place } from "./place.ts";
import { startPythonCoordinator, startPythonWorker } from "./python.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

describe.concurrent("the Python programs", () => {
  it("play the trace that the reference left on a real broker", async (context) => {
    const stage = openStage(context);
    const at = place();
    const [src, sink] = [at.role("src"), at.role("sink")];
    const rechunk = { from_node: "u", size: 2, poll_ms: 25, meta_list_key: "skus" };
    const pull = { input_adapter: "pull.from_artifacts.rechunk:size", input_args: rechunk };
    const coordinator = await startPythonCoordinator(stage, at, {
      types: [src, sink],
      nodes: [
        { node_id: "u", type: src, io: { input_inline: { batches: 3, size: 3 } } },
        { node_id: "d", type: sink, io: { input_inline: pull } },
      ],
      steps: [
        { do: "online", type: src },
        { do: "online", type: sink },
        { do: "discover", node: "u" },
        { do: "start", node: "u" },
        { do: "await", kind: "BATCH_OK", node_id: "u" },
        { do: "start", node: "d" },
        { do: "await", kind: "TASK_DONE", node_id: "u" },
        { do: "await", kind: "TASK_DONE", node_id: "d" },
      ],
    });
    await startPythonWorker(stage, at, { roles: { [src]: "produce" } });
    await startPythonWorker(stage, at, { roles: { [sink]: "consume" } });

    const heard = await coordinator.over();
    const kinds = (node: string): unknown[] =>
      heard.filter(({ value }) => value.node_id === node && value.msg_type === "event").map(({ value }) => value.payload.kind);
    expect(kinds("u")).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", "BATCH_OK", "BATCH_OK", "BATCH_OK", "TASK_DONE"]);
    expect(kinds("d")).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", ...Array<string>(6).fill("BATCH_OK"), "TASK_DONE"]);
  });
});
