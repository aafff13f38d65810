// The commands of a durable function that its worker has not reported, in order. Side effects and `version` have their results already; when
// the function has received one of them, the command has a place (core/turn.ts).

import { sizeOf, type ValueSize } from "../../core/text-size.ts";
import type { Command } from "../../core/turn.ts";

export class Unreported {
  #commands: Command[] = [];
  /** How many commands have a place, and how many have a result without a place. */
  #placed = 0;
  #unplaced = 0;

  get size(): number {
    return this.#commands.length;
  }

  get placed(): number {
    return this.#placed;
  }

  get unplaced(): number {
    return this.#unplaced;
  }

  push(command: Command): void {
    this.#commands.push(command);
    if (command.place !== undefined) this.#placed++;
    else if (isRecord(command)) this.#unplaced++;
  }

  /** Gives each command that has a result a place. */
  place(placing: () => Pick<Command, "place" | "at">): void {
    for (const command of this.#clear())
      this.push(isRecord(command) && command.place === undefined ? { ...command, ...placing() } : command);
  }

  /** Drops the commands without a place. */
  keepPlaced(): void {
    for (const command of this.#clear()) if (command.place !== undefined) this.push(command);
  }

  /** Whether one call of `take` would take all commands. */
  isFit(max: number, size: ValueSize): boolean {
    return this.#fitting(max, size) === this.size;
  }

  /** Takes at most `max` commands, and fewer when their values are large together; at least one. */
  take(max: number, size: ValueSize): Command[] {
    const count = this.#fitting(max, size);
    const all = this.#clear();
    for (const command of all.slice(count)) this.push(command);
    return all.slice(0, count);
  }

  clear(): void {
    this.#clear();
  }

  #fitting(max: number, { chars, values }: ValueSize): number {
    let count = 0;
    for (const left = { chars, values }; count < Math.min(max, this.size); count++) {
      const { input = null, output = null } = this.#commands[count] as Command;
      for (const value of [input, output]) {
        const size = sizeOf(value, left);
        left.chars -= size.chars;
        left.values -= size.values;
      }
      if (count > 0 && (left.chars < 0 || left.values < 0)) break;
    }
    return count;
  }

  #clear(): Command[] {
    const all = this.#commands;
    this.#commands = [];
    this.#placed = 0;
    this.#unplaced = 0;
    return all;
  }
}

/** Whether the command has its result when it is reported. */
function isRecord({ kind }: Command): boolean {
  return kind === "local" || kind === "version";
}
