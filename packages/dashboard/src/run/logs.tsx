// The log of a run or of one step: one stream that begins with what is stored. Lines have one height, so any number of them can be shown; a
// filter searches all lines, also those that are not drawn.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { call, query, request } from "../core/api.ts";
import { readEvents } from "../core/event-stream.ts";
import { countText, timeText } from "../core/format.ts";
import { exported } from "../core/place.ts";
import type { LogChunk } from "../core/shapes.ts";
import { Button, Copy } from "../ui/parts.tsx";
import { useRowsInView } from "../ui/rows-in-view.ts";
import { parseAnsi, type Span } from "./ansi.ts";

interface Line {
  readonly text: string;
  readonly step: string;
  readonly attempt: number;
  readonly stream: string;
  readonly at: number;
}

/** Older lines are dropped, so that an endless log does not fill the memory. */
const linesMax = 200_000;
const lineHeight = 20;
const overscan = 10;
/** The number of characters of a line that are drawn. */
const lineCharsMax = 4_000;

export function Logs({ runId, step, attempt }: { runId: string; step: string | null; attempt: number | null }) {
  const { lines, state, dropped } = useLog(runId, step);
  const text = useSignal("");
  const errorsOnly = useSignal(false);
  const withTimes = useSignal(true);
  const follows = useSignal(true);
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => {
    const wanted = text.value.trim().toLowerCase();
    const all = lines.value;
    if (wanted === "" && !errorsOnly.value && attempt === null) return all;
    return all.filter(
      (line) =>
        (wanted === "" || line.text.toLowerCase().includes(wanted)) &&
        (!errorsOnly.value || line.stream === "stderr") &&
        (attempt === null || line.attempt === attempt),
    );
  }, [lines.value, text.value, errorsOnly.value, attempt]);
  const { top, from, to } = useRowsInView(box, shown.length, lineHeight, overscan);
  useEffect(() => {
    if (follows.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [shown, follows.value]);
  return (
    <div class="logs">
      <div class="logs-head">
        <input
          type="search"
          placeholder="Search the log"
          aria-label="Search the log"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <Toggle label="Errors only" value={errorsOnly} />
        <Toggle label="Times" value={withTimes} />
        <Toggle label="Follow" value={follows} />
        <Copy text={shown.map((line) => line.text).join("\n")} label="Copy all lines" />
        <span class="dim">
          {countText(shown.length)} {shown.length === 1 ? "line" : "lines"}
          {shown.length === lines.value.length ? "" : ` of ${countText(lines.value.length)}`}
          {dropped.value > 0 ? `, ${countText(dropped.value)} older ones left out` : ""}
          {state.value === "reading" ? ", live" : ""}
        </span>
      </div>
      {shown.length === 0 && (
        <p class="dim logs-none">
          {lines.value.length > 0 ? "No line matches." : state.value === "ended" ? "Nothing was logged." : "Nothing has been logged yet."}
        </p>
      )}
      <div
        ref={box}
        class="logs-box"
        role="log"
        aria-live="off"
        aria-label="Log"
        tabIndex={0}
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          if (scrollTop < top.value - 2 && scrollTop + clientHeight < scrollHeight - 2 * lineHeight) follows.value = false;
          top.value = scrollTop;
        }}
      >
        <div class="logs-lines" style={{ height: `${shown.length * lineHeight}px` }}>
          {shown.slice(from, to).map((line, index) => (
            <div
              key={from + index}
              class="log-line"
              data-stream={line.stream}
              style={{ transform: `translateY(${(from + index) * lineHeight}px)`, height: `${lineHeight}px` }}
            >
              {withTimes.value && <span class="log-time">{timeText(line.at, { withDate: false, withMs: true })}</span>}
              {step === null && <span class="log-step">{line.step}</span>}
              <span class="log-text">
                {parseAnsi(line.text.slice(0, lineCharsMax)).map((span, at) => (
                  <Part key={at} span={span} />
                ))}
              </span>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

function Part({ span }: { span: Span }) {
  return <span class={span.classes}>{span.text}</span>;
}

function Toggle({ label, value }: { label: string; value: { value: boolean } }) {
  return (
    <Button
      label={label}
      pressed={value.value}
      onClick={() => {
        value.value = !value.value;
      }}
    />
  );
}

function useLog(runId: string, step: string | null) {
  const lines = useSignal<readonly Line[]>([]);
  const state = useSignal<"reading" | "ended">("reading");
  const dropped = useSignal(0);
  useEffect(() => {
    lines.value = [];
    state.value = "reading";
    const controller = new AbortController();
    const reader = new LineReader((all, left) => {
      lines.value = all;
      dropped.value = left;
    });
    void follow(runId, step, reader, controller.signal).then(
      () => {
        if (!controller.signal.aborted) state.value = "ended";
      },
      () => {},
    );
    return () => {
      controller.abort();
      reader.stop();
    };
  }, [runId, step, lines, state, dropped]);
  return { lines, state, dropped };
}

/** Reads until the run has ended. After a lost connection, it continues after the last line that it has. */
async function follow(runId: string, step: string | null, reader: LineReader, gone: AbortSignal): Promise<void> {
  const path = `/runs/${encodeURIComponent(runId)}/logs`;
  if (exported !== null) {
    const { items } = await call<{ items: LogChunk[] }>(path);
    for (const chunk of items) if (step === null || chunk.step === step) reader.add(chunk);
    return;
  }
  let after: string | undefined;
  for (let delay = 100; !gone.aborted; delay = Math.min(delay * 2, 1_000)) {
    try {
      const headers: Record<string, string> = after === undefined ? {} : { "last-event-id": after };
      const response = await request(`${path}/stream${query({ step })}`, { signal: gone, headers });
      if (response.status === 404) return;
      if (!response.ok || response.body === null) throw new Error(String(response.status));
      for await (const { event, data, id } of readEvents(response.body)) {
        if (id !== undefined) after = id;
        if (event === "log") {
          reader.add(JSON.parse(data) as LogChunk);
          delay = 100;
        } else if (event === "end") return;
      }
    } catch {
      // The next round connects again, after the last line.
    }
    if (!gone.aborted) await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

/** Cuts chunks into lines. The page gets them at most ten times a second. */
class LineReader {
  readonly #show: (lines: readonly Line[], dropped: number) => void;
  #lines: Line[] = [];
  #dropped = 0;
  /** The unfinished last line of each step and stream. */
  readonly #open = new Map<string, Line>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(show: (lines: readonly Line[], dropped: number) => void) {
    this.#show = show;
  }

  add({ step, attempt, stream, at, data }: LogChunk): void {
    const key = `${step} ${attempt} ${stream}`;
    const open = this.#open.get(key);
    const parts = ((open?.text ?? "") + data).split("\n");
    const rest = parts.pop() ?? "";
    if (open !== undefined) this.#lines.splice(this.#lines.lastIndexOf(open), 1);
    this.#open.delete(key);
    for (const text of parts) this.#lines.push({ text: text.replace(/\r$/, ""), step, attempt, stream, at });
    if (rest !== "") {
      const line = { text: rest, step, attempt, stream, at };
      this.#open.set(key, line);
      this.#lines.push(line);
    }
    this.#timer ??= setTimeout(() => this.#flush(), 100);
  }

  #flush(): void {
    this.#timer = undefined;
    if (this.#lines.length > linesMax) {
      const extra = this.#lines.length - linesMax;
      this.#dropped += extra;
      this.#lines.splice(0, extra);
    }
    this.#show([...this.#lines], this.#dropped);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
