import { describe, expect, it } from "vitest";
import { everyone, stranger } from "../../core/actions.ts";
import { createLogger } from "../../core/logger.ts";
import { createAuth, parseToken } from "./auth.ts";
import { createGate, type GateOptions } from "./gate.ts";

const open = createAuth([]);
const closed = createAuth([parseToken("worker:kV3mQ0rT8xLw2ZpB:w", "1")]);

function gate(options: Partial<GateOptions> = {}) {
  return createGate({ auth: open, bound: "127.0.0.1", ...options });
}

describe("the Host header on loopback", () => {
  it.each(["localhost", "localhost:4500", "LocalHost:1", "127.0.0.1:4500", "[::1]:4500", "[::1]"])("may be %s", (host) => {
    expect(gate().screen({ host })).toBeUndefined();
  });

  it.each([undefined, "evil.example", "evil.example:4500", "127.0.0.1.evil.example", "0.0.0.0"])(
    "may not be %j, so that a page with a rebound name cannot use the server",
    (host) => {
      expect(gate().screen({ host })).toMatchObject({ kind: "forbidden", status: 403 });
    },
  );

  it("may be a configured name", () => {
    const named = gate({ hosts: ["Build.Example.Org"] });
    expect(named.screen({ host: "build.example.org:4500" })).toBeUndefined();
    expect(named.screen({ host: "other.example.org" })).toMatchObject({ status: 403 });
  });

  it("may be the address the server is bound to", () => {
    expect(gate({ bound: "127.0.0.2" }).screen({ host: "127.0.0.2:4500" })).toBeUndefined();
  });

  it("is checked again for every request, also after one was accepted", () => {
    const one = gate();
    expect(one.screen({ host: "localhost:4500" })).toBeUndefined();
    expect(one.screen({ host: "evil.example" })).toMatchObject({ status: 403 });
    expect(one.screen({ host: "localhost:4500" })).toBeUndefined();
  });
});

describe("a malformed Host header", () => {
  const rules = {
    "on loopback": gate(),
    "with names": gate({ bound: "0.0.0.0", hosts: ["localhost"] }),
    "with tokens": gate({ auth: closed, bound: "0.0.0.0" }),
    "without tokens": gate({ bound: "0.0.0.0" }),
  };
  it.each(Object.entries(rules))("is refused %s", (_rule, screened) => {
    for (const host of [
      "",
      "localhost@evil.example",
      "localhost:4500:1",
      "localhost:1@evil",
      "localhost, evil",
      "localhost,localhost",
      "::1",
      "a b",
    ])
      expect([host, screened.screen({ host })]).toMatchObject([host, { kind: "bad-request", status: 400 }]);
    for (const host of ["localhost:", "LOCALHOST:4500"]) expect([host, screened.screen({ host })]).toEqual([host, undefined]);
  });
});

describe("the Host header beyond loopback", () => {
  it("may be anything when tokens are required and no names are configured", () => {
    expect(gate({ auth: closed, bound: "0.0.0.0" }).screen({ host: "any.example.org" })).toBeUndefined();
  });

  it("must be a configured name when names are configured", () => {
    const named = gate({ auth: closed, bound: "0.0.0.0", hosts: ["ci.example.org"] });
    expect(named.screen({ host: "ci.example.org" })).toBeUndefined();
    expect(named.screen({ host: "other.example.org" })).toMatchObject({ status: 403 });
  });

  it("must not be a public name when neither tokens nor names are configured", () => {
    const insecure = gate({ bound: "0.0.0.0" });
    for (const host of ["10.0.0.7:4500", "[fe80::1]:4500", "longshore:4500", "localhost"])
      expect(insecure.screen({ host })).toBeUndefined();
    for (const host of ["evil.example", "evil.example.:4500", undefined]) expect(insecure.screen({ host })).toMatchObject({ status: 403 });
  });
});

describe("the Origin header", () => {
  const host = "localhost:4500";

  it("is refused for every foreign page by default", () => {
    for (const origin of ["https://evil.example", "null", "http://localhost:3000", "http://localhost", "http://127.0.0.1:4500", ""]) {
      expect(gate().screen({ host, origin })).toMatchObject({ kind: "forbidden", status: 403 });
    }
  });

  it("is accepted for a page of this server", () => {
    expect(gate().screen({ host, origin: "http://localhost:4500" })).toBeUndefined();
  });

  it("is refused for a page with a rebound name that claims to have the same origin", () => {
    expect(gate().screen({ host: "evil.example:4500", origin: "http://evil.example:4500" })).toMatchObject({ status: 403 });
  });

  it("is accepted for exactly the configured origins", () => {
    const configured = gate({ origins: ["https://ci.example.org", "http://localhost:5173/"] });
    expect(configured.screen({ host, origin: "https://ci.example.org" })).toBeUndefined();
    expect(configured.screen({ host, origin: "http://localhost:5173" })).toBeUndefined();
    for (const origin of [
      "http://ci.example.org",
      "https://ci.example.org:8443",
      "https://ci.example.org.evil.example",
      "https://ci.example.org, x",
    ]) {
      expect(configured.screen({ host, origin })).toMatchObject({ status: 403 });
    }
  });

  it("is repeated in responses only for configured origins", () => {
    const configured = gate({ origins: ["https://ci.example.org"] });
    expect(configured.allowedOrigin({ host, origin: "https://ci.example.org" })).toBe("https://ci.example.org");
    expect(configured.allowedOrigin({ host, origin: "http://localhost:4500" })).toBeUndefined();
    expect(configured.allowedOrigin({ host })).toBeUndefined();
  });

  it.each(["*", "ci.example.org", "https://ci.example.org/path", "null", "file:///x", ""])("cannot be configured as %j", (origin) => {
    expect(() => gate({ origins: [origin] })).toThrow(/origin/);
  });

  it("is not needed to refuse requests that a browser marks as cross-site", () => {
    expect(gate().screen({ host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toMatchObject({ status: 403 });
    expect(gate().screen({ host, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" })).toMatchObject({ status: 403 });
    expect(gate().screen({ host, "sec-fetch-site": "same-origin" })).toBeUndefined();
  });
});

describe("a navigation of a browser", () => {
  const host = "localhost:4500";
  const page = { method: "GET", action: "server.greet", page: true } as const;
  const reading = { method: "GET", action: "run.read" } as const;
  const claiming = { method: "GET", action: "task.claim" } as const;
  const visit = (site: string, more = {}) => ({ host, "sec-fetch-site": site, "sec-fetch-mode": "navigate", ...more });

  it.each(["cross-site", "same-site"])("reaches only pages when it comes from another site (%s)", (site) => {
    expect(gate().screen(visit(site), page)).toBeUndefined();
    for (const route of [reading, claiming, undefined]) expect(gate().screen(visit(site), route)).toMatchObject({ status: 403 });
  });

  it("is refused for a frame, an image or a script of another site", () => {
    for (const dest of ["iframe", "frame", "object", "embed"]) {
      expect(gate().screen(visit("cross-site", { "sec-fetch-dest": dest }), page)).toMatchObject({ status: 403 });
    }
    expect(gate().screen(visit("cross-site", { "sec-fetch-mode": "no-cors" }), page)).toMatchObject({ status: 403 });
  });

  it.each(["none", "same-origin"])(
    "reaches routes that only read when the user typed the address or followed a link of ours (%s)",
    (site) => {
      for (const route of [page, reading]) expect(gate().screen(visit(site), route)).toBeUndefined();
      expect(gate().screen(visit(site), claiming)).toMatchObject({ status: 403 });
      const form = { method: "POST", action: "run.start" } as const;
      expect(gate().screen(visit(site, { origin: "http://localhost:4500" }), form)).toMatchObject({ status: 403 });
    },
  );

  it("changes nothing by GET when the browser does not send the site, as with plain HTTP beyond loopback", () => {
    const headers = { host: "10.0.0.7:4500", "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0" };
    const insecure = gate({ bound: "0.0.0.0" });
    expect(insecure.screen(headers, claiming)).toMatchObject({ status: 403 });
    expect(insecure.screen(headers, reading)).toBeUndefined();
    expect(insecure.screen({ ...headers, "user-agent": "python-requests/2.32" }, claiming)).toBeUndefined();
  });
});

describe("the token", () => {
  it("is not required when none is configured", () => {
    expect(gate().authorize({}, "run.start")).toEqual({ caller: everyone });
  });

  it("is not needed for open routes", () => {
    expect(gate({ auth: closed }).authorize({}, "server.health")).toEqual({ caller: stranger });
  });

  it("leads to 401 with a challenge when it is absent or unknown, and to 403 with the scope when it allows too little", () => {
    const guarded = gate({ auth: closed });
    expect(guarded.authorize({}, "task.claim").problem).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer" } });
    expect(guarded.authorize({ authorization: "Bearer nobody-knows-this-one" }, "task.claim").problem).toMatchObject({
      status: 401,
      headers: { "www-authenticate": 'Bearer error="invalid_token"' },
    });
    const { problem } = guarded.authorize({ authorization: "Bearer kV3mQ0rT8xLw2ZpB" }, "run.start");
    expect(problem).toMatchObject({ kind: "forbidden", status: 403 });
    expect(problem?.message).toContain("operator");
  });

  it("is requested with a message that the log can keep although it removes every token", () => {
    const lines: string[] = [];
    const logger = createLogger({ format: "json", write: (line) => lines.push(line), clock: { now: () => 0 } });
    const text = createLogger({ format: "text", write: (line) => lines.push(line), clock: { now: () => 0 } });
    const guarded = gate({ auth: closed });
    for (const authorization of [undefined, "Bearer nobody-knows-this-one", "Bearer kV3mQ0rT8xLw2ZpB"]) {
      const reason = guarded.authorize({ authorization }, "run.start").problem?.message as string;
      lines.length = 0;
      logger.warn("refused", { reason, sent: `it sent ${authorization}` });
      text.warn("refused", { reason, sent: `it sent ${authorization}` });
      for (const line of lines) {
        expect(line).toContain(reason);
        expect(line).not.toMatch(/nobody-knows|kV3mQ0rT8xLw2ZpB/);
      }
      expect(lines).toHaveLength(2);
    }
  });

  it("gives the caller its name, also when it allows too little", () => {
    const headers = { authorization: "Bearer kV3mQ0rT8xLw2ZpB" };
    for (const action of ["task.claim", "run.start"] as const) {
      expect(gate({ auth: closed }).authorize(headers, action).caller.name).toBe("w");
    }
  });
});
