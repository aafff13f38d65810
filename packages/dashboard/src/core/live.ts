// Changes of runs and tasks, as they happen. One tab reads the stream of the server for all tabs of this browser: the one that has the
// lock. The others get the changes from it. A tab that is hidden for a while gives the lock back and rests. Without locks (plain HTTP to
// another machine) each visible tab reads a stream of its own.
//
// Pages with lists of figures need only one frame a second (a tick); pages of runs need each change. While no tab needs more, and while
// there are more changes than a page can use, the stream has ticks.

import { effect, signal } from "@preact/signals";
import { request } from "./api.ts";
import { readEvents } from "./event-stream.ts";
import { exported } from "./place.ts";

export interface Change {
  /** `lagged`: anything may have changed. */
  readonly kind: "run" | "task" | "tick" | "lagged";
  readonly id: string;
  /** Of a task: its run. */
  readonly runId?: string | null;
  readonly workflow?: string | null;
  readonly state?: string;
  readonly left?: number;
  readonly failed?: number;
  readonly createdAt?: number;
  readonly endedAt?: number | null;
  readonly error?: string | null;
  /** Of a tick: the runs that have changed; null when they are too many. */
  readonly runs?: readonly string[] | null;
}

export type LiveState = "connecting" | "live" | "lost" | "resting";
export const liveState = signal<LiveState>("connecting");
/** When the stream was lost. */
export const lostAt = signal<number | null>(null);

type Need = "ticks" | "changes";
/** What the page in view needs. */
export const need = signal<Need>("ticks");

const listeners = new Set<(change: Change) => void>();
const channel = typeof BroadcastChannel === "undefined" || exported !== null ? null : new BroadcastChannel("longshore.changes");

/** The longest wait between two attempts to connect. */
const backoffMaxMs = 1_000;
const restAfterMs = 30_000;
/** How often a tab repeats what it needs. A tab that is silent for `needKeptMs` counts as closed. */
const needEveryMs = 15_000;
const needKeptMs = 40_000;
/** With more changes in a second, the stream has ticks for a while. */
const changesMax = 1_500;
const calmMs = 30_000;

export function onChange(listener: (change: Change) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether a change may concern a run. */
export function touchesRun({ kind, id, runId, runs }: Change, run: string): boolean {
  return kind === "tick" ? runs === null || (runs?.includes(run) ?? false) : id === run || runId === run;
}

/** Whether a change may concern a list of runs. */
export function touchesRuns({ kind, runs }: Change): boolean {
  return kind === "run" || (kind === "tick" && runs?.length !== 0);
}

export function touchesTasks({ kind }: Change): boolean {
  return kind === "task" || kind === "tick";
}

type Message =
  | { readonly type: "change"; readonly change: Change; readonly id: string | undefined }
  | { readonly type: "state"; readonly state: LiveState }
  | { readonly type: "need"; readonly tab: string; readonly need: Need }
  | { readonly type: "who" };

const tab = Math.random().toString(36);
/** What other tabs need, and when they said so. */
const needs = new Map<string, { readonly need: Need; readonly at: number }>();
let lastId: string | undefined;
let leading: AbortController | null = null;
let waiting: AbortController | null = null;
/** Ends the stream in progress, so that the next one has another kind of frames. */
let change: AbortController | null = null;
let busyUntil = 0;

export function startLive(): void {
  if (exported !== null) {
    liveState.value = "live";
    return;
  }
  channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => receive(data));
  post({ type: "who" });
  let rest: ReturnType<typeof setTimeout> | undefined;
  const seen = () => {
    clearTimeout(rest);
    if (document.hidden) rest = setTimeout(stop, restAfterMs);
    else begin();
  };
  document.addEventListener("visibilitychange", seen);
  seen();
  effect(() => tell(need.value));
  setInterval(() => tell(need.peek()), needEveryMs);
}

function post(message: Message): void {
  channel?.postMessage(message);
}

function receive(data: Message): void {
  if (data.type === "change") take(data.change, data.id);
  else if (data.type === "state" && leading === null) setState(data.state);
  else if (data.type === "need") {
    needs.set(data.tab, { need: data.need, at: Date.now() });
    adjust();
  } else if (data.type === "who" && leading !== null) post({ type: "state", state: liveState.value });
}

function tell(mine: Need): void {
  post({ type: "need", tab, need: document.hidden ? "ticks" : mine });
  adjust();
}

/** The kind of the stream that this browser needs now. */
function wanted(): Need {
  const now = Date.now();
  for (const [name, { at }] of needs) if (now - at > needKeptMs) needs.delete(name);
  const all = [need.peek(), ...[...needs.values()].map((one) => one.need)];
  return all.includes("changes") && now >= busyUntil ? "changes" : "ticks";
}

let kind: Need = "ticks";

function adjust(): void {
  if (change !== null && wanted() !== kind) change.abort();
}

function begin(): void {
  if (waiting !== null) return;
  const controller = new AbortController();
  waiting = controller;
  if (liveState.value === "resting") liveState.value = "connecting";
  const { locks } = navigator as { locks?: LockManager };
  if (locks === undefined) void lead(controller);
  else locks.request("longshore.changes", { signal: controller.signal }, () => lead(controller)).catch(() => {});
}

function stop(): void {
  waiting?.abort();
  waiting = null;
  setState("resting");
}

async function lead(controller: AbortController): Promise<void> {
  leading = controller;
  let delay = 100;
  while (!controller.signal.aborted) {
    kind = wanted();
    change = new AbortController();
    const { signal: other } = change;
    try {
      await read(AbortSignal.any([controller.signal, other]), () => {
        delay = 100;
      });
    } catch {
      // The state already shows that the stream is lost; the next attempt follows.
    }
    if (controller.signal.aborted) break;
    if (other.aborted) continue;
    announce("lost");
    await new Promise((resolve) => setTimeout(resolve, delay));
    delay = Math.min(delay * 2, backoffMaxMs);
  }
  leading = null;
  change = null;
}

async function read(gone: AbortSignal, connected: () => void): Promise<void> {
  // Ticks have no ids, so after a stream of ticks everything is read again.
  const from = kind === "changes" ? lastId : undefined;
  lastId = from;
  const headers: Record<string, string> = from === undefined ? {} : { "last-event-id": from };
  const response = await request(kind === "ticks" ? "/events?tick=1000" : "/events", { signal: gone, headers });
  if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
  for await (const { event, data, id } of readEvents(response.body)) {
    if (event === "ready") {
      connected();
      lastId = id;
      announce("live");
      // The first stream of a page may begin after its first reads.
      if (from === undefined) pass({ kind: "lagged", id: "" }, id);
    } else if (event === "lagged") pass({ kind: "lagged", id: "" }, undefined);
    else if (event === "tick") {
      pass({ kind: "tick", id: "", runs: (JSON.parse(data) as { runs: string[] | null }).runs }, undefined);
      adjust();
    } else if (event === "run" || event === "task") {
      pass({ ...(JSON.parse(data) as Change), kind: event }, id);
      if (isBusy()) adjust();
    }
  }
}

let counted = { from: 0, changes: 0 };

/** True when there are more changes than a page can use. */
function isBusy(): boolean {
  const now = Date.now();
  if (now - counted.from > 1_000) counted = { from: now, changes: 0 };
  counted.changes++;
  if (counted.changes < changesMax) return false;
  busyUntil = now + calmMs;
  return true;
}

function pass(one: Change, id: string | undefined): void {
  post({ type: "change", change: one, id });
  take(one, id);
}

function take(one: Change, id: string | undefined): void {
  if (id !== undefined) lastId = id;
  for (const listener of listeners) listener(one);
}

function announce(state: LiveState): void {
  setState(state);
  post({ type: "state", state });
}

function setState(state: LiveState): void {
  if (state === "lost" && liveState.value !== "lost") lostAt.value = Date.now();
  liveState.value = state;
}
