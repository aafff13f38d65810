// Requests that do the same to many runs. The action succeeds or fails for each run separately.

import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import type { RunRenderer } from "./render-run.ts";
import { json, jsonText, refusedByCore } from "./replies.ts";
import { flagInQuery, idsOf, textInQuery } from "./request.ts";
import type { Workflows } from "./workflows.ts";

/** Maximum number of ids in one request. */
const idsMax = 1_000;

export class Bulk {
  readonly #workflows: Workflows;
  readonly #renderer: RunRenderer;
  readonly #reader: Reader;

  constructor(workflows: Workflows, renderer: RunRenderer, reader: Reader) {
    this.#reader = reader;
    this.#workflows = workflows;
    this.#renderer = renderer;
  }

  pause = (request: HttpRequest) => each(request, "pauseWorkflow.arg0", (id) => this.#workflows.pauseRun(id));

  resume = (request: HttpRequest) => each(request, "resumeWorkflow.arg0", (id) => this.#workflows.resumeRun(id));

  retry = (request: HttpRequest) => each(request, "retry.arg0", (id) => this.#workflows.retryRun(id, false));

  restart = (request: HttpRequest) => {
    const latest = flagInQuery(request, "useLatestDefinitions", false);
    return each(request, "restart.arg0", (id) => this.#workflows.restartRun(id, latest));
  };

  terminate = (request: HttpRequest) => {
    const reason = textInQuery(request, "reason");
    return each(request, "terminate.arg0", (id) => this.#workflows.terminateRun(id, reason));
  };

  remove = (request: HttpRequest) => {
    const archive = flagInQuery(request, "archiveWorkflow", true);
    return each(request, "deleteWorkflow.arg0", (id) => this.#workflows.removeRun(id, archive));
  };

  terminateAndRemove = (request: HttpRequest) => {
    const reason = textInQuery(request, "reason");
    const archive = flagInQuery(request, "archiveWorkflow", true);
    return each(
      request,
      "terminateRemove.arg0",
      async (id) => {
        await this.#workflows.terminateRun(id, reason);
        await this.#workflows.removeRun(id, archive);
      },
      2,
    );
  };

  search = async (request: HttpRequest): Promise<HttpReply> => {
    const withTasks = flagInQuery(request, "includeTasks", true);
    const failed = new Map<string, string>();
    const ids = idsOf(request, "searchWorkflow.arg0", idsMax);
    const around = () => [`{"bulkErrorResults":${JSON.stringify(Object.fromEntries(failed))},"bulkSuccessfulResults":[`, "]}"] as const;
    return jsonText(await this.#reader.listBody(() => this.#found(ids, withTasks, failed), { around }));
  };

  async *#found(ids: readonly string[], withTasks: boolean, failed: Map<string, string>): AsyncGenerator<string, void, void> {
    for (const id of ids) {
      let text: string | undefined;
      await tried(failed, id, async () => {
        text = await this.#renderer.run(await this.#workflows.known(id), withTasks);
      });
      if (text !== undefined) yield text;
    }
  }
}

/** `counted` is how often the response lists the id of a successful run: for an action that consists of two, Conductor lists it twice. */
async function each(request: HttpRequest, path: string, act: (id: string) => Promise<void>, counted = 1): Promise<HttpReply> {
  const failed = new Map<string, string>();
  const done: string[] = [];
  for (const id of idsOf(request, path, idsMax)) {
    await tried(failed, id, async () => {
      await act(id);
      for (let times = 0; times < counted; times++) done.push(id);
    });
  }
  return json({ bulkErrorResults: Object.fromEntries(failed), bulkSuccessfulResults: done });
}

async function tried(failed: Map<string, string>, id: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const refused = refusedByCore(error);
    if (refused === undefined) throw error;
    failed.set(id, refused.message);
  }
}
