import { execFileSync, spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { runCommand, shellQuote, stepsCommand } from "./command.ts";

const sh = (command: string): string => execFileSync("sh", ["-c", command], { encoding: "utf8" });
const step = (label: string, run: string, env: { name: string; value: string }[] = []) => ({ label, run, env });

describe("building a job's command", () => {
  it("quotes a text so that the shell reads it unchanged", () => {
    expect(shellQuote("it's a test")).toBe("'it'\\''s a test'");
    const odd = `a 'b' "c" $HOME \`d\` \\ \n e`;
    expect(sh(`printf %s ${shellQuote(odd)}`)).toBe(odd);
  });

  it("keeps a plain command, without surrounding white space", () => {
    expect(runCommand([], "  npm test\n")).toBe("npm test");
  });

  it("exports the environment before the command", () => {
    const command = runCommand([{ name: "G", value: "it's" }], "echo $G");
    expect(command).toBe("export G='it'\\''s' && echo $G");
    expect(sh(command)).toBe("it's\n");
  });

  it("joins plain steps with && and names each", () => {
    expect(stepsCommand([], [step("one", "echo one"), step("two", "echo two")])).toBe(
      "echo '=== one ===' && echo one && echo '=== two ===' && echo two",
    );
  });

  it("[G64] keeps a quote in a step's name as a quote", () => {
    const command = stepsCommand([], [step("it's'; echo injected; '", "echo ran")]);
    expect(sh(command)).toBe("=== it's'; echo injected; ' ===\nran\n");
  });

  it("[G64] groups the lines of a step, so that after a failed step no line of the next step runs", () => {
    const command = stepsCommand([], [step("fails", "false"), step("two", "echo two\necho three")]);
    const result = spawnSync("sh", ["-c", command], { encoding: "utf8" });
    expect(result.stdout).toBe("=== fails ===\n");
    expect(result.status).toBe(1);
  });

  it("runs the step after a step whose text ends in a comment", () => {
    expect(sh(stepsCommand([], [step("a", "echo a # the first"), step("b", "echo b")]))).toBe("=== a ===\na\n=== b ===\nb\n");
  });

  it("does not let `||` in one step hide the failure of an earlier step", () => {
    const command = stepsCommand([], [step("a", "false"), step("b", "echo b || echo rescued")]);
    expect(spawnSync("sh", ["-c", command], { encoding: "utf8" }).stdout).toBe("=== a ===\n");
  });

  it("keeps a here-document whole", () => {
    expect(sh(stepsCommand([], [step("a", "cat <<EOF\nhello\nEOF"), step("b", "echo b")]))).toBe("=== a ===\nhello\n=== b ===\nb\n");
  });

  it("sets the environment of a step only for this step", () => {
    const steps = [step("a", "echo $X", [{ name: "X", value: "1" }]), step("b", `echo "[$X]"`)];
    expect(sh(stepsCommand([], steps))).toBe("=== a ===\n1\n=== b ===\n[]\n");
  });

  it("fails when a step with its own environment fails", () => {
    const command = stepsCommand([], [step("a", "exit 3", [{ name: "X", value: "1" }]), step("b", "echo b")]);
    expect(spawnSync("sh", ["-c", command]).status).toBe(3);
  });
});
