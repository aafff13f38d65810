// What steps could not process, over all runs: groups of similar errors, with a button that tries them again.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, call, query } from "../core/api.ts";
import { countText, plural } from "../core/format.ts";
import { href, search, setQuery } from "../core/router.ts";
import type { BulkJob, DeadLetters } from "../core/shapes.ts";
import { BulkBar, watchJob } from "../run/bulk-bar.tsx";
import { Confirm, openDialog } from "../ui/dialog.tsx";
import { Button, Empty, PageHead, Problem } from "../ui/parts.tsx";

type Letter = DeadLetters["items"][number];
type Steps = DeadLetters["groups"][number]["steps"];

interface Found {
  readonly letters: readonly Letter[];
  readonly groups: readonly DeadLetters["groups"][number][];
  readonly looked: number;
  readonly of: number | null;
  readonly isAll: boolean;
}

/** Pages that are read at once; more are read on request. */
const pagesMax = 200;
/** The number of steps in one order, and how many of them begin again in a second, so that a broken service is not flooded. */
const stepsMax = 1_000;
const perSecond = 50;
const shownMax = 200;

export function DeadLettersPage() {
  const found = useSignal<Found>({ letters: [], groups: [], looked: 0, of: null, isAll: false });
  const problem = useSignal<ApiError | null>(null);
  const turn = useSignal(0);
  useEffect(() => {
    const gone = new AbortController();
    readAll(gone.signal, (next) => {
      found.value = next;
    }).catch((error: unknown) => {
      if (!gone.signal.aborted) problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    });
    return () => gone.abort();
  }, [turn.value]);
  const again = () => {
    turn.value++;
  };
  const { letters, groups, looked, of, isAll } = found.value;
  const chosen = search.value.get("group") ?? "";
  const group = groups.find((one) => keyOf(one) === chosen);
  const shown =
    group === undefined ? letters : letters.filter((one) => group.steps.some(({ run, step }) => run === one.runId && step === one.step));
  return (
    <div class="list-page scroll">
      <PageHead title="Dead letters" note="Inputs that a step could not process: it put them aside and went on, or failed because of them.">
        {letters.length > 0 && (
          <Button icon="retry" label="Retry all" needs="run.steer" onClick={() => askRetry(groups.flatMap(({ steps }) => steps))} />
        )}
        <Button label="Read again" onClick={again} />
      </PageHead>
      <BulkBar />
      <Problem error={problem.value} />
      {!isAll && (
        <p class="dim" role="status">
          Looked at {countText(looked)}
          {of === null ? "" : ` of ${countText(of)}`} runs.
        </p>
      )}
      {isAll && letters.length === 0 && (
        <Empty title="No step has put an input aside.">
          <p>Batches of streams come here when their retries are used up.</p>
        </Empty>
      )}
      {groups.length > 0 && (
        <ul class="plain letter-groups" aria-label="Groups">
          {groups.map((one) => (
            <li key={keyOf(one)} data-chosen={keyOf(one) === chosen}>
              <button
                type="button"
                class="link"
                aria-pressed={keyOf(one) === chosen}
                onClick={() => setQuery({ group: keyOf(one) === chosen ? null : keyOf(one) })}
              >
                <strong>{countText(one.count)}</strong> {one.reason}:{" "}
                <span class="error-text">{one.error === "" ? "without a message" : one.error}</span>
              </button>
              <span class="dim">in {plural(one.steps.length, "step")}</span>
              <Button icon="retry" label="Retry" needs="run.steer" onClick={() => askRetry(one.steps)} />
            </li>
          ))}
        </ul>
      )}
      {shown.length > 0 && (
        <table class="small-table" aria-label="Letters">
          <thead>
            <tr>
              <th>Input</th>
              <th>Step</th>
              <th>Error</th>
              <th>Tries</th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, shownMax).map((letter) => (
              <tr key={`${letter.taskId} ${letter.uid}`}>
                <td>
                  <code>{letter.uid}</code>
                </td>
                <td>
                  <a href={href(["runs", letter.runId], { step: letter.step })}>
                    {letter.workflow} / {letter.step}
                  </a>
                </td>
                <td class="error-text">{letter.error ?? letter.reason}</td>
                <td class="num">{letter.tries}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {shown.length > shownMax && <p class="dim">The first {shownMax} are shown.</p>}
    </div>
  );
}

function keyOf({ reason, error }: { readonly reason: string; readonly error: string }): string {
  return `${reason} ${error}`;
}

function askRetry(steps: Steps): void {
  const unique = [...new Map(steps.map((one) => [`${one.run} ${one.step}`, one])).values()].slice(0, stepsMax);
  const text = (
    <p>
      {plural(unique.length, "step")} begin again in their runs, at most {perSecond} a second. Runs that are still open are left out.
      Nothing is removed: earlier attempts stay in the history of each step.
    </p>
  );
  const act = async () => watchJob(await call<BulkJob>("/dead-letters/retry", { method: "POST", body: { steps: unique, perSecond } }));
  openDialog(() => <Confirm title={`Retry ${plural(unique.length, "step")}?`} text={text} verb="Retry" act={act} />);
}

async function readAll(gone: AbortSignal, show: (found: Found) => void): Promise<void> {
  const letters: Letter[] = [];
  const groups = new Map<string, DeadLetters["groups"][number]>();
  let before: string | null | undefined;
  let looked = 0;
  for (let page = 0; page < pagesMax && before !== null; page++) {
    const read: DeadLetters = await call(`/dead-letters${query({ before })}`, { signal: gone });
    letters.push(...read.items);
    for (const group of read.groups) {
      const known = groups.get(keyOf(group));
      groups.set(
        keyOf(group),
        known === undefined ? group : { ...known, count: known.count + group.count, steps: [...known.steps, ...group.steps] },
      );
    }
    looked += read.looked;
    before = read.next;
    const sorted = [...groups.values()].sort((one, other) => other.count - one.count);
    show({ letters: [...letters], groups: sorted, looked, of: read.of, isAll: before === null });
  }
}
