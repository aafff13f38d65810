// Pause of a queue and cordon of a worker: who did it, since when and why, and the buttons for both.

import { useSignal } from "@preact/signals";
import { call } from "../core/api.ts";
import type { Queue, Worker } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { Button, Time } from "../ui/parts.tsx";
import { say } from "../ui/toast.tsx";

type Halt = NonNullable<Queue["paused"]>;

/** One sentence about who has halted it. */
export function Halted({ word, halt }: { word: string; halt: Halt }) {
  return (
    <p class="halted tone-warn">
      <Icon name="pause" />
      <span>
        {word}
        {halt.by === null ? "" : ` by ${halt.by}`} <Time at={halt.at} />
        {halt.reason === null ? "" : `: ${halt.reason}`}
      </span>
    </p>
  );
}

interface HaltProps {
  readonly title: string;
  readonly text: string;
  readonly verb: string;
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly said: string;
  /** The dialog asks for a reason when something is halted, and not when it continues. */
  readonly withReason: boolean;
  readonly onDone: () => void;
}

function HaltDialog({ title, text, verb, path, body = {}, said, withReason, onDone }: HaltProps) {
  const reason = useSignal("");
  return (
    <Dialog title={title}>
      <p class="dialog-text">{text}</p>
      {withReason && (
        <label class="field">
          Reason (shown wherever its tasks wait)
          <input
            value={reason.value}
            onInput={(event) => {
              reason.value = event.currentTarget.value;
            }}
          />
        </label>
      )}
      <ActionRow
        verb={verb}
        act={async () => {
          const given = reason.value.trim();
          await call(path, { method: "POST", body: { ...body, ...(given === "" ? {} : { reason: given }) } });
          say(said);
          onDone();
        }}
      />
    </Dialog>
  );
}

export function QueueButton({
  queue: { lane, labels, paused },
  onDone,
}: {
  queue: Pick<Queue, "lane" | "labels" | "paused">;
  onDone: () => void;
}) {
  const name = [lane, ...labels].join(" ");
  const body = { lane, labels };
  const pause: HaltProps = {
    ...{ title: `Pause the queue ${name}?`, verb: "Pause the queue", path: "/queues/pause", body, withReason: true, onDone },
    ...{ text: "No worker gets its tasks until it is resumed. What workers hold already goes on.", said: `The queue ${name} is paused.` },
  };
  const resume: HaltProps = {
    ...{ title: `Resume the queue ${name}?`, verb: "Resume the queue", path: "/queues/resume", body, withReason: false, onDone },
    ...{ text: "Workers get its tasks again, the oldest first.", said: `The queue ${name} goes on.` },
  };
  return (
    <Button
      icon={paused === null ? "pause" : "play"}
      label={paused === null ? "Pause" : "Resume"}
      needs="queue.steer"
      onClick={() => openDialog(() => <HaltDialog {...(paused === null ? pause : resume)} />)}
    />
  );
}

export function WorkerButton({ worker: { id, cordoned }, onDone }: { worker: Pick<Worker, "id" | "cordoned">; onDone: () => void }) {
  const path = `/workers/${encodeURIComponent(id)}`;
  const cordon: HaltProps = {
    ...{ title: `Give the worker ${id} no more tasks?`, verb: "Cordon the worker", path: `${path}/cordon`, withReason: true, onDone },
    ...{ text: "It keeps the tasks that it holds and finishes them. Others take the rest.", said: "The worker gets no more tasks." },
  };
  const uncordon: HaltProps = {
    ...{ title: `Give the worker ${id} tasks again?`, verb: "Uncordon the worker", path: `${path}/uncordon`, withReason: false, onDone },
    ...{ text: "It gets tasks with its next request.", said: "The worker gets tasks again." },
  };
  return (
    <Button
      icon={cordoned === null ? "pause" : "play"}
      label={cordoned === null ? "Cordon" : "Uncordon"}
      needs="worker.steer"
      onClick={() => openDialog(() => <HaltDialog {...(cordoned === null ? cordon : uncordon)} />)}
    />
  );
}
