// The components that workers list, and the names with which they are called. Releases name them differently, and each worker is called
// with its own names.

import { describe, expect, it } from "vitest";
import { GrpcCode } from "../../../src/net/grpc/status.ts";
import { componentsOn } from "../../../src/protocols/stepflow/server/config/registered-components.ts";
import { TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { queueWorld } from "../../support/stepflow-queue.ts";

const lane = "stepflow:python";

describe("discovery", () => {
  it("[S-QUEUE-19] is the first message of a stream, and needs no heartbeat", async () => {
    const { pull, complete, engine, grpc, heartbeat } = await queueWorld();
    const question = await pull().nextOfAny();
    expect(question).toEqual({
      taskId: expect.stringMatching(/^discovery-/),
      listComponents: {},
      context: { orchestratorServiceUrl: grpc.target, rootRunId: "" },
      heartbeatIntervalSecs: 0,
    });
    // The Rust SDK sends one anyway.
    expect(await heartbeat(question.taskId)).toEqual({ shouldAbort: false, status: TaskStatus.IN_PROGRESS });
    const schema = { type: "object" };
    const echo = { componentId: "echo", path: "/echo", description: "says it again", inputSchema: JSON.stringify(schema) };
    await complete({ taskId: question.taskId, listComponents: { components: [echo] } });
    expect(await componentsOn(engine.documents, lane)).toEqual([
      { id: "echo", path: "/echo", description: "says it again", inputSchema: schema },
    ]);
    await expect(complete({ taskId: question.taskId, listComponents: { components: [] } })).rejects.toMatchObject({
      code: GrpcCode.NOT_FOUND,
    });
    await expect(heartbeat(question.taskId)).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
  });

  it("calls each worker's components as it named them: by path in 0.12, by id in 0.13", async () => {
    const { pull, post, heartbeat, complete } = await queueWorld();
    const earlier = pull("python", "0.12");
    await earlier.register({ componentId: "/echo" });
    const later = pull("python", "0.13");
    await later.register({ componentId: "echo", path: "/echo" }, { componentId: "core", path: "/core/{*path}" });
    for (const id of ["a", "b"]) await post(id);
    const [first, second] = await Promise.all([earlier.next(), later.next()]);
    expect([first.execute, second.execute]).toMatchObject([
      { componentId: "/echo", pathParams: {} },
      { componentId: "echo", pathParams: {} },
    ]);
    for (const { taskId } of [first, second]) await complete({ taskId, response: { output: null } });
    await post("c", { component: "/core/text/upper" });
    const third = await Promise.race([earlier.next(), later.next()]);
    // Only one of them has listed it, and is called with the pattern that it listed. The other is called with the path.
    expect(third.execute).toMatchObject(
      third.execute.componentId === "core" ? { pathParams: { path: "text/upper" } } : { componentId: "/core/text/upper" },
    );
    await heartbeat(third.taskId);
  });

  it("of several workers is stored together, and the newest entry for a path counts", async () => {
    const { pull, engine } = await queueWorld();
    await pull("python", "ann").register({ componentId: "a", path: "/a" }, { componentId: "b", path: "/b" });
    await pull("python", "bob").register({ componentId: "b2", path: "/b" }, { componentId: "c", path: "/c" });
    expect(await componentsOn(engine.documents, lane)).toEqual([
      { id: "a", path: "/a" },
      { id: "b2", path: "/b" },
      { id: "c", path: "/c" },
    ]);
  });

  it("is sent before the first task of a queue without registered components, but only for a limited time", async () => {
    const { clock, pull, post, task } = await queueWorld();
    await post("t");
    const ann = pull();
    expect((await ann.nextOfAny()).listComponents).toEqual({});
    expect((await task("t")).state).toBe("queued");
    await clock.advance(5_000);
    expect((await ann.next()).execute).toMatchObject({ componentId: "/echo" });
  });

  it("is kept over a restart: tasks are called by their ids before any worker has responded", async () => {
    let world = await queueWorld({ directory: temporaryFolder() });
    await world.pull().register({ componentId: "echo-1", path: "/echo" });
    world = await world.restart();
    await world.post("t");
    expect((await world.pull().next()).execute.componentId).toBe("echo-1");
  });

  it("that a worker cannot answer does not change the known components", async () => {
    const { pull, complete, engine } = await queueWorld();
    await pull("python", "ann").register({ componentId: "echo" });
    const { taskId } = await pull("python", "bob").nextOfAny();
    await complete({ taskId, error: { code: 10, message: "no" } });
    expect(await componentsOn(engine.documents, lane)).toEqual([{ id: "echo", path: "/echo" }]);
  });

  it.each([
    ["a component without an id", { components: [{ componentId: "" }] }, "list_components.components[0].component_id"],
    [
      "a schema that is not JSON",
      { components: [{ componentId: "a" }, { componentId: "b", outputSchema: "{" }] },
      "list_components.components[1].output_schema",
    ],
  ])("refuses %s, by the name of its field", async (_, listComponents, field) => {
    const { pull, complete } = await queueWorld();
    const { taskId } = await pull().nextOfAny();
    await expect(complete({ taskId, listComponents })).rejects.toMatchObject({
      code: GrpcCode.INVALID_ARGUMENT,
      message: expect.stringContaining(field),
    });
  });

  it("cannot be answered by the result of a task, and a task cannot be answered by a list of components", async () => {
    const { pull, complete, post } = await queueWorld();
    const ann = pull();
    const { taskId } = await ann.nextOfAny();
    const refused = { code: GrpcCode.INVALID_ARGUMENT };
    await expect(complete({ taskId, response: { output: 1 } })).rejects.toMatchObject(refused);
    await expect(complete({ taskId })).rejects.toMatchObject(refused);
    await complete({ taskId, listComponents: { components: [] } });
    await post("t");
    await expect(complete({ taskId: (await ann.next()).taskId, listComponents: { components: [] } })).rejects.toMatchObject(refused);
  });
});
