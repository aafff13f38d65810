// Compares refusals with the recorded responses of the reference to the same requests (test/fixtures/workflow-graph/server-answers.json).

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { expectJson, parseClaim, parseComplete, parseFail, parseLogs, parseRegister } from "./parse.ts";
import { parseList, parseNewWorkflow } from "./parse-workflow.ts";
import { Refused } from "./refuse.ts";

interface Exchange {
  step: string;
  request: { method: string; path: string; headers: { [name: string]: string }; body: string };
  answer: { status: number; headers: { [name: string]: string }; body: string };
}

const recorded = JSON.parse(
  readFileSync(new URL("../../../../test/fixtures/workflow-graph/server-answers.json", import.meta.url), "utf8"),
) as {
  chapters: { chapter: string; exchanges: Exchange[] }[];
};

const parsers: { [ending: string]: (text: string) => unknown } = {
  register: parseRegister,
  claim: parseClaim,
  complete: parseComplete,
  fail: parseFail,
  logs: parseLogs,
  workflows: parseNewWorkflow,
};

/** The recorded requests with a body. Bodies that were too large are only described in the recording. */
const exchanges = recorded.chapters.flatMap(({ chapter, exchanges }) =>
  exchanges
    .filter(({ request, answer }) => request.method === "POST" && parserOf(request.path) !== undefined && answer.status !== 413)
    .map((exchange) => ({ name: `${chapter} / ${exchange.step}`, ...exchange })),
);
const refused = exchanges.filter(({ answer }) => [400, 415, 422].includes(answer.status));
const taken = exchanges.filter(({ answer }) => answer.status < 400);

function parserOf(path: string) {
  return parsers[path.split("/").at(-1) ?? ""];
}

function refusalOf(work: () => unknown): { status: number; body: unknown } {
  try {
    work();
  } catch (error) {
    if (error instanceof Refused) return { status: error.reply.status, body: error.reply.body };
    throw error;
  }
  throw new Error("it was accepted");
}

function play({ request }: Exchange): unknown {
  expectJson(request.headers);
  return parserOf(request.path)?.(request.body);
}

describe("requests that the reference refuses", () => {
  it("are recorded in a sufficient number", () => {
    expect(refused.length).toBeGreaterThan(30);
  });

  it.each(refused.map((exchange) => [exchange.name, exchange] as const))("get the same message from our server: %s", (_name, exchange) => {
    expect(refusalOf(() => play(exchange))).toEqual({ status: exchange.answer.status, body: exchange.answer.body });
  });
});

describe("requests that the reference accepts", () => {
  it.each(taken.map((exchange) => [exchange.name, exchange] as const))("are also accepted here: %s", (_name, exchange) => {
    expect(() => play(exchange)).not.toThrow();
  });
});

describe("content types", () => {
  it.each(["application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"])(
    "[G2] accepts %s",
    (type) => {
      expect(() => expectJson({ "content-type": type })).not.toThrow();
    },
  );

  it.each([undefined, "text/plain", "text/json", "application/x-www-form-urlencoded", "application/jsonp"])(
    "[G2] refuses %s with 415",
    (type) => {
      const headers = type === undefined ? {} : { "content-type": type };
      expect(refusalOf(() => expectJson(headers))).toEqual({ status: 415, body: "Expected request with `Content-Type: application/json`" });
    },
  );
});

describe("a claim", () => {
  const claim = (more: object) => parseClaim(JSON.stringify({ worker_id: "w", labels: [], ...more }));

  it("[G5] is held for 30 seconds by default", () => {
    expect(claim({})).toEqual({ workerId: "w", labels: [], ttlSecs: 30, waitSecs: 0 });
  });

  it("[G27] has a term from 1 second to a day", () => {
    expect(claim({ lease_ttl_secs: 0 }).ttlSecs).toBe(1);
    expect(parseClaim('{"worker_id":"w","labels":[],"lease_ttl_secs":9223372036854775808}').ttlSecs).toBe(86_400);
    expect(claim({ lease_ttl_secs: 300 }).ttlSecs).toBe(300);
  });

  it("may wait at most 30 seconds", () => {
    expect(claim({ wait_secs: 10 }).waitSecs).toBe(10);
    expect(claim({ wait_secs: 600 }).waitSecs).toBe(30);
    expect(refusalOf(() => claim({ wait_secs: -1 })).body).toContain("wait_secs: invalid value: integer `-1`, expected u64");
  });

  it("is refused with the limit when an id or a list of labels is too long", () => {
    expect(refusalOf(() => claim({ worker_id: "x".repeat(257) }))).toMatchObject({
      status: 422,
      body: expect.stringContaining("worker_id: 257 characters, expected at most 256"),
    });
    const wide = Array.from({ length: 1_000 }, (_, at) => `${at}`.padStart(33, "l"));
    expect(refusalOf(() => claim({ labels: wide })).body).toContain(
      "labels: 33000 characters in all labels together, expected at most 32768",
    );
    expect(claim({ labels: wide.slice(0, 992) }).labels).toHaveLength(992);
    expect(refusalOf(() => claim({ labels: Array(1_001).fill("a") })).body).toContain("labels: 1001 labels, expected at most 1000");
    expect(refusalOf(() => claim({ worker_id: "a\0b" })).body).toContain("worker_id: a NUL character");
  });
});

describe("reports", () => {
  it("[G9] read an empty object as no outputs, and keep texts unchanged", () => {
    expect(parseComplete("{}").output).toBe("{}");
    expect(parseComplete('{"outputs":{}}').output).toBe("{}");
    expect(parseComplete('{"outputs":{"b":"2","a":"ü\\u0000"}}').output).toBe('{"b":"2","a":"ü\\u0000"}');
    expect(parseComplete('{"outputs":{"__proto__":"x"}}').output).toBe('{"__proto__":"x"}');
  });

  it("use the result itself when a worker sends it", () => {
    expect(parseComplete('{"outputs":{"n":"3"},"output":{"n":3,"list":[null]}}').output).toBe('{"n":3,"list":[null]}');
    expect(refusalOf(() => parseComplete(`{"output":${"[".repeat(150)}${"]".repeat(150)}}`))).toMatchObject({ status: 422 });
  });

  it("[G11] count a failure without `retryable` as final", () => {
    expect(parseFail('{"error":"no luck"}')).toEqual({ error: "no luck", retryable: false });
    expect(parseFail('{"error":"","retryable":true}')).toEqual({ error: "", retryable: true });
  });
});

describe("log chunks", () => {
  const chunk = { workflow_id: "w", job_id: "j", sequence: 0, data: "", timestamp_ms: 1, stream: "stderr" };

  it("[W-LOG-02] have six fields, and may have an empty text", () => {
    expect(parseLogs(JSON.stringify({ chunks: [{ ...chunk, colour: "red" }] }))).toEqual([chunk]);
    for (const field of Object.keys(chunk)) {
      const body = JSON.stringify({ chunks: [{ ...chunk, [field]: undefined }] });
      expect(refusalOf(() => parseLogs(body)).body).toContain(`chunks[0]: missing field \`${field}\``);
    }
  });

  it("are limited in number", () => {
    const chunks = Array(10_001).fill(chunk);
    expect(refusalOf(() => parseLogs(JSON.stringify({ chunks }))).body).toContain("10001 chunks, expected at most 10000");
  });
});

describe("a new workflow", () => {
  const create = (job: object) =>
    parseNewWorkflow(
      JSON.stringify({ name: "n", trigger: "t", jobs: [{ id: "a", name: "a", status: "queued", command: "x", depends_on: [], ...job }] }),
    );

  it("[G14] fills in what a job leaves out", () => {
    expect(create({}).jobs[0]).toEqual({
      ...{ id: "a", name: "a", status: "queued", command: "x", duration_secs: null, started_at: null, depends_on: [], output: null },
      ...{ required_labels: [], max_retries: 0, attempt: 0, metadata: {}, ports: [], children: null, collapsed: false },
    });
  });

  it("reads children as separate jobs", () => {
    const child = { id: "c", name: "c", status: "success", command: "", depends_on: [], duration_secs: 3, started_at: 1.5 };
    expect(create({ children: [child] }).jobs[0]?.children).toEqual([
      expect.objectContaining({ id: "c", status: "success", duration_secs: 3, started_at: 1.5, ports: [] }),
    ]);
    expect(refusalOf(() => create({ children: [{ ...child, id: 1 }] })).body).toContain(
      "jobs[0].children[0].id: invalid type: integer `1`, expected a string",
    );
  });

  it("reads the fields that only Longshore has", () => {
    const ours = { backoff: { Exponential: { base_secs: 2, max_secs: 60 } }, max_lost_leases: 0, timeout_secs: 5, priority: -1 };
    expect(create(ours).jobs[0]).toMatchObject(ours);
    expect(create({ backoff: { Fixed: { delay_secs: 5 } } }).jobs[0]?.backoff).toEqual({ Fixed: { delay_secs: 5 } });
    expect(refusalOf(() => create({ backoff: { Fixed: {} } })).body).toContain("jobs[0].backoff.Fixed: missing field `delay_secs`");
    expect(refusalOf(() => create({ backoff: "sometimes" })).body).toContain("jobs[0].backoff: unknown backoff");
  });

  it("is refused when it is nested too deeply", () => {
    const deep = `${'{"a":'.repeat(150)}1${"}".repeat(150)}`;
    expect(refusalOf(() => parseNewWorkflow(`{"name":"n","trigger":"t","jobs":[],"metadata":${deep}}`))).toMatchObject({
      status: 400,
      body: expect.stringContaining("recursion limit exceeded"),
    });
  });
});

describe("the query of a list", () => {
  const list = (query: string) => parseList(new URLSearchParams(query));

  it("[G15] has a default of 100 and a cap of 1000", () => {
    expect(list("")).toEqual({ limit: 100, offset: 0, status: undefined });
    expect(list("limit=5000&offset=7&status=queued&colour=red")).toEqual({ limit: 1_000, offset: 7, status: "queued" });
    expect(list("limit=0").limit).toBe(0);
  });

  it.each(["limit=abc", "limit=-1", "limit=1.5", "offset="])("[G15] refuses %s with 400", (query) => {
    const name = query.split("=")[0];
    expect(refusalOf(() => list(query))).toEqual({
      status: 400,
      body: `Failed to deserialize query string: ${name}: invalid digit found in string`,
    });
  });
});
