import { describe, expect, it } from "vitest";
import type { Route, RouteGroup } from "../http/http.ts";
import { createRouter } from "./router.ts";

function group(name: string, ...routes: string[]): RouteGroup {
  return {
    name,
    routes: routes.map((text): Route => {
      const [method, path] = text.split(" ") as [Route["method"], string];
      return { method, path, action: "server.health", body: "none", handle: () => ({ status: 200 }) };
    }),
    refuse: (problem) => ({ status: problem.status }),
  };
}

const worker = group(
  "worker",
  "POST /api/jobs/claim",
  "POST /api/jobs/:lease/heartbeat",
  "POST /api/jobs/:lease/complete",
  "GET /api/jobs/:workflow/:job/cancelled",
  "GET /api/workers",
  "POST /api/workers/:id/heartbeat",
);
const own = group("own", "GET /health", "GET /api/own/runs", "POST /api/own/runs", "GET /api/own/runs/:run");
const fallback = group("fallback");
const router = createRouter([worker, own], fallback);

function find(text: string) {
  const [method, path] = text.split(" ") as [string, string];
  const match = router.find(method, path);
  return { path: match.entry?.route.path, values: match.values, group: match.group.name, methods: match.methods };
}

describe("finding a route", () => {
  it("finds a literal path by one lookup, and parameters by position", () => {
    expect(find("POST /api/jobs/claim")).toMatchObject({ path: "/api/jobs/claim", values: [] });
    expect(find("POST /api/jobs/l-1/complete")).toMatchObject({ path: "/api/jobs/:lease/complete", values: ["l-1"] });
    expect(find("GET /api/jobs/w/j/cancelled")).toMatchObject({ path: "/api/jobs/:workflow/:job/cancelled", values: ["w", "j"] });
  });

  it("names what a group does not serve, at a path and below it, and lets that group write the refusal", () => {
    const partly = createRouter([worker, { ...own, unserved: { "/api/events": "events" } }], fallback);
    for (const path of ["/api/events", "/api/events/a/b"]) {
      expect(partly.find("GET", path)).toMatchObject({ entry: undefined, group: { name: "own" }, unserved: "events" });
    }
    expect(partly.find("GET", "/api/event")).toMatchObject({ entry: undefined, unserved: undefined });
  });

  it("tries the parameter when the literal leads to no route", () => {
    expect(find("POST /api/jobs/claim/heartbeat")).toMatchObject({ path: "/api/jobs/:lease/heartbeat", values: ["claim"] });
    expect(find("GET /api/jobs/claim/x/cancelled")).toMatchObject({ values: ["claim", "x"] });
  });

  it("leaves percent escapes alone, so that an escaped slash stays in its segment", () => {
    expect(find("POST /api/jobs/a%2Fb/complete").values).toEqual(["a%2Fb"]);
  });

  it("answers HEAD by the GET route", () => {
    expect(find("HEAD /health").path).toBe("/health");
    expect(find("HEAD /api/own/runs/r1").values).toEqual(["r1"]);
  });

  it("treats paths with a trailing slash, an empty parameter or a doubled slash as different paths", () => {
    for (const path of ["/api/jobs/claim/", "/api/jobs//complete", "//health", "/health/", "", "health", "*", "http://localhost/health"]) {
      expect(find(`POST ${path}`)).toMatchObject({ path: undefined, methods: [] });
    }
  });

  it("lists the methods of a known path, HEAD with GET", () => {
    expect(find("GET /api/jobs/claim").methods).toEqual(["POST"]);
    expect(find("DELETE /api/own/runs").methods).toEqual(["GET", "HEAD", "POST"]);
    expect(find("PUT /api/own/runs/r1").methods).toEqual(["GET", "HEAD"]);
  });
});

describe("HEAD", () => {
  const polls: Route = { method: "GET", path: "/poll", action: "task.claim", body: "none", handle: () => ({ status: 200 }) };
  const reads: Route = { ...polls, path: "/read", action: "run.read" };
  const steers: Route = { ...reads, path: "/steer", also: "run.steer" };
  const { find } = createRouter([{ ...fallback, routes: [polls, reads, steers] }], fallback);

  it("is for a GET route that only reads", () => {
    expect(find("HEAD", "/read").entry?.route).toBe(reads);
    expect(find("GET", "/poll").entry?.route).toBe(polls);
    for (const path of ["/poll", "/steer"]) expect(find("HEAD", path)).toMatchObject({ entry: undefined, methods: ["GET"] });
  });
});

describe("the group that refuses a path without a route", () => {
  it("is the owner of the longest known part", () => {
    expect(find("GET /api/jobs/claim").group).toBe("worker");
    expect(find("GET /api/jobs/x/y/z").group).toBe("worker");
    expect(find("GET /api/own/nothing").group).toBe("own");
    expect(find("GET /health/x").group).toBe("own");
  });

  it("is the fallback when no group or several groups own it", () => {
    expect(find("GET /nothing").group).toBe("fallback");
    expect(find("GET /api/nothing").group).toBe("fallback");
    expect(find("GET *").group).toBe("fallback");
  });
});

describe("a route table", () => {
  it("must not list a method and shape twice", () => {
    expect(() => createRouter([group("a", "GET /x/:one"), group("b", "GET /x/:two")], fallback)).toThrow("listed twice");
  });

  it("must have paths that begin with a slash", () => {
    expect(() => createRouter([group("a", "GET x")], fallback)).toThrow("slash");
  });
});
