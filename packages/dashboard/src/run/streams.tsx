// The streams of a run: how many parts each step has given, how fast, and how far each reader is.

import { useRef } from "preact/hooks";
import { call, query } from "../core/api.ts";
import { countText, plural } from "../core/format.ts";
import { touchesRun } from "../core/live.ts";
import { useResource } from "../core/resource.ts";
import { search, setQuery } from "../core/router.ts";
import type { Run, Stream, Streams } from "../core/shapes.ts";
import { Empty, Problem, Time } from "../ui/parts.tsx";
import { isOver } from "../ui/states.tsx";

/** Parts arrive without a change of the run. */
const everyMs = 2_000;
/** Pages of 500 attempts that are read at once: as many as the largest run has. */
const pagesMax = 60;

interface Reading {
  readonly streams: readonly Stream[];
  readonly at: number;
}

export function StreamsPane({ run }: { run: Run }) {
  const list = useResource<Reading>(`streams ${run.id}`, (gone) => readAll(run.id, gone), {
    on: (change) => touchesRun(change, run.id),
    ...(isOver(run.state) ? {} : { everyMs }),
  });
  const before = useRef<Reading | undefined>(undefined);
  const newest = useRef<Reading | undefined>(undefined);
  const reading = list.data.value;
  if (reading !== newest.current) {
    before.current = newest.current;
    newest.current = reading;
  }
  return (
    <div class="list-pane scroll">
      <Problem error={list.error.value} />
      {reading?.streams.length === 0 && (
        <Empty title="No step of this run has produced parts.">
          <p>A step may produce parts before it ends, and other steps read them as they arrive.</p>
        </Empty>
      )}
      {reading?.streams.map((stream) => (
        <StreamCard key={stream.step} stream={stream} rate={rateOf(stream, reading, before.current)} />
      ))}
    </div>
  );
}

function StreamCard({ stream, rate }: { stream: Stream; rate: number | null }) {
  const { step, given, newestAt, readers, hasMoreReaders } = stream;
  return (
    <section class="stream" aria-label={`Parts of ${step}`}>
      <h2>
        <StepLink id={step} />
      </h2>
      <p class="run-facts">
        <span>
          <strong class="num">{countText(given)}</strong> {given === 1 ? "part" : "parts"} given
        </span>
        {rate !== null && (
          <span>
            <span class="num">{countText(Math.round(rate))}</span> a second
          </span>
        )}
        <span>
          newest <Time at={newestAt} />
        </span>
      </p>
      {readers.length === 0 && <p class="dim">No step reads them.</p>}
      <ul class="plain stream-readers">
        {readers.map((reader) => (
          <li key={reader.step}>
            <StepLink id={reader.step} />
            <meter
              min={0}
              max={given}
              value={reader.read ?? 0}
              aria-label={`${reader.step} has read ${countText(reader.read ?? 0)} of ${plural(given, "part")}`}
            />
            <span>
              {reader.read === null ? (
                <span class="dim">has not reported a part as read</span>
              ) : reader.behind === 0 ? (
                "has read all"
              ) : (
                <>
                  is <strong class="num">{plural(reader.behind ?? 0, "part")}</strong> behind <StepLink id={step} />
                  {reader.oldest !== null && (
                    <span class="dim">
                      , oldest <Time at={reader.oldest.at} />
                    </span>
                  )}
                  {!reader.isWhole && <span class="dim"> or fewer: it reads in a random order</span>}
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
      {hasMoreReaders && <p class="dim">More steps follow. The first of them are shown.</p>}
    </section>
  );
}

function StepLink({ id }: { id: string }) {
  const isChosen = search.value.get("step") === id;
  return (
    <button type="button" class="link" aria-pressed={isChosen} onClick={() => setQuery({ step: isChosen ? null : id })}>
      {id}
    </button>
  );
}

function rateOf({ step, given }: Stream, now: Reading, before: Reading | undefined): number | null {
  const earlier = before?.streams.find((stream) => stream.step === step);
  if (before === undefined || earlier === undefined || now.at <= before.at || given <= earlier.given) return null;
  return ((given - earlier.given) * 1_000) / (now.at - before.at);
}

async function readAll(runId: string, gone: AbortSignal): Promise<Reading> {
  const streams: Stream[] = [];
  const at = performance.now();
  let after: string | null | undefined;
  for (let page = 0; page < pagesMax && after !== null; page++) {
    const read: Streams = await call(`/runs/${encodeURIComponent(runId)}/streams${query({ after })}`, { signal: gone });
    streams.push(...read.items);
    after = read.next;
  }
  return { streams, at };
}
