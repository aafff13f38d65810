import { describe, expect, it } from "vitest";
import type { RpcDialect } from "../../../wire/codes.ts";
import { flowError, statusCode, taskErrorCode, wantsHandshake } from "./failure.ts";

const codeOf = (code: number, dialect: RpcDialect, message = "it went wrong") => taskErrorCode({ code, message }, dialect);

describe("the effect of a worker's error on its step", () => {
  it.each([
    [-32700, "WORKER_ERROR"],
    [-32600, "WORKER_ERROR"],
    [-32601, "WORKER_ERROR"],
    [-32602, "INVALID_INPUT"],
    [-32603, "WORKER_ERROR"],
    [-32100, "COMPONENT_FAILED"],
    [-32101, "COMPONENT_FAILED"],
    [-32102, "RESOURCE_UNAVAILABLE"],
    [-32103, "COMPONENT_FAILED"],
    [-32150, "COMPONENT_FAILED"],
    [-32199, "COMPONENT_FAILED"],
    [-32200, "EXPRESSION_FAILURE"],
    [-32201, "ORCHESTRATOR_ERROR"],
    [-32300, "UNREACHABLE"],
    [-32303, "UNREACHABLE"],
    [7, "COMPONENT_FAILED"],
  ])("%i is %s in either dialect", (code, expected) => {
    expect([codeOf(code, "A"), codeOf(code, "B")]).toEqual([expected, expected]);
  });

  it.each([
    [-32000, "COMPONENT_FAILED", "WORKER_ERROR"],
    [-32004, "COMPONENT_FAILED", "INVALID_INPUT"],
    [-32005, "RESOURCE_UNAVAILABLE", "WORKER_ERROR"],
    [-32006, "TIMEOUT", "WORKER_ERROR"],
    [-32007, "WORKER_ERROR", "WORKER_ERROR"],
    [-32008, "COMPONENT_FAILED", "WORKER_ERROR"],
    [-32009, "EXPRESSION_FAILURE", "WORKER_ERROR"],
    [-32011, "COMPONENT_FAILED", "WORKER_ERROR"],
    [-32099, "COMPONENT_FAILED", "WORKER_ERROR"],
  ])("%i is %s in the first dialect and %s in the second", (code, first, second) => {
    expect([codeOf(code, "A"), codeOf(code, "B")]).toEqual([first, second]);
  });

  it.each([
    [-32001, "Component '/x' not found", "COMPONENT_NOT_FOUND"],
    [-32001, "out of cheese", "COMPONENT_FAILED"],
    [-32002, "validation error: name is required", "INVALID_INPUT"],
    [-32003, "Invalid input schema", "INVALID_INPUT"],
    [-32003, "Component execution failed: invalid literal for int()", "COMPONENT_FAILED"],
  ])("%i with the words %s is %s in the first dialect", (code, message, expected) => {
    expect(codeOf(code, "A", message)).toBe(expected);
  });

  it("an error that requires a handshake is recognised by its code in the second dialect, and by its message in the first", () => {
    expect(wantsHandshake({ code: -32002, message: "?" }, "B")).toBe(true);
    expect(wantsHandshake({ code: -32002, message: "?" }, "A")).toBe(false);
    expect(wantsHandshake({ code: -32002, message: "Server not initialized" }, "A")).toBe(true);
    expect(wantsHandshake({ code: -32010, message: "Session expired" }, "A")).toBe(true);
    expect(wantsHandshake({ code: -32001, message: "Component 'initializer' missing" }, "B")).toBe(false);
  });

  it("message, data and code are kept", () => {
    expect(flowError({ code: -32100, message: "no", data: { component: "/x" } }, "B")).toEqual({
      code: "COMPONENT_FAILED",
      message: "no",
      data: { component: "/x", rpc_code: -32100 },
    });
    expect(flowError({ code: -32100, message: "no", data: [1] }, "B").data).toEqual({ data: [1], rpc_code: -32100 });
  });

  it("the effect depends on the HTTP status when the response is not JSON-RPC", () => {
    expect([400, 404, 406, 415].map(statusCode)).toEqual(Array(4).fill("WORKER_ERROR"));
    expect([200, 204, 302, 408, 429, 500, 502, 503].map(statusCode)).toEqual(Array(8).fill("UNREACHABLE"));
  });
});
