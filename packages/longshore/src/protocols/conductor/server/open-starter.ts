// The starter with what it needs, for requests and for the server's own tasks.

import type { ProtocolEngine } from "../../server-half.ts";
import type { Registry } from "./registry.ts";
import { RunRenderer } from "./render-run.ts";
import { Starter } from "./start.ts";
import { createViews, type Views } from "./view.ts";

export interface OpenStarter {
  readonly views: Views;
  readonly renderer: RunRenderer;
  readonly starter: Starter;
}

export function openStarter(
  { clock, reader, runs, board, plan }: Pick<ProtocolEngine, "clock" | "reader" | "runs" | "board" | "plan">,
  registry: Registry,
): OpenStarter {
  const views = createViews(plan);
  const renderer = new RunRenderer(reader, views, () => clock.now());
  const starter = new Starter({ clock, runs, registry, board, views, shown: (run) => renderer.run(run, true) });
  return { views, renderer, starter };
}
