import { describe, expect, it } from "vitest";
import { LongshoreError, TerminalError } from "../../../core/errors.ts";
import { type Task, task } from "../../../core/task.ts";
import type { QueuedJob } from "../wire/shapes.ts";
import { dispatch } from "./dispatch.ts";

const greet = task("greet", () => null);
const tasks = new Map<string, Task>([["greet", greet]]);
const shell = task("shell", () => null);

function job(command: string, upstream_outputs: QueuedJob["upstream_outputs"] = {}, kind?: unknown): QueuedJob {
  const retry_policy = { max_retries: 0, backoff: "None" } as const;
  return {
    job_id: "j",
    workflow_id: "w",
    command,
    required_labels: [],
    retry_policy,
    attempt: 0,
    upstream_outputs,
    enqueued_at_ms: 1,
    delayed_until_ms: 0,
    ...(kind === undefined ? {} : { kind: kind as "shell" }),
  };
}

function refusedBy(command: string, allowed: Task | undefined = undefined, kind?: unknown): { message: string; code: string } {
  try {
    dispatch(job(command, {}, kind), tasks, allowed);
  } catch (error) {
    expect(error).toBeInstanceOf(TerminalError);
    const cause = (error as TerminalError).cause as LongshoreError;
    expect(cause).toBeInstanceOf(LongshoreError);
    return { message: (error as Error).message, code: cause.code };
  }
  throw new Error("It was not refused.");
}

describe("dispatch", () => {
  it("calls the handler that a JSON command names, with its input", () => {
    expect(dispatch(job('{"handler":"greet","input":{"name":"Ada"}}'), tasks, undefined)).toMatchObject({
      task: greet,
      input: { name: "Ada" },
    });
  });

  it("calls the handler after @, with the JSON that follows or with an empty object", () => {
    expect(dispatch(job('@greet {"name":"Ada"}'), tasks, undefined)).toMatchObject({ task: greet, input: { name: "Ada" } });
    expect(dispatch(job("  @greet\n"), tasks, undefined)).toMatchObject({ task: greet, input: {} });
    expect(dispatch(job("@greet [1,2]"), tasks, undefined).input).toEqual([1, 2]);
  });

  it("passes every other command to the shell when this is allowed", () => {
    for (const command of ["echo hi", "{ echo a; }", '{ "$TOOL" a; }', "echo @greet", ""]) {
      expect(dispatch(job(command), tasks, shell)).toMatchObject({ task: shell, input: { command } });
    }
  });

  it("permanently refuses a command that begins like a handler call but is not valid, also when the shell is on", () => {
    const deep = `{"handler":"greet","input":${"[".repeat(101)}${"]".repeat(101)}}`;
    const commands = [
      '{"no":"handler"}',
      "{}",
      '{"handler":"greet","input":}',
      '{ "handler" : "greet" ',
      "{greet}",
      "@",
      "@ greet",
      "@$(id)",
      deep,
    ];
    for (const command of commands) expect(refusedBy(command, shell).code, command).toBe("LONGSHORE_BAD_INPUT");
  });

  it("calls a handler with an input as deep as JSON may be", () => {
    const input = `${"[".repeat(100)}${"]".repeat(100)}`;
    expect(dispatch(job(`{"handler":"greet","input":${input}}`), tasks, shell).task).toBe(greet);
  });

  it("uses the kind that the server sends, and does not guess it from the text", () => {
    expect(dispatch(job('{"handler":"greet"}', {}, "shell"), tasks, shell).task).toBe(shell);
    expect(dispatch(job('{"handler":"greet"}', {}, "handler"), tasks, shell).task).toBe(greet);
    expect(refusedBy("echo hi", shell, "handler")).toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
    expect(refusedBy("echo hi", undefined, "shell")).toMatchObject({ code: "LONGSHORE_SHELL_OFF" });
    for (const kind of ["python", null, 7]) expect(refusedBy("echo hi", shell, kind).message).toContain('expected "shell" or "handler"');
  });

  it("permanently refuses a shell command when the shell is off, and names the option", () => {
    const { message, code } = refusedBy("echo hi");
    expect(code).toBe("LONGSHORE_SHELL_OFF");
    expect(message).toContain("--shell");
    expect(message).toContain("shell: true");
  });

  it("permanently refuses an unknown handler, also when the shell is on, and names the known handlers", () => {
    const { message, code } = refusedBy("@gret {}", shell);
    expect(code).toBe("LONGSHORE_NO_HANDLER");
    expect(message).toContain('"gret"');
    expect(message).toContain("greet");
  });

  it("refuses an input after @name that is not JSON or nests too deep", () => {
    expect(refusedBy("@greet name=Ada").code).toBe("LONGSHORE_BAD_INPUT");
    expect(refusedBy(`@greet ${"[".repeat(200)}${"]".repeat(200)}`).message).toContain("deeper than");
  });

  it("adds upstream outputs to an object, but not to other values or over an existing field of that name", () => {
    const upstream = { a: { v: "1" } };
    expect(dispatch(job("@greet", upstream), tasks, undefined).input).toEqual({ upstreamOutputs: upstream });
    expect(dispatch(job('@greet {"upstreamOutputs":7}', upstream), tasks, undefined).input).toEqual({ upstreamOutputs: 7 });
    expect(dispatch(job("@greet 5", upstream), tasks, undefined)).toMatchObject({ input: 5, upstream });
  });
});
