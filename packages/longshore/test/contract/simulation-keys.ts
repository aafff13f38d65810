// What clients of a simulation know about keys: a key belongs to one run and its input.

import { broken } from "./simulation-model.ts";

export class StartKeys {
  /** The run of each key, and its input if an answer has shown it. */
  readonly #known = new Map<string, { run: string; input: string | undefined }>();

  /** A start with this key was answered with a run. */
  accepted(key: string | undefined, run: string, input: string): void {
    if (key === undefined) return;
    const known = this.#same(key, run);
    if (known !== undefined && known !== input) throw broken(`key ${key} belongs to the input ${known}: ${input} was accepted`);
    this.#known.set(key, { run, input });
  }

  /** A start with this key was refused, because the key belongs to a run with another input. */
  refused(key: string | undefined, run: string, input: string): void {
    if (key === undefined) throw broken(`a start without a key was refused for the key of ${run}`);
    const known = this.#same(key, run);
    if (known === input) throw broken(`key ${key} belongs to the input ${known}, which was refused`);
    this.#known.set(key, { run, input: known });
  }

  #same(key: string, run: string): string | undefined {
    const known = this.#known.get(key);
    if (known !== undefined && known.run !== run) throw broken(`key ${key} has started ${known.run} and ${run}`);
    return known?.input;
  }
}

/** A run cannot begin another life while its workflow has as many open runs as it may have. */
export function limitReached(error: unknown): undefined {
  const { code, message = "" } = error as { code?: string; message?: string };
  if (code !== "LONGSHORE_CONFLICT" || !message.includes(" at a time")) throw error;
  return undefined;
}

/** The refusal of a start whose key belongs to a run with another input, as an answer. */
export function keyTaken(error: unknown): { taken: string } {
  const { code, detail } = error as { code?: string; detail?: { run?: string } };
  if (code !== "LONGSHORE_CONFLICT" || detail?.run === undefined) throw error;
  return { taken: detail.run };
}
