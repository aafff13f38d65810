// Starting a run and waiting for it in one request.

import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { type Awaiting, awaitRun, parseStrategy, renderSignal } from "./await-run.ts";
import { badRequest } from "./replies.ts";
import { textInQuery, wholeIn } from "./request.ts";
import { parseStart, type Starter } from "./start.ts";

/** Default and maximum time of the wait. */
const waitSecondsDefault = 10;
const waitSecondsMax = 60;

/** The real server adds this to the input of a run that brings its own definition. */
const ofOwnDefinition = { _systemMetadata: { dynamic: true } };

export function executeRoute(deps: Awaiting, starter: Starter): (request: HttpRequest) => Promise<HttpReply> {
  return async (request) => {
    const { name, version } = request.params as { name: string; version?: string };
    if (version !== undefined && !/^\d{1,9}$/.test(version))
      throw badRequest(`The version in the path is ${JSON.stringify(version)}, expected a whole number.`);
    const strategy = parseStrategy(request);
    const start = await parseStart(request, name);
    const number = version === undefined ? start.version : Number(version) || undefined;
    const input = start.inline === undefined ? start.input : { ...start.input, ...ofOwnDefinition };
    const runId = await starter.start({ ...start, input, name: start.inline?.name ?? name, version: number });
    const waitSeconds = Math.min(wholeIn(request, "waitForSeconds", waitSecondsDefault) || waitSecondsDefault, waitSecondsMax);
    const references = (textInQuery(request, "waitUntilTaskRef") ?? "").split(",").filter((each) => each !== "");
    const found = await awaitRun(deps, runId, { references, waitMs: waitSeconds * 1_000, signal: request.gone });
    return renderSignal(deps, found, { strategy, requestId: textInQuery(request, "requestId") });
  };
}
