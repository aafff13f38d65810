// What a worker's error means for the step. Two dialects use the same numbers with different meanings, and the Python SDK of the first
// dialect has other meanings again. So the range of the number decides first, then the dialect, and then the text of the message.

import { isObject, type JsonObject } from "../../../../../core/json/json.ts";
import type { FlowError } from "../../../dialect/result.ts";
import type { RpcDialect } from "../../../wire/codes.ts";
import type { RpcErrorBody } from "../../../wire/json-rpc.ts";
import type { TaskErrorCode } from "../../../wire/messages.ts";

/** Numbers with the same meaning in every release. */
const anywhere: { readonly [code: number]: TaskErrorCode } = {
  [-32700]: "WORKER_ERROR",
  [-32600]: "WORKER_ERROR",
  [-32601]: "WORKER_ERROR",
  [-32602]: "INVALID_INPUT",
  [-32603]: "WORKER_ERROR",
  [-32102]: "RESOURCE_UNAVAILABLE",
  [-32200]: "EXPRESSION_FAILURE",
};

/** The worker guide's numbers. Any other number is a failure of the component. */
const dialectA: { readonly [code: number]: TaskErrorCode } = {
  [-32005]: "RESOURCE_UNAVAILABLE",
  [-32006]: "TIMEOUT",
  [-32007]: "WORKER_ERROR",
  [-32009]: "EXPRESSION_FAILURE",
};

/** Other numbers from -32000 to -32099 are never retried. */
const dialectB: { readonly [code: number]: TaskErrorCode } = {
  [-32001]: "COMPONENT_NOT_FOUND",
  [-32003]: "INVALID_INPUT",
  [-32004]: "INVALID_INPUT",
};

/** True when the worker asks for a new handshake. In dialect A the number alone does not decide. */
export function wantsHandshake({ code, message }: RpcErrorBody, dialect: RpcDialect): boolean {
  if (dialect === "B") return code === -32002;
  return (code === -32010 || code === -32002 || code === -32001) && /initiali[sz]|session/i.test(message);
}

export function taskErrorCode(error: RpcErrorBody, dialect: RpcDialect): TaskErrorCode {
  const { code, message } = error;
  const fixed = anywhere[code];
  if (fixed !== undefined) return fixed;
  if (inRange(code, -32399, -32300)) return "UNREACHABLE";
  if (inRange(code, -32299, -32201)) return "ORCHESTRATOR_ERROR";
  if (inRange(code, -32199, -32100)) return "COMPONENT_FAILED";
  if (dialect === "B") return dialectB[code] ?? (inRange(code, -32099, -32000) ? "WORKER_ERROR" : "COMPONENT_FAILED");
  if (wantsHandshake(error, dialect)) return "WORKER_ERROR";
  return dialectA[code] ?? byWords(code, message);
}

/**
 * In the guide, -32001, -32002 and -32003 are "not found", "not initialised" and "invalid input"; in Python they mostly mean something
 * else.
 */
function byWords(code: number, message: string): TaskErrorCode {
  if (code === -32001 && /not found|unknown component/i.test(message)) return "COMPONENT_NOT_FOUND";
  const aboutInput = /valid|schema/i.test(message) && !/execution failed/i.test(message);
  return (code === -32002 || code === -32003) && aboutInput ? "INVALID_INPUT" : "COMPONENT_FAILED";
}

/** The number is kept in the data. */
export function flowError(error: RpcErrorBody, dialect: RpcDialect): FlowError {
  const data: JsonObject = isObject(error.data) ? (error.data as JsonObject) : error.data === undefined ? {} : { data: error.data };
  return { code: taskErrorCode(error, dialect), message: error.message, data: { ...data, rpc_code: error.code } };
}

/**
 * For responses that are not JSON-RPC. Python workers refuse requests in this way that they do not understand, and proxies refuse requests
 * that they cannot forward.
 */
export function statusCode(status: number): TaskErrorCode {
  if (status === 408 || status === 429) return "UNREACHABLE";
  return status >= 400 && status < 500 ? "WORKER_ERROR" : "UNREACHABLE";
}

function inRange(code: number, least: number, most: number): boolean {
  return code >= least && code <= most;
}
