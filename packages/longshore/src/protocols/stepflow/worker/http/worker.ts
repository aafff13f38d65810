// The worker half of Stepflow over HTTP: the runtime dials, this transport listens. It speaks both dialects of JSON-RPC over Streamable
// HTTP at once. README.md of this protocol is the contract; its part "Our worker" lists what is decided here.

import { isLoopback } from "../../../../core/loopback.ts";
import type { Capabilities, Transport, TransportHost } from "../../../../runner/transport.ts";
import type { Listener } from "./listener.ts";
import { type Settings, type StepflowHttpOptions, settingsOf } from "./options.ts";
import type { WorkerService } from "./service.ts";

/** The transport of `stepflowHttp()`, with the address it listens on. */
export interface StepflowHttpTransport extends Transport {
  /** `http://127.0.0.1:41234`; undefined before it has started. */
  readonly url: string | undefined;
}

/** `await work({ tasks, on: stepflowHttp({ port: 8080 }) })` */
export function stepflowHttp(options: StepflowHttpOptions = {}): StepflowHttpTransport {
  return new StepflowHttp(settingsOf(options));
}

/** The runtime takes neither log lines nor progress; a deferral waits in its slot. */
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
    // Loaded only now: a program that merely imports this needs no HTTP server.
    const [{ listen }, { WorkerService }] = await Promise.all([import("./listener.ts"), import("./service.ts")]);
    const settings = this.#settings;
    this.#service = new WorkerService(host, settings);
    const { clock, draining } = host;
    const options = { settings, service: this.#service, clock, isDraining: () => draining.aborted };
    this.#listener = await listen(options);
    if (!isLoopback(settings.host)) host.notice({ level: "warn", message: openToAll(settings) });
    host.notice({ level: "info", message: `Stepflow workers are called at ${this.url}: ${this.#service.paths.join(", ")}` });
    if (!settings.handshake) host.working("handshake");
    // Last: the reader of it may call at once. Nothing else of ours is written to standard output.
    settings.announce(`${JSON.stringify({ port: this.#listener.port })}\n`);
  }

  /** Connections stay open: what runs may still call back, and is answered on them. */
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
