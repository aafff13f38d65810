// The log of a run or of one step. Lines have one height, so any number of them can be shown; a search visits the whole log on the server, not only
// what is drawn here.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { bytesText, countText, timeText } from "../core/format.ts";
import { exported } from "../core/place.ts";
import { Button, Copy } from "../ui/parts.tsx";
import { useRowsInView } from "../ui/rows-in-view.ts";
import { say } from "../ui/toast.tsx";
import { parseAnsi, type Span } from "./ansi.ts";
import { LogView, wholeLog } from "./log-view.ts";

const lineHeight = 20;
const overscan = 10;
/** The number of characters of a line that are drawn. */
const lineCharsMax = 4_000;
/** A search begins this long after the last key. */
const pauseMs = 250;
/** Earlier lines are read when the first of them comes this near. */
const nearPx = 200;

export function Logs({ runId, step, attempt }: { runId: string; step: string | null; attempt: number | null }) {
  const typed = useSignal("");
  const text = useSignal("");
  const errorsOnly = useSignal(false);
  const withTimes = useSignal(true);
  const follows = useSignal(true);
  const box = useRef<HTMLDivElement>(null);
  const wanted = text.value.trim();
  const view = useMemo(
    () => new LogView(runId, { step, attempt, errorsOnly: errorsOnly.value, text: wanted }),
    [runId, step, attempt, errorsOnly.value, wanted],
  );
  useEffect(() => {
    view.start();
    return () => view.stop();
  }, [view]);
  useEffect(() => {
    const timer = setTimeout(() => {
      text.value = typed.value;
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [typed.value]);
  const shown = view.lines.value;
  const { top, from, to } = useRowsInView(box, shown.length, lineHeight, overscan);
  useEffect(() => {
    if (follows.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [shown, follows.value]);
  /** Earlier lines come in above; what the user reads stays where it is. */
  const readEarlier = async () => {
    const element = box.current;
    const before = view.lines.value.length;
    follows.value = false;
    await view.more();
    const added = view.lines.value.length - before;
    if (element !== null) requestAnimationFrame(() => element.scrollBy({ top: added * lineHeight, behavior: "instant" }));
  };
  return (
    <div class="logs">
      <div class="logs-head">
        <input
          type="search"
          placeholder="Search the whole log"
          aria-label="Search the log"
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
          }}
        />
        <Toggle label="Errors only" value={errorsOnly} />
        <Toggle label="Times" value={withTimes} />
        <Toggle label="Follow" value={follows} />
        <Copy text={shown.map((line) => line.text).join("\n")} label="Copy all lines" />
        {exported === null && <Button kind="icon" icon="save" label="Download the whole log" onClick={() => void download(runId, step)} />}
        <span class="dim" role="status">
          {countText(shown.length)} {shown.length === 1 ? "line" : "lines"}
          {view.isSearch ? " found" : ""}
          {view.isSearch && exported === null ? `, looked at ${bytesText(view.looked.value)}` : ""}
          {view.earlier.value !== null && !view.isBusy.value ? ", there are earlier ones" : ""}
          {view.state.value === "following" ? ", live" : ""}
        </span>
        {view.isBusy.value && view.isSearch && <Button label="Stop" onClick={() => view.pause()} />}
        {view.earlier.value !== null && !view.isBusy.value && (
          <Button label={view.isSearch ? "Search on" : "Show earlier lines"} onClick={() => void readEarlier()} />
        )}
      </div>
      {view.problem.value !== "" && <p class="problem logs-none">{view.problem.value}</p>}
      {shown.length === 0 && <p class="dim logs-none">{noneText(view)}</p>}
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
          if (scrollTop < nearPx && !follows.value && !view.isSearch && view.earlier.value !== null) void readEarlier();
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

function noneText({ state, isBusy, isSearch }: LogView): string {
  if (state.value === "reading" || isBusy.value) return "Reading the log…";
  if (isSearch) return "No line matches.";
  return state.value === "ended" ? "Nothing was logged." : "Nothing has been logged yet.";
}

async function download(runId: string, step: string | null): Promise<void> {
  try {
    const texts = await wholeLog(runId, step, (chars) => say(`Reading the log: ${bytesText(chars)}`));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(texts, { type: "text/plain" }));
    link.download = `${step === null ? "" : `${step.replace(/[^\w-]+/g, "-")}-`}${runId}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    say(`The log could not be read: ${(error as Error).message}`);
  }
}
