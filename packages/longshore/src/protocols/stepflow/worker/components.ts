// A worker's tasks as Stepflow components: their descriptions for discovery, and how a call finds its task.
//
// An orchestrator calls a component by the id from discovery (0.13), by its path without the prefix of the route (0.12, HTTP), or by its
// path with this prefix. So a name is looked up as an id, then as a path, then as a path without its first segment, and so on:
// `/shop/greet`, `greet`, `/greet`. Some routes remove a part of the component's own path. For them, the last lookup accepts a name that is
// the end of exactly one component's path.

import { LongshoreError } from "../../../core/errors.ts";
import { type PathPattern, pathPattern } from "../../../core/path-pattern.ts";
import { describeTask, type Task, type TaskDescription } from "../../../core/task.ts";

export interface FoundComponent {
  readonly task: Task;
  /** The values of the path's placeholders; empty when the component was found by its id. */
  readonly pathParams: Readonly<Record<string, string>>;
}

/** The component's id is the name of the task. */
export interface ComponentDescription extends TaskDescription {
  readonly path: string;
}

const noParams = Object.freeze({});
/** How many leading segments may be removed to find the component's path. Prefixes of routes have one or two segments. */
const prefixSegmentsMax = 10;
/** A number that is higher than the number of segments of any path. */
const segmentsMax = 1_000;

export class Components {
  readonly #tasks: ReadonlyMap<string, Task>;
  readonly #byPath = new Map<string, Task>();
  readonly #patterns: { readonly pattern: PathPattern; readonly task: Task }[] = [];
  #descriptions: readonly ComponentDescription[] | undefined;

  constructor(tasks: ReadonlyMap<string, Task>) {
    this.#tasks = tasks;
    const paths = new Map<string, Task>();
    for (const task of tasks.values()) {
      const path = pathOf(task);
      const other = paths.get(path);
      if (other !== undefined) {
        const message = `Tasks "${other.name}" and "${task.name}" are both found at ${path}, expected a path for each.`;
        throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "path" } });
      }
      paths.set(path, task);
      const pattern = pathPattern(path, `path of task ${task.name}`);
      if (pattern.literal) this.#byPath.set(path, task);
      else this.#patterns.push({ pattern, task });
    }
    // More specific paths are tried first, because `{*rest}` matches everything.
    this.#patterns.sort((one, other) => vagueness(one.pattern) - vagueness(other.pattern));
  }

  /** The paths of the components, in the order of the tasks. */
  get paths(): readonly string[] {
    return [...this.#tasks.values()].map(pathOf);
  }

  /** Built once, because schemas take time to build, and a worker's tasks do not change. */
  get descriptions(): readonly ComponentDescription[] {
    this.#descriptions ??= [...this.#tasks.values()].map((task) => ({ ...describeTask(task), path: pathOf(task) }));
    return this.#descriptions;
  }

  find(component: string): FoundComponent | undefined {
    const exact = this.#tasks.get(component);
    if (exact !== undefined) return { task: exact, pathParams: noParams };
    const whole = component.startsWith("/") ? component : `/${component}`;
    return this.#behindPrefix(whole) ?? this.#belowPrefix(whole);
  }

  #behindPrefix(whole: string): FoundComponent | undefined {
    let path = whole;
    for (let depth = 0; depth < prefixSegmentsMax; depth++) {
      const found = this.#at(path);
      if (found !== undefined) return found;
      const next = path.indexOf("/", 1);
      if (next === -1) return undefined;
      path = path.slice(next);
    }
    return undefined;
  }

  /** Undefined when more than one task matches. */
  #belowPrefix(path: string): FoundComponent | undefined {
    const [task, another] = [...this.#byPath].flatMap(([known, each]) => (known.endsWith(path) ? [each] : []));
    return task === undefined || another !== undefined ? undefined : { task, pathParams: noParams };
  }

  #at(path: string): FoundComponent | undefined {
    const task = this.#byPath.get(path) ?? this.#tasks.get(path.slice(1));
    if (task !== undefined) return { task, pathParams: noParams };
    for (const { pattern, task: patterned } of this.#patterns) {
      const pathParams = pattern.match(path);
      if (pathParams !== undefined) return { task: patterned, pathParams };
    }
    return undefined;
  }
}

function vagueness({ text }: PathPattern): number {
  const segments = text.split("/");
  return (text.includes("{*") ? segmentsMax : 0) + segmentsMax - segments.length;
}

function pathOf({ name, path }: Task): string {
  return path ?? (name.startsWith("/") ? name : `/${name}`);
}
