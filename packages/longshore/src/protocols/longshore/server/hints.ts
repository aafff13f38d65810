// Programs to copy: the same that `longshore snippets` prints.

import { z } from "zod";
import type { Serving } from "../../server-half.ts";
import { hintsShape } from "../wire/server-shapes.ts";
import { json, type Operation, operation } from "./operation.ts";

const urlCharsMax = 200;

type HintDeps = Pick<Serving, "tokens" | "workerPrograms">;

export function hintOperations({ workerPrograms, tokens }: HintDeps): Operation[] {
  return [
    operation({
      ...{ id: "listHints", tag: "server", method: "GET", path: "/hints", action: "server.inspect" },
      summary: "Read the programs of workers to copy, for each protocol, as `longshore snippets` prints them.",
      query: z.strictObject({
        url: z
          .string()
          .max(urlCharsMax)
          // The address becomes a part of commands for a shell.
          .regex(/^https?:\/\/[\w.:[\]/-]*[\w\]-]$/)
          .optional()
          .describe(`the address of the server as callers see it, at most ${urlCharsMax} characters; that of the request when absent`),
      }),
      answers: {
        200: { description: "One entry for each program. With tokens, they read theirs from LONGSHORE_TOKEN.", schema: hintsShape },
      },
      async handle({ query, request }) {
        const url = query.url ?? `http://${request.headers.host ?? "127.0.0.1:4500"}`;
        const asksToken = tokens.required;
        return json(200, { items: await workerPrograms({ url, asksToken }), asksToken });
      },
    }),
  ];
}
