import { expect, it } from "vitest";
import { deferralError, deferralOf, deferredParams, takeDeferred } from "./deferral.ts";
import { TaskErrorCode } from "./messages.ts";
import { stableTaskId } from "./task-id.ts";

it("a deferral is read from the error that contains it, and other errors are not deferrals", () => {
  const deferral = { delayMs: 5_000, output: { page: 2 } };
  expect(deferralOf(deferralError(deferral))).toEqual(deferral);
  const failure = { code: TaskErrorCode.WORKER_ERROR, message: "deferred" };
  for (const data of [undefined, null, "longshore.defer", {}, { "longshore.defer": 1 }, { "longshore.defer": { delayMs: -1 } }])
    expect(deferralOf({ ...failure, ...(data === undefined ? {} : { data: data as never }) })).toBeUndefined();
  expect(deferralOf({ ...failure, data: { "longshore.defer": { delayMs: Number.MAX_VALUE } } })).toBeUndefined();
});

it("the state of a deferral is a path parameter that the handler does not see", () => {
  expect(deferredParams({ deferrals: 0, output: '"progress"' })).toEqual({});
  const sent = { path: "a/b", ...deferredParams({ deferrals: 2, output: '{"page":2}' }) };
  expect(takeDeferred(sent)).toEqual({ params: { path: "a/b" }, deferred: { deferrals: 2, output: { page: 2 } } });
  expect(takeDeferred({ path: "a/b" })).toEqual({ params: { path: "a/b" } });
  expect(takeDeferred(deferredParams({ deferrals: 1, output: null })).deferred).toEqual({ deferrals: 1, output: null });
});

it("our servers are recognised by the ids of steps and of single tasks", () => {
  expect(stableTaskId("01M7S0QBBBETAVQ8FSER4AYERD.3-12")).toBe("01M7S0QBBBETAVQ8FSER4AYERD.3");
  expect(stableTaskId("01M7S0QBBBETAVQ8FSER4AYERD-12")).toBe("01M7S0QBBBETAVQ8FSER4AYERD");
  for (const foreign of ["4f2c0d9e-7a6b-4c1d-9e8f-0a1b2c3d4e5f", "task-12"]) expect(stableTaskId(foreign)).toBe(foreign);
});
