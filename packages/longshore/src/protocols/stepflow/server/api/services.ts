// The services that REST and gRPC share.

import type { Clock } from "../../../../core/clock.ts";
import type { BlobLibrary } from "../blob-library.ts";
import type { ComponentSource } from "./components.ts";
import type { EventDeps } from "./events.ts";
import type { Flows } from "./flows.ts";
import type { RunService } from "./run-service.ts";

export interface Services {
  readonly clock: Clock;
  readonly version: string;
  readonly flows: Flows;
  readonly runs: RunService;
  readonly events: EventDeps;
  readonly blobs: BlobLibrary;
  readonly components: ComponentSource;
}
