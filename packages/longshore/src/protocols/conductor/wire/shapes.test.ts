import { describe, expect, it } from "vitest";
import { updateAnswer, verdictOfStatus, wantsNewToken } from "./codes.ts";
import { parseErrorBody, parsePolledTask, resultStatuses, retryLogics, type TaskDef, timeoutPolicies } from "./shapes.ts";

describe("a polled task", () => {
  it("[C-WIRE-03] has the fields that a worker needs, and others are ignored", () => {
    const polled = {
      taskId: "t",
      workflowInstanceId: "w",
      taskDefName: "greet",
      referenceTaskName: "ref",
      inputData: { a: [1, { b: null }] },
      status: "IN_PROGRESS",
      pollCount: 2,
      retryCount: 1,
      callbackAfterSeconds: 3,
      responseTimeoutSeconds: 60,
      outputData: { page: 1 },
      workflowTask: { name: "x" },
      brandNew: true,
    };
    expect(parsePolledTask(polled, "other")).toEqual(polled);
  });

  it("may lack most fields", () => {
    expect(parsePolledTask({ taskId: "t", workflowInstanceId: "w", inputData: null, pollCount: "x" }, "greet")).toMatchObject({
      taskDefName: "greet",
      referenceTaskName: "greet",
      inputData: {},
      outputData: {},
      pollCount: 1,
      retryCount: 0,
      responseTimeoutSeconds: 0,
    });
  });

  it.each([[null], ["t"], [[]], [{}], [{ taskId: "t" }], [{ taskId: "", workflowInstanceId: "w" }]])("is not read from %j", (value) => {
    expect(parsePolledTask(value, "greet")).toBeUndefined();
  });
});

describe("values on the wire", () => {
  it("[C-ARCH-09, C-WIRE-05] are Conductor's own", () => {
    expect(resultStatuses).toEqual(["IN_PROGRESS", "COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR"]);
    expect(retryLogics).toEqual(["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"]);
    expect(timeoutPolicies).toEqual(["RETRY", "TIME_OUT_WF", "ALERT_ONLY"]);
    const everyField: TaskDef = {
      name: "greet",
      description: "d",
      retryCount: 3,
      retryLogic: "FIXED",
      retryDelaySeconds: 60,
      timeoutSeconds: 3_600,
      timeoutPolicy: "RETRY",
      responseTimeoutSeconds: 600,
      concurrentExecLimit: 10,
      rateLimitPerFrequency: 100,
      rateLimitFrequencyInSeconds: 60,
      inputSchema: { name: "greet_input", version: 1 },
      outputSchema: { name: "greet_output", version: 1 },
    };
    expect(Object.keys(everyField)).toHaveLength(13);
  });

  it.each([
    ["IN_PROGRESS", "ok"],
    ["SCHEDULED", "ok"],
    ["SOMETHING_NEW", "ok"],
    ["CANCELED", "cancel"],
    ["TIMED_OUT", "gone"],
    ["COMPLETED", "gone"],
    ["COMPLETED_WITH_ERRORS", "gone"],
    ["FAILED_WITH_TERMINAL_ERROR", "gone"],
    ["SKIPPED", "gone"],
  ])("a task that is %s at the server is %s for its worker", (status, verdict) => {
    expect(verdictOfStatus(status)).toBe(verdict);
  });

  const shape = (status: number, message: string) => JSON.stringify({ status, message, instance: "vm", retryable: false });
  it.each([
    [200, "task-1", "taken"],
    [204, "", "taken"],
    [200, "\n<!doctype html><title>Log in</title>", "failed"],
    [400, shape(400, "Validation failed"), "refused"],
    [413, shape(413, "too large"), "refused"],
    [413, "<html>nginx</html>", "failed"],
    [400, '{"message":"no status"}', "failed"],
    [404, shape(404, "No such task found by id: x"), "failed"],
    [404, shape(404, "No such workflow found by id: x"), "failed"],
    [404, shape(404, "No static resource api/tasks/update-v2."), "no-endpoint"],
    [404, "", "no-endpoint"],
    [405, shape(405, "Request method 'POST' is not supported"), "no-endpoint"],
    [401, "", "failed"],
    [500, shape(500, "oops"), "failed"],
  ])("the answer %s %s to an update means %s", (status, body, meaning) => {
    expect(updateAnswer(status, body)).toBe(meaning);
  });

  it("of a refusal are read only from Conductor's own shape", () => {
    expect(parseErrorBody(shape(404, "x"))).toMatchObject({ status: 404, message: "x" });
    expect(["", "<html>", "[]", '{"status":"404"}', '{"status":404'].map(parseErrorBody)).toEqual(Array(5).fill(undefined));
  });

  it.each([
    [401, '{"error":"EXPIRED_TOKEN"}', true],
    [403, '{"status":403,"error": "INVALID_TOKEN"}', true],
    [401, '{"error":"NO_ACCESS"}', false],
    [401, "<html>", false],
    [500, '{"error":"EXPIRED_TOKEN"}', false],
  ])("%s %s requires a new token: %s", (status, body, expected) => {
    expect(wantsNewToken(status, body)).toBe(expected);
  });
});
