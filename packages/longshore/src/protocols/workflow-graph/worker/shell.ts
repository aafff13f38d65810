// Runs a job's command with `sh -c`, as a task like any other. README.md, "Shell commands", lists the variables of its environment.
//
// The command runs in a process group of its own. When the task's signal aborts, the group gets SIGTERM, then SIGKILL. When the command has
// ended, the remaining processes of the group get SIGKILL, so a job leaves no processes behind.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Context } from "../../../core/context.ts";
import { ProcessGroups } from "../../../core/process-groups.ts";
import { type Task, task } from "../../../core/task.ts";
import { cutTail } from "../../../core/text.ts";
import type { Outputs, QueuedJob } from "../wire/shapes.ts";
import { OutputLines, readOutputFile } from "./shell-output.ts";

export interface ShellOptions {
  readonly env: { readonly [name: string]: string };
  readonly cwd: string | undefined;
  readonly clock: Clock;
}

/** Time between SIGTERM and SIGKILL; below the runner's grace period for aborted handlers. */
const killAfterMs = 3_000;
/** Time between SIGKILL and the closing of the pipes: a process that left the group may still hold them open. */
const pipesMs = 500;
/** Maximum size of one variable: a quarter of the kernel's limit. Larger values are only in the file of WFG_UPSTREAM. */
const envValueBytesMax = 32 * 1024;
/**
 * Maximum size of all these variables. The kernel's limit for arguments and environment together is far higher, which leaves room for the
 * rest.
 */
const envBytesMax = 512 * 1024;

/** The task for shell commands. Its name is not offered to the server: no handler call reaches it. */
export function shellTask(options: ShellOptions): Task<QueuedJob, Outputs> {
  const groups = new ProcessGroups();
  return task("shell", (job: QueuedJob, context) => runCommand(job, context, options, groups));
}

async function runCommand(job: QueuedJob, context: Context, options: ShellOptions, groups: ProcessGroups): Promise<Outputs> {
  const folder = await mkdtemp(join(tmpdir(), "longshore-job-"));
  try {
    const files = { output: join(folder, "output"), upstream: join(folder, "upstream.json") };
    await Promise.all([writeFile(files.output, ""), writeFile(files.upstream, JSON.stringify(job.upstream_outputs))]);
    context.signal.throwIfAborted();
    const stdout = new OutputLines((text) => context.log(text, "stdout"));
    const stderr = new OutputLines((text) => context.log(text, "stderr"));
    const env = { ...inheritedEnv(), ...options.env, ...upstreamEnv(job), WFG_OUTPUT: files.output, WFG_UPSTREAM: files.upstream };
    const child = spawn("sh", ["-c", job.command], { cwd: options.cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.on("data", (chunk: Buffer) => stdout.write(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.write(chunk));
    const exit = await ended(child, context.signal, options.clock, groups);
    stdout.end();
    stderr.end();
    context.signal.throwIfAborted();
    if (exit !== "exit code 0") throw commandFailed(describeExit(exit, stderr.tail || stdout.tail));
    stdout.checkOutputs();
    return { ...stdout.outputs, ...(await readOutputFile(files.output)) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves when the command has ended and both its outputs are closed: stderr is still read after stdout has closed. */
function ended(child: ChildProcess, signal: AbortSignal, clock: Clock, groups: ProcessGroups): Promise<string> {
  const { pid } = child;
  return new Promise((resolve, reject) => {
    let disarm = () => {};
    const onAbort = () => {
      groups.kill(pid, "SIGTERM");
      disarm = clock.at(clock.now() + killAfterMs, () => {
        groups.kill(pid, "SIGKILL");
        disarm = clock.at(clock.now() + pipesMs, () => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        });
      });
    };
    const finish = () => {
      disarm();
      signal.removeEventListener("abort", onAbort);
      groups.kill(pid, "SIGKILL");
      groups.remove(pid);
    };
    groups.add(pid);
    child.once("error", (error) => {
      finish();
      reject(new Error(`failed to spawn sh: ${error.message}`, { cause: error }));
    });
    child.once("close", (code, signalName) => {
      finish();
      resolve(signalName === null ? `exit code ${code}` : `killed by ${signalName}`);
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** The error has no stack, because a place in this file does not explain why a command failed. */
function commandFailed(message: string): Error {
  const error = new Error(message);
  delete error.stack;
  return error;
}

/** The reason is at the end of stderr, or of stdout for a command that wrote only there. */
function describeExit(exit: string, tail: string): string {
  const text = cutTail(tail, 4_000).trim();
  return text === "" ? exit : `${exit}: ${text}`;
}

/** The environment without this worker's token: a command may write its environment into a log that others read. */
function inheritedEnv(): NodeJS.ProcessEnv {
  const { LONGSHORE_TOKEN: _secret, ...rest } = process.env;
  return rest;
}

function upstreamEnv(job: QueuedJob): { [name: string]: string } {
  const env: { [name: string]: string } = {};
  let bytes = 0;
  for (const [jobId, outputs] of Object.entries(job.upstream_outputs)) {
    for (const [key, value] of Object.entries(outputs)) {
      const name = `WFG_${upperSnake(jobId)}_${upperSnake(key)}`;
      const size = Buffer.byteLength(value) + name.length + 2;
      // An environment variable cannot contain NUL; the file has the value.
      if (size > envValueBytesMax || bytes + size > envBytesMax || value.includes("\0")) continue;
      bytes += size;
      env[name] = value;
    }
  }
  // Set last, so that outputs of other jobs cannot replace them: a job named `workflow` may have the output `id`.
  return { ...env, WFG_WORKFLOW_ID: job.workflow_id, WFG_JOB_ID: job.job_id, WFG_ATTEMPT: String(job.attempt + 1) };
}

function upperSnake(text: string): string {
  return text.toUpperCase().replace(/[^A-Z0-9]/g, "_");
}
