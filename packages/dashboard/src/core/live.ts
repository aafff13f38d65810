// Changes of runs and tasks, as they happen. One tab of this browser, the one with the lock, reads the stream of the server and sends the
// changes to the other tabs. A tab that is hidden for some time releases the lock and reads nothing. Without locks (plain HTTP to another
// machine) each visible tab reads its own stream.

import { signal } from "@preact/signals";
import { request } from "./api.ts";
import { readEvents } from "./event-stream.ts";
import { exported } from "./place.ts";
import type { RunState } from "./shapes.ts";

export interface Change {
  readonly kind: "run" | "task" | "lagged";
  readonly id: string;
  /** Of a task: its run. */
  readonly runId?: string | null;
  readonly workflow?: string | null;
  readonly state?: RunState | string;
  readonly step?: string;
  readonly left?: number;
  readonly failed?: number;
  readonly endedAt?: number | null;
  readonly error?: string | null;
}

export type LiveState = "connecting" | "live" | "lost" | "resting";
export const liveState = signal<LiveState>("connecting");
/** Set when the stream was lost at this time. */
export const lostAt = signal<number | null>(null);

const listeners = new Set<(change: Change) => void>();
const channel = typeof BroadcastChannel === "undefined" || exported !== null ? null : new BroadcastChannel("longshore.changes");

/** The longest wait between two attempts to connect. */
const backoffMaxMs = 1_000;
const restAfterMs = 30_000;

export function onChange(listener: (change: Change) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

type Message =
  | { readonly type: "change"; readonly change: Change; readonly id: string | undefined }
  | { readonly type: "state"; readonly state: LiveState }
  | { readonly type: "who" };

let lastId: string | undefined;
let leading: AbortController | null = null;
let waiting: AbortController | null = null;

export function startLive(): void {
  if (exported !== null) {
    liveState.value = "live";
    return;
  }
  channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    if (data.type === "change") take(data.change, data.id);
    else if (data.type === "state" && leading === null) setState(data.state);
    else if (data.type === "who" && leading !== null) channel.postMessage({ type: "state", state: liveState.value } satisfies Message);
  });
  channel?.postMessage({ type: "who" } satisfies Message);
  let rest: ReturnType<typeof setTimeout> | undefined;
  const seen = () => {
    clearTimeout(rest);
    if (document.hidden) rest = setTimeout(stop, restAfterMs);
    else begin();
  };
  document.addEventListener("visibilitychange", seen);
  seen();
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
    try {
      await read(controller.signal, () => {
        delay = 100;
      });
    } catch {
      // The state shows that the stream is lost, and the next attempt follows.
    }
    if (controller.signal.aborted) break;
    announce("lost");
    await new Promise((resolve) => setTimeout(resolve, delay));
    delay = Math.min(delay * 2, backoffMaxMs);
  }
  leading = null;
}

async function read(gone: AbortSignal, connected: () => void): Promise<void> {
  const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
  const response = await request("/events", { signal: gone, headers });
  if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
  const resumed = lastId !== undefined;
  for await (const { event, data, id } of readEvents(response.body)) {
    if (event === "ready") {
      connected();
      lastId = id;
      announce("live");
      // The first stream of a page may begin after its first reads.
      if (!resumed) pass({ kind: "lagged", id: "" }, id);
    } else if (event === "lagged") pass({ kind: "lagged", id: "" }, undefined);
    else if (event === "run" || event === "task") pass({ ...(JSON.parse(data) as Change), kind: event }, id);
  }
}

function pass(change: Change, id: string | undefined): void {
  channel?.postMessage({ type: "change", change, id } satisfies Message);
  take(change, id);
}

function take(change: Change, id: string | undefined): void {
  if (id !== undefined) lastId = id;
  for (const listener of listeners) listener(change);
}

function announce(state: LiveState): void {
  setState(state);
  channel?.postMessage({ type: "state", state } satisfies Message);
}

function setState(state: LiveState): void {
  if (state === "lost" && liveState.value !== "lost") lostAt.value = Date.now();
  liveState.value = state;
}
