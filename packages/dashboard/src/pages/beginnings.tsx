// The page of a new server: the steps to a first run, each ticked when it is done.

import { serverUrl } from "../core/place.ts";
import { useApi } from "../core/resource.ts";
import type { Definition, Page, RunList, Worker } from "../core/shapes.ts";
import { Icon } from "../ui/icons.tsx";
import { Command } from "../ui/parts.tsx";

export function Beginnings() {
  const any = () => true;
  const workers = useApi<Page<Worker>>("/workers?limit=1", { everyMs: 2_000 });
  const definitions = useApi<Page<Definition>>("/definitions?limit=1", { everyMs: 2_000 });
  const runs = useApi<RunList>("/runs?view=summary&limit=1", { on: any });
  const hasWorker = (workers.data.value?.items.length ?? 0) > 0;
  const hasWorkflow = (definitions.data.value?.items.length ?? 0) > 0;
  const run = runs.data.value?.items[0];
  return (
    <section class="beginnings" aria-label="First steps">
      <h2>Nothing has run here yet</h2>
      <p>Three commands lead to a first run. Each line is ticked off as it happens.</p>
      <ol class="ticks">
        <Tick isDone={hasWorker} title="A worker connects">
          <p>Prints a worker for each protocol and language, ready to be copied:</p>
          <Command text={`npx longshore snippets --on ${serverUrl}`} />
        </Tick>
        <Tick isDone={hasWorkflow} title="A workflow is defined">
          <p>From a file in YAML or JSON, in any of the languages that the server reads:</p>
          <Command text={`npx longshore define workflow.yml --on ${serverUrl}`} />
        </Tick>
        <Tick isDone={run !== undefined} title="A run is started">
          <Command text={`npx longshore run NAME --follow --on ${serverUrl}`} />
        </Tick>
        <Tick isDone={run?.state === "succeeded"} title="It succeeds">
          <p>Or see all of it at once, with nothing to write:</p>
          <Command text="npx longshore demo" />
        </Tick>
      </ol>
    </section>
  );
}

function Tick({ isDone, title, children }: { isDone: boolean; title: string; children: preact.ComponentChildren }) {
  return (
    <li data-done={isDone}>
      <p class="tick-title">
        <span class={isDone ? "tone-good" : "tone-idle"}>
          <Icon name={isDone ? "check" : "dot"} />
        </span>
        {title}
        <span class="unseen">{isDone ? ", done" : ", not yet"}</span>
      </p>
      {children}
    </li>
  );
}
