// Why a step waits, in one sentence, with the chain of steps that causes the wait and the command that ends it.

import { timeText } from "../core/format.ts";
import { serverUrl } from "../core/place.ts";
import { href } from "../core/router.ts";
import type { Waiting } from "../core/shapes.ts";
import { Icon } from "../ui/icons.tsx";
import { Button, Command } from "../ui/parts.tsx";
import { askSignal } from "./actions.tsx";

export interface Blocked {
  readonly runId: string | null;
  readonly step: string;
  readonly lane: string | null;
  readonly labels: readonly string[];
  readonly waiting: Waiting;
  /** True for a step of a workflow that has not been started. */
  readonly isPlan?: boolean;
}

/** The word, in quotes when a shell would change it. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const on = serverUrl === "http://127.0.0.1:4500" || serverUrl === "http://localhost:4500" ? "" : ` --on ${serverUrl}`;

/** The command that ends the wait; undefined when nothing has to be done or no command can do it. */
function remedyOf({ runId, labels, lane, waiting }: Blocked): string | undefined {
  if (waiting.reason === "signal" && runId !== null && waiting.signal !== undefined)
    return `npx longshore signal ${word(runId)} ${word(waiting.signal)} 'null'${on}`;
  if (waiting.reason !== "no-worker" || lane === null) return undefined;
  const wanted = waiting.missing?.length ? labels : [];
  return `npx longshore work tasks.mjs${wanted.length === 0 ? "" : ` --labels ${word(wanted.join(","))}`}${on}`;
}

/** What to do when there is no command. */
function adviceOf({ waiting: { reason, key, workers = [] } }: Blocked): string | undefined {
  if (reason === "busy")
    return `Every worker that could take it is busy (${workers.slice(0, 3).join(", ")}${workers.length > 3 ? ", …" : ""}). Start another one, or give one more slots.`;
  if (reason === "limit") return `The limit ${key ?? ""} is used up. It continues when another step with this limit ends.`;
  if (reason === "paused") return "Resume the queue on its page.";
  if (reason === "unreachable") return "The server cannot reach the workers. It tries again by itself.";
  if (reason === "sent") return "The server has sent it; a worker that is slow or gone has not taken it. It is sent again after a while.";
  return undefined;
}

export function Why({ blocked }: { blocked: Blocked }) {
  const { step, lane, labels, waiting, runId, isPlan = false } = blocked;
  const remedy = remedyOf(blocked);
  const advice = adviceOf(blocked);
  const isCalm = waiting.reason === "not-due" || waiting.reason === "sleeping" || waiting.reason === "next" || waiting.reason === "record";
  return (
    <div role="group" class={`why ${isCalm ? "" : "why-bad"}`} aria-label={`Why ${step} waits`}>
      <p class="why-text">
        <Icon name="clock" />
        <span>
          <strong>{step}</strong>{" "}
          {/^(waiting|sleeping)/.test(waiting.text) ? `is ${waiting.text}` : `${isPlan ? "would wait" : "waits"}: ${waiting.text}`}
          {waiting.at === undefined || waiting.reason === "sleeping" ? "" : `, ${timeText(waiting.at)}`}
        </span>
      </p>
      <ol class="chain" aria-label="What leads to it">
        {runId !== null && <li>run</li>}
        <li>{runId === null ? step : <a href={href(["runs", runId], { step })}>step {step}</a>}</li>
        {lane !== null && (
          <li>
            <a href={href(["queues"], { lane })}>
              lane {lane}
              {labels.length === 0 ? "" : ` [${labels.join(", ")}]`}
            </a>
          </li>
        )}
        <li class="chain-end">{cause(waiting)}</li>
      </ol>
      {advice !== undefined && <p class="dim">{advice}</p>}
      <span class="why-act">
        {waiting.reason === "signal" && runId !== null && (
          <Button
            icon="signal"
            label={`Send ${waiting.signal ?? "it"}`}
            needs="run.signal"
            onClick={() => askSignal({ id: runId, state: "running" }, waiting.signal)}
          />
        )}
        {remedy !== undefined && <Command text={remedy} />}
      </span>
    </div>
  );
}

function cause({ reason, missing = [], key, signal }: Waiting): string {
  if (reason === "no-worker")
    return missing.length === 0 ? "no live worker takes from this lane" : `no live worker has the label ${missing.join(", ")}`;
  if (reason === "limit") return `limit ${key ?? ""}`;
  if (reason === "signal") return `signal ${signal ?? ""}`;
  if (reason === "busy") return "all workers are busy";
  if (reason === "paused") return "the queue is paused";
  if (reason === "unreachable") return "its workers cannot be reached";
  if (reason === "sent") return "sent, and not taken";
  if (reason === "next") return "taken at the next poll";
  if (reason === "record") return "something else must end first";
  return "its time has not come";
}
