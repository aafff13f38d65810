// The language of the differential test: chapters of literal requests, played one after the other on one server.
// `{{name}}` in a path or body stands for a value that an earlier answer of the same chapter gave.
import { type Answer, exchange, type Request } from "../exchange.ts";

export interface Step {
  /** Unique within its chapter. */
  name: string;
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** Values to keep from the answer, as name to dotted path into the JSON; an empty path keeps the whole text. */
  keep?: Record<string, string>;
  /** The reference works some changes in a moment after its answer: ask again until the body matches. */
  until?: RegExp;
}

export interface Chapter {
  /** Also the name of its fixture file. */
  name: string;
  steps: readonly Step[];
}

export interface Played {
  step: Step;
  request: Request;
  answer: Answer;
  /** What the step waits for has come, or it waits for nothing. */
  met: boolean;
}

/** A reference may look at a waiting run each 30 s at the latest; a change that has not shown by then is not coming. */
const SETTLE_MS_MAX = 40_000;
const SETTLE_EVERY_MS = 50;

export async function play(url: string, chapter: Chapter): Promise<Played[]> {
  const kept: Record<string, string> = {};
  const played: Played[] = [];
  for (const step of chapter.steps) {
    const request = fillIn(step, kept);
    const answer = await settled(url, request, step.until);
    for (const [name, path] of Object.entries(step.keep ?? {})) kept[name] = String(valueAt(answer.body, path));
    played.push({ step, request, answer, met: step.until?.test(answer.body) ?? true });
  }
  return played;
}

function fillIn(step: Step, kept: Record<string, string>): Request {
  const fill = (text: string, write = (value: string): string => value): string =>
    text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => write(kept[name] ?? whole));
  const body = step.body === undefined ? {} : { body: fill(step.body) };
  // What was kept may be an error text instead of an id.
  return { method: step.method, path: fill(step.path, encodeURIComponent), headers: step.headers ?? {}, ...body };
}

async function settled(url: string, request: Request, pattern: RegExp | undefined): Promise<Answer> {
  const giveUpAt = Date.now() + SETTLE_MS_MAX;
  for (;;) {
    const answer = await exchange(url, request);
    if (pattern === undefined || pattern.test(answer.body) || Date.now() > giveUpAt) return answer;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_EVERY_MS));
  }
}

/** A value that is not there is kept as `undefined`, so that later steps show what its absence leads to. */
function valueAt(body: string, path: string): unknown {
  if (path === "") return body;
  try {
    return path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], JSON.parse(body));
  } catch {
    return undefined;
  }
}
