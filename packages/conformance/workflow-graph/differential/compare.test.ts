import { describe, expect, it } from "vitest";
import type { Answer } from "../../src/exchange.ts";
import { compare } from "./compare.ts";

const json = (body: unknown, status = 200): Answer => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

describe("comparing two responses", () => {
  it("finds another status, another header and another value", () => {
    const reference: Answer = { status: 405, headers: { allow: "GET,HEAD" }, body: "" };
    const ours: Answer = { status: 404, headers: { "content-type": "text/plain" }, body: "no" };
    expect(compare(reference, ours).map(({ at }) => at)).toEqual(["status", "content-type", "allow", "body"]);
    expect(compare(json({ a: [1, 2] }), json({ a: [1, 3] }))).toEqual([{ at: "body.a.1", reference: 2, ours: 3 }]);
  });

  it("finds a missing field, a null in place of an object and an array of another length", () => {
    expect(compare(json({ a: 1 }), json({}))).toEqual([{ at: "body.a", reference: 1, ours: undefined }]);
    expect(compare(json({ job: {} }), json(null))).toEqual([{ at: "body", reference: { job: {} }, ours: null }]);
    expect(compare(json([]), json([1]))).toEqual([{ at: "body", reference: [], ours: [1] }]);
  });

  it("allows different ids, different times and known additions, but no unknown additions", () => {
    const reference = json({ lease_id: "x", granted_at_ms: 1 });
    expect(compare(reference, json({ lease_id: "y", granted_at_ms: 2, expires_at_ms: 3 }))).toEqual([]);
    expect(compare(reference, json({ lease_id: "y", granted_at_ms: 2, more: 1 }))).toHaveLength(1);
    expect(compare(reference, json({ lease_id: "y", granted_at_ms: null }))).toHaveLength(1);
  });

  it("treats the two ways to write that there is no delay as equal, and a delay as different", () => {
    const reference = json({ enqueued_at_ms: 1000, delayed_until_ms: 1000 });
    expect(compare(reference, json({ enqueued_at_ms: 2000, delayed_until_ms: 0 }))).toEqual([]);
    expect(compare(reference, json({ enqueued_at_ms: 2000, delayed_until_ms: 3000 }))).toHaveLength(1);
  });

  it("compares error texts without their detail", () => {
    const text = (body: string): Answer => ({ status: 422, headers: { "content-type": "text/plain; charset=utf-8" }, body });
    expect(compare(text("Failed to read: line 1"), text("Failed to read: line 2"))).toEqual([]);
    expect(compare(text("Failed to read: line 1"), text("Wrong: line 1"))).toHaveLength(1);
  });
});
