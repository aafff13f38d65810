// Requests a layout from the web worker. Small graphs are laid out at once, and so are all graphs in an exported file, which has no worker.

import { exported, workerUrl } from "../core/place.ts";
import { type Layout, type LayoutInput, layOut } from "./layout.ts";

/** Up to this size, a layout takes a few milliseconds. */
const smallMax = 120;

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL: (url: string) => string };
}

let worker: Worker | undefined;
let lastId = 0;
const waiting = new Map<number, (layout: Layout) => void>();

export function requestLayout(input: LayoutInput): Promise<Layout> {
  if (input.count <= smallMax || exported !== null) return Promise.resolve(layOut(input));
  worker ??= start();
  const id = ++lastId;
  worker.postMessage({ id, input });
  return new Promise((resolve) => waiting.set(id, resolve));
}

/** Starts the web worker. From then on, a script may be loaded only from its address. */
function start(): Worker {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const only = (url: string) => {
    if (url !== workerUrl) throw new TypeError("No other script may be loaded.");
    return url;
  };
  const policy = trustedTypes?.createPolicy("longshore", { createScriptURL: only });
  const started = new Worker((policy?.createScriptURL(workerUrl) ?? workerUrl) as string, { type: "module" });
  started.addEventListener("message", ({ data }: MessageEvent<{ id: number; layout: Layout }>) => {
    waiting.get(data.id)?.(data.layout);
    waiting.delete(data.id);
  });
  return started;
}
