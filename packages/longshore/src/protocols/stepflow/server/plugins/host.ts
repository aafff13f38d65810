// The server's services that plugins use.

import type { Clock } from "../../../../core/clock.ts";
import type { ProcessGroups } from "../../../../core/process-groups.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Workers } from "../../../../engine/board/workers.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { Observability } from "../../wire/observability.ts";
import type { BlobApi } from "../config/config.ts";
import type { RuntimeCalls } from "../http/runtime/requests.ts";
import type { PluginLog } from "./log.ts";

export interface PluginHost {
  readonly board: Board;
  readonly workers: Pick<Workers, "seen">;
  readonly documents: DocumentStore;
  readonly reader: Pick<Reader, "tasks">;
  readonly clock: Clock;
  readonly log: PluginLog;
  /** A new UUID. */
  makeId(): string;
  /** The returned function ends it. */
  listen(listener: { task(task: TaskRow): void }): () => void;
  /** The run, flow and step of a task, as workers know them. */
  observability(task: TaskRow): Promise<Observability>;
  readonly calls: RuntimeCalls;
  readonly groups: ProcessGroups;
  /** The directory of the configuration. */
  readonly directory: string;
  readonly blobApi: BlobApi;
  /** The server's address for workers on this machine, such as `http://127.0.0.1:4500`; null when it has no socket. */
  readonly url: string | null;
  /** The server's own environment. */
  readonly environment: NodeJS.ProcessEnv;
}
