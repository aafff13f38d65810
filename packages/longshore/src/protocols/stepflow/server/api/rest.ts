// The REST API: every endpoint below /api/v1. It reads requests, calls the same services as gRPC, and writes their results as JSON.

import { Readable } from "node:stream";
import type { Action } from "../../../../core/actions.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import { inBodyTurns } from "../../../../core/json/json-slices.ts";
import { compactText, memberTexts } from "../../../../core/json/json-text.ts";
import { payloadRequestBytes } from "../../../../core/payload-size.ts";
import type { RunHead } from "../../../../engine/run/run.ts";
import type { HttpReply, HttpRequest, Route, RouteGroup } from "../../../../net/http/http.ts";
import { StatusEventType } from "../../wire/api-messages.ts";
import { ExecutionStatus, ResultOrder } from "../../wire/messages.ts";
import { invalid } from "../refuse.ts";
import { BlobRoutes } from "./blob-routes.ts";
import { listComponents } from "./components.ts";
import { follow, type NextEvent } from "./events.ts";
import { healthOf } from "./health.ts";
import { eventJson, itemJson, json, listReply, shaped, stepJson, summaryJson, timeText } from "./rest-json.ts";
import * as read from "./rest-request.ts";
import type { Services } from "./services.ts";
import { grpcErrorOf, refusal, refuseProblem } from "./status.ts";

/** The limit of a gRPC request. Larger values belong in blobs. */
const bodyMax = payloadRequestBytes;

type Handler = (request: HttpRequest) => HttpReply | Promise<HttpReply>;

export function apiRoutes(services: Services, servesBlobs: boolean): RouteGroup {
  const routes = [
    ...flowRoutes(services),
    ...runRoutes(services),
    route("GET", "/components", "component.read", async (request) => {
      const { reader } = services.events;
      const { components, ...first } = await listComponents(services.components, read.queryFlag(request, "excludeSchemas"), reader);
      return listReply(reader, { first, name: "components", entries: () => Readable.from(components) });
    }),
    ...(servesBlobs ? new BlobRoutes(services.blobs).routes : []).map(answering),
    route("GET", "/health", "server.health", () => {
      const { timestamp, ...health } = healthOf(services);
      return json({ ...health, timestamp: timeText(timestamp) });
    }),
  ];
  return { name: "stepflow", routes, refuse: refuseProblem };
}

function flowRoutes({ flows }: Services): Route[] {
  return [
    route("POST", "/flows", "definition.write", async (request) => {
      const body = read.objectIn(request);
      if (read.mapOf(body, "flow") === undefined) throw invalid("flow", "is required");
      // Uses the text and not the parsed value, because the id is the hash of the original text.
      const flow = (await inBodyTurns(request.text, memberTexts(request.text))).get("flow") ?? "{}";
      return json(await flows.store(await inBodyTurns(flow, compactText(flow)), read.flagOf(body, "dryRun")));
    }),
    stored("/flows/:flow", "definition.read", async ({ params }) => json(await flows.get(params.flow as string))),
    route("DELETE", "/flows/:flow", "definition.remove", ({ params }) => {
      flows.checkId(params.flow as string);
      return json({});
    }),
    stored("/flows/:flow/variables", "definition.read", async ({ params }) => json(await flows.variables(params.flow as string))),
  ];
}

function runRoutes({ runs, events }: Services): Route[] {
  const id = ({ params }: HttpRequest) => params.run as string;
  const resultsReply = (run: RunHead, order: number, first?: object) =>
    listReply(events.reader, { first, name: "results", entries: () => shaped(runs.results(run, order), itemJson) });
  const stepsReply = (run: RunHead, itemIndex?: number, first?: object) =>
    listReply(events.reader, { first, name: "steps", entries: () => shaped(runs.steps(run, itemIndex), stepJson) });
  const waitOptions = (request: HttpRequest) => {
    const timeoutSecs = read.queryWhole(request, "timeoutSecs");
    return { wait: read.queryFlag(request, "wait"), gone: () => request.gone, ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
  };
  return [
    // Not async: see RunService.submit.
    route("POST", "/runs", "run.start", (request) => {
      const { options, ...waiting } = runRequest(read.objectIn(request));
      return runs.create(options, { ...waiting, gone: () => request.gone }).then(({ summary, ended }) => {
        const first = { summary: summaryJson(summary) };
        return ended === undefined ? json({ ...first, results: [] }) : resultsReply(ended, ResultOrder.BY_INDEX, first);
      });
    }),
    stored("/runs", "run.read", async (request) => json({ runs: (await runs.list(listFilter(request))).runs.map(summaryJson) })),
    stored("/runs/:run", "run.read", async (request) => {
      const { summary, run } = await runs.get(id(request), waitOptions(request));
      return stepsReply(run, undefined, { summary: summaryJson(summary) });
    }),
    route("DELETE", "/runs/:run", "run.remove", async (request) => {
      await runs.remove(id(request));
      return json({});
    }),
    stored("/runs/:run/items", "run.read", async (request) => {
      const order = read.queryEnum(request, "resultOrder", ResultOrder, "RESULT_ORDER_") ?? ResultOrder.BY_INDEX;
      return resultsReply(await runs.findHead(id(request)), order);
    }),
    stored("/runs/:run/flow", "definition.read", async (request) => json(await runs.flow(id(request)))),
    stored("/runs/:run/steps", "run.read", async (request) => {
      const itemIndex = read.queryWhole(request, "itemIndex");
      return stepsReply(await runs.findHead(id(request)), itemIndex);
    }),
    stored("/runs/:run/steps/:step", "run.read", async (request) => {
      const step = request.params.step as string;
      const found = await runs.step(id(request), step, read.queryWhole(request, "itemIndex"), read.queryWhole(request, "asof"));
      return json({ step: stepJson(found.step) });
    }),
    {
      ...route("GET", "/runs/:run/events", "run.read", async (request) => {
        const options = {
          since: read.queryWhole(request, "since") ?? 0,
          types: read.queryEnums(request, "eventTypes", StatusEventType, "STATUS_EVENT_TYPE_"),
          withSubRuns: read.queryFlag(request, "includeSubRuns"),
          withResults: read.queryFlag(request, "includeResults"),
        };
        const { id: runId } = await runs.findHead(id(request));
        const begin = events.followers.places.enter(request.caller.name);
        return {
          status: 200,
          events: (sink) => {
            const leave = begin(sink.gone);
            void stream(follow(events, runId, options, sink.gone), sink).finally(leave);
          },
        };
      }),
      openEnded: true,
    },
    route("POST", "/runs/:run/cancel", "run.steer", async (request) =>
      json({ summary: summaryJson((await runs.cancel(id(request))).summary) }),
    ),
    route("POST", "/runs/:run/retry", "run.steer", async (request) =>
      json({ summary: summaryJson((await runs.retry(id(request))).summary) }),
    ),
  ];
}

type Sink = Parameters<NonNullable<HttpReply["events"]>>[0];

/** Never rejects. Waits for a slow reader; the follower continues where it stopped. */
async function stream(events: AsyncGenerator<NextEvent>, sink: Sink): Promise<void> {
  try {
    // While the reader's buffer is full no event is kept for it, because an event may have megabytes.
    while (await giveNext(events, sink)) while (sink.full && !sink.gone.aborted) await sink.drained();
    await events.return(undefined);
  } catch (error) {
    const message = grpcErrorOf(error)?.message ?? "The events could not be read.";
    sink.send({ event: "error", data: JSON.stringify({ error: { code: 500, message, status: "INTERNAL" } }) });
  } finally {
    sink.end();
  }
}

/** Returns false when there is no further event or no reader. */
async function giveNext(events: AsyncGenerator<NextEvent>, sink: Sink): Promise<boolean> {
  const next = await events.next();
  let taken = false;
  if (!next.done)
    await next.value.give((event) => {
      taken = sink.send({ id: String(event.sequenceNumber), data: eventJson(event) });
    });
  return taken;
}

function runRequest(body: JsonObject) {
  const timeoutSecs = read.wholeOf(body, "timeoutSecs");
  const maxConcurrency = read.wholeOf(body, "maxConcurrency");
  const overrides = read.mapOf(body, "overrides");
  const variables = read.mapOf(body, "variables");
  const options = {
    flowId: read.textOf(body, "flowId") ?? "",
    inputs: read.listOf(body, "input"),
    ...(overrides === undefined ? {} : { overrides }),
    ...(variables === undefined ? {} : { variables }),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
  };
  return { options, wait: read.flagOf(body, "wait"), ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
}

function listFilter(request: HttpRequest) {
  const status = read.queryEnum(request, "status", ExecutionStatus, "EXECUTION_STATUS_");
  const flowName = read.queryText(request, "flowName");
  const rootRunId = read.queryText(request, "rootRunId");
  const parentRunId = read.queryText(request, "parentRunId");
  const maxDepth = read.queryWhole(request, "maxDepth");
  const limit = read.queryWhole(request, "limit");
  const offset = read.queryWhole(request, "offset");
  return {
    rootsOnly: read.queryFlag(request, "rootsOnly"),
    ...(status === undefined ? {} : { status }),
    ...(flowName === undefined ? {} : { flowName }),
    ...(rootRunId === undefined ? {} : { rootRunId }),
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(maxDepth === undefined ? {} : { maxDepth }),
    ...(limit === undefined ? {} : { limit }),
    ...(offset === undefined ? {} : { offset }),
  };
}

function route(method: Route["method"], path: string, action: Action, handle: Handler): Route {
  const body = method === "POST" ? "text" : "none";
  return answering({ method, path: `/api/v1${path}`, action, body, bodyMax, handle });
}

/** A read of flows or runs, which any node of a cluster may perform. */
function stored(path: string, action: Action, handle: Handler): Route {
  return { ...route("GET", path, action, handle), stored: true };
}

/** Converts errors of the services to REST answers. */
function answering(given: Route): Route {
  const handle = async (request: HttpRequest): Promise<HttpReply> => {
    try {
      return await given.handle(request);
    } catch (error) {
      const refused = grpcErrorOf(error);
      if (refused === undefined) throw error;
      return refusal(refused);
    }
  };
  return { ...given, handle };
}
