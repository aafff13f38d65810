// The forms in which Conductor's clients write booleans, numbers and lists in a query, as the real server (3.32.3) reads them.

import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";

it("reads a boolean in every form that the real server reads, and refuses other texts by the parameter's name", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const tasks = async (query: string) => (await c.read<{ tasks: unknown[] }>(`/workflow/${id}${query}`)).tasks.length;
  for (const text of ["true", "True", "TRUE", "yes", "on", "1", "", "%20true%20"]) {
    expect([text, await tasks(`?includeTasks=${text}`)]).toEqual([text, 1]);
  }
  for (const text of ["false", "False", "no", "off", "0"]) expect([text, await tasks(`?includeTasks=${text}`)]).toEqual([text, 0]);
  expect(await tasks("?includeTasks=false&includeTasks=true")).toBe(0);
  for (const text of ["t", "y", "maybe", "true,false"]) {
    const { status, text: body } = await c.send("GET", `/workflow/${id}?includeTasks=${text}`);
    expect([status, JSON.parse(body).message]).toEqual([
      400,
      `The query parameter includeTasks is ${JSON.stringify(text)}, expected true or false.`,
    ]);
  }
  const definition = { name: "twice", version: 1, schemaVersion: 2, tasks: [simple("t")], ownerEmail: "a@b.c" };
  for (const [overwrite, status] of [
    ["False", 200],
    ["False", 409],
    ["True", 200],
  ] as const) {
    expect((await c.send("POST", `/metadata/workflow?overwrite=${overwrite}`, definition)).status).toBe(status);
  }
});

it("reads a number with spaces, a sign or leading zeros, and in hexadecimal, and refuses other texts", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const found = async (query: string) => (await c.read<{ results: unknown[] }>(`/workflow/${id}/tasks?${query}`)).results.length;
  for (const text of ["1", "%201%20", "%2B1", "+1", "0x1", "01", "%231", ""]) {
    expect([text, await found(`count=${text}`)]).toEqual([text, 1]);
  }
  for (const text of ["1.5", "1e0", "one", "1,2", "1_0"]) {
    const { status, text: body } = await c.send("GET", `/workflow/${id}/tasks?count=${text}`);
    expect([status, JSON.parse(body).message]).toEqual([
      400,
      `The query parameter count is ${JSON.stringify(text)}, expected a whole number.`,
    ]);
  }
});

it("reads a list as a repeated parameter or with commas, without spaces", async () => {
  const c = await startConductor();
  await c.begin([simple("t")]);
  for (const query of ["taskType=t,%20other", "taskType=t&taskType=other"]) {
    expect(await c.read(`/tasks/queue/sizes?${query}`)).toEqual({ t: 1, other: 0 });
  }
});

it("refuses unsupported requests in Conductor's error format, with their name", async () => {
  const c = await startConductor();
  const refusals = [
    ["PUT", "/scheduler/admin/pause", 404, "a pause of one process"],
    ["POST", "/files/w/f/multipart", 404, "uploads in parts"],
    ["POST", "/agent/start", 404, "agents"],
    ["GET", "/workflow/externalstoragelocation", 404, "external payload storage"],
  ] as const;
  for (const [method, path, status, what] of refusals) {
    const answer = await c.send(method, path, method === "GET" ? undefined : {});
    expect([path, answer.status, JSON.parse(answer.text)]).toEqual([
      path,
      status,
      { status, message: expect.stringContaining(what), instance: "longshore", retryable: false },
    ]);
  }
  const start = await c.send("POST", "/workflow", { name: "w", externalInputPayloadStoragePath: "in/x.json" });
  expect([start.status, JSON.parse(start.text).message]).toEqual([400, expect.stringContaining("externalInputPayloadStoragePath")]);
});
