// The Python worker with the Python coordinator, without our programs. They understand each other, so when a test with our side fails, the
// fault is on our side.
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, openStage } from "../src/stage.ts";
import { openPlaces, type Place } from "./place.ts";
import { startPythonCoordinator, startPythonWorker } from "./python.ts";
import { trace } from "./trace.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

describe.concurrent("the Python programs", () => {
  it("produce the same records as the reference on a real broker", async (context) => {
    const stage = openStage(context);
    const at = place();
    const [src, sink] = [at.role("src"), at.role("sink")];
    const coordinator = await startPythonCoordinator(stage, at, trace(src, sink, [{ do: "discover", node: "u" }]));
    await startPythonWorker(stage, at, { roles: { [src]: "produce" } });
    await startPythonWorker(stage, at, { roles: { [sink]: "consume" } });

    const heard = await coordinator.over();
    const kinds = (node: string): unknown[] =>
      heard.filter(({ value }) => value.node_id === node && value.msg_type === "event").map(({ value }) => value.payload.kind);
    expect(kinds("u")).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", "BATCH_OK", "BATCH_OK", "BATCH_OK", "TASK_DONE"]);
    expect(kinds("d")).toEqual(["TASK_ACCEPTED", "TASK_HEARTBEAT", ...Array<string>(6).fill("BATCH_OK"), "TASK_DONE"]);
  });
});
