// The orders to runs. Each asks for confirmation, says what it will do, and shows the server's answer.

import { useSignal } from "@preact/signals";
import { call } from "../core/api.ts";
import { go, href } from "../core/router.ts";
import { whyNot } from "../core/session.ts";
import type { Run, Signal } from "../core/shapes.ts";
import { ActionRow, Confirm, Dialog, openDialog } from "../ui/dialog.tsx";
import { isOver } from "../ui/states.tsx";
import { say } from "../ui/toast.tsx";

type Ordered = Pick<Run, "id" | "state">;

const pathOf = (id: string) => `/runs/${encodeURIComponent(id)}`;

/** The reason why an order would do nothing; undefined when it may be given. */
export const blockedOrder = {
  cancel: ({ state }: Ordered) => (isOver(state) ? "The run has ended." : whyNot("run.steer")),
  retry: ({ state }: Ordered) =>
    !isOver(state)
      ? "The run has not ended."
      : state === "succeeded"
        ? "The run has succeeded: there is nothing to try again."
        : whyNot("run.steer"),
  rerun: (_run: Ordered) => whyNot("run.steer"),
  signal: ({ state }: Ordered) => (isOver(state) ? "The run has ended." : whyNot("run.signal")),
};

export function askCancel(run: Ordered): void {
  openDialog(() => <CancelDialog run={run} />);
}

function CancelDialog({ run }: { run: Ordered }) {
  const reason = useSignal("");
  return (
    <Dialog title="Cancel this run?">
      <p>Open steps are cancelled, and their workers are told to stop. What has ended keeps its result.</p>
      <label class="field">
        Reason (shown as the error of the run)
        <input
          value={reason.value}
          onInput={(event) => {
            reason.value = event.currentTarget.value;
          }}
        />
      </label>
      <ActionRow
        verb="Cancel the run"
        danger
        act={async () => {
          await call(`${pathOf(run.id)}/cancel`, {
            method: "POST",
            body: reason.value.trim() === "" ? {} : { reason: reason.value.trim() },
          });
          say("The run is cancelled.");
        }}
      />
    </Dialog>
  );
}

export function askRetry(run: Ordered, failed: readonly string[]): void {
  openDialog(() => (
    <Confirm
      title="Retry this run?"
      text={
        <>
          <p>
            The same run goes on: steps that did not succeed begin again, with the same inputs. Steps that succeeded keep their results.
          </p>
          {failed.length > 0 && (
            <p>
              Begins again with: <strong>{failed.slice(0, 8).join(", ")}</strong>
              {failed.length > 8 ? ` and ${failed.length - 8} more` : ""}.
            </p>
          )}
        </>
      }
      verb="Retry"
      act={async () => {
        await call(`${pathOf(run.id)}/retry`, { method: "POST" });
        say("The run goes on.");
      }}
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

export function askSignal(run: Ordered, name = ""): void {
  openDialog(() => <SignalDialog run={run} name={name} />);
}

function SignalDialog({ run, name: wanted }: { run: Ordered; name: string }) {
  const name = useSignal(wanted);
  const value = useSignal("null");
  return (
    <Dialog title="Send a signal">
      <p>A step that waits for this name ends with the value. If none waits yet, the run keeps the signal for the first that does.</p>
      <label class="field">
        Name
        <input
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
      </label>
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
