// One order for many runs. First the server counts the runs, then it carries out the order as a job. A run that refuses the order does not
// affect the others.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, call } from "../core/api.ts";
import { countText, plural } from "../core/format.ts";
import type { BulkJob } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/parts.tsx";
import { watchJob } from "./bulk-bar.tsx";

export type ManyOrder = "cancel" | "retry" | "rerun" | "pause" | "resume" | "remove";

/** The runs: these, or all that a list with these filters has. */
export type ManyRuns = { readonly ids: readonly string[] } | { readonly filter: Readonly<Record<string, string | readonly string[]>> };

interface Words {
  readonly verb: string;
  readonly what: string;
}

export const orderWords: Readonly<Record<ManyOrder, Words>> = {
  cancel: { verb: "Cancel", what: "Open steps of these runs are cancelled, and their workers are told to stop." },
  retry: { verb: "Retry", what: "These runs continue: steps that did not succeed begin again." },
  rerun: { verb: "Run again", what: "Starts a new run for each, with the same version and input." },
  pause: { verb: "Pause", what: "Running steps continue, and no other step of these runs begins." },
  resume: { verb: "Resume", what: "These runs continue." },
  remove: { verb: "Remove", what: "Removes these runs with their steps, logs and data. This cannot be undone." },
};

export function askManyOrders(order: ManyOrder, runs: ManyRuns, done: () => void): void {
  openDialog(() => <ManyOrders order={order} runs={runs} done={done} />);
}

/** How long one request waits for the count. */
const waitMs = 1_000;

function ManyOrders({ order, runs, done }: { order: ManyOrder; runs: ManyRuns; done: () => void }) {
  const counted = useSignal<BulkJob | null>(null);
  const problem = useSignal<ApiError | null>(null);
  const reason = useSignal("");
  const { verb, what } = orderWords[order];
  useEffect(() => {
    const gone = new AbortController();
    void count(order, runs, gone.signal, (job) => {
      counted.value = job;
    }).catch((error: unknown) => {
      if (!gone.signal.aborted) problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    });
    return () => gone.abort();
  }, []);
  const job = counted.value;
  const isCounted = job !== null && job.state !== "running";
  return (
    <Dialog title={isCounted ? `${verb} ${plural(job.done, "run")}?` : `${verb} many runs?`}>
      <p>{what}</p>
      <Problem error={problem.value} />
      <p role="status">{job === null ? "The server counts the runs." : <Counted job={job} />}</p>
      {order === "cancel" && (
        <label class="field">
          Reason (shown as the error of the runs)
          <input
            value={reason.value}
            onInput={(event) => {
              reason.value = event.currentTarget.value;
            }}
          />
        </label>
      )}
      <ActionRow
        verb={isCounted ? `${verb} ${plural(job.done, "run")}` : verb}
        danger={order === "cancel" || order === "remove"}
        {...(isCounted && job.done > 0
          ? {}
          : { blocked: isCounted ? "There is no run that can get this order." : "The server still counts the runs." })}
        act={async () => {
          const given = reason.value.trim();
          const body = { action: order, ...runs, ...(given === "" ? {} : { reason: given }) };
          watchJob(await call<BulkJob>("/bulk", { method: "POST", body }));
          done();
        }}
      />
    </Dialog>
  );
}

/** "1,180 can, 24 have succeeded". */
function Counted({ job }: { job: BulkJob }) {
  const others = Object.entries(job.skipped).map(([why, runs]) => `${countText(runs)} ${manyOf(why, runs)}`);
  const looked = job.state === "running" ? ` (looked at ${countText(job.looked ?? 0)} of ${countText(job.of ?? 0)})` : "";
  return (
    <>
      <strong>{countText(job.done)} can</strong>
      {others.length > 0 && `, ${others.join(", ")}`}
      {looked}
    </>
  );
}

function manyOf(why: string, runs: number): string {
  return runs === 1
    ? why
    : why
        .replace(/^has /, "have ")
        .replace(/^is /, "are ")
        .replace(/^does /, "do ");
}

async function count(action: ManyOrder, runs: ManyRuns, gone: AbortSignal, show: (job: BulkJob) => void): Promise<void> {
  let job = await call<BulkJob>(`/bulk?waitMs=${waitMs}`, { method: "POST", body: { action, ...runs, dry: true }, signal: gone });
  show(job);
  while (job.state === "running" && !gone.aborted) {
    job = await call<BulkJob>(`/bulk/${job.id}?waitMs=${waitMs}`, { signal: gone });
    show(job);
  }
}
