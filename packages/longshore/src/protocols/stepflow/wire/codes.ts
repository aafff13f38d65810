// Stepflow's error numbers. JSON-RPC has two dialects that use the same numbers with different meanings. A is from the worker guide (HTTP
// until 0.9). B is HTTP of 0.10 and 0.11, where the range of the number also decides whether a step is retried.

import type { ErrorCode } from "../../../core/errors.ts";
import { TaskErrorCode } from "./messages.ts";

export type RpcDialect = "A" | "B";

/** The same in both dialects. */
const standard = { parse: -32700, invalidRequest: -32600, methodNotFound: -32601, invalidParams: -32602, internal: -32603 } as const;

/** The worker guide's list, with the additions of its page on errors. */
const dialectA = {
  ...standard,
  server: -32000,
  componentNotFound: -32001,
  notInitialized: -32002,
  invalidInput: -32003,
  failed: -32004,
  unavailable: -32005,
  timeout: -32006,
  permissionDenied: -32007,
  blobNotFound: -32008,
  expressionFailed: -32009,
  sessionExpired: -32010,
  /** As the runtime sends them. Its documents swap the two numbers. */
  notFound: -32011,
  invalidValue: -32012,
  /** The dialect has no number for "never retry": the runtime alone decides how often it tries a step. */
  final: -32004,
} as const;

export type RpcFault = keyof typeof dialectA;

/** -32100 to -32199 are retried where the flow has `onError: retry`. Numbers above -32100 are never retried. */
const dialectB: Readonly<Record<RpcFault, number>> = {
  ...standard,
  /** A failure of this worker, not of the component. At the next try, this worker may be free, or the step may reach another worker. */
  server: -32102,
  componentNotFound: -32001,
  notInitialized: -32002,
  invalidInput: -32003,
  failed: -32100,
  unavailable: -32102,
  timeout: -32102,
  permissionDenied: -32090,
  blobNotFound: -32005,
  expressionFailed: -32200,
  sessionExpired: -32002,
  notFound: -32005,
  invalidValue: -32004,
  /** In the range that workers define themselves, which is never retried. */
  final: -32090,
};

const byDialect: Readonly<Record<RpcDialect, Readonly<Record<RpcFault, number>>>> = { A: dialectA, B: dialectB };

export function rpcCode(fault: RpcFault, dialect: RpcDialect): number {
  return byDialect[dialect][fault];
}

/** Task failures that have a more exact code than "the component failed". */
const faultOfCode: { readonly [Code in ErrorCode]?: RpcFault } = {
  LONGSHORE_BAD_INPUT: "invalidInput",
  LONGSHORE_BAD_OUTPUT: "internal",
  LONGSHORE_DEADLINE: "timeout",
  LONGSHORE_INTERNAL: "internal",
  LONGSHORE_NO_HANDLER: "componentNotFound",
  LONGSHORE_NOT_FOUND: "blobNotFound",
  LONGSHORE_SHUTDOWN: "server",
  LONGSHORE_UNAUTHORIZED: "permissionDenied",
  LONGSHORE_UNREACHABLE: "unavailable",
};

/** The fault for a task's failure. A failure that must not be retried never gets a number that causes a retry. */
export function faultOf(code: ErrorCode | undefined, retryable: boolean): RpcFault {
  const fault = (code === undefined ? undefined : faultOfCode[code]) ?? "failed";
  return fault === "failed" && !retryable ? "final" : fault;
}

/** What a refusal by the runtime means to the handler. Any other number means that the runtime could not answer. */
const meanings: Readonly<Record<RpcDialect, { readonly [code: number]: ErrorCode }>> = {
  A: {
    [standard.invalidParams]: "LONGSHORE_BAD_INPUT",
    [standard.methodNotFound]: "LONGSHORE_BAD_CONFIG",
    [dialectA.invalidInput]: "LONGSHORE_BAD_INPUT",
    [dialectA.timeout]: "LONGSHORE_DEADLINE",
    [dialectA.permissionDenied]: "LONGSHORE_UNAUTHORIZED",
    [dialectA.blobNotFound]: "LONGSHORE_NOT_FOUND",
    [dialectA.expressionFailed]: "LONGSHORE_BAD_INPUT",
    [dialectA.sessionExpired]: "LONGSHORE_LEASE_LOST",
    [dialectA.notFound]: "LONGSHORE_NOT_FOUND",
    [dialectA.invalidValue]: "LONGSHORE_BAD_INPUT",
  },
  B: {
    [standard.invalidParams]: "LONGSHORE_BAD_INPUT",
    [standard.methodNotFound]: "LONGSHORE_BAD_CONFIG",
    [dialectB.invalidInput]: "LONGSHORE_BAD_INPUT",
    [dialectB.invalidValue]: "LONGSHORE_BAD_INPUT",
    [dialectB.notFound]: "LONGSHORE_NOT_FOUND",
    // Dialect B keeps these two numbers of dialect A for answers to workers.
    [dialectA.notFound]: "LONGSHORE_NOT_FOUND",
    [dialectA.invalidValue]: "LONGSHORE_BAD_INPUT",
    // UNDEFINED_FIELD and ENTITY_NOT_FOUND of the orchestrator.
    [-32200]: "LONGSHORE_BAD_INPUT",
    [-32201]: "LONGSHORE_NOT_FOUND",
  },
};

/** The runtime and its documents swap two numbers, so the message text decides where it can. */
export function meaningOf(code: number, message: string, dialect: RpcDialect): ErrorCode {
  const swapped = code === dialectA.notFound || code === dialectA.invalidValue;
  if (swapped && /not found/i.test(message)) return "LONGSHORE_NOT_FOUND";
  if (swapped && /invalid/i.test(message)) return "LONGSHORE_BAD_INPUT";
  return meanings[dialect][code] ?? "LONGSHORE_UNREACHABLE";
}

/** Names of TaskError's numeric codes. */
export const taskErrorNames: ReadonlyMap<number, TaskErrorCode> = new Map(
  Object.entries(TaskErrorCode).map(([name, number]) => [number, name as TaskErrorCode]),
);
