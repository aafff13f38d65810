// Calls that workers over JSON-RPC may make, for blobs and runs. They use the same services as all clients, and the same table of actions.
// Such a worker sends no token: the server has called it for the task that it works on.

import { type Action, actions, type Caller } from "../../../../core/actions.ts";
import { type ErrorCode, LongshoreError } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import { blobIdIn } from "../../wire/blob-id.ts";
import { ResultOrder } from "../../wire/messages.ts";
import type { BlobLibrary } from "../blob-library.ts";
import type { RuntimeCalls } from "../http/runtime/requests.ts";
import { denied, invalid, notFound } from "../refuse.ts";
import { runStatusJson, type WorkerRuns } from "./worker-runs.ts";

export interface RuntimeCallDeps {
  readonly blobs: BlobLibrary;
  readonly runs: WorkerRuns;
  /** The permissions of workers that this server calls. */
  readonly caller: Caller;
}

export function runtimeCalls({ blobs, runs, caller }: RuntimeCallDeps): RuntimeCalls {
  const mapped = <T>(action: Action, work: () => Promise<T>): Promise<T> =>
    inOurWords(() => {
      if (!caller.may(action)) throw denied(`A worker that is called may not ${actions[action].what}.`);
      return work();
    });
  return {
    putBlob: async (data, type) => (await mapped("blob.write", () => blobs.putJson(writeExact(data), { type }))).blobId,
    getBlob: (id) =>
      mapped("blob.read", async () => {
        const hash = blobIdIn(id);
        if (hash === undefined) throw invalid("blob_id", `is ${JSON.stringify(id.slice(0, 100))}, expected 64 hexadecimal digits`);
        const found = await blobs.find(hash);
        const text = found === undefined ? undefined : await blobs.jsonText(found);
        if (found === undefined || text === undefined) throw notFound("blob", hash);
        return { data: parseExact(text) as Json, type: found.type };
      }),
    submitRun: ({ wait, timeoutSecs, subflowKey, ...request }, from, signal) =>
      mapped("sub-run.start", async () => {
        const waiting = { wait, gone: () => signal, ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
        return runStatusJson(await runs.submit(request, { caller, requester: { taskId: from } }, subflowKey, waiting));
      }),
    getRun: ({ runId, wait, timeoutSecs, includeResults, order }, from, signal) =>
      mapped("sub-run.read", async () => {
        const waiting = { wait, gone: () => signal, ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
        const wanted = order === "by_completion" ? ResultOrder.BY_COMPLETION : ResultOrder.BY_INDEX;
        return runStatusJson(await runs.get(runId, { caller, requester: { taskId: from } }, includeResults ? wanted : undefined, waiting));
      }),
  };
}

const codes: { readonly [code: number]: ErrorCode } = {
  [GrpcCode.NOT_FOUND]: "LONGSHORE_NOT_FOUND",
  [GrpcCode.INVALID_ARGUMENT]: "LONGSHORE_BAD_INPUT",
  [GrpcCode.FAILED_PRECONDITION]: "LONGSHORE_CONFLICT",
  [GrpcCode.RESOURCE_EXHAUSTED]: "LONGSHORE_LIMIT",
  [GrpcCode.PERMISSION_DENIED]: "LONGSHORE_UNAUTHORIZED",
};

/** Converts errors to LongshoreErrors, which belong to no transport. */
async function inOurWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = error instanceof GrpcError ? codes[error.code] : undefined;
    throw code === undefined ? error : new LongshoreError(code, (error as Error).message, { cause: error });
  }
}
