// `longshore doctor`: checks the environment of a server before it starts.

import { get } from "node:http";
import { createServer } from "node:net";
import { Command } from "commander";
import type { Finding } from "../server/doctor.ts";
import { CommandFailure, exitFailed } from "./failure.ts";
import { withData, withExamples, withJson, withPort } from "./options.ts";
import { printJson } from "./print-json.ts";
import { storeOf, withStoreToLookAt } from "./store-option.ts";
import { painter, table } from "./terminal.ts";

interface DoctorFlags {
  data: string;
  store?: string;
  port: number;
  host: string;
  deep?: boolean;
  json?: boolean;
}

/** The time limit for a response; a Longshore server is faster. */
const answerMsMax = 2_000;

const marks = { ok: { style: "green", sign: "✓" }, warn: { style: "yellow", sign: "!" }, bad: { style: "red", sign: "✗" } } as const;

export function doctorCommand(): Command {
  const command = new Command("doctor").description("examine this machine: Node, SQLite or PostgreSQL, the disk, the clock, the port");
  withStoreToLookAt(withJson(withData(withPort(command))))
    .option("--host <address>", "its address", "127.0.0.1")
    .option("--deep", "also check every page of a data file above 16 MiB (reads the whole file)")
    .action(doctor);
  return withExamples(command, [
    ["longshore doctor", "also while a server is running"],
    ["longshore doctor --deep", "also find damaged pages in a large data file"],
    ["longshore doctor --data /var/lib/longshore --json", "for a health check; exit code 1 when something is bad"],
    ["longshore doctor --store postgres://longshore@db/longshore", "for data in PostgreSQL"],
  ]);
}

async function doctor(flags: DoctorFlags, command: Command): Promise<void> {
  const findings = [...(await examineStore(flags, storeOf(command))), await examinePort(flags)];
  const bad = findings.some((finding) => finding.state === "bad");
  if (flags.json) printJson({ ok: !bad, findings });
  else process.stdout.write(`${asText(findings).join("\n")}\n`);
  if (bad) throw new CommandFailure("", exitFailed);
}

async function examineStore({ data, deep }: DoctorFlags, store: string | undefined): Promise<Finding[]> {
  if (store === undefined) return (await import("../server/doctor.ts")).diagnose(data, { deep });
  return (await import("../server/doctor-postgres.ts")).diagnosePostgres(store);
}

function asText(findings: readonly Finding[]): string[] {
  const paint = painter(process.stdout);
  const rows = findings.map(({ about, state, seen }) => [paint(marks[state].style, marks[state].sign), about, seen]);
  const [, ...lines] = table(["", "", ""], rows, paint);
  return lines.flatMap((line, at) => {
    const advice = findings[at]?.advice;
    return advice === undefined ? [line] : [line, `   ${paint("bold", advice)}`];
  });
}

async function examinePort({ port, host }: DoctorFlags): Promise<Finding> {
  const about = "Port";
  const code = await tryPort(port, host);
  if (code === undefined) return { about, state: "ok", seen: `${port} on ${host} is free` };
  if (code !== "EADDRINUSE")
    return {
      about,
      state: "bad",
      seen: `${host}:${port} cannot be listened on (${code})`,
      advice: "Choose others with --host and --port.",
    };
  if (await isLongshore(port, host)) return { about, state: "ok", seen: `a Longshore server answers on ${host}:${port}` };
  return {
    about,
    state: "bad",
    seen: `${port} on ${host} is taken by another program`,
    advice: "Stop that program, or choose another port with --port.",
  };
}

/** The error code when the port cannot be opened; undefined when it is free. */
function tryPort(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });
}

/** Every request below our own prefix, with or without a token, gets a response with one of our error codes. */
function isLongshore(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host, port, path: "/api/longshore/v1/doctor", agent: false, timeout: answerMsMax }, (response) => {
      response.setEncoding("utf8").once("data", (text: string) => {
        resolve(text.includes("LONGSHORE_"));
        request.destroy();
      });
      response.once("end", () => resolve(false));
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}
