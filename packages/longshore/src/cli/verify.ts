// `longshore verify`: checks a data file or a live server. Everything that was acknowledged must be stored, and nothing may be stuck.

import { Command } from "commander";
import { type Duration, durationMs } from "../core/duration.ts";
import { counted } from "../core/text.ts";
import { describeStore } from "../server/external-store.ts";
import type { Finding } from "../verify/finding.ts";
import type { HistorySource, Verification } from "../verify/verify.ts";
import { CommandFailure, exitFailed, warn } from "./failure.ts";
import { type ConnectionOptions, parseDuration, typedPassword, withConnection, withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { recordedAddresses } from "./protocols.ts";
import { storeOf } from "./store-option.ts";
import { oneLine, type Paint, painter } from "./terminal.ts";

interface VerifyFlags extends ConnectionOptions {
  data?: string;
  store?: string;
  retention?: Duration;
  json?: boolean;
}

/** In a terminal, progress is shown after this many runs. */
const progressEvery = 1_000;

const notes = `A recording is what \`longshore work --record FILE\` and \`longshore run --record FILE\` write. With recordings, every completion and every
start that the server acknowledged must be there. Without one, the rows are checked among themselves.
--data reads the file without changing it. While a server uses the folder, check that server with --on.
Exit codes: 0 everything holds; 1 something does not, and the rows are printed; 2 it could not be checked.`;

export function verifyCommand(): Command {
  const command = new Command("verify")
    .description("check that a data folder or a running server has everything that was acknowledged")
    .argument("[recording...]", "files written by --record");
  withJson(withConnection(command))
    .option("--data <folder>", "the data folder to check, instead of a running server")
    .option("--store <url>", "the address of data in PostgreSQL to check; a server may run meanwhile (env: LONGSHORE_STORE)")
    .option(
      "--retention <duration>",
      "how long ended runs are kept; older ones may be missing (default: the retention of the server)",
      parseDuration,
    )
    .action(verify);
  return withExamples(
    command,
    [
      ["longshore verify --data .longshore", "the data of a server that is stopped"],
      ["longshore verify --store postgres://longshore@db/longshore", "data in PostgreSQL, also while a server runs"],
      ["longshore verify --on http://127.0.0.1:4500", "a running server"],
      [
        "longshore verify worker.jsonl client.jsonl --data .longshore",
        "also against the acknowledgements that a worker and a client recorded",
      ],
    ],
    notes,
  );
}

async function verify(recordings: string[], flags: VerifyFlags, command: Command): Promise<void> {
  refuseSeveral(flags, command);
  const { readRecording } = await import("../verify/read-recording.ts");
  const recorded = recordings.flatMap(readRecording).sort((a, b) => a.at - b.at);
  const keptMs = flags.retention === undefined ? undefined : durationMs(flags.retention, "retention");
  const { source, close } = await sourceOf({ ...flags, store: storeOf(command, ["data", "on"]) });
  try {
    const { verify: check } = await import("../verify/verify.ts");
    const verification = await check(source, {
      recorded,
      addresses: recordedAddresses,
      now: Date.now(),
      keptMs,
      progress: progressOn(process.stderr),
    });
    if (flags.json) printJson(verification);
    else process.stdout.write(`${asText(verification, painter(process.stdout)).join("\n")}\n`);
    if (verification.total > 0) throw new CommandFailure("", exitFailed);
  } finally {
    await close();
  }
}

function refuseSeveral({ data, store, json = false }: VerifyFlags, command: Command): void {
  const given = [
    ...(data === undefined ? [] : ["--data"]),
    ...(store === undefined ? [] : ["--store"]),
    ...(command.getOptionValueSource("on") === "cli" ? ["--on"] : []),
  ];
  if (given.length > 1) throw new CommandFailure(`${given.join(" and ")} exclude each other: name one place where the data are.`);
  if (store !== undefined && describeStore(store).hasPassword)
    warn(`${typedPassword("--store")} Give it in PGPASSWORD, or the address in LONGSHORE_STORE, instead.`, json);
}

async function sourceOf(flags: VerifyFlags): Promise<{ readonly source: HistorySource; close(): void | Promise<void> }> {
  if (flags.data !== undefined) {
    const { openDataFolder } = await import("../server/verify-data.ts");
    return openDataFolder(flags.data);
  }
  if (flags.store !== undefined) {
    const { openStoredData } = await import("../server/verify-postgres.ts");
    return openStoredData(flags.store);
  }
  const { connect } = await import("./client.ts");
  const { liveSource } = await import("./verify-live.ts");
  return { source: liveSource(connect(flags)), close: () => {} };
}

function progressOn(output: NodeJS.WriteStream): (checked: { readonly runs: number; readonly tasks: number }) => void {
  let reported = 0;
  return ({ runs, tasks }) => {
    if (!output.isTTY || runs < reported + progressEvery) return;
    reported = runs;
    output.write(`\r${counted(runs, "run")}, ${counted(tasks, "task")} checked`);
  };
}

function asText({ runs, tasks, attempts, lines, total, findings }: Verification, paint: Paint): string[] {
  const checked = `Checked ${counted(runs, "run")}, ${counted(tasks, "task")} and ${counted(attempts, "attempt")}.`;
  const recorded = lines.judged + lines.tooOld + lines.unknown;
  const reported = `Compared ${counted(lines.judged, "recorded answer")}; ${lines.tooOld} too old to judge, ${lines.unknown} of another server.`;
  const verdict = total === 0 ? paint("green", "Everything holds.") : paint("red", `${counted(total, "finding")}:`);
  const hidden = total > findings.length ? [`and ${total - findings.length} more`] : [];
  return [checked, ...(recorded > 0 ? [reported] : []), verdict, ...findings.flatMap((each) => linesOf(each, paint)), ...hidden];
}

function linesOf({ rule, subject, message, evidence }: Finding, paint: Paint): string[] {
  return [`${paint("bold", rule)} ${oneLine(subject)}: ${oneLine(message)}`, ...evidence.map((row) => `    ${oneLine(row)}`)];
}
