// The toolchains that the peers (programs of other projects) need. When one is missing, each test that needs it fails, and the error says how
// to install it.
import { spawnSync } from "node:child_process";

export class PeerUnavailable extends Error {
  readonly code = "LONGSHORE_PEER_UNAVAILABLE";
}

interface Tool {
  /** A command that succeeds only when the tool can really be used. */
  probe: readonly [string, ...string[]];
  purpose: string;
  get: string;
}

const tools = {
  cargo: {
    probe: ["cargo", "--version"],
    purpose: "builds the Rust peers",
    get: "install Rust 1.85 or newer from https://rustup.rs, so that `cargo` is on the PATH",
  },
  go: {
    probe: ["go", "version"],
    purpose: "builds the Go worker",
    get: "install Go 1.21 or newer from https://go.dev/dl, or `apt-get install golang-go`, so that `go` is on the PATH",
  },
  python: {
    probe: ["python3", "-c", "import requests"],
    purpose: "runs the Python workers, which use the requests package",
    get: "`apt-get install python3 python3-requests`, or `python3 -m pip install requests`",
  },
  maven: {
    probe: ["mvn", "--version"],
    purpose: "fetches the Conductor server, Kafka and the stand-in for MongoDB",
    get: "`apt-get install maven`",
  },
  java: {
    probe: ["javac", "--version"],
    purpose: "runs Kafka and the stand-in for MongoDB",
    get: "`apt-get install default-jdk-headless`, or any JDK from 17 on, so that `java` and `javac` are on the PATH",
  },
  venv: {
    probe: ["python3", "-c", "import venv, ensurepip"],
    purpose: "installs Python SDKs apart from the system's packages",
    get: "`apt-get install python3-venv`",
  },
  nats: {
    probe: ["nats-server", "--version"],
    purpose: "carries the tasks of Stepflow's NATS workers",
    get: "`apt-get install nats-server`",
  },
  unshare: {
    probe: ["unshare", "-rnmp", "--fork", "--kill-child", "--", "ip", "link", "set", "lo", "up"],
    purpose: "gives the peers that listen on every address a private network",
    get: "`apt-get install util-linux iproute2`, and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or run as root)",
  },
} satisfies Record<string, Tool>;

export type ToolName = keyof typeof tools;

/** When the tool does not work here, throws a `PeerUnavailable` that says how to install it. */
export function requireTool(name: ToolName): void {
  const { probe, purpose, get } = tools[name] as Tool;
  const [command, ...args] = probe;
  const result = spawnSync(command, args, { encoding: "utf8" });
  if (result.status === 0) return;
  const seen = (result.error?.message ?? result.stderr).trim();
  throw new PeerUnavailable(
    `MISSING TOOL: ${name}, which ${purpose}.\n  tried:  ${probe.join(" ")}\n  saw:    ${seen}\n  to get it: ${get}`,
  );
}
