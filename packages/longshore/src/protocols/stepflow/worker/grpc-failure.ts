// Converts the failure of a call to an orchestrator into a LongshoreError, for handlers and for logs.

import { type ErrorCode, LongshoreError, toError } from "../../../core/errors.ts";
import { codeName, GrpcCode, GrpcError } from "../../../net/grpc/status.ts";

const codes: { readonly [code: number]: ErrorCode } = {
  [GrpcCode.INVALID_ARGUMENT]: "LONGSHORE_BAD_INPUT",
  [GrpcCode.NOT_FOUND]: "LONGSHORE_NOT_FOUND",
  [GrpcCode.ALREADY_EXISTS]: "LONGSHORE_CONFLICT",
  [GrpcCode.FAILED_PRECONDITION]: "LONGSHORE_CONFLICT",
  [GrpcCode.PERMISSION_DENIED]: "LONGSHORE_UNAUTHORIZED",
  [GrpcCode.UNAUTHENTICATED]: "LONGSHORE_UNAUTHORIZED",
  // Servers written with tonic return OUT_OF_RANGE for a message above their limit.
  [GrpcCode.RESOURCE_EXHAUSTED]: "LONGSHORE_LIMIT",
  [GrpcCode.OUT_OF_RANGE]: "LONGSHORE_LIMIT",
};

/** `what` names the call, such as "PutBlob at localhost:7837". */
export function failureOfCall(what: string, thrown: unknown): LongshoreError {
  if (thrown instanceof LongshoreError) return thrown;
  const error = toError(thrown);
  const code = error instanceof GrpcError ? (codes[error.code] ?? "LONGSHORE_UNREACHABLE") : "LONGSHORE_UNREACHABLE";
  return new LongshoreError(code, `${what} failed with ${messageOf(error)}`, { cause: error });
}

export function hasCode(error: unknown, ...wanted: readonly GrpcCode[]): boolean {
  return error instanceof GrpcError && wanted.includes(error.code);
}

function messageOf(error: Error): string {
  if (!(error instanceof GrpcError)) return error.message;
  return error.message === "" ? codeName(error.code) : `${codeName(error.code)}: ${error.message}`;
}
