// Information about the server and about the caller, for pages and tools that show them.

import { hostname } from "node:os";
import { type Action, actions, type Caller, everyone, type TokenScope } from "../../../core/actions.ts";
import type { Keep } from "../../../engine/run/retention.ts";
import { problemReply } from "../../../net/http/problem.ts";
import type { ProtocolEngine, Serving } from "../../server-half.ts";
import { infoShape, whoamiShape } from "../wire/server-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";

const tag = "server";

/** An action that needs this scope. The scope `operator` allows it, too. */
const markOf: Readonly<Record<TokenScope, Action>> = { read: "run.read", worker: "task.claim", operator: "run.steer" };

interface AboutDeps extends Pick<ProtocolEngine, "clock" | "facts" | "reader" | "storage"> {
  readonly version: string;
  readonly tokens: Serving["tokens"];
}

export function aboutOperations(deps: AboutDeps): Operation[] {
  const { tokens } = deps;
  return [
    operation({
      ...{ id: "whoami", tag, method: "GET", path: "/whoami", action: "token.check" },
      summary: "Report which token the request has, and what it allows.",
      answers: {
        200: { description: "The caller.", schema: whoamiShape },
        401: { description: "The server has tokens, and the request has none of them." },
      },
      handle({ request }) {
        const caller = tokens.required ? tokens.identify(request.headers.authorization) : everyone;
        if (caller === undefined) {
          const message = "The request has no token that this server knows. Send one as Authorization: Bearer SECRET.";
          const refused = problemReply(401, { code: "LONGSHORE_UNAUTHORIZED", message });
          return { ...refused, headers: { ...refused.headers, "www-authenticate": "Bearer" } };
        }
        return json(200, whoamiBody(caller, tokens.required));
      },
    }),
    operation({
      ...{ id: "info", tag, method: "GET", path: "/info", action: "server.inspect" },
      summary: "Read the version of the server, the sizes of its data, and how long data is kept.",
      answers: { 200: { description: "The server.", schema: infoShape } },
      handle: async () => json(200, await infoBody(deps)),
    }),
  ];
}

function whoamiBody(caller: Caller, tokensRequired: boolean) {
  const scopes = (Object.keys(markOf) as TokenScope[]).filter((scope) => caller.may(markOf[scope]));
  const all = (Object.keys(actions) as Action[]).map(
    (action) => [action, { may: caller.may(action), needs: actions[action].who, what: actions[action].what }] as const,
  );
  return { name: caller.name ?? null, tokensRequired, scopes, actions: Object.fromEntries(all) };
}

async function infoBody({ clock, facts, reader, storage, version }: AboutDeps) {
  const { startedAt, store, sizes, stored, kept } = await facts();
  const { unavailable } = storage;
  return {
    ...{ version, node: process.version, host: hostname(), pid: process.pid, startedAt, now: clock.now() },
    store: {
      ...{ name: store, writable: unavailable === null, problem: unavailable?.message ?? null },
      parts: sizes.map(({ name, bytes }) => ({ part: name, bytes })),
    },
    stored: stored.map(({ kind, used, max, refused }) => ({ kind, bytes: used, max, refused })),
    kept: {
      runs: keepBody(kept.runs),
      tasks: keepBody(kept.tasks),
      logs: keepBody(kept.logs),
      blobs: keepBody(kept.blobs),
      audit: keepBody(kept.audit),
    },
    counts: await reader.counts(),
  };
}

/** JSON has no Infinity. */
function keepBody({ ageMs, count }: Keep) {
  const bounded = (value: number) => (Number.isFinite(value) ? value : null);
  return { ageMs: bounded(ageMs), count: bounded(count) };
}
