// The order to many runs that is being carried out: how far it has come, with a button that stops it. It is found again after a reload.

import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../core/api.ts";
import { countText } from "../core/format.ts";
import type { BulkJob, Page } from "../core/shapes.ts";
import { Button } from "../ui/parts.tsx";

const watched = signal<BulkJob | null>(null);

export function watchJob(job: BulkJob): void {
  watched.value = job;
}

/** How long one request waits for the end. */
const waitMs = 1_000;
/** Between two requests, so that a job of many quick slices is not asked for all the time. */
const gapMs = 300;

const verbs: Readonly<Record<BulkJob["action"], string>> = {
  ...{ cancel: "Cancelling runs", retry: "Retrying runs", rerun: "Running again", pause: "Pausing runs" },
  ...{ resume: "Resuming runs", remove: "Removing runs", "rerun-from": "Retrying dead letters" },
};

export function BulkBar() {
  const isOpen = useSignal(false);
  const job = watched.value;
  useEffect(() => {
    if (watched.peek() !== null) return;
    void call<Page<BulkJob>>("/bulk?limit=5").then(
      ({ items }) => {
        watched.value ??= items.find(({ state, dry }) => state === "running" && !dry) ?? null;
      },
      () => {},
    );
  }, []);
  const id = job?.state === "running" ? job.id : undefined;
  useEffect(() => {
    if (id === undefined) return;
    const gone = new AbortController();
    void follow(id, gone.signal);
    return () => gone.abort();
  }, [id]);
  if (job === null) return null;
  const { done, refused, skipped, looked, of, state } = job;
  const left = Object.values(skipped).reduce((sum, runs) => sum + runs, 0);
  const at = looked ?? done + refused + left;
  return (
    <section class="bulk-bar" aria-label="Order to many runs" data-state={state}>
      <strong>{verbs[job.action]}</strong>
      <progress max={Math.max(1, of ?? at)} value={state === "running" ? at : Math.max(1, of ?? at)} aria-label="Progress" />
      <span role="status" class="num">
        {countText(done)} done{refused > 0 && `, ${countText(refused)} refused`}
        {left > 0 && `, ${countText(left)} left out`}
        {state !== "running" && (state === "stopped" ? ". Stopped." : ".")}
      </span>
      {refused > 0 && (
        <Button
          label={isOpen.value ? "Hide errors" : "Show errors"}
          onClick={() => {
            isOpen.value = !isOpen.value;
          }}
        />
      )}
      {state === "running" ? (
        <Button
          icon="stop"
          label="Stop"
          needs="run.steer"
          onClick={() => void call(`/bulk/${job.id}`, { method: "DELETE" }).catch(() => {})}
        />
      ) : (
        <Button
          label="Close"
          onClick={() => {
            watched.value = null;
          }}
        />
      )}
      {isOpen.value && (
        <ul class="plain refused">
          {job.errors.map(({ run, error }) => (
            <li key={run}>
              <code>{run}</code>: {error}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

async function follow(id: string, gone: AbortSignal): Promise<void> {
  while (!gone.aborted && watched.peek()?.id === id && watched.peek()?.state === "running") {
    try {
      const read = await call<BulkJob>(`/bulk/${id}?waitMs=${waitMs}`, { signal: gone });
      if (watched.peek()?.id === id) watched.value = read;
    } catch {
      // The server does not answer, or the page is left: the next try finds the job.
    }
    await new Promise((resolve) => setTimeout(resolve, gapMs));
  }
}
