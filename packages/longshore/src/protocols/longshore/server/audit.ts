// Reads the audit, the tokens, and the sizes of the data.

import { z } from "zod";
import type { ProtocolEngine, Serving } from "../../server-half.ts";
import { auditEntryShape, auditKinds, pruningShape, storageShape, tokensShape } from "../wire/audit-shapes.ts";
import { pageOf } from "../wire/shapes.ts";
import { json, type Operation, operation } from "./operation.ts";
import { limit, position, time, wholeNumber } from "./query.ts";

const tag = "server";
const nameCharsMax = 1_000;

const name = z.string().min(1).max(nameCharsMax);

interface AuditDeps extends Pick<ProtocolEngine, "audit" | "facts" | "foreseePruning" | "tableSizes"> {
  readonly tokens: Serving["tokens"];
}

export function auditOperations({ audit, facts, foreseePruning, tableSizes, tokens }: AuditDeps): Operation[] {
  return [
    operation({
      ...{ id: "listAudit", tag, method: "GET", path: "/audit", action: "audit.read", stored: true },
      summary: "List the orders of callers, newest first: who ordered what, and what changed by it.",
      query: z
        .strictObject({
          limit,
          before: position,
          kind: z
            .enum(auditKinds)
            .optional()
            .describe(`one of ${auditKinds.join(", ")}`),
          target: name.optional().describe("the id or name of what the order was given to; with `kind`"),
          caller: name.optional().describe("the name of a token"),
          verb: name.optional().describe("what was done, such as cancel"),
          since: time.optional(),
          until: time.optional(),
        })
        .refine(({ kind, target }) => target === undefined || kind !== undefined, { path: ["target"], error: "needs kind" }),
      answers: { 200: { description: "A page; it may be short, even empty, and still have a next.", schema: pageOf(auditEntryShape) } },
      async handle({ query }) {
        const { items, next } = await audit.page(query);
        return json(200, { items, next: next === null ? null : String(next) });
      },
    }),
    operation({
      ...{ id: "listTokens", tag, method: "GET", path: "/tokens", action: "server.inspect" },
      summary: "List the tokens by name, with what they allow and when they were last used. Never their secrets.",
      answers: { 200: { description: "In the order of the configuration; empty for a server without tokens.", schema: tokensShape } },
      handle: () => json(200, { items: tokens.uses() }),
    }),
    operation({
      ...{ id: "getStorage", tag, method: "GET", path: "/storage", action: "server.inspect" },
      summary: "Read how many bytes each table takes.",
      answers: { 200: { description: "Measured in a process of its own; a large file takes seconds.", schema: storageShape } },
      handle: async () => json(200, (await tableSizes()) ?? { measuredAt: null, tables: [] }),
    }),
    operation({
      ...{ id: "foreseePruning", tag, method: "GET", path: "/retention", action: "server.inspect" },
      summary: "Count the ended runs that would be removed if this many were kept for this long.",
      query: z.strictObject({
        keepMs: wholeNumber.optional().describe("milliseconds after the end; as configured when absent"),
        keepRuns: wholeNumber.optional().describe("how many ended runs at most; as configured when absent"),
      }),
      answers: { 200: { description: "Nothing is removed by this request.", schema: pruningShape } },
      async handle({ query: { keepMs, keepRuns } }) {
        const { runs } = (await facts()).kept;
        return json(200, await foreseePruning({ ageMs: keepMs ?? runs.ageMs, count: keepRuns ?? runs.count }));
      },
    }),
  ];
}
