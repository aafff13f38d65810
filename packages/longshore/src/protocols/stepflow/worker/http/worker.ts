// The worker half of Stepflow over HTTP: the runtime connects to this transport, which listens. It supports both dialects of JSON-RPC over
// Streamable HTTP at once. README.md of this protocol is the contract; its part "Our worker" lists what this half decides.

import { isLoopback } from "../../../../core/loopback.ts";
import type { Capabilities, Transport, TransportHost } from "../../../../runner/transport.ts";
import type { Listener } from "./listener.ts";
import { type Settings, type StepflowHttpOptions, settingsOf } from "./options.ts";
import type { WorkerService } from "./service.ts";

/** The transport of `stepflowHttp()`, with the address it listens on. */
export interface StepflowHttpTransport extends Transport {
  /** The transport of `stepflowHttp()`, with the address that it listens on. */
  readonly url: string | undefined;
}

/** `await work({ tasks, on: stepflowHttp({ port: 8080 }) })` */
export function stepflowHttp(options: StepflowHttpOptions = {}): StepflowHttpTransport {
  return new StepflowHttp(settingsOf(options));
}

/** The runtime takes neither log lines nor progress. A deferred task waits in its slot. */
const capabilities: Capabilities = { defer: false, progress: false, streams: false, logs: false, blobs: true, cancel: true };

class StepflowHttp implements StepflowHttpTransport {
  readonly name: string;
  readonly capabilities = capabilities;
  readonly #settings: Settings;
  #service: WorkerService | undefined;
  #listener: Listener | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.name = `stepflow-http ${settings.host}:${settings.port}`;
  }

  get url(): string | undefined {
    const { host } = this.#settings;
    return this.#listener === undefined ? undefined : `http://${host.includes(":") ? `[${host}]` : host}:${this.#listener.port}`;
  }

  async start(host: TransportHost): Promise<void> {
    // Loaded on start, so that a program that only imports this module loads no HTTP server.
    const [{ listen }, { WorkerService }] = await Promise.all([import("./listener.ts"), import("./service.ts")]);
    const settings = this.#settings;
    this.#service = new WorkerService(host, settings);
    const { clock, draining } = host;
    const options = { settings, service: this.#service, clock, isDraining: () => draining.aborted };
    this.#listener = await listen(options);
    if (!isLoopback(settings.host)) host.notice({ level: "warn", message: openToAll(settings) });
    host.notice({ level: "info", message: `Stepflow workers are called at ${this.url}: ${this.#service.paths.join(", ")}` });
    if (!settings.handshake) host.working("handshake");
    // Printed last, because the reader may call at once. Nothing else is written to standard output.
    settings.announce(`${JSON.stringify({ port: this.#listener.port })}\n`);
  }

  /** Connections stay open: running tasks may still call the runtime, and get the responses on these connections. */
  async drain(): Promise<void> {
    await this.#service?.drained();
  }

  async stop(): Promise<void> {
    await this.#listener?.close();
    await this.#service?.close();
  }
}

function openToAll({ host }: Settings): string {
  return `The worker listens on ${host}. The protocol has no authentication: every client that reaches this address can run its components.`;
}
