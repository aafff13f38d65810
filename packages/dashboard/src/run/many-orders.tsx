// One order for many runs. It succeeds or fails for each run separately, and can be stopped between two runs.

import { useSignal } from "@preact/signals";
import { ApiError, call } from "../core/api.ts";
import { plural } from "../core/format.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialog.tsx";
import { Button } from "../ui/parts.tsx";

export type ManyOrder = "cancel" | "retry" | "rerun";

const texts: Readonly<Record<ManyOrder, { readonly verb: string; readonly what: string }>> = {
  cancel: { verb: "Cancel", what: "Open steps of these runs are cancelled. Runs that have ended stay as they are." },
  retry: {
    verb: "Retry",
    what: "These runs go on: steps that did not succeed begin again. Runs that are open or have succeeded are refused.",
  },
  rerun: { verb: "Run again", what: "Starts a new run for each, with the same version and input." },
};

export function askManyOrders(order: ManyOrder, ids: readonly string[]): void {
  openDialog(() => <ManyOrders order={order} ids={ids} />);
}

interface Result {
  readonly id: string;
  readonly problem: string | null;
}

function ManyOrders({ order, ids }: { order: ManyOrder; ids: readonly string[] }) {
  const results = useSignal<readonly Result[]>([]);
  const state = useSignal<"asking" | "working" | "stopped" | "done">("asking");
  const { verb, what } = texts[order];
  const work = async () => {
    state.value = "working";
    for (const id of ids.slice(results.value.length)) {
      if (state.value !== "working") return;
      const problem = await orderOf(order, id);
      results.value = [...results.value, { id, problem }];
    }
    state.value = "done";
  };
  const refused = results.value.filter(({ problem }) => problem !== null);
  return (
    <Dialog title={`${verb} ${plural(ids.length, "run")}?`}>
      <p>{what}</p>
      {state.value !== "asking" && (
        <p role="status">
          <progress max={ids.length} value={results.value.length} aria-label="Progress" /> {results.value.length - refused.length} done,{" "}
          {refused.length} refused, {ids.length - results.value.length} left
        </p>
      )}
      {refused.length > 0 && (
        <ul class="plain refused">
          {refused.slice(0, 20).map(({ id, problem }) => (
            <li key={id}>
              <code>{id}</code>: {problem}
            </li>
          ))}
        </ul>
      )}
      <div class="dialog-actions">
        <Button label="Close" onClick={closeDialog} />
        {state.value === "working" ? (
          <Button
            label="Stop"
            onClick={() => {
              state.value = "stopped";
            }}
          />
        ) : (
          state.value !== "done" && (
            <Button
              kind={order === "cancel" ? "danger" : "main"}
              label={state.value === "asking" ? verb : "Go on"}
              onClick={() => void work()}
            />
          )
        )}
      </div>
    </Dialog>
  );
}

async function orderOf(order: ManyOrder, id: string): Promise<string | null> {
  try {
    await call(`/runs/${encodeURIComponent(id)}/${order}`, { method: "POST", ...(order === "cancel" ? { body: {} } : {}) });
    return null;
  } catch (error) {
    return error instanceof ApiError ? error.message : String(error);
  }
}
