// The page of a new server: a program for each protocol, and the steps to a first run, each ticked when it has happened.

import { useSignal } from "@preact/signals";
import { query } from "../core/api.ts";
import { serverUrl } from "../core/place.ts";
import { useApi } from "../core/resource.ts";
import { href } from "../core/router.ts";
import type { Hints, Page, RunList, Worker, Workflow } from "../core/shapes.ts";
import { Icon } from "../ui/icons.tsx";
import { Command, Copy, Problem, Tabs } from "../ui/parts.tsx";

const titles: Readonly<Record<string, string>> = {
  longshore: "TypeScript",
  "workflow-graph": "workflow-graph",
  conductor: "Conductor",
  stepflow: "Stepflow",
  flowkit: "FlowKit",
};
/** Our own library is first. */
const order = Object.keys(titles);

export function Beginnings({ onDone }: { onDone: () => void }) {
  const hints = useApi<Hints>(`/hints${query({ url: serverUrl })}`);
  const chosen = useSignal("longshore");
  const items = hints.data.value?.items ?? [];
  const protocols = [...new Set(items.map(({ protocol }) => protocol))].sort((one, other) => order.indexOf(one) - order.indexOf(other));
  const ticks = useTicks();
  const isDone = ticks.every((tick) => tick);
  return (
    <section class="beginnings" aria-label="First steps">
      <h2>{isDone ? "The first run is done" : "Nothing has run here yet"}</h2>
      <p>
        {isDone
          ? "From now on, this page shows how your runs do."
          : "Choose what your code speaks. Two copies lead to a first run; each line is ticked off as it happens."}
      </p>
      <Problem error={hints.error.value} />
      {isDone && (
        <p>
          <button type="button" class="button main" onClick={onDone}>
            Show the overview
          </button>{" "}
          <a class="button" href={href(["runs"])}>
            Show the runs
          </a>
        </p>
      )}
      {protocols.length > 0 && (
        <Tabs
          label="Protocols"
          active={chosen.value}
          onPick={(next) => {
            chosen.value = next;
          }}
          tabs={protocols.map((name) => ({ name, title: titles[name] ?? name }))}
        />
      )}
      <div role="tabpanel" aria-labelledby={`tab-${chosen.value}`} class="hints">
        {items
          .filter(({ protocol }) => protocol === chosen.value)
          .map((hint, _at, all) => (
            <Hint key={hint.language} hint={hint} isOnly={all.length === 1} />
          ))}
      </div>
      <ol class="ticks" aria-label="What has happened">
        {["A worker was seen", "A workflow is defined", "A run was started", "A run has succeeded"].map((title, at) => (
          <Tick key={title} title={title} isDone={ticks[at] ?? false} />
        ))}
      </ol>
      <p class="dim">
        Or see all of it at once, with nothing to write: <Command text="npx longshore demo" />
      </p>
    </section>
  );
}

function Hint({ hint: { language, how, code, tryIt }, isOnly }: { hint: Hints["items"][number]; isOnly: boolean }) {
  const [instruction = "", remark] = how.split("; ");
  return (
    <div class="hint">
      <h3>
        1. A worker{isOnly ? "" : ` in ${language}`}: {spoken(instruction)}
      </h3>
      {remark !== undefined && <p class="dim">{spoken(remark)}</p>}
      <Program text={code} label={`Copy the worker in ${language}`} />
      <h3>2. Something for it to do, in another terminal</h3>
      <Program text={tryIt} label={`Copy the commands for the worker in ${language}`} />
    </div>
  );
}

/** Text between backquotes is code. */
function spoken(text: string) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}

function Program({ text, label }: { text: string; label: string }) {
  return (
    <div class="program">
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} label={label} />
    </div>
  );
}

function useTicks(): readonly boolean[] {
  const any = () => true;
  const workers = useApi<Page<Worker>>("/workers?limit=1", { on: any, everyMs: 2_000 });
  const workflows = useApi<Page<Workflow>>("/workflows?limit=1", { on: any, everyMs: 2_000 });
  const runs = useApi<RunList>("/runs?view=summary&limit=1", { on: any });
  const succeeded = useApi<RunList>("/runs?view=summary&limit=1&state=succeeded", { on: any });
  const isStarted = (runs.data.value?.items.length ?? 0) > 0;
  // A protocol may bring the definition with the run.
  const isDefined = isStarted || (workflows.data.value?.items.length ?? 0) > 0;
  return [(workers.data.value?.items.length ?? 0) > 0, isDefined, isStarted, (succeeded.data.value?.items.length ?? 0) > 0];
}

function Tick({ isDone, title }: { isDone: boolean; title: string }) {
  return (
    <li data-done={isDone}>
      <p class="tick-title">
        <span class={isDone ? "tone-good" : "tone-idle"}>
          <Icon name={isDone ? "check" : "dot"} />
        </span>
        {title}
        <span class="unseen">{isDone ? ", done" : ", not yet"}</span>
      </p>
    </li>
  );
}
