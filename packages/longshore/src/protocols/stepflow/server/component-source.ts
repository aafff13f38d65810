// The components of all configured plugins, for the API. Built-ins and mocks come from the configuration, workers of queues from their
// registrations, workers over HTTP from a call, and workers of other protocols from the tasks that they claim.

import { type Clock, pause } from "../../../core/clock.ts";
import { toError } from "../../../core/errors.ts";
import type { ReservedLanes } from "../../../engine/board/reserved-lanes.ts";
import type { Workers } from "../../../engine/board/workers.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { ComponentSource, ListedComponent } from "./api/components.ts";
import type { Plugin, StepflowConfig } from "./config/config.ts";
import { pluginLane, queueLane, queuesOf } from "./config/queues.ts";
import { componentsMax, componentsOn, type RegisteredComponent } from "./config/registered-components.ts";

export interface ComponentSourceOptions {
  readonly config: StepflowConfig;
  readonly clock: Clock;
  readonly documents: DocumentStore;
  readonly workers: Pick<Workers, "inOrder">;
  readonly reserved: ReservedLanes;
  readonly builtins: readonly ListedComponent[];
  /** Calls a worker over HTTP for its components. */
  discover(plugin: string, signal: AbortSignal): Promise<readonly RegisteredComponent[]>;
}

/** As in the reference: a worker that has not replied after this time counts as unreachable. */
const discoveryMsMax = 5_000;

export function componentSource(options: ComponentSourceOptions): ComponentSource {
  return {
    async list() {
      const failed: { plugin: string; error: string }[] = [];
      const listed = await Promise.all(
        [...options.config.plugins.values()].map(async (plugin) => {
          try {
            return { plugin: plugin.name, components: await componentsOf(plugin, options) };
          } catch (error) {
            failed.push({ plugin: plugin.name, error: toError(error).message });
            return { plugin: plugin.name, components: [] };
          }
        }),
      );
      return { listed, failed: failed.sort((a, b) => (a.plugin < b.plugin ? -1 : 1)) };
    },
  };
}

async function componentsOf(plugin: Plugin, options: ComponentSourceOptions): Promise<readonly ListedComponent[]> {
  if (plugin.type === "builtin") return options.builtins;
  if (plugin.type === "mock") return [...plugin.components].map(([path, component]) => ({ ...component, id: path, path }));
  if (plugin.type === "longshore") return tasksOf(options);
  if (plugin.type === "stepflow") return overHttp(plugin, options);
  const lanes = queuesOf(options.config)
    .filter((queue) => queue.plugin === plugin)
    .map(({ name }) => queueLane(name));
  const known = (await Promise.all(lanes.map((lane) => componentsOn(options.documents, lane)))).filter((list) => list !== null);
  if (known.length === 0) throw new Error("no worker has connected yet");
  return distinct(known.flat());
}

/** Workers of several queues of one plugin may have the same components. The route decides which queue a step uses. */
function distinct(components: readonly RegisteredComponent[]): RegisteredComponent[] {
  return [...new Map(components.map((component) => [`${component.path}\0${component.id}`, component])).values()];
}

/** The answer of the worker, or its last stored list when it does not answer in time. */
async function overHttp(
  plugin: Plugin & { readonly type: "stepflow" },
  { clock, discover, documents }: ComponentSourceOptions,
): Promise<readonly ListedComponent[]> {
  const over = new AbortController();
  const late = pause(clock, discoveryMsMax, over.signal).then(() => null);
  try {
    const found = await Promise.race([discover(plugin.name, over.signal), late]);
    if (found !== null) return found;
    const kept = await componentsOn(documents, pluginLane(plugin));
    if (kept === null) throw new Error(`its worker has not answered within ${discoveryMsMax} ms`);
    return kept;
  } finally {
    over.abort();
  }
}

/** Workers may claim any number of names. */
async function tasksOf({ workers, reserved }: ComponentSourceOptions): Promise<ListedComponent[]> {
  const names = new Set<string>();
  for await (const { reach } of workers.inOrder()) {
    for (const name of reach?.names ?? []) if (!reserved.has(name) && names.size < componentsMax) names.add(name);
    if (names.size === componentsMax) break;
  }
  return [...names].map((name) => ({ id: `/${name}`, path: `/${name}` }));
}
