// Some peers listen on every address and have no setting to change this. Such a peer and its tests run in a separate network namespace.
// Its only interface is loopback, so no program outside can reach the peer.
import { type SpawnOptions, spawn } from "node:child_process";
import { networkInterfaces } from "node:os";
import { PeerUnavailable } from "./tools.ts";

export interface PrivateRun extends SpawnOptions {
  /** Receives the standard output of the command. Only called when `stdio` makes standard output a pipe. */
  onOutput?: (text: string) => void;
}

/**
 * Runs a command in a private network and returns its exit code. The command also gets its own process namespace and mount namespace. The
 * first ends all processes that the command started; in the second, a test can mount a small disk and fill it.
 */
export function runInPrivateNetwork(command: readonly string[], { onOutput, ...options }: PrivateRun = {}): Promise<number> {
  // No `exec`: the shell must stay the first process of the namespace, because this process reaps the orphans of all others.
  const script = 'ip link set lo up || exit; "$@"; exit $?';
  const args = ["-rnmp", "--fork", "--kill-child", "--", "sh", "-c", script, "sh", ...command];
  const child = spawn("unshare", args, { stdio: "inherit", ...options });
  if (onOutput !== undefined) child.stdout?.setEncoding("utf8").on("data", onOutput);
  // The command is in the same process group, so it gets the signal of Ctrl-C, too. This process only waits until the command ends.
  const ignore = (): void => {};
  // `unshare` ignores SIGTERM while it waits. SIGKILL ends it and, because of `--kill-child`, all processes in the namespace.
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

/** Throws unless loopback is the only interface: only then is it harmless to listen on every address. */
export function assertPrivateNetwork(peer: string, interfaces: readonly string[] = Object.keys(networkInterfaces())): void {
  const others = interfaces.filter((name) => name !== "lo");
  if (others.length === 0) return;
  throw new PeerUnavailable(
    `${peer} listens on every address and this machine has the interfaces ${others.join(", ")}.\n  run it by: npm run conformance (it enters a private network first)`,
  );
}
