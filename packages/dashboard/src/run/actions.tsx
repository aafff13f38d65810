// What can be done with a run. Each order is asked of the server first as a dry run: the dialog says which steps begin again, which keep their
// results, and which are cancelled, before anything happens.

import { type Signal as State, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../core/api.ts";
import { plural } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { go, href } from "../core/router.ts";
import { whyNot } from "../core/session.ts";
import type { Foreseen, Run, Signal } from "../core/shapes.ts";
import { ActionRow, Confirm, Dialog, openDialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/parts.tsx";
import { isOver } from "../ui/states.tsx";
import { say } from "../ui/toast.tsx";
import { foreseen } from "./order-preview.ts";

type Ordered = Pick<Run, "id" | "state">;

const pathOf = (id: string) => `/runs/${encodeURIComponent(id)}`;
const stillOpen = "The run has not ended.";
const hasEnded = "The run has ended.";

/** The reason why an order would do nothing; undefined when it may be given. */
export const blockedOrder = {
  cancel: ({ state }: Ordered) => (isOver(state) ? hasEnded : whyNot("run.steer")),
  pause: ({ state }: Ordered) => (isOver(state) ? hasEnded : whyNot("run.steer")),
  retry: ({ state }: Ordered) => {
    if (!isOver(state)) return stillOpen;
    return state === "succeeded" ? "The run has succeeded: there is nothing to try again." : whyNot("run.steer");
  },
  restart: ({ state }: Ordered) => (isOver(state) ? whyNot("run.steer") : stillOpen),
  remove: ({ state }: Ordered) => (isOver(state) ? whyNot("run.remove") : stillOpen),
  signal: ({ state }: Ordered) => (isOver(state) ? hasEnded : whyNot("run.signal")),
};

interface OrderProps {
  readonly run: Ordered;
  readonly title: string;
  readonly text: ComponentChildren;
  readonly verb: string;
  readonly danger?: boolean;
  /** The last segment of its path. */
  readonly order: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly said: string;
  readonly children?: ComponentChildren;
}

function OrderDialog({ run, title, text, verb, danger = false, order, body = {}, said, children }: OrderProps) {
  const path = `${pathOf(run.id)}/${order}`;
  const dry = useResource<Foreseen>(`${path} ${JSON.stringify(body)}`, (gone) =>
    call<Foreseen>(path, { method: "POST", body: { ...body, dry: true }, signal: gone }),
  );
  const expected = dry.data.value;
  useEffect(() => {
    foreseen.value = expected === undefined ? null : { run: run.id, ...expected };
    return () => {
      foreseen.value = null;
    };
  }, [expected, run.id]);
  return (
    <Dialog title={title}>
      <div class="dialog-text">{text}</div>
      {children}
      <Problem error={dry.error.value} />
      {expected !== undefined && <Expected expected={expected} />}
      <ActionRow
        verb={verb}
        danger={danger}
        act={async () => {
          await call(path, { method: "POST", body });
          say(said);
        }}
      />
    </Dialog>
  );
}

/** The answer of the dry run. */
function Expected({ expected }: { expected: Foreseen }) {
  const { applies, starts, again, kept, cancelled, children } = expected;
  if (!applies) return <p class="note">The run is in a state in which this changes nothing.</p>;
  const rows: readonly (readonly [what: string, tone: string, steps: readonly string[]])[] = [
    ["Begin again", "tone-warn", again],
    ["Begin at once", "tone-busy", starts.filter((step) => !again.includes(step))],
    ["Keep their results", "tone-good", kept ?? []],
    ["Are cancelled", "tone-bad", cancelled],
  ];
  const shown = rows.filter(([, , steps]) => steps.length > 0);
  return (
    <div class="expected" role="group" aria-label="What will happen">
      {shown.length === 0 && <p class="dim">No step is touched.</p>}
      {shown.map(([what, tone, steps]) => (
        <p key={what}>
          <strong class={tone}>
            {what} ({steps.length}):
          </strong>{" "}
          {steps.slice(0, 12).join(", ")}
          {steps.length > 12 ? ", …" : ""}
        </p>
      ))}
      {children.length > 0 && <p class="dim">{plural(children.length, "child run")} of these steps will be left behind.</p>}
    </div>
  );
}

export function askCancel(run: Ordered): void {
  openDialog(() => <CancelDialog run={run} />);
}

function CancelDialog({ run }: { run: Ordered }) {
  const reason = useSignal("");
  const given = reason.value.trim();
  return (
    <OrderDialog
      {...{ run, order: "cancel", title: "Cancel this run?", verb: "Cancel the run", danger: true, said: "The run is cancelled." }}
      text={<p>Open steps are cancelled, and their workers are told to stop. What has ended keeps its result.</p>}
      {...(given === "" ? {} : { body: { reason: given } })}
    >
      <Field label="Reason (shown as the error of the run)" value={reason} />
    </OrderDialog>
  );
}

function Field({ label, value }: { label: string; value: State<string> }) {
  return (
    <label class="field">
      {label}
      <input
        value={value.value}
        onInput={(event) => {
          value.value = event.currentTarget.value;
        }}
      />
    </label>
  );
}

export function askRetry(run: Ordered): void {
  const text = <p>The same run continues: steps that did not succeed begin again, with the same inputs.</p>;
  openDialog(() => <OrderDialog {...{ run, text, order: "retry", title: "Retry this run?", verb: "Retry", said: "The run continues." }} />);
}

export function askRestart(run: Ordered): void {
  const text = <p>The same run begins again from its start. All its results are given up.</p>;
  openDialog(() => (
    <OrderDialog
      {...{ run, text, order: "restart", title: "Restart this run?", verb: "Restart", danger: true, said: "The run begins again." }}
    />
  ));
}

export function askPause(run: Ordered): void {
  const isPaused = run.state === "paused";
  const text = <p>{isPaused ? "Steps begin again." : "Running steps continue; no other step begins until the run is resumed."}</p>;
  const [order, verb] = isPaused ? ["resume", "Resume"] : ["pause", "Pause"];
  openDialog(() => (
    <OrderDialog
      {...{ run, text, order, verb, title: `${verb} this run?`, said: isPaused ? "The run continues." : "The run is paused." }}
    />
  ));
}

/** Begins again at a step, in the same run. */
export function askRerunFrom(run: Ordered, step: string): void {
  const text = <p>This step and what follows it begin again, in the same run. Steps before it keep their results.</p>;
  openDialog(() => (
    <OrderDialog
      {...{
        run,
        text,
        order: "rerun",
        body: { from: step },
        title: `Run again from ${step}?`,
        verb: "Run again",
        said: "The run begins again there.",
      }}
    />
  ));
}

export function askSkip(run: Ordered, step: string): void {
  const text = <p>The step will not run: steps that wait for it continue without its result.</p>;
  openDialog(() => (
    <OrderDialog
      {...{ run, text, order: "skip", body: { step }, title: `Skip ${step}?`, verb: "Skip", danger: true, said: "The step is skipped." }}
    />
  ));
}

export function askRerun(run: Ordered): void {
  openDialog(() => (
    <Confirm
      title="Run this again?"
      text={<p>Starts a new run of the same version with the same input. This run stays as it is.</p>}
      verb="Start a new run"
      act={async () => {
        const started = await call<Run>(`${pathOf(run.id)}/rerun`, { method: "POST" });
        say("A new run was started.");
        go(href(["runs", started.id]));
      }}
    />
  ));
}

/** Ends delays, such as the one before the next try. */
export function askHasten(run: Ordered): void {
  openDialog(() => (
    <Confirm
      title="End the delays of this run?"
      text={
        <p>Tasks that wait for their time, such as the one of a next try, can be taken at once. Sleeps of the workflow are not ended.</p>
      }
      verb="End the delays"
      act={async () => {
        await call(`${pathOf(run.id)}/hasten`, { method: "POST" });
        say("The delays have ended.");
      }}
    />
  ));
}

export function askRemove(run: Ordered): void {
  openDialog(() => (
    <Confirm
      title="Remove this run?"
      text={<p>The run, its steps, its log and its data are removed. This cannot be taken back.</p>}
      verb="Remove"
      danger
      act={async () => {
        await call(pathOf(run.id), { method: "DELETE" });
        say("The run is removed.");
        go(href(["runs"]));
      }}
    />
  ));
}

export function askSignal(run: Ordered, name = ""): void {
  openDialog(() => <SignalDialog run={run} name={name} />);
}

function SignalDialog({ run, name: wanted }: { run: Ordered; name: string }) {
  const name = useSignal(wanted);
  const value = useSignal("null");
  return (
    <Dialog title="Send a signal">
      <p>A step that waits for this name ends with the value. If none waits yet, the run keeps the signal for the first that does.</p>
      <Field label="Name" value={name} />
      <label class="field">
        Value, as JSON
        <textarea
          rows={5}
          spellcheck={false}
          value={value.value}
          onInput={(event) => {
            value.value = event.currentTarget.value;
          }}
        />
      </label>
      <ActionRow
        verb="Send"
        act={async () => {
          const text = value.value.trim() === "" ? "null" : value.value;
          JSON.parse(text);
          // The text itself is sent, so that long numbers keep their digits.
          const body = `{"name":${JSON.stringify(name.value.trim())},"value":${text}}`;
          const sent = await call<Signal>(`${pathOf(run.id)}/signals`, { method: "POST", body });
          say(sent.state === "taken" ? "A step has taken the signal." : "The run keeps the signal until a step waits for it.");
        }}
      />
    </Dialog>
  );
}
