// The built-in components, by path.

import type { Clock } from "../../../../core/clock.ts";
import type { Environment } from "../../../../core/environment.ts";
import type { Json } from "../../../../core/json/json.ts";
import type { BlobLibrary } from "../blob-library.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";
import { createMessages, noop, sleep } from "./basic.ts";
import { getBlob, putBlob } from "./blobs.ts";
import type { Component } from "./component.ts";
import { evaluate, iterate, map, type SubRuns } from "./flows.ts";
import { type FlowFiles, loadFile } from "./load-file.ts";
import { openAi } from "./openai.ts";

export interface LibraryOptions {
  readonly clock: Clock;
  readonly blobs: BlobLibrary;
  readonly subRuns: SubRuns;
  /** The files that `load_file` may read; null for none. */
  readonly files: FlowFiles | null;
  readonly environment: Environment;
}

export class BuiltinLibrary {
  readonly components: readonly Component[];
  readonly #byPath: ReadonlyMap<string, Component>;

  constructor({ clock, blobs, subRuns, files, environment }: LibraryOptions) {
    this.components = [
      createMessages,
      evaluate(subRuns),
      getBlob(blobs),
      iterate(subRuns),
      loadFile(files),
      map(subRuns),
      noop,
      openAi({ environment }),
      putBlob(blobs),
      sleep(clock),
    ];
    this.#byPath = new Map(this.components.map((component) => [component.path, component]));
  }

  perform(call: ComponentWork): Json | Promise<Json> {
    const component = this.#byPath.get(call.component);
    if (component !== undefined) return component.perform(call);
    const message = `there is no built-in component ${call.component}, expected one of ${[...this.#byPath.keys()].join(", ")}`;
    throw new StepFailure({ code: "COMPONENT_NOT_FOUND", message });
  }
}
