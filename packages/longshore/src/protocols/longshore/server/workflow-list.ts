// The workflows of every language by name. Some have a definition; others come with their runs, such as graphs of FlowKit.

import { idOfUuid, uuidOf } from "../../../core/ids.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { RunState } from "../../../engine/run/run.ts";
import type { ProtocolEngine } from "../../server-half.ts";

/** How many ends a workflow shows: as many as fit beside its name. */
const endsMax = 20;
const ended: readonly RunState[] = ["succeeded", "failed", "cancelled", "timed-out"];

type ListDeps = Pick<ProtocolEngine, "catalogue" | "reader" | "statistics" | "summaries">;

export interface ListedWorkflow {
  readonly definition: Definition | undefined;
  readonly body: Awaited<ReturnType<WorkflowList["body"]>>;
}

export class WorkflowList {
  readonly #deps: ListDeps;

  constructor(deps: ListDeps) {
    this.#deps = deps;
  }

  async page({ text, limit, after }: { text?: string | undefined; limit: number; after?: string | undefined }) {
    const counts = await this.#counts();
    const names = new Set([...counts.keys()].filter(isShown));
    for await (const { name } of this.#deps.catalogue.names()) names.add(name);
    const wanted = text?.toLowerCase();
    const found = [...names]
      .filter((name) => (after === undefined || name > after) && (wanted === undefined || name.toLowerCase().includes(wanted)))
      .sort();
    const items: ListedWorkflow["body"][] = [];
    for (const name of found.slice(0, limit)) items.push(await this.body(name, counts.get(name) ?? {}, await this.#head(name)));
    return { items, next: found.length > limit ? (found[limit - 1] ?? null) : null };
  }

  /** Undefined when there is neither a definition nor a run. */
  async named(name: string): Promise<ListedWorkflow | undefined> {
    const [definition, counts] = await Promise.all([this.#deps.reader.definition(name), this.#counts()]);
    const own = counts.get(name);
    if (definition === undefined && own === undefined) return undefined;
    return { definition, body: await this.body(name, own ?? {}, definition) };
  }

  async body(
    name: string,
    runs: Partial<Record<RunState, number>>,
    head: Pick<Definition, "id" | "version" | "dialect" | "createdAt"> | undefined,
  ) {
    const { items } = await this.#deps.summaries.page({ workflows: [name], states: ended, limit: endsMax });
    const lastEnds = items.map(({ id, state, createdAt, endedAt }) => {
      const end = endedAt ?? createdAt;
      return { id, state, createdAt, endedAt: end, durationMs: end - createdAt };
    });
    const times = lastEnds.map(({ durationMs }) => durationMs).sort((one, other) => one - other);
    return {
      name,
      dialect: head?.dialect ?? items[0]?.dialect ?? null,
      definitionId: head?.id ?? null,
      version: head?.version ?? null,
      definedAt: head?.createdAt ?? null,
      runs,
      lastEnds,
      p50Ms: quantile(times, 0.5),
      p95Ms: quantile(times, 0.95),
    };
  }

  async #head(name: string) {
    return (await this.#deps.catalogue.versions(name, { limit: 1 }))[0];
  }

  async #counts(): Promise<Map<string, Partial<Record<RunState, number>>>> {
    const byName = new Map<string, Partial<Record<RunState, number>>>();
    for (const { workflow, state, count } of await this.#deps.statistics.counts()) {
      const states = byName.get(workflow) ?? {};
      byName.set(workflow, states);
      states[state] = (states[state] ?? 0) + count;
    }
    return byName;
  }
}

/** A name with a dot is of a definition that one run brings; a run without any name has its own id. */
function isShown(name: string): boolean {
  return !name.startsWith(".") && uuidOf(name) === undefined && idOfUuid(name) === undefined;
}

/** The smallest time that this share of the sorted times does not exceed. */
function quantile(times: readonly number[], share: number): number | null {
  return times[Math.max(0, Math.ceil(times.length * share) - 1)] ?? null;
}
