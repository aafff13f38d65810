// The stored form of workflow-graph definitions, whether they came from a file or over HTTP: the JSON text in `Definition.source`. Every
// field is always present, so that equal definitions are equal texts.

import type { DebounceSource } from "../../../core/debounce.ts";
import type { Json } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { StartLimit } from "../../../core/start-limit.ts";
import type { Job, Port, WireBackoff } from "../wire/shapes.ts";

export interface GraphJob {
  id: string;
  name: string;
  command: string;
  depends_on: string[];
  required_labels: string[];
  /** How many failed attempts may be followed by another. */
  max_retries: number;
  /** How many lost leases may be followed by another attempt; a separate budget. */
  max_lost_leases: number;
  backoff: WireBackoff;
  /** How long one attempt may take. */
  timeout_secs: number | null;
  /** Jobs with smaller numbers are taken first; 0 by default. */
  priority: number;
  /** True for `if: false`: the job is recorded as skipped, and so are its dependents. */
  skip: boolean;
  /** For editors and viewers only; stored and shown unchanged. */
  metadata: { [key: string]: Json };
  ports: Port[];
  children: Job[] | null;
  collapsed: boolean;
}

export interface GraphSource {
  name: string;
  trigger: string;
  jobs: GraphJob[];
  /** How many runs may be open at once. Only definition files have it. */
  limit?: StartLimit;
  /** How starts that come close together become one run. Only definition files have it. */
  debounce?: DebounceSource;
}

export const dialectName = "workflow-graph";

/** A job without retries must not fail because one worker was lost. */
export const maxLostLeasesDefault = 1;

/** A job with only a command. */
export function plainJob(id: string, command: string): GraphJob {
  return {
    id,
    name: id,
    command,
    depends_on: [],
    required_labels: [],
    max_retries: 0,
    max_lost_leases: maxLostLeasesDefault,
    backoff: "None",
    timeout_secs: null,
    priority: 0,
    skip: false,
    metadata: {},
    ports: [],
    children: null,
    collapsed: false,
  };
}

export function encodeSource(source: GraphSource): string {
  return writeExact(source);
}

/** Reads a text that `encodeSource` wrote. */
export function decodeSource(text: string): GraphSource {
  return parseExact(text) as GraphSource;
}
