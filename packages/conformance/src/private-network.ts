// Some peers listen on every address and have no setting for that. They run, together with the tests that drive them, in a
// network namespace of their own, where the only interface is loopback and no other program can reach them.
import { type SpawnOptions, spawn } from "node:child_process";
import { networkInterfaces } from "node:os";
import { PeerUnavailable } from "./tools.ts";

export interface PrivateRun extends SpawnOptions {
  /** Gets what the command writes to standard output, where `stdio` makes that a pipe. */
  onOutput?: (text: string) => void;
}

/**
 * Runs a command in a private network and answers its exit code. The process namespace comes along so that nothing the command
 * started can outlive it, the mount namespace so that a test may mount a small disk and fill it.
 */
export function runInPrivateNetwork(command: readonly string[], { onOutput, ...options }: PrivateRun = {}): Promise<number> {
  // The shell stays, instead of becoming the command: as the first process of the namespace it reaps what others leave behind.
  const script = 'ip link set lo up || exit; "$@"; exit $?';
  const args = ["-rnmp", "--fork", "--kill-child", "--", "sh", "-c", script, "sh", ...command];
  const child = spawn("unshare", args, { stdio: "inherit", ...options });
  if (onOutput !== undefined) child.stdout?.setEncoding("utf8").on("data", onOutput);
  // Ctrl-C reaches the command by itself, being in the same process group; this process only waits for it to end.
  const ignore = (): void => {};
  // `unshare` ignores a polite signal while it waits; killed, it takes everything inside the namespace with it.
  const end = (): void => void child.kill("SIGKILL");
  process.on("SIGINT", ignore);
  process.on("SIGTERM", end);
  return new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)));
  }).finally(() => {
    process.off("SIGINT", ignore);
    process.off("SIGTERM", end);
  });
}

/** Throws unless loopback is the only interface here, which is what makes listening on every address harmless. */
export function assertPrivateNetwork(peer: string, interfaces: readonly string[] = Object.keys(networkInterfaces())): void {
  const others = interfaces.filter((name) => name !== "lo");
  if (others.length === 0) return;
  throw new PeerUnavailable(
    `${peer} listens on every address and this machine has the interfaces ${others.join(", ")}.\n  run it by: npm run conformance (it enters a private network first)`,
  );
}
