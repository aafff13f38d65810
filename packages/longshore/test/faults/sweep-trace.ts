// Reads what strace wrote about a process: every change of its data folder and every line of its ledger, in order.

export type Op =
  | { kind: "create"; path: string; empties: boolean }
  | { kind: "write"; path: string; data: Buffer; at: number | null }
  | { kind: "truncate"; path: string; size: number }
  | { kind: "sync"; path: string }
  | { kind: "rename"; path: string; to: string }
  | { kind: "remove"; path: string }
  | { kind: "folder"; path: string };

const CALLS = ["openat", "pwrite64", "write", "ftruncate", "fsync", "fdatasync", "rename", "unlink", "mkdir"];

/** Far above a page, a blob and a line of the ledger; longer texts would be cut off. */
const BYTES_MAX = 200_000;

/** The words before the command that is to be recorded. */
export function straceOf(file: string): string[] {
  const other = ["writev", "pwritev", "renameat", "renameat2", "unlinkat", "mkdirat"];
  return ["strace", "-f", "-qq", "-y", "-xx", "-s", String(BYTES_MAX), "-e", `trace=${[...CALLS, ...other].join()}`, "-o", file];
}

/** Changes of files for which `wanted` holds. Throws for a call that it does not know and that changes one of them. */
export function readOps(text: string, wanted: (path: string) => boolean): Op[] {
  const unfinished = new Map<string, string>();
  const ops: Op[] = [];
  for (const line of text.split("\n")) {
    const [, pid = "", said = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const begun = /^(.*) <unfinished \.\.\.>$/.exec(said)?.[1];
    if (begun !== undefined) {
      unfinished.set(pid, begun);
      continue;
    }
    const rest = /^<\.\.\. \w+ resumed>(.*)$/.exec(said)?.[1];
    const op = opOf(rest === undefined ? said : (unfinished.get(pid) ?? "") + rest);
    if (op !== null && (wanted(op.path) || (op.kind === "rename" && wanted(op.to)))) ops.push(op);
  }
  return ops;
}

function opOf(call: string): Op | null {
  const name = /^(\w+)\(/.exec(call)?.[1];
  // A failed call has changed nothing.
  if (name === undefined || !/\) += \d+(<[^>]*>)?$/.test(call)) return null;
  const texts = [...call.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map((match) => bytesOf(match[1] ?? ""));
  const path = bytesOf(/^\w+\(\d+<((?:\\x[0-9a-f]{2})*)>/.exec(call)?.[1] ?? "").toString();
  const named = texts[0]?.toString() ?? "";
  const numbers = /, (\d+)(?:, (\d+))?\) += \d+$/.exec(call);
  if (name === "openat") return call.includes("O_CREAT") ? { kind: "create", path: named, empties: call.includes("O_TRUNC") } : null;
  if (name === "pwrite64") return { kind: "write", path, data: texts[0] ?? Buffer.alloc(0), at: Number(numbers?.[2]) };
  if (name === "write") return { kind: "write", path, data: texts[0] ?? Buffer.alloc(0), at: null };
  if (name === "ftruncate") return { kind: "truncate", path, size: Number(numbers?.[1]) };
  if (name === "fsync" || name === "fdatasync") return { kind: "sync", path };
  if (name === "rename") return { kind: "rename", path: named, to: texts[1]?.toString() ?? "" };
  if (name === "unlink") return { kind: "remove", path: named };
  if (name === "mkdir") return { kind: "folder", path: named };
  throw new Error(`The recording has a ${name}, which it does not know: ${call.slice(0, 200)}`);
}

function bytesOf(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll("\\x", ""), "hex");
}
