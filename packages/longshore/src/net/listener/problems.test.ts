import { describe, expect, it } from "vitest";
import { call, groupOf, route, startServer } from "../../../test/support/http.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Route } from "../http/http.ts";

function serve(...routes: Route[]) {
  return startServer({ groups: [groupOf("main", routes)] });
}

const json = { "content-type": "application/json" };

describe("a handler that throws", () => {
  it.each([
    [
      "at once",
      () => {
        throw new Error("secret detail");
      },
    ],
    ["later", () => Promise.reject(new Error("secret detail"))],
    [
      "something that is not an error",
      () => {
        throw "secret detail";
      },
    ],
  ] satisfies [string, Route["handle"]][])(
    "%s is a 500 in the group's shape without the reason, which is logged once",
    async (_when, handle) => {
      const server = await serve(route("POST /x/:id", handle));
      const answer = await call(`${server.url}/x/1`, { method: "POST", body: "{}" });
      expect(answer.status).toBe(500);
      const body = JSON.parse(answer.text) as { kind: string; message: string };
      expect(body.kind).toBe("internal");
      expect(answer.text).not.toContain("secret detail");
      const incident = /under ([0-9a-f-]{36})/.exec(body.message)?.[1];
      const lines = server.log.filter((line) => line.includes("secret detail"));
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "error", incident, method: "POST", route: "/x/:id" });
    },
  );

  it("because the store is unavailable gives 503 with Retry-After, and is not an incident", async () => {
    const server = await serve(
      route("POST /x", () => Promise.reject(new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "The disk is full."))),
    );
    const answer = await call(`${server.url}/x`, { method: "POST", body: "{}" });
    expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "5"]);
    expect(JSON.parse(answer.text)).toMatchObject({
      kind: "unavailable",
      message: "The disk is full.",
      code: "LONGSHORE_STORE_UNAVAILABLE",
    });
    expect(server.log.filter((line) => line.includes('"error"'))).toEqual([]);
  });

  it.each([
    ["LONGSHORE_LIMIT", undefined, 429, "overloaded"],
    ["LONGSHORE_LIMIT", "body", 413, "too-large"],
    ["LONGSHORE_BAD_INPUT", "jobs[2].labels", 400, "bad-request"],
    ["LONGSHORE_BAD_DEFINITION", "jobs", 400, "bad-request"],
    ["LONGSHORE_NOT_FOUND", undefined, 404, "not-found"],
    ["LONGSHORE_CLOSED", undefined, 503, "unavailable"],
  ] as const)("%s of field %s answers %i", async (code, field, status, kind) => {
    const detail = field === undefined ? {} : { field };
    const server = await serve(route("GET /x", () => Promise.reject(new LongshoreError(code, "Because.", { detail }))));
    const answer = await call(`${server.url}/x`);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ kind, message: "Because.", code, detail });
  });

  it("because its reply cannot be written also gives 500", async () => {
    const server = await serve(route("GET /x", () => ({ status: 200, headers: { "x-bad": "a\r\nb" } })));
    expect((await call(`${server.url}/x`)).status).toBe(500);
  });

  it("adds no headers of a refusal when the group's reply is 200", async () => {
    const lenient = {
      ...groupOf("lenient", [route("GET /x", () => Promise.reject(new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "Full.")))]),
    };
    const server = await startServer({ groups: [{ ...lenient, refuse: () => ({ status: 200, headers: json, body: "null" }) }] });
    const answer = await call(`${server.url}/x`);
    expect([answer.status, answer.text, answer.headers["retry-after"]]).toEqual([200, "null", undefined]);
  });
});
