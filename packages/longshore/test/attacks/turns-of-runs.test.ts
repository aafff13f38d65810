// The author of a definition starts one run with thousands of slow expressions, or of calls to servers that do not answer. The server
// performs these tasks itself, with two threads and 64 calls at once. They once ran in the order of their arrival, so those of all other
// runs waited.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { callSlots } from "../../src/protocols/conductor/dialect/operators.ts";
import { Evaluator } from "../../src/protocols/conductor/server/evaluate/evaluator.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { fork, operator } from "../support/conductor-world.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { eventually } from "../support/workflow-graph.ts";

afterEach(() => vi.unstubAllEnvs());

async function laneOfServer(name = "$server.own") {
  const engine = await openEngineWithStore({ directory: null });
  onTestFinished(() => engine.close());
  const { board } = engine.store;
  const lanes = [{ name, labels: [] }];
  const post = (ids: string[], priority = 0) =>
    board.post(ids.map((id) => ({ id, step: "s", lanes, input: "null", policy: null, priority })));
  const claim = async (max: number) => {
    const { tasks } = await board.claim({ reach: { names: [name], labels: [] }, holder: "w", termMs: 60_000, max });
    return tasks.map(({ id }) => id);
  };
  return { post, claim };
}

it("runs take turns in a lane of the server, each in the order of its own tasks", async () => {
  const { post, claim } = await laneOfServer();
  await post(Array.from({ length: 100 }, (_none, at) => `flood.${at}`));
  expect(await claim(3)).toEqual(["flood.0", "flood.1", "flood.2"]);
  await post(["other.0", "other.1", "third.0"]);
  expect(await claim(6)).toEqual(["flood.3", "other.0", "third.0", "flood.4", "other.1", "flood.5"]);
  // A run that comes later does not catch up on rounds that are over.
  await post(["late.0", "late.1"]);
  expect(await claim(4)).toEqual(["flood.6", "late.0", "flood.7", "late.1"]);
});

it("tasks for a shell keep the order of their arrival, because they are for workers", async () => {
  const { post, claim } = await laneOfServer("$command");
  await post(["flood.0", "flood.1", "other.0"]);
  expect(await claim(3)).toEqual(["flood.0", "flood.1", "other.0"]);
});

it("a higher priority still comes before the turn", async () => {
  const { post, claim } = await laneOfServer();
  await post(["plain.0", "plain.1"]);
  await post(["urgent.0", "urgent.1"], -5);
  expect(await claim(3)).toEqual(["urgent.0", "urgent.1", "plain.0"]);
});

it("an expression waits for one expression of each other run, not for all of them", async () => {
  const evaluator = new Evaluator(systemClock);
  onTestFinished(() => evaluator.close());
  const ended: string[] = [];
  const evaluate = async (turn: string) => {
    const evaluation = { language: "javascript", code: "1 + 1", input: "{}", msMax: 10_000 } as const;
    await evaluator.evaluate(evaluation, new AbortController().signal, turn);
    ended.push(turn);
  };
  await Promise.all([...Array.from({ length: 30 }, () => evaluate("flood")), evaluate("other")]);
  // Two threads had begun, and may each have taken one more.
  expect(ended.indexOf("other")).toBeLessThan(5);
});

it("calls of one family of runs leave half of the slots to other runs", async () => {
  vi.stubEnv("CONDUCTOR_HTTP_TARGETS", "127.0.0.1");
  const held: ServerResponse[] = [];
  const target = async (answer: (response: ServerResponse) => void) => {
    const server = createServer((_request, response) => answer(response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };
  const quick = await target((response) => response.end("{}"));
  // One agent opens 32 connections to one server.
  const slow = [await target((response) => held.push(response)), await target((response) => held.push(response))];
  const c = await startConductor({ ephemeral: true });
  const call = (name: string, uri: string) => operator("HTTP", name, { inputParameters: { uri, method: "GET", readTimeOut: 60_000 } });
  const names = Array.from({ length: callSlots }, (_none, at) => `call${at}`);
  const branches = names.map((name, at) => [call(name, slow[at % slow.length] as string)]);
  await c.begin(fork("fork", branches, names), { name: "flood" });
  await eventually(async () => held.length >= callSlots / 2);
  const other = await c.begin([call("call", quick)], { name: "other" });
  await eventually(async () => (await c.status(other)) === "COMPLETED");
  expect(held).toHaveLength(callSlots / 2);
  // What waited gets the slots that become free.
  for (const response of held.splice(0)) response.end("{}");
  await eventually(async () => held.length === callSlots / 2);
});
