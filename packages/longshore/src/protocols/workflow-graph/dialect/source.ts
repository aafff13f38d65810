// The one form in which workflow-graph definitions are kept, whether they came from a file or over HTTP: what `Definition.source` holds
// as JSON text. Every field is always there, so that equal definitions are equal texts.

import type { Json } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { Job, Port, WireBackoff } from "../wire/shapes.ts";

export interface GraphJob {
  id: string;
  name: string;
  command: string;
  depends_on: string[];
  required_labels: string[];
  /** How many failed attempts may be followed by another. */
  max_retries: number;
  /** How many lost leases may be; a budget of its own. */
  max_lost_leases: number;
  backoff: WireBackoff;
  /** How long one attempt may take. */
  timeout_secs: number | null;
  /** Smaller is taken first; 0 by default. */
  priority: number;
  /** True for `if: false`: the job is recorded as skipped and so is what depends on it. */
  skip: boolean;
  /** For editors and viewers only; kept and shown as they came. */
  metadata: { [key: string]: Json };
  ports: Port[];
  children: Job[] | null;
  collapsed: boolean;
}

export interface GraphSource {
  name: string;
  trigger: string;
  jobs: GraphJob[];
}

export const dialectName = "workflow-graph";

/** A worker that vanishes once must not kill a job that has no retries. */
export const maxLostLeasesDefault = 1;

/** A job that is nothing but its command. */
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

/** For texts that `encodeSource` made. */
export function decodeSource(text: string): GraphSource {
  return parseExact(text) as GraphSource;
}
