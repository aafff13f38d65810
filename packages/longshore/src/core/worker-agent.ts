// What a worker says about its process, in the header `user-agent`. Our workers name their host, process and slots. The headers of other
// clients often show only their language.

import { hostname } from "node:os";
import { packageVersion } from "./version.ts";

export interface WorkerAgent {
  readonly language: string | null;
  readonly version: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly slots: number | null;
}

/** A longer header is cut: its reader looks only at its beginning. */
export const agentCharsMax = 256;

/** The header of a worker of this process. */
export function agentText(slots: number): string {
  // A host name with other characters would end the comment of the header.
  const host = hostname().replace(/[^\w.-]/g, "_");
  return `longshore/${packageVersion()} (node ${process.versions.node}; host ${host}; pid ${process.pid}; slots ${slots})`;
}

/** The languages of clients, by a word of the headers that they send. */
const languages: readonly (readonly [sign: RegExp, language: string])[] = [
  [/longshore|undici|node|axios|got/i, "JavaScript"],
  [/python|httpx|aiohttp/i, "Python"],
  [/okhttp|java|apache-httpclient/i, "Java"],
  [/^go-|golang/i, "Go"],
  [/reqwest|hyper|rust/i, "Rust"],
  [/\.net|csharp/i, "C#"],
  [/ruby|faraday/i, "Ruby"],
];

/** What a worker of ours says about itself in the comment of its header. */
const fields = { host: /[(; ]host ([\w.-]+)/, pid: /[(; ]pid ([\w.-]+)/, slots: /[(; ]slots ([\w.-]+)/ };

/** The id of one of our workers has host and process, unless its program has chosen another one. */
const idShape = /^(.+)-(\d{1,10})-[0-9a-f]{8}$/;

export function readAgent(agent: string | null, workerId: string): WorkerAgent {
  const text = agent ?? "";
  const inId = idShape.exec(workerId);
  const field = (name: keyof typeof fields) => fields[name].exec(text)?.[1] ?? null;
  const pid = field("pid") ?? inId?.[2] ?? null;
  return {
    language: languages.find(([sign]) => sign.test(text))?.[1] ?? (inId === null ? null : "JavaScript"),
    version: /^[\w.-]+\/([\w.+-]+)/.exec(text)?.[1] ?? null,
    host: field("host") ?? inId?.[1] ?? null,
    pid: pid === null ? null : Number(pid),
    slots: numberOf(field("slots")),
  };
}

function numberOf(text: string | null): number | null {
  const number = Number(text);
  return text === null || !Number.isSafeInteger(number) ? null : number;
}
